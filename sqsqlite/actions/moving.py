# SPDX-License-Identifier: Apache-2.0
"""Message move tasks: chunk by chunk, each in one transaction, by any process that is alive.

A chunk makes messages of one queue new messages of another; each is in exactly one of them. A task goes once through
its source, in order of age or FIFO group by group, behind a cursor that stands in its row. So it passes a message that
it can't move once, and it ends even if more are sent meanwhile. The row is leased to the process that works on it: each
chunk's transaction gives correctness, and the lease keeps two processes from doing one process's work.
"""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.actions import damaged, dead_letters, fair, groups
from sqsqlite.actions.move_choice import CHUNK_ROWS, NO_SUCH_DESTINATION, Choice, Movable, Route, choose
from sqsqlite.actions.queue_rows import QueueRow, find_queue
from sqsqlite.contract.move_filter import MoveFilter
from sqsqlite.errors import Corrupt, DiskFull
from sqsqlite.sql import fifo as fifo_sql
from sqsqlite.sql import messages as statements
from sqsqlite.sql import moves as sql
from sqsqlite.store.damage import undecoded
from sqsqlite.store.driver import dbapi
from sqsqlite.store.transaction import Snapshot

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


def transfer(tx: "Transaction", source: QueueRow, destination: QueueRow, messages: Sequence[Movable]) -> int:
    """Move the messages, in order, to a queue of the same type. Gives how many.

    There they are new: id, time of sending, receive count, retention, and on FIFO queues their sequence, last in their
    groups. Content, sender, attributes, group and deduplication id stay. The queue's delay does not apply to them, and
    they repeat no earlier send. There they count as sent, in the source as deleted. What goes back to the queue it was
    moved from is a dead letter there if it was one before.

    A damaged message of a FIFO queue stays if its group can't be read: it would be in none.
    """
    messages, grouped = _with_groups(tx, source, messages)
    if not messages:
        return 0
    ids = json.dumps([message.id for message in messages])
    first_id: int = tx.execute(sql.SELECT_LAST_MESSAGE_ID).fetchone()[0] + 1
    tx.execute(sql.COPY_MESSAGES, {"ids": ids, "first_id": first_id})
    if destination.fifo:
        _join_groups(tx, destination, ids, first_id, grouped)
    else:
        _take_turns(tx, destination, ids, first_id, grouped)
    _note_sources(tx, source, destination, messages, first_id)
    for statement in (sql.DELETE_MOVED_LEASES, sql.DELETE_MOVED_DEAD_LETTERS, sql.DELETE_MOVED_MESSAGES):
        tx.execute(statement, {"ids": ids})
    _leave_groups(tx, source, messages)
    _count(tx, source, destination, messages)
    tx.wake(destination.id, 0)
    return len(messages)


def _with_groups(
    tx: "Transaction", source: QueueRow, messages: Sequence[Movable]
) -> tuple[Sequence[Movable], list[tuple[int, str]]]:
    """The messages that can be moved, and (place, group) of the messages that have a group."""
    listed = {"ids": json.dumps([message.id for message in messages])}
    try:
        rows = tx.execute(sql.LIST_GROUPS, listed).fetchall()
    except dbapi.Error as error:
        damaged.refuse_other(error)
        with undecoded(tx.connection):
            rows = tx.execute(sql.LIST_GROUPS, listed).fetchall()
    grouped: list[tuple[int, str]] = sorted(row for row in rows if isinstance(row[1], str))
    if not source.fifo or len(grouped) == len(messages):
        return messages, grouped
    places = {place for place, _ in grouped}
    for place, message in enumerate(messages):
        if place not in places:
            why = "its group can't be read: it is not moved"
            tx.damaged += (damaged.line(message.id, source.name, why),)
    return [messages[place] for place in sorted(places)], list(enumerate(group for _, group in grouped))


def _join_groups(
    tx: "Transaction", destination: QueueRow, ids: str, first_id: int, grouped: list[tuple[int, str]]
) -> None:
    for group_id in dict.fromkeys(group_id for _, group_id in grouped):
        groups.join(tx, destination, group_id, tx.now_ms)
    lease = {"ids": ids, "first_id": first_id, "epoch_id": destination.epoch_id, "now_ms": tx.now_ms}
    tx.execute(sql.COPY_FIFO_LEASES, lease)


def _take_turns(
    tx: "Transaction", destination: QueueRow, ids: str, first_id: int, grouped: list[tuple[int, str]]
) -> None:
    lease = {"ids": ids, "first_id": first_id, "epoch_id": destination.epoch_id, "now_ms": tx.now_ms}
    tx.execute(sql.COPY_LEASES, {**lease, "turn": fair.clock(tx, destination)})
    turns = [(fair.draw(tx, destination, group_id), first_id + place) for place, group_id in grouped]
    tx.connection.executemany(fifo_sql.SET_TURN, turns)


def _note_sources(
    tx: "Transaction", source: QueueRow, destination: QueueRow, messages: Sequence[Movable], first_id: int
) -> None:
    """Where the messages came from that go one step back in a chain of dead-letter queues."""
    arn_end = f":{destination.account_id}:{destination.name}"
    rows = [
        row
        for place, message in enumerate(messages)
        if message.earlier is not None
        and message.source_arn is not None
        and message.source_arn.endswith(arn_end)
        for row in _step_back(tx, source, destination, message, first_id + place)
    ]
    if rows:
        tx.connection.executemany(statements.INSERT_PROVENANCE, rows)
        if not destination.holds_dead_letters:
            tx.execute(statements.MARK_DEAD_LETTERS, {"id": destination.id})


