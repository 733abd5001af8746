# SPDX-License-Identifier: Apache-2.0
"""Sending to FIFO queues: each message joins its group, unless its deduplication id was accepted minutes ago.

A FIFO queue's delay: a new one also holds for the messages that were sent under the old one.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from sqsqlite.actions import groups
from sqsqlite.actions.messages import in_tens, insert_messages, new_message_id
from sqsqlite.actions.queue_rows import QueueRow
from sqsqlite.sql import fifo as sql

if TYPE_CHECKING:
    from sqsqlite.contract.prepared import PreparedMessage
    from sqsqlite.store.transaction import Transaction


class FifoSettings(NamedTuple):
    """How a FIFO queue tells duplicates: by the content where a message has no id of its own; within each group."""

    content_based_deduplication: bool
    by_group: bool


class Appended(NamedTuple):
    """A message as it was stored, now or when its first copy came. `sequence` grows with each message of the file."""

    message_id: bytes | bytearray
    sequence: int


def find_settings(tx: "Transaction", queue: QueueRow) -> FifoSettings:
    """The queue's row as sends go by it. compat="aws": the scope stays what it was when the queue was created."""
    content_based, scope, first_scope = tx.execute(sql.SELECT_FIFO_SETTINGS, (queue.id,)).fetchone()
    if tx.settings.compat == "aws":
        scope = first_scope
    return FifoSettings(bool(content_based), scope == "messageGroup")


def append(
    tx: "Transaction",
    queue: QueueRow,
    messages: "Sequence[PreparedMessage]",
    sender_id: str | None,
    settings: FifoSettings,
) -> list[Appended]:
    """Store the messages, in order; a duplicate is not stored, and answers what its first copy answered.

    Args:
        messages: each has a group, and a deduplication id or a queue that makes it of the content.
        sender_id: None: the queue's own account.

    Raises:
        DiskFull: too little room is left to go on deleting afterwards; nothing was written.
    """
    tx.require_room(sum([message.size_bytes for message in messages]))
    deduplication_ids = [
        message.deduplication_id or sha256(message.body.encode()).hexdigest() for message in messages
    ]
    accepted = _accepted(tx, queue, messages, deduplication_ids, by_group=settings.by_group)
    fresh: list[_Fresh] = []
    answers: list[Appended | _Fresh] = []
    for message, deduplication_id in zip(messages, deduplication_ids, strict=True):
        assert message.group_id is not None
        copies = accepted.setdefault(deduplication_id, {})
        first = copies.get(message.group_id)
        if first is None and not settings.by_group:
            first = next(iter(copies.values()), None)
        if first is None:
            first = copies[message.group_id] = _Fresh(message, deduplication_id, new_message_id())
            fresh.append(first)
        answers.append(first)
    if fresh:
        _store(tx, queue, fresh, sender_id)
    tx.delta(queue.epoch_id).deduplicated += len(messages) - len(fresh)
    return [one if isinstance(one, Appended) else Appended(one.message_id, one.lease_id) for one in answers]


class _Fresh:
    """A message that is not a duplicate."""

    __slots__ = ("deduplication_id", "lease_id", "message", "message_id")

    def __init__(self, message: "PreparedMessage", deduplication_id: str, message_id: bytearray) -> None:
        self.message = message
        self.deduplication_id = deduplication_id
        self.message_id = message_id
        self.lease_id = 0


