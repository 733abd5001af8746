"""Sending: a message and its lease, under one id.

What is bound to the hot statements is int, str or bytearray, never None or bytes: the driver sends those two through
its adapters, which costs a microsecond each. Hence the statement for plain messages, and the bytearrays.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import fair
from sqsqlite.actions.rows import Queue
from sqsqlite.sql import messages as sql

if TYPE_CHECKING:
    from sqsqlite.contract.prepared import PreparedMessage
    from sqsqlite.store.transaction import Transaction

_TEN = 10


def new_message_id() -> bytearray:
    """A random UUID (version 4), as its 16 bytes."""
    value = bytearray(os.urandom(16))
    value[6] = value[6] & 0x0F | 0x40
    value[8] = value[8] & 0x3F | 0x80
    return value


def append(
    tx: "Transaction", queue: Queue, messages: "Sequence[PreparedMessage]", sender_id: str | None
) -> list[bytearray]:
    """Store the messages, in order, and give back their message ids.

    Args:
        sender_id: None: the queue's own account.

    Raises:
        DiskFull: too little room is left to go on deleting afterwards; nothing was written.
    """
    if len(messages) == 1:
        return [_append_one(tx, queue, messages[0], sender_id)]
    size_bytes = sum([message.size_bytes for message in messages])
    tx.require_room(size_bytes)
    message_ids = [new_message_id() for _ in messages]
    first = insert_messages(tx, messages, message_ids, sender_id)
    delta = tx.delta(queue.epoch_id)
    earliest = _insert_leases(tx, queue, messages, first, delta)
    delta.messages += len(messages)
    delta.sent += len(messages)
    delta.sent_bytes += size_bytes
    tx.wake(queue.id, earliest)
    return message_ids


def _append_one(
    tx: "Transaction", queue: Queue, message: "PreparedMessage", sender_id: str | None
) -> bytearray:
    """`append` without lists: most sends are of one message."""
    size_bytes = message.size_bytes
    tx.require_room(size_bytes)
    message_id = new_message_id()
    lease_id = insert_message(tx, message, message_id, sender_id)
    delta = tx.delta(queue.epoch_id)
    delay = queue.delay_seconds if message.delay_seconds is None else message.delay_seconds
    visible_at = 0
    if delay:
        visible_at = tx.now_ms + delay * 1000
        delta.delayed += 1
    lease = (lease_id, queue.epoch_id, tx.now_ms, size_bytes, visible_at)
    if queue.has_tenants or message.group_id is not None:
        tx.execute(sql.INSERT_LEASE_WITH_TURN, (*lease, fair.draw(tx, queue, message.group_id, visible_at)))
    else:
        tx.execute(sql.INSERT_LEASE, lease)
    delta.messages += 1
    delta.sent += 1
    delta.sent_bytes += size_bytes
    tx.wake(queue.id, visible_at)
    return message_id


def insert_message(
    tx: "Transaction", message: "PreparedMessage", message_id: bytearray, sender_id: str | None
) -> int:
    """The message's own row, without a lease. Gives its row id."""
    row: tuple[Any, ...]
    if sender_id is not None or message.attributes_json is not None or message.trace_header is not None:
        statement, row = sql.INSERT_MESSAGE, _row(message, message_id, sender_id)
    elif message.group_id is None:
        statement, row = sql.INSERT_PLAIN_MESSAGE, (message_id, message.body_md5, message.body)
    else:
        row = (message_id, message.body_md5, message.group_id, message.body)
        statement = sql.INSERT_GROUPED_MESSAGE
    return int(tx.execute(statement, row).lastrowid)


def insert_messages(
    tx: "Transaction",
    messages: "Sequence[PreparedMessage]",
    message_ids: list[bytearray],
    sender_id: str | None,
) -> int:
    """`insert_message` for several. Gives the first row id; the others follow it, since nobody else can write."""
    if len(messages) == 1:
        return insert_message(tx, messages[0], message_ids[0], sender_id)
    if sender_id is None and all(_has_body_alone(message) for message in messages):
        if all(message.group_id is None for message in messages):
            return _insert_plain(tx, messages, message_ids)
        if all(message.group_id is not None for message in messages):
            return _insert_grouped(tx, messages, message_ids)
    return _insert(tx, messages, message_ids, sender_id)


def _has_body_alone(message: "PreparedMessage") -> bool:
    return message.attributes_json is None and message.trace_header is None


def _insert_plain(
    tx: "Transaction", messages: "Sequence[PreparedMessage]", message_ids: list[bytearray]
) -> int:
    """Body and ids only."""
    rows: list[Any] = []
    for message, message_id in zip(messages, message_ids, strict=True):
        rows += (message_id, message.body_md5, message.body)
    first = 0
    width = 3 * _TEN
    for start in range(0, len(rows), width):
        some = rows[start : start + width]
        if len(some) == width:
            last = tx.execute(sql.INSERT_TEN_PLAIN_MESSAGES, some).lastrowid
            first = first or last - _TEN + 1
        else:
            for place in range(0, len(some), 3):
                last = tx.execute(sql.INSERT_PLAIN_MESSAGE, some[place : place + 3]).lastrowid
                first = first or last
    return int(first)


def _insert_grouped(
    tx: "Transaction", messages: "Sequence[PreparedMessage]", message_ids: list[bytearray]
) -> int:
    rows = [
        (message_id, message.body_md5, message.group_id, message.body)
        for message, message_id in zip(messages, message_ids, strict=True)
    ]
    first: int = tx.execute(sql.INSERT_GROUPED_MESSAGE, rows[0]).lastrowid
    tx.connection.executemany(sql.INSERT_GROUPED_MESSAGE, rows[1:])
    return first


def _insert(
    tx: "Transaction",
    messages: "Sequence[PreparedMessage]",
    message_ids: list[bytearray],
    sender_id: str | None,
) -> int:
    rows = [
        _row(message, message_id, sender_id)
        for message, message_id in zip(messages, message_ids, strict=True)
    ]
    first: int = tx.execute(sql.INSERT_MESSAGE, rows[0]).lastrowid
    tx.connection.executemany(sql.INSERT_MESSAGE, rows[1:])
    return first


def _row(message: "PreparedMessage", message_id: bytearray, sender_id: str | None) -> tuple[Any, ...]:
    return (
        message_id,
        message.body_md5,
        sender_id,
        message.group_id,
        message.trace_header,
        message.attributes_json,
        message.body,
    )


def _insert_leases(
    tx: "Transaction", queue: Queue, messages: "Sequence[PreparedMessage]", first: int, delta: Any
) -> int:
    """A lease for each message. Gives the earliest instant at which one is visible, 0: now."""
    now_ms, epoch_id, queue_delay = tx.now_ms, queue.epoch_id, queue.delay_seconds
    earliest = -1
    leases = []
    lease_id = first
    for message in messages:
        delay = message.delay_seconds
        if delay is None:
            delay = queue_delay
        visible_at = 0
        if delay:
            visible_at = now_ms + delay * 1000
            delta.delayed += 1
        if visible_at < earliest or earliest < 0:
            earliest = visible_at
        leases.append((lease_id, epoch_id, now_ms, message.size_bytes, visible_at))
        lease_id += 1
    if queue.has_tenants or any(message.group_id is not None for message in messages):
        with_turns = [
            (*lease, fair.draw(tx, queue, message.group_id, lease[-1]))
            for lease, message in zip(leases, messages, strict=True)
        ]
        tx.connection.executemany(sql.INSERT_LEASE_WITH_TURN, with_turns)
    else:
        tx.connection.executemany(sql.INSERT_LEASE, leases)
    return earliest
