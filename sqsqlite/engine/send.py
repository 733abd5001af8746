"""Sending: a message and its lease, under one id."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqsqlite import statements as sql
from sqsqlite.engine.rows import Queue

if TYPE_CHECKING:
    from sqsqlite.prepared import PreparedMessage
    from sqsqlite.store.transaction import Transaction

_VERSION_4 = 4 << 76
_VARIANT = 2 << 62
_KEPT = ((1 << 128) - 1) ^ (0xF << 76) ^ (3 << 62)


def new_message_id() -> bytes:
    """A random UUID (version 4), as its 16 bytes."""
    return (int.from_bytes(os.urandom(16)) & _KEPT | _VERSION_4 | _VARIANT).to_bytes(16)


def append(
    tx: "Transaction", queue: Queue, messages: "Sequence[PreparedMessage]", sender_id: str
) -> list[bytes]:
    """Store the messages, in order, and give back their message ids.

    Raises:
        DiskFull: too little room is left to go on deleting afterwards; nothing was written.
    """
    now_ms = tx.now_ms
    size_bytes = 0
    for message in messages:
        size_bytes += message.size_bytes
    tx.require_room(size_bytes)
    delta = tx.delta(queue.epoch_id)
    wake_at = -1
    message_ids = []
    rows = []
    hidden_until = []
    for message in messages:
        message_id = new_message_id()
        message_ids.append(message_id)
        rows.append(
            (
                message_id,
                message.body_md5,
                sender_id,
                message.group_id,
                message.trace_header,
                message.attributes_json,
                message.body,
            )
        )
        delay_seconds = queue.delay_seconds if message.delay_seconds is None else message.delay_seconds
        visible_at = now_ms + delay_seconds * 1000 if delay_seconds else 0
        hidden_until.append(visible_at)
        if visible_at:
            delta.delayed += 1
        if wake_at < 0 or visible_at < wake_at:
            wake_at = visible_at
    epoch_id = queue.epoch_id
    first = tx.execute(sql.INSERT_MESSAGE, rows[0]).lastrowid
    leases = [
        (first + place, epoch_id, 0, now_ms, message.size_bytes, hidden_until[place])
        for place, message in enumerate(messages)
    ]
    if len(rows) == 1:
        tx.execute(sql.INSERT_LEASE, leases[0])
    else:
        rest = [(first + place, *rows[place]) for place in range(1, len(rows))]
        tx.connection.executemany(sql.INSERT_MESSAGE_AT, rest)
        tx.connection.executemany(sql.INSERT_LEASE, leases)
    delta.messages += len(rows)
    delta.sent += len(rows)
    delta.sent_bytes += size_bytes
    tx.wake(queue.id, wake_at)
    return message_ids
