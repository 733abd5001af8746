# SPDX-License-Identifier: Apache-2.0
"""Many messages in one transaction: what SQS's batches of ten can't say."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import delete, fifo_send, queue_rows
from sqsqlite.actions.fifo_send import find_settings
from sqsqlite.actions.send import append, prepare, prepare_fifo, sent
from sqsqlite.contract import requests, shapes
from sqsqlite.contract.prepared import PreparedMessage
from sqsqlite.contract.responses import SendMessageResponse
from sqsqlite.errors import SQSError

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.store.driver import Connection
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction


def send_many(
    store: "Store",
    queue_url: str,
    entries: Sequence[dict[str, Any]],
    caller: "Caller",
    connection: "Connection | None" = None,
) -> list[SendMessageResponse]:
    """Send all the entries (members of SendMessage) in one transaction, or none of them.

    Raises:
        SQSError: of the first entry that is refused; its place, from 0, stands before the message.
    """
    messages = [
        shapes.parse(requests.SendMessage, {"QueueUrl": queue_url, **entry}, store.settings.limits)
        for entry in entries
    ]
    if connection is not None:
        return store.join(connection, _send_all, queue_url, messages, caller)
    return store.write(_send_all, queue_url, messages, caller)


def delete_many(
    store: "Store",
    queue_url: str,
    handles: Sequence[str],
    caller: "Caller",
    connection: "Connection | None" = None,
    *,
    missing_ok: bool,
) -> None:
    """Delete the messages of all the handles in one transaction, or none of them: see `delete.delete_many`."""
    operation = partial(delete.delete_many, missing_ok=missing_ok)
    if connection is not None:
        store.join(connection, operation, queue_url, handles, caller)
    else:
        store.write(operation, queue_url, handles, caller)


def _send_all(
    tx: "Transaction", queue_url: str, messages: list[requests.SendMessage], caller: "Caller"
) -> list[SendMessageResponse]:
    queue = queue_rows.find(tx, queue_url, caller)
    settings = find_settings(tx, queue) if queue.fifo else None
    prepared: list[PreparedMessage] = []
    for place, message in enumerate(messages):
        try:
            if settings is None:
                prepared.append(prepare(tx, queue, message))
            else:
                prepared.append(prepare_fifo(tx, queue, message, settings))
        except SQSError as error:
            raise type(error)(f"message {place}: {error.message}") from error
    if not prepared:
        return []
    if settings is not None:
        appended = fifo_send.append(tx, queue, prepared, caller.sender_id, settings)
        return [sent(message, *one) for message, one in zip(prepared, appended, strict=True)]
    message_ids = append(tx, queue, prepared, caller.sender_id)
    return [sent(message, message_id) for message, message_id in zip(prepared, message_ids, strict=True)]
