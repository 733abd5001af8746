"""The counts of each queue, exact and flat in cost, and the activity of the open minute."""

from sqsqlite.sql import queues as sql
from sqsqlite.store.transaction import Transaction

MINUTE_MS = 60_000


def write_counts(tx: Transaction) -> None:
    """Write what the transaction changed: once a queue, right before the commit.

    In a caller's own transaction it follows each operation, so that the caller's savepoints cover it.
    """
    if not tx.deltas:
        return
    minute_at = tx.now_ms - tx.now_ms % MINUTE_MS
    for epoch_id, delta in tx.deltas.items():
        row = (
            delta.messages,
            delta.in_flight,
            delta.delayed,
            delta.turn,
            delta.sent,
            delta.received,
            delta.deleted,
            delta.dead_lettered,
            delta.deduplicated,
            delta.empty_receives,
            delta.sent_bytes,
            epoch_id,
            minute_at,
        )
        if tx.run(sql.ADD_COUNTS, row).rowcount == 0:
            close_minute(tx, epoch_id, minute_at)
            tx.execute(sql.ADD_COUNTS, row)
    tx.deltas.clear()


def close_minute(tx: Transaction, epoch_id: int, minute_at: int) -> None:
    """The open minute becomes history, and `minute_at` is the open one."""
    tx.execute(sql.CLOSE_MINUTE, {"epoch_id": epoch_id})
    tx.execute(sql.OPEN_MINUTE, {"epoch_id": epoch_id, "minute_at": minute_at})
