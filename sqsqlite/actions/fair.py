# SPDX-License-Identifier: Apache-2.0
"""Fair queues: a message group on a standard queue is a tenant, and each of its messages draws a turn.

Start-time fair queueing. The queue's clock is the highest turn claimed; a tenant's messages take one turn after the
other from the clock on, and the claim goes by turn. So who sends much at once waits behind itself, not before others.
A message without a group takes the clock's turn: it counts as a tenant of its own.
"""

from typing import TYPE_CHECKING

from sqsqlite.actions import damaged
from sqsqlite.actions.queue_rows import QueueRow
from sqsqlite.sql import fifo as sql

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


def clock(tx: "Transaction", queue: QueueRow) -> int:
    """The highest turn claimed, by this transaction's own claims too."""
    turn: int = tx.execute(sql.SELECT_TURN, (queue.epoch_id,)).fetchone()[0]
    delta = tx.deltas.get(queue.epoch_id)
    return turn if delta is None else max(turn, delta.turn)


def draw(tx: "Transaction", queue: QueueRow, group_id: str | None, visible_at: int = 0) -> int:
    """The turn of a message that is sent now. A delayed one draws when its delay ends: `draw_again`."""
    turn = clock(tx, queue)
    if group_id is None:
        return turn
    if not queue.has_tenants:
        tx.execute(sql.MARK_TENANTS, (queue.id,))
    if visible_at:
        tx.execute(sql.NOTE_DELAYED_SEND, (queue.epoch_id, group_id, turn - 1, tx.now_ms))
        return turn
    return int(tx.execute(sql.DRAW_TURN, (queue.epoch_id, group_id, turn, tx.now_ms)).fetchone()[0])


def draw_again(tx: "Transaction", queue: QueueRow, lease_id: int) -> None:
    """A message has become visible again: it goes behind what its tenant has waiting."""
    _, group_id = damaged.group_of(tx, lease_id)
    if group_id is None:
        return
    row = (queue.epoch_id, group_id, clock(tx, queue))
    turn: int = tx.execute(sql.DRAW_TURN_AGAIN, row).fetchone()[0]
    tx.execute(sql.SET_TURN, (turn, lease_id))


def promote(tx: "Transaction", queue: QueueRow) -> list[tuple[int, int]]:
    """Show up to 1,000 messages whose delay or timeout has ended: (was in flight, row id) of each."""
    bounds = {"epoch_id": queue.epoch_id, "now_ms": tx.now_ms}
    promoted: list[tuple[int, int]] = tx.execute(sql.PROMOTE_TENANTS, bounds).fetchall()
    for _, lease_id in promoted:
        draw_again(tx, queue, lease_id)
    return promoted
