"""Message move tasks: chunk by chunk, each in one transaction, by whichever process is alive.

A task goes once through its source in order of age, behind a cursor that stands in its row, so a message that it can't
move is passed once, and it ends whatever is sent meanwhile. The row is leased to the process that works on it: not for
correctness, which each chunk's transaction gives, but so that two don't do the work of one.
"""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite import statements as queue_sql
from sqsqlite import statements_moves as sql
from sqsqlite.engine.rows import Queue
from sqsqlite.engine.transfer import Movable, transfer
from sqsqlite.move_filter import MoveFilter
from sqsqlite.names import queue_name

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction

RUNNING, COMPLETED, CANCELLED, FAILED = "RUNNING", "COMPLETED", "CANCELLED", "FAILED"

NO_SUCH_DESTINATION = "AWS.SimpleQueueService.NonExistentQueue"
NO_KNOWN_SOURCE = "CouldNotDetermineMessageSource"
TOO_LONG = "MaximumTaskDurationExceeded"

# Messages looked at in a chunk: 500 plain ones take about 5 ms. And their bytes, beyond the first message.
CHUNK_ROWS = 500
CHUNK_BYTES = 1024 * 1024
# A process that was killed leaves its tasks to others after so long.
LEASE_MS = 1_000
# A task with a rate moves a tenth of a second's messages at a time, and makes up for a second at most.
SECOND_MS = 1_000
CHUNKS_A_SECOND = 10
_NO_ID = 1 << 62


class MoveTask(NamedTuple):
    """An unfinished task's row."""

    id: int
    account_id: str
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


class Chunk(NamedTuple):
    """What a chunk moves, by destination, and how far it comes.

    Attributes:
        cursor: time of sending and row id of the last message looked at.
        failure_reason: why a message had to stay, in this chunk or before.
        is_last: nothing is behind it.
    """

    moves: dict[Queue, list[Movable]]
    cursor: tuple[int, int]
    failure_reason: str | None
    is_last: bool


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


def find_queue(tx: "Transaction", arn: str) -> Queue | None:
    """The queue of that name: also one deleted and made again."""
    where = queue_name(arn)
    row = tx.execute(queue_sql.SELECT_QUEUE, where).fetchone()
    return None if row is None else Queue(*row + where)


def end(tx: "Transaction", task_id: int, status: str, failure_reason: str | None = None) -> None:
    """A task is over; `task_id` is its row's."""
    row = {"id": task_id, "status": status, "failure_reason": failure_reason, "now_ms": tx.now_ms}
    tx.execute(sql.END_MOVE_TASK, row)


def _unfinished(execute: Callable[..., Any]) -> list[MoveTask]:
    return [MoveTask(*row) for row in execute(sql.LIST_UNFINISHED_MOVE_TASKS).fetchall()]


def _work_on(tx: "Transaction", task: MoveTask, worker: bytes) -> None:
    source = find_queue(tx, task.source_arn)
    if source is None or source.epoch_id != task.source_epoch_id:
        # Deleted or purged: none of its messages is left.
        _finish(tx, task, task.failure_reason)
    elif tx.now_ms - task.started_at >= tx.settings.limits.move_task_seconds * SECOND_MS:
        end(tx, task.id, FAILED, TOO_LONG)
    elif task.destination_arn is not None and find_queue(tx, task.destination_arn) is None:
        end(tx, task.id, FAILED, NO_SUCH_DESTINATION)
    else:
        _move(tx, task, source, worker)


def _finish(tx: "Transaction", task: MoveTask, failure_reason: str | None) -> None:
    end(tx, task.id, COMPLETED if failure_reason is None else FAILED, failure_reason)


