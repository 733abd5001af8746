"""A FIFO queue's delay: a new one also holds for the messages that were sent under the old one."""

from typing import TYPE_CHECKING

from sqsqlite import statements_fifo as sql
from sqsqlite.engine import groups

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


def delay_again(tx: "Transaction", queue_id: int, epoch_id: int, old_seconds: int, new_seconds: int) -> None:
    """Hide each message that was never received until its send plus the new delay; at once visible if that is over.

    It goes through the messages sent within the longer of the two delays, at most 15 minutes' worth.
    """
    since = tx.now_ms - max(old_seconds, new_seconds) * 1000
    bounds = {"epoch_id": epoch_id, "since": since}
    before: int = tx.execute(sql.COUNT_DELAYED_SINCE, bounds).fetchone()[0]
    rows = tx.execute(
        sql.DELAY_AGAIN, {**bounds, "delay_ms": new_seconds * 1000, "now_ms": tx.now_ms}
    ).fetchall()
    tx.delta(epoch_id).delayed += sum(hidden for _, hidden in rows) - before
    for group_key in dict.fromkeys(group_key for group_key, _ in rows):
        groups.refresh(tx, queue_id, group_key, 0)