def _accepted(
    tx: "Transaction",
    queue: QueueRow,
    messages: "Sequence[PreparedMessage]",
    deduplication_ids: list[str],
    *,
    by_group: bool,
) -> "dict[str, dict[str, Appended | _Fresh]]":
    """What was accepted under the ids within five minutes, by id and group."""
    found: list[tuple[str, str, bytes, int]] = []
    where = (queue.epoch_id, tx.now_ms)
    if by_group:
        # Not by the id alone: each of a hundred thousand groups may have had it.
        for message, deduplication_id in zip(messages, deduplication_ids, strict=True):
            row = (*where, deduplication_id, message.group_id)
            found += tx.execute(sql.FIND_DUPLICATE_IN_GROUP, row).fetchall()
    elif len(messages) == 1:
        found = tx.execute(sql.FIND_DUPLICATE, (*where, deduplication_ids[0])).fetchall()
    else:
        for ten in in_tens(deduplication_ids):
            found += tx.execute(sql.FIND_TEN_DUPLICATES, (*where, *ten)).fetchall()
    accepted: dict[str, dict[str, Appended | _Fresh]] = {}
    for deduplication_id, group_id, message_id, sequence in found:
        accepted.setdefault(deduplication_id, {})[group_id] = Appended(message_id, sequence)
    return accepted


def _store(tx: "Transaction", queue: QueueRow, fresh: list[_Fresh], sender_id: str | None) -> None:
    """Store the messages, each the last of its group. A row id is its message's sequence too."""
    lease_id = insert_messages(
        tx, [one.message for one in fresh], [one.message_id for one in fresh], sender_id
    )
    visible_at = tx.now_ms + queue.delay_seconds * 1000 if queue.delay_seconds else 0
    expires_at = tx.now_ms + tx.settings.limits.deduplication_seconds * 1000
    group_keys: dict[str, int] = {}
    leases, memories = [], []
    epoch_id, now_ms, delta = queue.epoch_id, tx.now_ms, tx.delta(queue.epoch_id)
    for one in fresh:
        message, deduplication_id = one.message, one.deduplication_id
        group_id = message.group_id
        assert group_id is not None
        group_key = group_keys.get(group_id)
        if group_key is None:
            group_key = group_keys[group_id] = groups.join(tx, queue, group_id, visible_at or now_ms)
        one.lease_id = lease_id
        leases.append(
            (lease_id, epoch_id, group_key, now_ms, message.size_bytes, visible_at, deduplication_id)
        )
        memories.append((epoch_id, deduplication_id, group_id, one.message_id, lease_id, expires_at))
        delta.sent_bytes += message.size_bytes
        lease_id += 1
    if len(fresh) == 1:
        tx.execute(sql.INSERT_FIFO_LEASE, leases[0])
        tx.execute(sql.SET_DEDUPLICATION, memories[0])
    else:
        tx.connection.executemany(sql.INSERT_FIFO_LEASE, leases)
        tx.connection.executemany(sql.SET_DEDUPLICATION, memories)
    delta.messages += len(fresh)
    delta.sent += len(fresh)
    delta.delayed += len(fresh) if visible_at else 0
    tx.wake(queue.id, visible_at)


def delay_again(tx: "Transaction", queue_id: int, epoch_id: int, old_seconds: int, new_seconds: int) -> None:
    """Hide each message that was never received until its send plus the new delay; at once visible if that is over.

    A message that a move task brought stays visible, as long as it would have been hidden had it been sent instead.
    Later nothing tells the two apart.

    It goes through the messages sent within the longer of the two delays, at most 15 minutes' worth.
    """
    since = tx.now_ms - max(old_seconds, new_seconds) * 1000
    bounds = {"epoch_id": epoch_id, "since": since}
    before: int = tx.execute(sql.COUNT_DELAYED_SINCE, bounds).fetchone()[0]
    delays = {"old_delay_ms": old_seconds * 1000, "delay_ms": new_seconds * 1000, "now_ms": tx.now_ms}
    rows = tx.execute(sql.DELAY_AGAIN, {**bounds, **delays}).fetchall()
    after: int = tx.execute(sql.COUNT_DELAYED_SINCE, bounds).fetchone()[0]
    tx.delta(epoch_id).delayed += after - before
    changed = {lease_id for lease_id, _ in rows}
    for group_key in dict.fromkeys(group_key for _, group_key in rows):
        head_id, visible_at = tx.execute(sql.SELECT_HEAD, (group_key,)).fetchone()
        # A group whose head stays as it is keeps its place among the waiting groups.
        if head_id in changed:
            groups.release(tx, queue_id, group_key, visible_at)
