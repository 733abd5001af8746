"""A FIFO queue's delay: a new one also holds for the messages that were sent under the old one."""

from typing import TYPE_CHECKING

from sqsqlite.actions import groups
from sqsqlite.sql import fifo as sql

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


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
        # A group whose head stays as it is keeps its place among those that wait.
        if head_id in changed:
            groups.release(tx, queue_id, group_key, visible_at)
