"""Taking damaged messages out of the file, with all that is kept about them elsewhere."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqsqlite.actions import groups, sweep
from sqsqlite.sql import messages as sql
from sqsqlite.sql import operators as find

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


def remove(tx: "Transaction", row_ids: Iterable[int]) -> int:
    """Delete messages whatever their state: their leases, their provenance, their share of the counts. Gives how many.

    A row id never names another message later. What was deleted meanwhile is not counted again.
    """
    count = 0
    for row_id in row_ids:
        lease = tx.execute(find.SELECT_LEASE_AND_QUEUE, {"id": row_id}).fetchone()
        tx.execute(sql.DELETE_MESSAGE, (row_id,))
        tx.execute(sql.DELETE_DEAD_LETTER, (row_id,))
        if lease is None:
            continue
        epoch_id, group_key, queue_id = lease
        [(hidden, received)] = tx.execute(
            sql.DELETE_ANY_LEASE, {"id": row_id, "epoch_id": epoch_id}
        ).fetchall()
        count += 1
        if queue_id is None:
            continue  # of a queue that was purged or deleted: nothing is counted there
        sweep.count_gone(tx, epoch_id, [(row_id, hidden, received, group_key)])
        if group_key is not None:
            groups.refresh(tx, queue_id, group_key, row_id)
        tx.wake(queue_id, 0)
    return count
