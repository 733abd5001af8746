# SPDX-License-Identifier: Apache-2.0
"""Message move tasks: start, list, cancel. `actions/moving.py` carries them out, chunk by chunk, after the commit."""

import base64
import binascii
import json
import uuid
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import queue_rows
from sqsqlite.actions.moving import CANCELLED, RUNNING, end, first_due_at
from sqsqlite.actions.queues import exact_counts
from sqsqlite.contract.names import is_queue_arn, queue_arn
from sqsqlite.contract.responses import (
    CancelMessageMoveTaskResponse,
    ListMessageMoveTasksResponse,
    ListMessageMoveTasksResultEntry,
    StartMessageMoveTaskResponse,
)
from sqsqlite.errors import InvalidParameterValue, OverLimit, QueueDoesNotExist, ResourceNotFoundException
from sqsqlite.sql import moves as sql
from sqsqlite.store.transaction import Snapshot, Transaction

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract import requests
    from sqsqlite.contract.move_filter import MoveFilter

# Of each source: as many as can be listed.
_KEPT = 10
_BAD_HANDLE = "Value for parameter TaskHandle is invalid."


def start_message_move_task(
    tx: Transaction,
    request: "requests.StartMessageMoveTask",
    caller: "Caller",
    move_filter: "MoveFilter | None" = None,
) -> StartMessageMoveTaskResponse:
    """Begin to move a dead-letter queue's visible messages, those sent so far: to one queue, or each to its source.

    Args:
        move_filter: take only some of them. Ours: SQS has no such parameter.

    Raises:
        ResourceNotFoundException: the source or the destination does not exist.
        InvalidParameterValue: the source is not a dead-letter queue, or has a task already; the destination is the
            source, or of the other type.
        OverLimit: 100 tasks of the account are active.
    Source: API_StartMessageMoveTask.
    """
    source = check_start(tx, request, caller)
    task_id = str(uuid.uuid4())
    tx.execute(
        sql.INSERT_MOVE_TASK,
        {
            "task_id": task_id,
            "account_id": caller.account_id,
            "source_arn": request.source_arn,
            "source_epoch_id": source["epoch_id"],
            "destination_arn": request.destination_arn,
            "filter": None if move_filter is None else move_filter.to_json(),
            "max_messages_per_second": request.max_number_of_messages_per_second,
            "now_ms": tx.now_ms,
            "last_message_id": tx.execute(sql.SELECT_LAST_MESSAGE_ID).fetchone()[0],
            "to_move_count": _visible_count(tx, source),
            "due_at": first_due_at(request.max_number_of_messages_per_second, tx.now_ms),
        },
    )
    tx.execute(sql.DELETE_OLD_MOVE_TASKS, {"source_arn": request.source_arn, "kept": _KEPT})
    tx.moves = True
    return StartMessageMoveTaskResponse(task_handle=_handle(task_id, request.source_arn))


def check_start(at: Snapshot, request: "requests.StartMessageMoveTask", caller: "Caller") -> dict[str, Any]:
    """Whether the task could start now: the source's whole row. Raises as `start_message_move_task`."""
    source = _find(at, request.source_arn, caller, "SourceArn")
    if at.execute(sql.FIND_SOURCE_OF_DEAD_LETTERS, {"arn": request.source_arn}).fetchone() is None:
        raise InvalidParameterValue("Source queue must be configured as a Dead Letter Queue.")
    if request.destination_arn is not None:
        _check_destination(at, request.destination_arn, source, caller)
    if at.execute(sql.FIND_ACTIVE_MOVE_TASK, {"source_arn": request.source_arn}).fetchone() is not None:
        raise InvalidParameterValue(
            "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
        )
    limit = at.settings.limits.move_task_count
    if at.execute(sql.COUNT_ACTIVE_MOVE_TASKS, {"account_id": caller.account_id}).fetchone()[0] >= limit:
        raise OverLimit(f"{limit} message movement tasks are active, the maximum allowed is {limit}.")
    return source


def _find(at: Snapshot, arn: str, caller: "Caller", parameter: str) -> dict[str, Any]:
    """The queue's whole row. The whole ARN must be its own: another region's names a queue of somewhere else."""
    missing = ResourceNotFoundException(
        f"The resource that you specified for the {parameter} parameter doesn't exist."
    )
    try:
        row = queue_rows.find_row(at, arn, caller)
    except QueueDoesNotExist:
        raise missing from None
    if arn != queue_arn(at.settings.region, caller.account_id, row["name"]):
        raise missing
    return row


def _check_destination(at: Snapshot, arn: str, source: dict[str, Any], caller: "Caller") -> None:
    if not is_queue_arn(arn):
        raise InvalidParameterValue(
            "You must use this format to specify the DestinationArn: "
            "arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
        )
    destination = _find(at, arn, caller, "DestinationArn")
    if destination["id"] == source["id"]:
        raise _bad_destination(arn, "Destination must not be the source queue itself.")
    if destination["fifo"] != source["fifo"]:
        raise _bad_destination(arn, "Destination must be same type of queue as the source.")


def _bad_destination(arn: str, reason: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"Value {arn} for parameter DestinationArn is invalid. Reason: {reason}")


