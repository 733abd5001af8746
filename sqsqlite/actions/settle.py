"""Settling a received message: delete it, or change how long it stays hidden. Fenced by the receipt's token."""

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqsqlite.actions import fair, groups
from sqsqlite.actions.rows import Queue
from sqsqlite.actions.tens import in_tens
from sqsqlite.contract.receipts import Receipt
from sqsqlite.sql import fifo as fifo_sql
from sqsqlite.sql import messages as sql

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


class Lease(enum.Enum):
    """What a receipt handle's message is to its holder."""

    CURRENT = "the latest receive's, in flight"
    ENDED = "the latest receive's, its visibility timeout ended"
    REPLACED = "an earlier receive's"
    MOVED = "in another queue by now, its dead-letter queue"
    GONE = "deleted, purged or beyond its retention"


class Standing(NamedTuple):
    """A lease as a receipt finds it.

    Attributes:
        received_at: of the latest receive, where the message is still here.
        is_held: the receipt is of the latest receive and its timeout runs. It deletes the message even beyond its
            retention, when the message is GONE for everything else.
    """

    lease: Lease
    received_at: int | None = None
    is_held: bool = False


def classify(tx: "Transaction", queue: Queue, receipt: Receipt) -> Standing:
    """How a receipt stands to its lease: one look-up by row id."""
    row = tx.execute(sql.CLASSIFY_LEASE, {"id": receipt.lease_id}).fetchone()
    if row is None:
        return Standing(Lease.GONE)
    epoch_id, token, visible_at, sent_at, received_at, discarded_at, retention_seconds = row
    held = epoch_id == queue.epoch_id and token == receipt.token and visible_at > tx.now_ms
    # Discarded, or beyond the retention of the queue that it is in by now.
    if discarded_at is not None or sent_at <= tx.settings.jumps.expired_at(retention_seconds or 0, tx.now_ms):
        return Standing(Lease.GONE, is_held=held)
    if epoch_id != queue.epoch_id:
        return Standing(Lease.MOVED)
    if token != receipt.token:
        return Standing(Lease.REPLACED, received_at)
    return Standing(Lease.CURRENT if held else Lease.ENDED, received_at, held)


def delete_all_current(tx: "Transaction", queue: Queue, receipts: Sequence[Receipt]) -> bool:
    """Delete each message whose receipt is its latest and whose timeout still runs. True: that was all of them.

    When it was not, the others are told apart by `classify`: a message just deleted here is simply gone.
    """
    epoch_id, now_ms = queue.epoch_id, tx.now_ms
    group_keys = _group_keys(tx, queue, receipts) if queue.fifo else {}
    if len(receipts) == 1:
        receipt = receipts[0]
        count = tx.execute(sql.DELETE_LEASE, (receipt.lease_id, epoch_id, receipt.token, now_ms)).rowcount
    else:
        rows = [(receipt.lease_id, epoch_id, receipt.token, now_ms) for receipt in receipts]
        count = tx.connection.executemany(sql.DELETE_LEASE, rows).rowcount if rows else 0
    if count > 0:
        _forget(tx, queue, [(receipt.lease_id,) for receipt in receipts], count)
        tx.delta(epoch_id).in_flight -= count
        if queue.fifo:
            if count < len(group_keys):
                for lease_id in _group_keys(tx, queue, receipts):
                    del group_keys[lease_id]  # it stays
            _free_groups(tx, queue, group_keys)
    return bool(count == len(receipts))


def _group_keys(tx: "Transaction", queue: Queue, receipts: Sequence[Receipt]) -> dict[int, int]:
    """Group keys of the messages that are there, by row id."""
    found: dict[int, int] = {}
    ids = [receipt.lease_id for receipt in receipts]
    if len(ids) == 1:
        return dict(tx.execute(fifo_sql.SELECT_GROUP_KEY, (queue.epoch_id, ids[0])).fetchall())
    for ten in in_tens(ids):
        found.update(tx.execute(fifo_sql.SELECT_TEN_GROUP_KEYS, (queue.epoch_id, *ten)).fetchall())
    return found


def _free_groups(tx: "Transaction", queue: Queue, group_keys: dict[int, int]) -> None:
    """Messages went, by row id: their groups have another head, or none."""
    first_gone: dict[int, int] = {}
    for lease_id, group_key in group_keys.items():
        first_gone[group_key] = min(lease_id, first_gone.get(group_key, lease_id))
    for group_key, lease_id in first_gone.items():
        groups.refresh(tx, queue.id, group_key, lease_id)
    tx.wake(queue.id, 0)  # a queue with as many in flight as it may have has room now


def delete_any(tx: "Transaction", queue: Queue, receipt: Receipt) -> bool:
    """compat="aws": delete the message whatever has become of its lease."""
    parameters = {"id": receipt.lease_id, "epoch_id": queue.epoch_id}
    row = tx.execute(sql.DELETE_ANY_LEASE, parameters).fetchone()
    if row is None:
        return False
    hidden, received = row
    _forget(tx, queue, [(receipt.lease_id,)], 1)
    if hidden:
        delta = tx.delta(queue.epoch_id)
        if received:
            delta.in_flight -= 1
        else:
            delta.delayed -= 1
    return True


def _forget(tx: "Transaction", queue: Queue, ids: list[tuple[int]], count: int) -> None:
    """Delete the messages among `ids` that have no lease any more: `count` of them."""
    if len(ids) == 1:
        tx.execute(sql.DELETE_MESSAGE, ids[0])
    elif count == len(ids):
        tx.connection.executemany(sql.DELETE_MESSAGE, ids)
    else:
        tx.connection.executemany(sql.DELETE_MESSAGE_WITHOUT_LEASE, ids)
    if queue.holds_dead_letters:
        tx.connection.executemany(sql.DELETE_DEAD_LETTER_WITHOUT_LEASE, ids)
    delta = tx.delta(queue.epoch_id)
    delta.messages -= count
    delta.deleted += count


def change_visibility(
    tx: "Transaction", queue: Queue, receipt: Receipt, visibility_timeout_seconds: int, *, any_handle: bool
) -> bool:
    """Hide an in-flight message for so long from now; 0 shows it at once. False: the receipt matched nothing.

    Args:
        any_handle: compat="aws" on a standard queue: an older receive's handle acts on the message too.
    """
    visible_at = tx.now_ms + visibility_timeout_seconds * 1000 if visibility_timeout_seconds else 0
    parameters = {
        "visible_at": visible_at,
        "id": receipt.lease_id,
        "epoch_id": queue.epoch_id,
        "now_ms": tx.now_ms,
        "expired_at": queue.expired_at(tx.now_ms, tx.settings.jumps),
    }
    if any_handle:
        changed = tx.execute(sql.CHANGE_ANY_VISIBILITY, parameters)
    else:
        changed = tx.execute(sql.CHANGE_VISIBILITY, {**parameters, "token": receipt.token})
    if changed.rowcount == 0:
        return False
    if not visible_at:
        tx.delta(queue.epoch_id).in_flight -= 1
        if queue.has_tenants:
            fair.draw_again(tx, queue, receipt.lease_id)
    if queue.fifo:
        groups.change(tx, queue, receipt.lease_id, visible_at)
    tx.wake(queue.id, visible_at)
    return True
