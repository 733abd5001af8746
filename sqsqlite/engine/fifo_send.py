"""Sending to FIFO queues: each message joins its group, unless its deduplication id was accepted minutes ago."""

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from sqsqlite import statements_fifo as sql
from sqsqlite.engine import groups
from sqsqlite.engine.rows import Queue
from sqsqlite.engine.send import insert_message, new_message_id

if TYPE_CHECKING:
    from sqsqlite.prepared import PreparedMessage
    from sqsqlite.store.transaction import Transaction


class FifoSettings(NamedTuple):
    """How a FIFO queue tells duplicates: by the content where a message has no id of its own; within each group."""

    content_based_deduplication: bool
    by_group: bool


class Appended(NamedTuple):
    """A message as it was stored, now or when its first copy came. `sequence` grows with each message of the file."""

    message_id: bytes | bytearray
    sequence: int


def find_settings(tx: "Transaction", queue: Queue) -> FifoSettings:
    """The queue's row as sends go by it. compat="aws": the scope stays what it was when the queue was created."""
    content_based, scope, first_scope = tx.execute(sql.SELECT_FIFO_SETTINGS, (queue.id,)).fetchone()
    if tx.settings.compat == "aws":
        scope = first_scope
    return FifoSettings(bool(content_based), scope == "messageGroup")


def append(
    tx: "Transaction",
    queue: Queue,
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
    return [_append_one(tx, queue, message, sender_id, settings) for message in messages]


def _append_one(
    tx: "Transaction",
    queue: Queue,
    message: "PreparedMessage",
    sender_id: str | None,
    settings: FifoSettings,
) -> Appended:
    assert message.group_id is not None
    deduplication_id = message.deduplication_id or sha256(message.body.encode()).hexdigest()
    first = _first_copy(tx, queue, message.group_id, deduplication_id, by_group=settings.by_group)
    if first is not None:
        tx.delta(queue.epoch_id).deduplicated += 1
        return first
    message_id = new_message_id()
    lease_id = append_to_group(tx, queue, message, message_id, sender_id, deduplication_id)
    expires_at = tx.now_ms + tx.settings.limits.deduplication_seconds * 1000
    row = (queue.epoch_id, deduplication_id, message.group_id, message_id, lease_id, expires_at)
    tx.execute(sql.SET_DEDUPLICATION, row)
    return Appended(message_id, lease_id)


def _first_copy(
    tx: "Transaction", queue: Queue, group_id: str, deduplication_id: str, *, by_group: bool
) -> Appended | None:
    """What was accepted under the id within five minutes: rather in the same group, where several groups had it."""
    row = (queue.epoch_id, deduplication_id, tx.now_ms)
    if by_group:
        rows = tx.execute(sql.FIND_DUPLICATE_IN_GROUP, (*row, group_id)).fetchall()
    else:
        rows = tx.execute(sql.FIND_DUPLICATE, row).fetchall()
    if not rows:
        return None
    message_id, sequence, _ = max(rows, key=lambda found: found[2] == group_id)
    return Appended(message_id, sequence)


def append_to_group(
    tx: "Transaction",
    queue: Queue,
    message: "PreparedMessage",
    message_id: bytearray,
    sender_id: str | None,
    deduplication_id: str,
) -> int:
    """Store one message as the last of its group, duplicate or not. Gives its row id, which is its sequence too."""
    assert message.group_id is not None
    lease_id = insert_message(tx, message, message_id, sender_id)
    delta = tx.delta(queue.epoch_id)
    visible_at = 0
    if queue.delay_seconds:
        visible_at = tx.now_ms + queue.delay_seconds * 1000
        delta.delayed += 1
    group_key = groups.join(tx, queue, message.group_id, visible_at or tx.now_ms)
    row = (
        lease_id,
        queue.epoch_id,
        group_key,
        tx.now_ms,
        message.size_bytes,
        visible_at,
        deduplication_id,
    )
    tx.execute(sql.INSERT_FIFO_LEASE, row)
    delta.messages += 1
    delta.sent += 1
    delta.sent_bytes += message.size_bytes
    tx.wake(queue.id, visible_at)
    return lease_id
