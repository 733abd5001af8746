"""The groups of FIFO queues: a row each as long as it has messages, with the instant its head can be received.

Whatever takes a message away or hides it calls one of these, so that no group keeps a head it no longer has.
"""

from typing import TYPE_CHECKING

from sqsqlite import statements_fifo as sql
from sqsqlite.engine.rows import Queue

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


def join(tx: "Transaction", queue: Queue, group_id: str, head_visible_at: int) -> int:
    """The group's key, for a message that comes last in it; a group that is new waits until `head_visible_at`."""
    row = tx.execute(sql.SELECT_GROUP, (queue.epoch_id, group_id)).fetchone()
    if row is not None:
        return int(row[0])
    return int(tx.execute(sql.INSERT_GROUP, (queue.epoch_id, group_id, head_visible_at)).lastrowid)


def join_anywhere(tx: "Transaction", queue: Queue, group_id: str, lease_id: int) -> int:
    """The group's key, for a visible message that may stand before others of its group: by row id."""
    row = tx.execute(sql.SELECT_GROUP, (queue.epoch_id, group_id)).fetchone()
    if row is None:
        return int(tx.execute(sql.INSERT_GROUP, (queue.epoch_id, group_id, tx.now_ms)).lastrowid)
    group_key = int(row[0])
    head = tx.execute(sql.SELECT_HEAD, (group_key,)).fetchone()
    if head is not None and head[0] > lease_id:
        tx.execute(sql.SET_GROUP_HEAD, (tx.now_ms, group_key))
    return group_key


def refresh(tx: "Transaction", queue_id: int, group_key: int, removed_id: int) -> None:
    """After messages of the group went, the first of them `removed_id`: it may have another head now, or none."""
    head = tx.execute(sql.SELECT_HEAD, (group_key,)).fetchone()
    if head is None:
        tx.execute(sql.DELETE_GROUP, (group_key,))
        return
    head_id, visible_at = head
    if head_id > removed_id:
        release(tx, queue_id, group_key, visible_at)


def release(tx: "Transaction", queue_id: int, group_key: int, visible_at: int) -> None:
    """The group can be received from at `visible_at`: at once, it stands behind those that wait already."""
    head_visible_at = max(visible_at, tx.now_ms)
    tx.execute(sql.SET_GROUP_HEAD, (head_visible_at, group_key))
    tx.wake(queue_id, head_visible_at)