def _move(tx: "Transaction", task: MoveTask, source: Queue, worker: bytes) -> None:
    due_at = _made_up_from(task, tx.now_ms)
    chunk = _choose(tx, task, source, _allowed(task, due_at, tx.now_ms))
    tx.require_room(sum(one.size_bytes for messages in chunk.moves.values() for one in messages))
    for destination, messages in chunk.moves.items():
        transfer(tx, source, destination, messages)
    moved_count = sum(len(messages) for messages in chunk.moves.values())
    rate = task.max_messages_per_second
    due_at = tx.now_ms if rate is None else due_at + _duration_ms(moved_count, rate)
    row = {
        "id": task.id,
        "moved_count": moved_count,
        "cursor_sent_at": chunk.cursor[0],
        "cursor_id": chunk.cursor[1],
        "failure_reason": chunk.failure_reason,
        "due_at": due_at,
        "leased_until_at": max(tx.now_ms, due_at) + LEASE_MS,
        "lease_token": worker,
    }
    tx.execute(sql.ADVANCE_MOVE_TASK, row)
    if chunk.is_last:
        _finish(tx, task, chunk.failure_reason)


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


# --- the choice


def _choose(tx: "Transaction", task: MoveTask, source: Queue, allowed: int) -> Chunk:
    """Go through the next messages in order of age, until so many are found that can be moved."""
    messages, is_last = _next_messages(tx, task, source)
    wanted = _wanted(tx, task, messages)
    destinations: dict[str, Queue | None] = {}
    moves: dict[Queue, list[Movable]] = {}
    cursor = task.cursor_sent_at, task.cursor_id
    failure_reason = task.failure_reason
    for message in messages:
        if message.id in wanted:
            arn = task.destination_arn or message.source_arn
            if arn is None:
                failure_reason = failure_reason or NO_KNOWN_SOURCE
            else:
                if arn not in destinations:
                    destinations[arn] = find_queue(tx, arn)
                destination = destinations[arn]
                if destination is None:
                    failure_reason = failure_reason or NO_SUCH_DESTINATION
                elif allowed:
                    moves.setdefault(destination, []).append(message)
                    allowed -= 1
                else:
                    return Chunk(moves, cursor, failure_reason, is_last=False)
        cursor = message.sent_at, message.id
    return Chunk(moves, cursor, failure_reason, is_last)


def _next_messages(tx: "Transaction", task: MoveTask, source: Queue) -> tuple[list[Movable], bool]:
    """The messages behind the cursor, a chunk of them, and whether these are all."""
    after = max((task.cursor_sent_at, task.cursor_id), (source.expired_at(tx.now_ms), _NO_ID))
    bounds = {
        "epoch_id": source.epoch_id,
        "after_sent_at": after[0],
        "after_id": after[1],
        "last_id": task.last_message_id,
        "started_at": task.started_at,
        "limit": CHUNK_ROWS,
    }
    messages = [Movable(*row) for row in tx.execute(sql.LIST_MOVABLE, bounds).fetchall()]
    size_bytes = 0
    for place, message in enumerate(messages):
        size_bytes += message.size_bytes
        if place and size_bytes > CHUNK_BYTES:
            return messages[:place], False
    return messages, len(messages) < CHUNK_ROWS


def _wanted(tx: "Transaction", task: MoveTask, messages: Sequence[Movable]) -> set[int]:
    """Ids of those that are visible and pass the filter."""
    locked = _locked_groups(tx, messages)
    found = {
        message.id
        for message in messages
        if message.visible_at <= tx.now_ms and message.group_key not in locked
    }
    if task.filter is None:
        return found
    conditions = MoveFilter.from_json(task.filter)
    found &= {
        message.id
        for message in messages
        if conditions.allows(message.source_arn, message.receive_count, message.moved_at)
    }
    if conditions.body is not None:
        listed = {"ids": json.dumps(sorted(found)), "text": conditions.body}
        found = {row[0] for row in tx.execute(sql.LIST_WITH_BODY, listed).fetchall()}
    return found


def _locked_groups(tx: "Transaction", messages: Sequence[Movable]) -> set[int | None]:
    """FIFO: groups whose first message is hidden. Those behind it can't be received, so they are not moved either."""
    keys = {message.group_key for message in messages} - {None}
    if not keys:
        return set()
    listed = {"group_keys": json.dumps(list(keys)), "now_ms": tx.now_ms}
    return {row[0] for row in tx.execute(sql.LIST_LOCKED_GROUPS, listed).fetchall()}