def _visible_count(tx: Transaction, source: dict[str, Any]) -> int:
    """With what this very transaction has changed, which the counts' row does not show yet."""
    visible = exact_counts(tx, source)[0]
    delta = tx.deltas.get(source["epoch_id"])
    return visible if delta is None else visible + delta.messages - delta.in_flight - delta.delayed


def list_message_move_tasks(
    snapshot: Snapshot, request: "requests.ListMessageMoveTasks", caller: "Caller"
) -> ListMessageMoveTasksResponse:
    """The latest tasks of a source, the newest first: one unless MaxResults says more.

    Raises:
        ResourceNotFoundException: the queue does not exist.
    Source: API_ListMessageMoveTasks.
    """
    return ListMessageMoveTasksResponse(results=[entry for _, entry in list_tasks(snapshot, request, caller)])


def list_tasks(
    at: Snapshot, request: "requests.ListMessageMoveTasks", caller: "Caller"
) -> list[tuple[str, ListMessageMoveTasksResultEntry]]:
    """With the handle of each, which SQS shows of running ones alone. Raises as `list_message_move_tasks`."""
    _find(at, request.source_arn, caller, "SourceArn")
    asked = {"source_arn": request.source_arn, "max_results": request.max_results or 1}
    rows = at.execute(sql.LIST_MOVE_TASKS, asked).fetchall()
    return [(_handle(row[0], request.source_arn), _entry(*row)) for row in rows]


def _entry(
    task_id: str,
    status: str,
    source_arn: str,
    destination_arn: str | None,
    max_messages_per_second: int | None,
    moved_count: int,
    to_move_count: int,
    failure_reason: str | None,
    started_at: int,
) -> ListMessageMoveTasksResultEntry:
    return ListMessageMoveTasksResultEntry(
        task_handle=_handle(task_id, source_arn) if status == RUNNING else None,
        status=status,
        source_arn=source_arn,
        destination_arn=destination_arn,
        max_number_of_messages_per_second=max_messages_per_second,
        approximate_number_of_messages_moved=moved_count,
        approximate_number_of_messages_to_move=to_move_count,
        # A running task notes why a message had to stay, and fails with it at its end.
        failure_reason=None if status == RUNNING else failure_reason,
        started_timestamp=started_at,
    )


def cancel_message_move_task(
    tx: Transaction, request: "requests.CancelMessageMoveTask", caller: "Caller"
) -> CancelMessageMoveTaskResponse:
    """Stop a running task. It is CANCELLED at once: no chunk is under way while another transaction writes.

    Raises:
        InvalidParameterValue: the handle has a wrong form.
        ResourceNotFoundException: the source or the task does not exist, or the task has ended.
    Source: API_CancelMessageMoveTask.
    """
    task_id, source_arn = _read_handle(request.task_handle)
    _find(tx, source_arn, caller, "SourceArn")
    row = tx.execute(sql.SELECT_MOVE_TASK, {"task_id": task_id}).fetchone()
    task = None if row is None else _entry(*row)
    if task is None or task.source_arn != source_arn:
        raise ResourceNotFoundException("Task does not exist.")
    if task.status != RUNNING:
        raise ResourceNotFoundException(
            f"Task is {task.status}: only a task that is RUNNING can be cancelled."
        )
    end(tx, task_id, CANCELLED)
    moved_count = task.approximate_number_of_messages_moved
    return CancelMessageMoveTaskResponse(approximate_number_of_messages_moved=moved_count)


def find_task(at: Snapshot, handle: str) -> ListMessageMoveTasksResultEntry | None:
    """The task of a handle, running or ended; None: this file no longer knows it.

    Raises:
        InvalidParameterValue: the handle has a wrong form.
    """
    task_id, _ = _read_handle(handle)
    row = at.execute(sql.SELECT_MOVE_TASK, {"task_id": task_id}).fetchone()
    return None if row is None else _entry(*row)


def list_origins(at: Snapshot, source_arn: str, caller: "Caller") -> list[str]:
    """The ARNs of the queues where the messages in a dead-letter queue died; empty if the queue does not exist."""
    try:
        source = queue_rows.find(at, source_arn, caller)
    except QueueDoesNotExist:
        return []
    return [arn for (arn,) in at.execute(sql.LIST_ORIGINS, {"epoch_id": source.epoch_id}).fetchall()]


def _handle(task_id: str, source_arn: str) -> str:
    text = json.dumps({"taskId": task_id, "sourceArn": source_arn}, separators=(",", ":"))
    return base64.b64encode(text.encode()).decode()


def _read_handle(handle: str) -> tuple[str, str]:
    """Task id and source ARN."""
    try:
        parts = json.loads(base64.b64decode(handle, validate=True))
        task_id, source_arn = parts["taskId"], parts["sourceArn"]
    except (binascii.Error, ValueError, LookupError, TypeError, RecursionError):
        raise InvalidParameterValue(_BAD_HANDLE) from None
    if not (_is_text(task_id) and _is_text(source_arn)):
        raise InvalidParameterValue(_BAD_HANDLE)
    return task_id, source_arn


def _is_text(part: object) -> bool:
    """Whether it is text that can be encoded. JSON may hold half of a surrogate pair, which can't."""
    return isinstance(part, str) and not any("\ud800" <= letter <= "\udfff" for letter in part)