def _step_back(
    tx: "Transaction", source: QueueRow, destination: QueueRow, message: Movable, new_id: int
) -> Iterator[dict[str, Any]]:
    """The new message's provenance: the old one's without its last move. None where damage has left nothing of it."""
    assert message.earlier is not None
    try:
        *before, last = dead_letters.read(message.earlier)
    except ValueError:
        why = "where it died before can't be read: it comes back as one that was sent there"
        tx.damaged += (damaged.line(message.id, source.name, why),)
        return
    yield {
        "id": new_id,
        "epoch_id": destination.epoch_id,
        "source_queue_id": last.source_queue_id,
        "source_arn": last.source_arn,
        "receive_count": last.receive_count,
        "moved_at": tx.now_ms,
        "earlier": dead_letters.write(before),
    }


def _leave_groups(tx: "Transaction", source: QueueRow, messages: Sequence[Movable]) -> None:
    first_gone: dict[int, int] = {}
    for message in messages:
        if message.group_key is not None:
            first_gone[message.group_key] = min(message.id, first_gone.get(message.group_key, message.id))
    for group_key, removed_id in first_gone.items():
        groups.refresh(tx, source.id, group_key, removed_id)


def _count(tx: "Transaction", source: QueueRow, destination: QueueRow, messages: Sequence[Movable]) -> None:
    count = len(messages)
    left = tx.delta(source.epoch_id)
    left.messages -= count
    left.deleted += count
    for message in messages:
        # Hidden by its row, visible by the clock: no claim has promoted it yet.
        if message.visible_at:
            left.in_flight -= message.was_received
            left.delayed -= not message.was_received
    arrived = tx.delta(destination.epoch_id)
    arrived.messages += count
    arrived.sent += count
    arrived.sent_bytes += sum(message.size_bytes for message in messages)


RUNNING, COMPLETED, CANCELLED, FAILED = "RUNNING", "COMPLETED", "CANCELLED", "FAILED"

TOO_LONG = "MaximumTaskDurationExceeded"

# A process that was killed leaves its tasks to others after so long.
LEASE_MS = 1_000
# A task with a rate moves a tenth of a second's messages at a time, and makes up for a second at most.
SECOND_MS = 1_000
CHUNKS_A_SECOND = 10


class MoveTaskRow(NamedTuple):
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


def next_move_at(at: Snapshot, worker: bytes) -> int | None:
    """When `worker` has a chunk to do; None: every task is finished."""
    return min((task.free_at(worker) for task in _unfinished(at)), default=None)


def move_chunk(tx: "Transaction", worker: bytes) -> None:
    """Do one chunk of the task that has waited longest, if one is due.

    Args:
        worker: names this process's work in the tasks' leases.

    Raises:
        DiskFull: too little room is left to copy the messages; nothing was written.
    """
    for task in _unfinished(tx):
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


def _unfinished(at: Snapshot) -> list[MoveTaskRow]:
    return [MoveTaskRow(*row) for row in at.execute(sql.LIST_UNFINISHED_MOVE_TASKS).fetchall()]


def _work_on(tx: "Transaction", task: MoveTaskRow, worker: bytes) -> None:
    source = find_queue(tx, task.source_arn)
    if source is None or source.epoch_id != task.source_epoch_id:
        # Deleted or purged: none of its messages is left.
        end(tx, task.task_id, COMPLETED)
    elif tx.now_ms - task.started_at >= tx.settings.limits.move_task_seconds * SECOND_MS:
        end(tx, task.task_id, FAILED, TOO_LONG)
    elif task.destination_arn is not None and find_queue(tx, task.destination_arn) is None:
        end(tx, task.task_id, FAILED, NO_SUCH_DESTINATION)
    else:
        _move(tx, task, source, worker)


def _move(tx: "Transaction", task: MoveTaskRow, source: QueueRow, worker: bytes) -> None:
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


def _choose_with_room(tx: "Transaction", task: MoveTaskRow, source: QueueRow, allowed: int) -> Choice:
    """As many messages as there is room to copy on the disk: on a nearly full one, one at a time."""
    conditions = None if task.filter is None else _conditions(task)
    expired_at = source.expired_at(tx)
    route = Route(source, task.destination_arn, conditions, task.started_at, task.last_message_id, expired_at)
    cursor = task.cursor_sent_at, task.cursor_id
    choice = choose(tx, route, cursor, allowed)
    try:
        tx.require_room(choice.size_bytes)
    except DiskFull:
        choice = choose(tx, route, cursor, min(allowed, 1))
        tx.require_room(choice.size_bytes)
    return choice


def _conditions(task: MoveTaskRow) -> MoveFilter:
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


def _made_up_from(task: MoveTaskRow, now_ms: int) -> int:
    """The task's due_at, brought closer to the present: a file closed for a day is not followed by a flood."""
    rate = task.max_messages_per_second
    if rate is None:
        return task.due_at
    return max(task.due_at, now_ms - SECOND_MS + _duration_ms(_step(rate), rate))


def _allowed(task: MoveTaskRow, due_at: int, now_ms: int) -> int:
    """Messages that may be moved now: the step that is due, and what came due since. The 1 is what was rounded up."""
    rate = task.max_messages_per_second
    if rate is None:
        return CHUNK_ROWS
    return min(CHUNK_ROWS, _step(rate) + (now_ms - due_at + 1) * rate // SECOND_MS)
