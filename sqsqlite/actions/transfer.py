"""Messages of one queue made new messages of another, in one transaction: each is in exactly one of them."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.actions import fair, groups, provenance, unreadable
from sqsqlite.actions.rows import Queue
from sqsqlite.sql import fifo as fifo_sql
from sqsqlite.sql import messages as statements
from sqsqlite.sql import moves as sql
from sqsqlite.store.damage import undecoded
from sqsqlite.store.driver import dbapi

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


class Movable(NamedTuple):
    """A message of a dead-letter queue, with where it came from (None: it was sent there directly).

    `earlier`: the moves before that one, as `provenance` has them.
    """

    id: int
    sent_at: int
    size_bytes: int
    visible_at: int
    was_received: int
    group_key: int | None
    source_arn: str | None
    receive_count: int | None
    moved_at: int | None
    earlier: str | None


def transfer(tx: "Transaction", source: Queue, destination: Queue, messages: Sequence[Movable]) -> int:
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
    tx: "Transaction", source: Queue, messages: Sequence[Movable]
) -> tuple[Sequence[Movable], list[tuple[int, str]]]:
    """The messages that can be moved, and (place, group) of those that have a group."""
    listed = {"ids": json.dumps([message.id for message in messages])}
    try:
        rows = tx.execute(sql.LIST_GROUPS, listed).fetchall()
    except dbapi.Error as error:
        unreadable.refuse_other(error)
        with undecoded(tx.connection):
            rows = tx.execute(sql.LIST_GROUPS, listed).fetchall()
    grouped: list[tuple[int, str]] = sorted(row for row in rows if isinstance(row[1], str))
    if not source.fifo or len(grouped) == len(messages):
        return messages, grouped
    places = {place for place, _ in grouped}
    for place, message in enumerate(messages):
        if place not in places:
            why = "its group can't be read: it is not moved"
            tx.damaged.append(unreadable.line(message.id, source.name, why))
    return [messages[place] for place in sorted(places)], list(enumerate(group for _, group in grouped))


def _join_groups(
    tx: "Transaction", destination: Queue, ids: str, first_id: int, grouped: list[tuple[int, str]]
) -> None:
    for group_id in dict.fromkeys(group_id for _, group_id in grouped):
        groups.join(tx, destination, group_id, tx.now_ms)
    lease = {"ids": ids, "first_id": first_id, "epoch_id": destination.epoch_id, "now_ms": tx.now_ms}
    tx.execute(sql.COPY_FIFO_LEASES, lease)


def _take_turns(
    tx: "Transaction", destination: Queue, ids: str, first_id: int, grouped: list[tuple[int, str]]
) -> None:
    lease = {"ids": ids, "first_id": first_id, "epoch_id": destination.epoch_id, "now_ms": tx.now_ms}
    tx.execute(sql.COPY_LEASES, {**lease, "turn": fair.clock(tx, destination)})
    turns = [(fair.draw(tx, destination, group_id), first_id + place) for place, group_id in grouped]
    tx.connection.executemany(fifo_sql.SET_TURN, turns)


def _note_sources(
    tx: "Transaction", source: Queue, destination: Queue, messages: Sequence[Movable], first_id: int
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
    tx: "Transaction", source: Queue, destination: Queue, message: Movable, new_id: int
) -> Iterator[dict[str, Any]]:
    """The new message's provenance: the old one's without its last move. None where damage has left nothing of it."""
    assert message.earlier is not None
    try:
        *before, last = provenance.read(message.earlier)
    except ValueError:
        why = "where it died before can't be read: it comes back as one that was sent there"
        tx.damaged.append(unreadable.line(message.id, source.name, why))
        return
    yield {
        "id": new_id,
        "epoch_id": destination.epoch_id,
        "source_queue_id": last.source_queue_id,
        "source_arn": last.source_arn,
        "receive_count": last.receive_count,
        "moved_at": tx.now_ms,
        "earlier": provenance.write(before),
    }


def _leave_groups(tx: "Transaction", source: Queue, messages: Sequence[Movable]) -> None:
    first_gone: dict[int, int] = {}
    for message in messages:
        if message.group_key is not None:
            first_gone[message.group_key] = min(message.id, first_gone.get(message.group_key, message.id))
    for group_key, removed_id in first_gone.items():
        groups.refresh(tx, source.id, group_key, removed_id)


def _count(tx: "Transaction", source: Queue, destination: Queue, messages: Sequence[Movable]) -> None:
    count = len(messages)
    left = tx.delta(source.epoch_id)
    left.messages -= count
    left.deleted += count
    for message in messages:
        # Hidden by its row, visible by the clock: nobody has promoted it.
        if message.visible_at:
            left.in_flight -= message.was_received
            left.delayed -= not message.was_received
    arrived = tx.delta(destination.epoch_id)
    arrived.messages += count
    arrived.sent += count
    arrived.sent_bytes += sum(message.size_bytes for message in messages)
