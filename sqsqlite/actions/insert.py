# SPDX-License-Identifier: Apache-2.0
"""Messages that were elsewhere before: stored with their ids, send times and receive counts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqsqlite.actions import dead_letters, fair, groups
from sqsqlite.actions.messages import uuid_text
from sqsqlite.actions.queue_rows import QueueRow, find_queue
from sqsqlite.sql import messages as sql
from sqsqlite.sql.operators import BEGIN_SEQUENCE, INSERT_LOADED_LEASE, RAISE_SEQUENCE

if TYPE_CHECKING:
    from sqsqlite.contract.prepared import PreparedMessage
    from sqsqlite.store.transaction import Transaction


class Source(NamedTuple):
    """Where a dead letter was moved from, and when (milliseconds since 1970 UTC).

    `earlier`: the moves before that one, the latest last.
    """

    arn: str
    receive_count: int
    moved_at: int
    earlier: tuple["Source", ...] = ()


class LoadedMessage(NamedTuple):
    """A message with its past. Instants are milliseconds since 1970 UTC; `visible_at` 0: at once.

    `sequence`: what it had in another file, 0 where it was in no FIFO queue.
    """

    message: "PreparedMessage"
    message_id: bytes
    sender_id: str | None
    sent_at: int
    visible_at: int
    receive_count: int
    queue_receive_count: int
    first_received_at: int | None
    source: Source | None
    sequence: int = 0


def append_loaded(tx: "Transaction", queue: QueueRow, loaded: Sequence[LoadedMessage]) -> None:
    """Store the messages in a queue, in order, behind the messages there.

    In the activity they count as sent: this queue did not have them before. On a FIFO queue they get new sequence
    numbers, above the numbers that they had and those given here.

    Raises:
        DiskFull: too little room is left; nothing was written.
    """
    size_bytes = sum(one.message.size_bytes for one in loaded)
    tx.require_room(size_bytes)
    sequence = max(one.sequence for one in loaded)
    if sequence:
        tx.execute(BEGIN_SEQUENCE)
        tx.execute(RAISE_SEQUENCE, {"sequence": sequence})
    rows = [
        (
            one.message_id,
            one.message.body_md5,
            one.sender_id,
            one.message.group_id,
            one.message.trace_header,
            one.message.attributes_json,
            one.message.body,
        )
        for one in loaded
    ]
    first: int = tx.execute(sql.INSERT_MESSAGE, rows[0]).lastrowid
    if len(rows) > 1:
        tx.connection.executemany(sql.INSERT_MESSAGE, rows[1:])
    leases = [
        (
            first + place,
            queue.epoch_id,
            one.sent_at,
            one.message.size_bytes,
            one.visible_at,
            one.receive_count,
            one.queue_receive_count,
            one.first_received_at,
            *_place(tx, queue, one),
        )
        for place, one in enumerate(loaded)
    ]
    tx.connection.executemany(INSERT_LOADED_LEASE, leases)
    _note_sources(tx, queue, first, loaded)
    delta = tx.delta(queue.epoch_id)
    delta.messages += len(loaded)
    delta.delayed += sum(1 for one in loaded if one.visible_at)
    delta.sent += len(loaded)
    delta.sent_bytes += size_bytes
    tx.wake(queue.id, min(one.visible_at for one in loaded))


def _place(tx: "Transaction", queue: QueueRow, one: LoadedMessage) -> tuple[int, int | None, str | None]:
    """Turn, group and deduplication id, as the queue has them."""
    message = one.message
    if not queue.fifo:
        fair_turn = fair.draw(tx, queue, message.group_id, one.visible_at)
        return fair_turn, None, None
    assert message.group_id is not None
    group_key = groups.join(tx, queue, message.group_id, one.visible_at or tx.now_ms)
    return 0, group_key, message.deduplication_id or uuid_text(one.message_id)


def _note_sources(tx: "Transaction", queue: QueueRow, first: int, loaded: Sequence[LoadedMessage]) -> None:
    noted = False
    for place, one in enumerate(loaded):
        if one.source is None:
            continue
        noted = True
        tx.execute(
            sql.INSERT_PROVENANCE,
            {
                "id": first + place,
                "epoch_id": queue.epoch_id,
                "source_queue_id": _queue_id(tx, one.source.arn),
                "source_arn": one.source.arn,
                "receive_count": one.source.receive_count,
                "moved_at": one.source.moved_at,
                "earlier": dead_letters.write([_move(tx, source) for source in one.source.earlier]),
            },
        )
    if noted and not queue.holds_dead_letters:
        tx.execute(sql.MARK_DEAD_LETTERS, {"id": queue.id})


def _move(tx: "Transaction", source: Source) -> dead_letters.Move:
    return dead_letters.Move(_queue_id(tx, source.arn), source.arn, source.receive_count, source.moved_at)


def _queue_id(tx: "Transaction", arn: str) -> int:
    """The id of the queue of that name in this file; 0, which no queue has, where the file has no such queue."""
    queue = find_queue(tx, arn)
    return 0 if queue is None else queue.id
