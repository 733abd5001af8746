# SPDX-License-Identifier: Apache-2.0
"""The table of actions: each request, whatever door it came through, is executed here."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqsqlite.actions import delete, move_tasks, queue_rows, queues, receive, send, tags, visibility
from sqsqlite.actions.queue_rows import LOCAL, Caller
from sqsqlite.contract import requests, shapes
from sqsqlite.contract.shapes import AnyRequest
from sqsqlite.errors import SQSError, UnsupportedOperation
from sqsqlite.store.driver import Connection
from sqsqlite.store.store import Store

WRITES: dict[type, Callable[..., Any]] = {
    requests.CreateQueue: queues.create_queue,
    requests.DeleteQueue: queues.delete_queue,
    requests.PurgeQueue: queues.purge_queue,
    requests.SetQueueAttributes: queues.set_queue_attributes,
    requests.TagQueue: tags.tag_queue,
    requests.UntagQueue: tags.untag_queue,
    requests.AddPermission: tags.add_permission,
    requests.RemovePermission: tags.remove_permission,
    requests.SendMessage: send.send_message,
    requests.SendMessageBatch: send.send_message_batch,
    requests.DeleteMessage: delete.delete_message,
    requests.DeleteMessageBatch: delete.delete_message_batch,
    requests.ChangeMessageVisibility: visibility.change_message_visibility,
    requests.ChangeMessageVisibilityBatch: visibility.change_message_visibility_batch,
    requests.StartMessageMoveTask: move_tasks.start_message_move_task,
    requests.CancelMessageMoveTask: move_tasks.cancel_message_move_task,
}

READS: dict[type, Callable[..., Any]] = {
    requests.GetQueueUrl: queues.get_queue_url,
    requests.ListQueues: queues.list_queues,
    requests.ListDeadLetterSourceQueues: queues.list_dead_letter_source_queues,
    requests.GetQueueAttributes: queues.get_queue_attributes,
    requests.ListQueueTags: tags.list_queue_tags,
    requests.ListMessageMoveTasks: move_tasks.list_message_move_tasks,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One operation, as the store's observers get it after the answer.

    Attributes:
        action: SQS's name of it.
        request: what was asked.
        response: what was answered, None after an error.
        error: the error, if it was one.
        seconds: how long it took, waiting for messages included.
    """

    action: str
    request: Any
    response: Any
    error: Exception | None
    seconds: float


def call(
    store: Store,
    kind: type,
    parameters: Mapping[str, Any],
    caller: Caller = LOCAL,
    connection: Connection | None = None,
) -> Any:
    """Make the request of AWS-cased parameters and execute it.

    A queue that does not exist is reported before anything else that is wrong with the request, as SQS does.
    """
    request: Any = _parse(store, kind, parameters, caller, connection)
    operation = WRITES.get(kind)
    if operation is None or connection is not None or store.observers:
        return execute(store, request, caller, connection)
    return store.write(operation, request, caller)


def _parse(
    store: Store,
    kind: type[AnyRequest],
    parameters: Mapping[str, Any],
    caller: Caller,
    connection: Connection | None,
) -> AnyRequest:
    try:
        return shapes.parse(kind, parameters, store.settings.limits)
    except SQSError:
        url = parameters.get("QueueUrl")
        if isinstance(url, str) and url:
            with store.reading(connection) as snapshot:
                queue_rows.find(snapshot, url, caller)
        raise


def execute(store: Store, request: Any, caller: Caller = LOCAL, connection: Connection | None = None) -> Any:
    """Carry a request out: in one transaction, or in the caller's, and notify the observers.

    Args:
        connection: an application's connection whose transaction the operation joins.

    Raises:
        SQSError: SQS would answer this.
        StoreError: the file can't be read or written.
    """
    started = time.perf_counter()
    response = error = None
    try:
        response = _execute(store, request, caller, connection)
        return response
    except Exception as caught:
        error = caught
        raise
    finally:
        notify(store, request, response, error, time.perf_counter() - started)


def _execute(store: Store, request: Any, caller: Caller, connection: Connection | None) -> Any:
    kind = type(request)
    if kind is requests.ReceiveMessage:
        found = _receive(store, request, caller, connection)
        return receive.answer_to(found, request, store.settings.sealer)
    operation = WRITES.get(kind)
    if operation is None:
        return execute_read(store, request, caller, connection)
    if connection is not None:
        return store.join(connection, operation, request, caller)
    return store.write(operation, request, caller)


def receive_rows(
    store: Store, parameters: Mapping[str, Any], caller: Caller, connection: Connection | None
) -> receive.Found | None:
    """`call` of ReceiveMessage for Python's `Message`, which takes the rows as they are, not SQS's texts of them."""
    request = _parse(store, requests.ReceiveMessage, parameters, caller, connection)
    if not store.observers:
        return _receive(store, request, caller, connection)
    found: receive.Found | None = None
    error = None
    started = time.perf_counter()
    try:
        found = _receive(store, request, caller, connection)
        return found
    except Exception as caught:
        error = caught
        raise
    finally:
        response = None if error else receive.answer_to(found, request, store.settings.sealer)
        notify(store, request, response, error, time.perf_counter() - started)


def _receive(
    store: Store, request: requests.ReceiveMessage, caller: Caller, connection: Connection | None
) -> receive.Found | None:
    if connection is None:
        return receive.receive_message(store, request, caller)
    return store.join(connection, receive.claim_within, request, caller)


def notify(store: Store, request: Any, response: Any, error: Exception | None, seconds: float) -> None:
    """Notify the observers of an operation that is over.

    What an observer raises is logged: raised here, it would make a committed send look like one that failed.
    """
    if store.observers:
        event = Event(type(request).action, request, response, error, seconds)
        for observe in store.observers:
            try:
                observe(event)
            except Exception:
                import logging

                logging.getLogger("sqsqlite").exception("an observer of %s failed", event.action)


def execute_read(store: Store, request: Any, caller: Caller, connection: Connection | None = None) -> Any:
    """An action that changes nothing: in one snapshot, or in the caller's transaction. Observers are not told."""
    operation = READS.get(type(request))
    if operation is None:
        raise UnsupportedOperation(f"{type(request).action} is not supported by this version.")
    with store.reading(connection) as snapshot:
        return operation(snapshot, request, caller)
