# SPDX-License-Identifier: Apache-2.0
"""Settling a received message: delete it, or change how long it stays hidden. Fenced by the receipt's token.

Settling: DeleteMessage, ChangeMessageVisibility and their batches.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqsqlite.actions import groups, queue_rows
from sqsqlite.actions.leases import Lease, classify, divided, expired, invalid_handle, receipt_of, too_old
from sqsqlite.actions.messages import in_tens
from sqsqlite.actions.queue_rows import QueueRow
from sqsqlite.contract.receipts import Receipt
from sqsqlite.contract.responses import DeleteMessageBatchResponse, DeleteMessageBatchResultEntry, Empty
from sqsqlite.errors import LeaseLost, LostMessage, SQSError
from sqsqlite.sql import fifo as fifo_sql
from sqsqlite.sql import messages as sql

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract import requests
    from sqsqlite.store.transaction import Transaction


def delete_all_current(tx: "Transaction", queue: QueueRow, receipts: Sequence[Receipt]) -> bool:
    """Delete each message whose receipt is its latest and whose timeout still runs. True: that was all of them.

    When it was not, `classify` tells the others apart: a message just deleted here is gone.
    """
    epoch_id, now_ms = queue.epoch_id, tx.now_ms
    group_keys = _group_keys(tx, queue, receipts) if queue.fifo else {}
    if len(receipts) == 1:
        receipt = receipts[0]
        count = tx.run(sql.DELETE_LEASE, (receipt.lease_id, epoch_id, receipt.token, now_ms)).rowcount
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


def _group_keys(tx: "Transaction", queue: QueueRow, receipts: Sequence[Receipt]) -> dict[int, int]:
    """Group keys of the messages that are there, by row id."""
    found: dict[int, int] = {}
    ids = [receipt.lease_id for receipt in receipts]
    if len(ids) == 1:
        return dict(tx.execute(fifo_sql.SELECT_GROUP_KEY, (queue.epoch_id, ids[0])).fetchall())
    for ten in in_tens(ids):
        found.update(tx.execute(fifo_sql.SELECT_TEN_GROUP_KEYS, (queue.epoch_id, *ten)).fetchall())
    return found


def _free_groups(tx: "Transaction", queue: QueueRow, group_keys: dict[int, int]) -> None:
    """Messages went, by row id: their groups have another head, or none."""
    first_gone: dict[int, int] = {}
    for lease_id, group_key in group_keys.items():
        first_gone[group_key] = min(lease_id, first_gone.get(group_key, lease_id))
    for group_key, lease_id in first_gone.items():
        groups.refresh(tx, queue.id, group_key, lease_id)
    tx.wake(queue.id, 0)  # a queue with as many in flight as it may have has room now


def delete_any(tx: "Transaction", queue: QueueRow, receipt: Receipt) -> bool:
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


def _forget(tx: "Transaction", queue: QueueRow, ids: list[tuple[int]], count: int) -> None:
    """Delete the messages among `ids` that have no lease any more: `count` of them."""
    if len(ids) == 1:
        tx.run(sql.DELETE_MESSAGE, ids[0])
    elif count == len(ids):
        tx.connection.executemany(sql.DELETE_MESSAGE, ids)
    else:
        tx.connection.executemany(sql.DELETE_MESSAGE_WITHOUT_LEASE, ids)
    if queue.holds_dead_letters:
        tx.connection.executemany(sql.DELETE_DEAD_LETTER_WITHOUT_LEASE, ids)
    delta = tx.delta(queue.epoch_id)
    delta.messages -= count
    delta.deleted += count


def delete_message(tx: "Transaction", request: "requests.DeleteMessage", caller: "Caller") -> Empty:
    """Delete a received message, if the handle is of its latest receive and the timeout still runs.

    A message that is gone already is not an error. compat="aws" deletes by any handle, as Amazon's standard queues do.
    Neither holds inside a transaction of the caller's: there the delete succeeds only if it deletes.

    Raises:
        ReceiptHandleIsInvalid: no receive of this queue issued the handle.
        InvalidParameterValue: its timeout has ended, or a newer receive replaced it; the message stays.
        LostMessage: the same, as an InvalidParameterValue that is a LeaseLost; in a caller's transaction also when the
            message is gone.
    Source: API_DeleteMessage; docs/differences.md for the two modes.
    """
    queue = queue_rows.find(tx, request.queue_url, caller)
    _delete(tx, queue, request.receipt_handle, receipt_of(tx, queue, request.receipt_handle))
    return Empty()


def delete_message_batch(
    tx: "Transaction", request: "requests.DeleteMessageBatch", caller: "Caller"
) -> DeleteMessageBatchResponse:
    """Delete up to ten; each handle succeeds or fails by itself. Source: API_DeleteMessageBatch."""
    queue = queue_rows.find(tx, request.queue_url, caller)
    failures: dict[str, SQSError] = {}
    receipts = []
    for entry in request.entries:
        try:
            entry.check_entry(tx.settings.limits)
            receipts.append((entry, receipt_of(tx, queue, entry.receipt_handle)))
        except SQSError as error:
            failures[entry.id] = error
    # One by one in a caller's transaction: that tells messages deleted by this batch from those gone before.
    if tx.is_callers or not delete_all_current(tx, queue, [receipt for _, receipt in receipts]):
        for entry, receipt in receipts:
            try:
                _delete(tx, queue, entry.receipt_handle, receipt)
            except SQSError as error:
                failures[entry.id] = error
    successful, failed = divided(tx, request.entries, failures)
    return DeleteMessageBatchResponse(
        successful=[DeleteMessageBatchResultEntry(id=entry_id) for entry_id in successful] or None,
        failed=failed or None,
    )


def delete_many(
    tx: "Transaction", queue_url: str, handles: Sequence[str], caller: "Caller", *, missing_ok: bool
) -> None:
    """Delete the messages of any number of handles: all of them, or none and the first one's error.

    Args:
        missing_ok: in a caller's transaction, too, a message that is gone is not an error.

    Raises:
        as `delete_message`; the place in `handles`, from 0, stands before the message.
    """
    queue = queue_rows.find(tx, queue_url, caller)
    held: dict[int, Receipt] = {}
    late = []
    for place, handle in enumerate(handles):
        try:
            receipt = receipt_of(tx, queue, handle)
            if classify(tx, queue, receipt).is_held:
                held[receipt.lease_id] = receipt
            elif _is_late_delete(tx, queue, handle, receipt, missing_ok=missing_ok):
                late.append(receipt)
        except SQSError as error:
            raise _at(place, error) from error
    for receipt in late:
        delete_any(tx, queue, receipt)
    delete_all_current(tx, queue, list(held.values()))


def _at(place: int, error: SQSError) -> SQSError:
    placed = type(error)(f"message {place}: {error.message}")
    if isinstance(error, LeaseLost) and isinstance(placed, LeaseLost):
        placed.reason = error.reason
    return placed


def _delete(tx: "Transaction", queue: QueueRow, handle: str, receipt: Receipt) -> None:
    if delete_all_current(tx, queue, (receipt,)):
        return
    if _is_late_delete(tx, queue, handle, receipt):
        delete_any(tx, queue, receipt)


def _is_late_delete(
    tx: "Transaction", queue: QueueRow, handle: str, receipt: Receipt, *, missing_ok: bool = False
) -> bool:
    """Whether a handle that matched no running lease deletes all the same: Amazon's softer way.

    False: the message is gone, which is not an error outside a transaction of the caller's.

    Raises:
        LostMessage: it does not.
    """
    lease = classify(tx, queue, receipt).lease
    if lease is Lease.GONE:
        if tx.is_callers and not missing_ok:
            raise LostMessage(f"{invalid_handle(handle)} Message does not exist.", "gone")
        return False
    if tx.is_callers or tx.settings.strict_handles or queue.fifo:
        expired(handle, lease)
    if too_old(tx, receipt.received_at):
        expired(handle, Lease.ENDED)
    return True
