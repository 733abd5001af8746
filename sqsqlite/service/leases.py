"""Settling: DeleteMessage, ChangeMessageVisibility and their batches."""

from typing import TYPE_CHECKING, NoReturn

from sqsqlite.engine import settle
from sqsqlite.engine.rows import Queue
from sqsqlite.engine.settle import Lease
from sqsqlite.errors import (
    InvalidParameterValue,
    MessageNotInflight,
    ReceiptHandleIsInvalid,
    SQSError,
)
from sqsqlite.receipts import Receipt
from sqsqlite.responses import (
    ChangeMessageVisibilityBatchResponse,
    ChangeMessageVisibilityBatchResultEntry,
    DeleteMessageBatchResponse,
    DeleteMessageBatchResultEntry,
    Empty,
)
from sqsqlite.service import lookup
from sqsqlite.service.batch import failure

if TYPE_CHECKING:
    from sqsqlite import requests
    from sqsqlite.service.caller import Caller
    from sqsqlite.store.transaction import Transaction


def delete_message(tx: "Transaction", request: "requests.DeleteMessage", caller: "Caller") -> Empty:
    """Delete a received message, if the handle is of its latest receive and the timeout still runs.

    A message that is gone already is no error. compat="aws" deletes by any handle, as Amazon's standard queues do.

    Raises:
        ReceiptHandleIsInvalid: no receive of this queue issued the handle.
        InvalidParameterValue: its timeout has ended, or a newer receive replaced it; the message stays.
    Source: API_DeleteMessage; docs/differences.md for the two modes.
    """
    queue = lookup.find(tx.execute, request.queue_url, caller)
    _delete(tx, queue, request.receipt_handle)
    return Empty()


def delete_message_batch(
    tx: "Transaction", request: "requests.DeleteMessageBatch", caller: "Caller"
) -> DeleteMessageBatchResponse:
    """Delete up to ten; each handle succeeds or fails by itself. Source: API_DeleteMessageBatch."""
    queue = lookup.find(tx.execute, request.queue_url, caller)
    successful, failed = [], []
    receipts = []
    for entry in request.entries:
        try:
            entry.check_entry(tx.settings.limits)
            receipts.append((entry, _receipt(tx, queue, entry.receipt_handle)))
        except SQSError as error:
            failed.append(failure(entry.id, error))
    matched = settle.delete_all_current(tx, queue, [receipt for _, receipt in receipts])
    for entry, receipt in receipts:
        try:
            if not matched:
                _settle_late(tx, queue, entry.receipt_handle, receipt)
        except SQSError as error:
            failed.append(failure(entry.id, error))
        else:
            successful.append(DeleteMessageBatchResultEntry(id=entry.id))
    places = {entry.id: place for place, entry in enumerate(request.entries)}
    failed.sort(key=lambda one: places[one.id])
    return DeleteMessageBatchResponse(successful=successful or None, failed=failed or None)


def change_message_visibility(
    tx: "Transaction", request: "requests.ChangeMessageVisibility", caller: "Caller"
) -> Empty:
    """Hide an in-flight message for `visibility_timeout` seconds (0 to 43,200) from now.

    From now, not from its receive; 0 shows it at once. In flight at most 12 h in all. Not remembered: the next
    receive hides it for the queue's own time again.

    Raises:
        ReceiptHandleIsInvalid: no receive of this queue issued the handle.
        MessageNotInflight: its timeout has ended, or a newer receive replaced the handle.
        InvalidParameterValue: the message is gone, or the change goes beyond 12 h in all.
    Source: API_ChangeMessageVisibility; quotas, "Message visibility timeout".
    """
    queue = lookup.find(tx.execute, request.queue_url, caller)
    _change(tx, queue, request.receipt_handle, request.visibility_timeout)
    return Empty()


def change_message_visibility_batch(
    tx: "Transaction", request: "requests.ChangeMessageVisibilityBatch", caller: "Caller"
) -> ChangeMessageVisibilityBatchResponse:
    """Change up to ten; each succeeds or fails by itself. Source: API_ChangeMessageVisibilityBatch."""
    queue = lookup.find(tx.execute, request.queue_url, caller)
    successful, failed = [], []
    for entry in request.entries:
        try:
            _change(tx, queue, entry.receipt_handle, entry.check_entry(tx.settings.limits))
        except SQSError as error:
            failed.append(failure(entry.id, error))
        else:
            successful.append(ChangeMessageVisibilityBatchResultEntry(id=entry.id))
    return ChangeMessageVisibilityBatchResponse(successful=successful or None, failed=failed or None)


def _receipt(tx: "Transaction", queue: Queue, handle: str) -> Receipt:
    receipt = tx.settings.sealer.parse(handle)
    if receipt is None:
        raise ReceiptHandleIsInvalid(f'The input receipt handle "{handle}" is not a valid receipt handle.')
    if receipt.queue_id != queue.id:
        raise ReceiptHandleIsInvalid(f'The receipt handle "{handle}" is not valid for this queue.')
    return receipt


def _delete(tx: "Transaction", queue: Queue, handle: str) -> None:
    receipt = _receipt(tx, queue, handle)
    if not settle.delete_all_current(tx, queue, (receipt,)):
        _settle_late(tx, queue, handle, receipt)


def _settle_late(tx: "Transaction", queue: Queue, handle: str, receipt: Receipt) -> None:
    """A delete whose handle matched no running lease: done before, an error, or Amazon's softer way."""
    standing = settle.classify(tx, queue, receipt)
    if standing.lease is Lease.GONE:
        return
    if tx.settings.strict_handles or queue.fifo or _too_old(tx, receipt.received_at):
        _expired(handle)
    settle.delete_any(tx, queue, receipt)


def _change(tx: "Transaction", queue: Queue, handle: str, visibility_timeout: int) -> None:
    receipt = _receipt(tx, queue, handle)
    standing = settle.classify(tx, queue, receipt)
    any_handle = not (tx.settings.strict_handles or queue.fifo)
    if standing.lease is Lease.GONE or (any_handle and standing.lease is Lease.MOVED):
        raise InvalidParameterValue(
            f"Value {handle} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not "
            "available for visibility timeout change."
        )
    if standing.lease is not Lease.CURRENT and not any_handle:
        if not tx.settings.strict_handles:
            _expired(handle)
        raise MessageNotInflight(
            f"Value {handle} for parameter ReceiptHandle is invalid. Reason: Message is not in flight: its visibility "
            "timeout has ended, or it was received again since."
        )
    if any_handle and _too_old(tx, receipt.received_at):
        _expired(handle)
    _check_total(tx, standing.received_at or receipt.received_at, visibility_timeout)
    # False only in compat="aws", for a message that is visible again: 200, and it stays so.
    settle.change_visibility(tx, queue, receipt, visibility_timeout, any_handle=any_handle)


def _too_old(tx: "Transaction", received_at: int) -> bool:
    return tx.now_ms - received_at > tx.settings.limits.visibility_total_seconds * 1000


def _expired(handle: str) -> NoReturn:
    raise InvalidParameterValue(
        f"Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
    )


def _check_total(tx: "Transaction", received_at: int, visibility_timeout: int) -> None:
    """At most 12 h from the latest receive, all changes together; never clipped. Source: quotas."""
    total_seconds = tx.settings.limits.visibility_total_seconds
    if tx.now_ms - received_at + visibility_timeout * 1000 > total_seconds * 1000:
        raise InvalidParameterValue(
            f"Value {visibility_timeout} for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout "
            f"for the message is beyond the limit [{total_seconds} seconds]"
        )
