# SPDX-License-Identifier: Apache-2.0
"""Freeing space, in chunks: rows of purged and deleted queues, messages beyond retention, old history.

It never changes an answer: what it takes away no statement finds any more.
"""

from typing import TYPE_CHECKING

from sqsqlite.actions import groups
from sqsqlite.sql import file as file_sql
from sqsqlite.sql import messages as sql
from sqsqlite.sql import queues as queue_sql

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction

# Rows in a chunk: 500 take about a millisecond; more gains little and others wait longer (docs/storage.md).
CHUNK_ROWS = 500
# Queues that one chunk asks for messages beyond their retention: two milliseconds, found or not.
CHUNK_QUEUES = 200
# History of activity is kept for 400 days: a year and what it is compared with.
ACTIVITY_KEPT_MS = 400 * 86_400_000
TOMBSTONE_KEPT_MS = 60_000
# A tenant that has sent nothing for so long owes nothing for what it sends next.
TENANT_KEPT_MS = 300_000
# Free pages that stay for the messages to come; beyond them, and beyond a quarter of the file, they go back.
KEPT_FREE_PAGES = 4_096
_FOREVER = (1 << 63) - 1
_QUEUES_ARE_DONE = -1


def sweep_chunk(tx: "Transaction", place: int) -> int | None:
    """Take one chunk away.

    Args:
        place: how far the chunks before have come: 0, or what the last one gave.

    Returns:
        Where the next chunk goes on; None: nothing is left.
    """
    row = tx.execute(file_sql.FIND_DISCARDED_EPOCH).fetchone()
    if row is not None:
        _sweep_epoch(tx, row[0])
        return place
    if place != _QUEUES_ARE_DONE:
        return _sweep_expired(tx, place)
    if _give_back(tx):
        return place
    tx.execute(queue_sql.DELETE_TOMBSTONES, {"before_ms": tx.now_ms - TOMBSTONE_KEPT_MS})
    return place if _forget_old(tx) else None


def _forget_old(tx: "Transaction") -> bool:
    """Take away a chunk of each memory that has run out. True: there may be more."""
    taken = [
        tx.execute(file_sql.FORGET_DEDUPLICATIONS, {"now_ms": tx.now_ms, "limit": CHUNK_ROWS}).rowcount,
        tx.execute(file_sql.FORGET_RECEIVE_ATTEMPTS, {"now_ms": tx.now_ms, "limit": CHUNK_ROWS}).rowcount,
        tx.execute(
            file_sql.FORGET_TENANTS, {"before_ms": tx.now_ms - TENANT_KEPT_MS, "limit": CHUNK_ROWS}
        ).rowcount,
        tx.execute(
            file_sql.DELETE_OLD_ACTIVITY, {"before_ms": tx.now_ms - ACTIVITY_KEPT_MS, "limit": CHUNK_ROWS}
        ).rowcount,
    ]
    return CHUNK_ROWS in taken


def _give_back(tx: "Transaction") -> bool:
    """Give a chunk of free pages back to the disk, where many are free. True: there may be more."""
    free: int = tx.execute(file_sql.COUNT_FREE_PAGES).fetchone()[0]
    if free <= KEPT_FREE_PAGES or free <= tx.execute(file_sql.COUNT_PAGES).fetchone()[0] // 4:
        return False
    tx.execute(file_sql.GIVE_BACK_PAGES).fetchall()
    # Nothing moves in an adopted file whose owner chose no auto_vacuum.
    left: int = tx.execute(file_sql.COUNT_FREE_PAGES).fetchone()[0]
    return left < free


def _sweep_epoch(tx: "Transaction", epoch_id: int) -> None:
    """A chunk of an epoch that no queue has any more; the last chunk takes the epoch itself."""
    if len(_delete(tx, epoch_id, _FOREVER, CHUNK_ROWS)) == CHUNK_ROWS:
        return
    chunk = {"epoch_id": epoch_id, "limit": CHUNK_ROWS}
    for statement in (
        file_sql.SWEEP_GROUPS,
        file_sql.SWEEP_TENANTS,
        file_sql.SWEEP_DEDUPLICATIONS,
        file_sql.SWEEP_RECEIVE_ATTEMPTS,
    ):
        if tx.execute(statement, chunk).rowcount == CHUNK_ROWS:
            return
    tx.execute(queue_sql.DELETE_COUNTS, {"epoch_id": epoch_id})
    tx.execute(file_sql.DELETE_EPOCH, {"epoch_id": epoch_id})


def _sweep_expired(tx: "Transaction", after_id: int) -> int:
    """Ask the next queues for messages beyond their retention, up to one that has some. Gives where to go on."""
    page = {"after_id": after_id, "limit": CHUNK_QUEUES}
    queues = tx.execute(file_sql.LIST_RETENTIONS, page).fetchall()
    for queue_id, epoch_id, retention_seconds in queues:
        expired_at = tx.expired_at(retention_seconds)
        if delete_expired(tx, queue_id, epoch_id, expired_at, CHUNK_ROWS):
            return int(queue_id) - 1  # it may have more
    return queues[-1][0] if len(queues) == CHUNK_QUEUES else _QUEUES_ARE_DONE


def delete_expired(tx: "Transaction", queue_id: int, epoch_id: int, expired_at: int, limit: int) -> int:
    """Delete up to `limit` messages of a queue that were sent at or before `expired_at`. Gives how many."""
    if (
        tx.execute(queue_sql.FIND_EXPIRED, {"epoch_id": epoch_id, "expired_at": expired_at}).fetchone()
        is None
    ):
        return 0
    gone = _delete(tx, epoch_id, expired_at, limit)
    count_gone(tx, epoch_id, gone)
    first_gone: dict[int, int] = {}
    for lease_id, _, _, group_key in gone:
        if group_key is not None:
            first_gone[group_key] = min(lease_id, first_gone.get(group_key, lease_id))
    for group_key, lease_id in first_gone.items():
        groups.refresh(tx, queue_id, group_key, lease_id)
    return len(gone)


def _delete(tx: "Transaction", epoch_id: int, expired_at: int, limit: int) -> list[tuple[int, int, int, int]]:
    """Delete up to `limit` leases with their messages: (id, was hidden, had a token, group key) of each."""
    chunk = {"epoch_id": epoch_id, "expired_at": expired_at, "limit": limit}
    gone: list[tuple[int, int, int, int]] = tx.execute(file_sql.SWEEP_LEASES, chunk).fetchall()
    ids = [(row[0],) for row in gone]
    tx.connection.executemany(sql.DELETE_MESSAGE, ids)
    if tx.execute(file_sql.FIND_DEAD_LETTER, {"epoch_id": epoch_id}).fetchone() is not None:
        tx.connection.executemany(sql.DELETE_DEAD_LETTER, ids)
    return gone


def count_gone(tx: "Transaction", epoch_id: int, gone: list[tuple[int, int, int, int]]) -> None:
    """Take swept rows out of their queue's counts."""
    delta = tx.delta(epoch_id)
    delta.messages -= len(gone)
    delta.in_flight -= sum(1 for _, hidden, received, _ in gone if hidden and received)
    delta.delayed -= sum(1 for _, hidden, received, _ in gone if hidden and not received)
