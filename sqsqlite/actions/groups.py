# SPDX-License-Identifier: Apache-2.0
"""The groups of FIFO queues: a row each as long as it has messages, with the instant its head can be received.

Whatever takes a message away or hides it calls one of these, so that no group keeps a head it no longer has.
"""

from typing import TYPE_CHECKING

from sqsqlite.actions.queue_rows import QueueRow
from sqsqlite.sql import fifo as sql

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


def join(tx: "Transaction", queue: QueueRow, group_id: str, head_visible_at: int) -> int:
    """The group's key, for a message that comes last in it; a group that is new waits until `head_visible_at`."""
    row = tx.execute(sql.SELECT_GROUP, (queue.epoch_id, group_id)).fetchone()
    if row is not None:
        return int(row[0])
    return int(tx.execute(sql.INSERT_GROUP, (queue.epoch_id, group_id, head_visible_at)).lastrowid)


def join_anywhere(tx: "Transaction", queue: QueueRow, group_id: str, lease_id: int) -> int:
    """The group's key, for a visible message that may stand before others of its group: by row id.

    A receivable group keeps its place. A group that waits for a delay stops waiting when the message comes first. A
    group with messages in flight waits until they are settled.
    """
    row = tx.execute(sql.SELECT_GROUP, (queue.epoch_id, group_id)).fetchone()
    if row is None:
        return int(tx.execute(sql.INSERT_GROUP, (queue.epoch_id, group_id, tx.now_ms)).lastrowid)
    group_key = int(row[0])
    head_id, _, head_visible_at, _ = tx.execute(sql.SELECT_HEAD_AND_LOCK, (group_key,)).fetchone()
    if head_id > lease_id and head_visible_at > tx.now_ms:
        release(tx, queue.id, group_key, _latest_in_flight(tx, group_key))
    return group_key


def refresh(tx: "Transaction", queue_id: int, group_key: int, removed_id: int) -> None:
    """After messages of the group went, the first of them `removed_id`: it may have another head now, or none."""
    head = tx.execute(sql.SELECT_HEAD_AND_LOCK, (group_key,)).fetchone()
    if head is None:
        tx.execute(sql.DELETE_GROUP, (group_key,))
        return
    head_id, visible_at, _, _ = head
    if visible_at <= tx.now_ms:
        _unlock(tx, queue_id, group_key, head, has_new_head=head_id > removed_id)
    elif head_id > removed_id:
        release(tx, queue_id, group_key, visible_at)


def change(tx: "Transaction", queue: QueueRow, lease_id: int, visible_at: int) -> None:
    """After a received message's visibility changed: the group waits for its head.

    Only where that is visible already does it wait for the others that are in flight.
    """
    changed = {"id": lease_id, "head_visible_at": visible_at or tx.now_ms}
    if tx.execute(sql.SET_HEAD_OF_CHANGED, changed).rowcount:
        return
    group_key: int = tx.execute(sql.SELECT_GROUP_KEY, (queue.epoch_id, lease_id)).fetchone()[1]
    head = tx.execute(sql.SELECT_HEAD_AND_LOCK, (group_key,)).fetchone()
    if head[1] <= tx.now_ms:
        _unlock(tx, queue.id, group_key, head, has_new_head=False)


def release(tx: "Transaction", queue_id: int, group_key: int, visible_at: int) -> None:
    """The group can be received from at `visible_at`: at once, it stands behind the groups that wait already."""
    head_visible_at = max(visible_at, tx.now_ms)
    tx.execute(sql.SET_GROUP_HEAD, (head_visible_at, group_key))
    tx.wake(queue_id, head_visible_at)


def _unlock(
    tx: "Transaction", queue_id: int, group_key: int, head: tuple[int, int, int, int], *, has_new_head: bool
) -> None:
    """The head is visible: the group can be received from once none of its messages is in flight.

    Where it could be already, with the same head, it keeps its place.
    """
    _, _, head_visible_at, may_be_locked = head
    if has_new_head or head_visible_at > tx.now_ms:
        release(tx, queue_id, group_key, _latest_in_flight(tx, group_key) if may_be_locked else 0)


def _latest_in_flight(tx: "Transaction", group_key: int) -> int:
    """When the group's last message in flight comes back; 0: no message is in flight."""
    bounds = {"group_key": group_key, "now_ms": tx.now_ms}
    row = tx.execute(sql.LATEST_IN_FLIGHT, bounds).fetchone()
    return 0 if row is None else int(row[0])
