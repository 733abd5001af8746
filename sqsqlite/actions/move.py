"""Message move tasks: chunk by chunk, each in one transaction, by whichever process is alive.

A task goes once through its source, in order of age or FIFO group by group, behind a cursor that stands in its row, so
a message that it can't move is passed once, and it ends whatever is sent meanwhile. The row is leased to the process
that works on it: not for correctness, which each chunk's transaction gives, but so that two don't do the work of one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.actions.find import find_queue
from sqsqlite.actions.move_choice import CHUNK_ROWS, NO_SUCH_DESTINATION, Choice, Route, choose
from sqsqlite.actions.rows import Queue
from sqsqlite.actions.transfer import transfer
from sqsqlite.contract.move_filter import MoveFilter
from sqsqlite.errors import Corrupt, DiskFull
from sqsqlite.sql import moves as sql

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction

RUNNING, COMPLETED, CANCELLED, FAILED = "RUNNING", "COMPLETED", "CANCELLED", "FAILED"

TOO_LONG = "MaximumTaskDurationExceeded"

# A process that was killed leaves its tasks to others after so long.
LEASE_MS = 1_000
# A task with a rate moves a tenth of a second's messages at a time, and makes up for a second at most.
SECOND_MS = 1_000
CHUNKS_A_SECOND = 10


class MoveTask(NamedTuple):
    """An unfinished task's row."""

    task_id: str
    source_arn: str
    source_epoch_id: int
    destination_arn: str | None
    filter: str | None
    max_messages_per_second: int | None
    failure_reason: str | None
    started_at: int
    last_message_id: int
    due_at: int
    cursor_sent_at: int
    cursor_id: int
    leased_until_at: int
    lease_token: bytes | None

    def free_at(self, worker: bytes) -> int:
        """When `worker` may do the next chunk: when it is due, and others' lease has ended."""
        return self.due_at if self.lease_token == worker else max(self.due_at, self.leased_until_at)


def first_due_at(rate: int | None, now_ms: int) -> int:
    """When a task that starts now may move its first messages."""
    return now_ms if rate is None else now_ms + _duration_ms(_step(rate), rate)


def next_move_at(execute: Callable[..., Any], worker: bytes) -> int | None:
    """When `worker` has a chunk to do; None: there is no unfinished task."""
    return min((task.free_at(worker) for task in _unfinished(execute)), default=None)


def move_chunk(tx: "Transaction", worker: bytes) -> None:
    """Do one chunk of the task that has waited longest, if one is due.

    Args:
        worker: names this process's work in the tasks' leases.

    Raises:
        DiskFull: too little room is left to copy the messages; nothing was written.
    """
    for task in _unfinished(tx.execute):
        if task.free_at(worker) <= tx.now_ms:
            _work_on(tx, task, worker)
            return


def leave_moves(tx: "Transaction", worker: bytes) -> None:
    """Leave this worker's tasks to others at once."""
    tx.execute(sql.LEAVE_MOVE_TASKS, {"lease_token": worker})


def end(tx: "Transaction", task_id: str, status: str, failure_reason: str | None = None) -> None:
    """A task is over."""
    row = {"task_id": task_id, "status": status, "failure_reason": failure_reason, "now_ms": tx.now_ms}
    tx.execute(sql.END_MOVE_TASK, row)


def _unfinished(execute: Callable[..., Any]) -> list[MoveTask]:
    return [MoveTask(*row) for row in execute(sql.LIST_UNFINISHED_MOVE_TASKS).fetchall()]


def _work_on(tx: "Transaction", task: MoveTask, worker: bytes) -> None:
    source = find_queue(tx.execute, task.source_arn)
    if source is None or source.epoch_id != task.source_epoch_id:
        # Deleted or purged: none of its messages is left.
        end(tx, task.task_id, COMPLETED)
    elif tx.now_ms - task.started_at >= tx.settings.limits.move_task_seconds * SECOND_MS:
        end(tx, task.task_id, FAILED, TOO_LONG)
    elif task.destination_arn is not None and find_queue(tx.execute, task.destination_arn) is None:
        end(tx, task.task_id, FAILED, NO_SUCH_DESTINATION)
    else:
        _move(tx, task, source, worker)


def _move(tx: "Transaction", task: MoveTask, source: Queue, worker: bytes) -> None:
    due_at = _made_up_from(task, tx.now_ms)
    choice = _choose_with_room(tx, task, source, _allowed(task, due_at, tx.now_ms))
    moved_count = sum(
        transfer(tx, source, destination, messages) for destination, messages in choice.moves.items()
    )
    failure_reason = task.failure_reason or choice.failure_reason
    rate = task.max_messages_per_second
    due_at = tx.now_ms if rate is None else due_at + _duration_ms(moved_count, rate)
    row = {
        "task_id": task.task_id,
        "moved_count": moved_count,
        "cursor_sent_at": choice.cursor[0],
        "cursor_id": choice.cursor[1],
        "failure_reason": failure_reason,
        "due_at": due_at,
        "leased_until_at": max(tx.now_ms, due_at) + LEASE_MS,
        "lease_token": worker,
    }
    tx.execute(sql.ADVANCE_MOVE_TASK, row)
    if choice.is_last:
        end(tx, task.task_id, COMPLETED if failure_reason is None else FAILED, failure_reason)


def _choose_with_room(tx: "Transaction", task: MoveTask, source: Queue, allowed: int) -> Choice:
    """As many messages as there is room to copy on the disk: on a nearly full one, one at a time."""
    conditions = None if task.filter is None else _conditions(task)
    expired_at = source.expired_at(tx.now_ms, tx.settings.jumps)
    route = Route(source, task.destination_arn, conditions, task.started_at, task.last_message_id, expired_at)
    cursor = task.cursor_sent_at, task.cursor_id
    choice = choose(tx.execute, tx.now_ms, route, cursor, allowed)
    try:
        tx.require_room(choice.size_bytes)
    except DiskFull:
        choice = choose(tx.execute, tx.now_ms, route, cursor, min(allowed, 1))
        tx.require_room(choice.size_bytes)
    return choice


def _conditions(task: MoveTask) -> MoveFilter:
    assert task.filter is not None
    try:
        return MoveFilter.from_json(task.filter)
    except (TypeError, ValueError) as error:
        raise Corrupt(f"sqs_move_tasks, task {task.task_id}: its filter can't be read") from error


# --- the rate: a task's due_at moves on by what its messages take


def _step(rate: int) -> int:
    return max(1, rate // CHUNKS_A_SECOND)


def _duration_ms(count: int, rate: int) -> int:
    """Rounded up: never faster than asked for."""
    return -(-count * SECOND_MS // rate)


def _made_up_from(task: MoveTask, now_ms: int) -> int:
    """The task's due_at, brought closer to the present: a file closed for a day is not followed by a flood."""
    rate = task.max_messages_per_second
    if rate is None:
        return task.due_at
    return max(task.due_at, now_ms - SECOND_MS + _duration_ms(_step(rate), rate))


def _allowed(task: MoveTask, due_at: int, now_ms: int) -> int:
    """Messages that may be moved now: the step that is due, and what came due since. The 1 is what was rounded up."""
    rate = task.max_messages_per_second
    if rate is None:
        return CHUNK_ROWS
    return min(CHUNK_ROWS, _step(rate) + (now_ms - due_at + 1) * rate // SECOND_MS)
