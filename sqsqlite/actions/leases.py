"""Settling: DeleteMessage, ChangeMessageVisibility and their batches."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from sqsqlite.actions import lookup, settle
from sqsqlite.actions.batch import failure
from sqsqlite.actions.rows import Queue
from sqsqlite.actions.settle import Lease
from sqsqlite.contract.receipts import Receipt
from sqsqlite.contract.responses import (
    BatchResultErrorEntry,
    ChangeMessageVisibilityBatchResponse,
    ChangeMessageVisibilityBatchResultEntry,
    DeleteMessageBatchResponse,
    DeleteMessageBatchResultEntry,
    Empty,
)
from sqsqlite.errors import (
    InvalidParameterValue,
    LeaseLost,
    LostLease,
    LostMessage,
    LostReceipt,
    ReceiptHandleIsInvalid,
    SQSError,
)

if TYPE_CHECKING:
    from sqsqlite.actions.caller import Caller
    from sqsqlite.contract import requests
    from sqsqlite.store.transaction import Transaction

REASONS = {Lease.ENDED: "ended", Lease.REPLACED: "replaced", Lease.MOVED: "moved", Lease.GONE: "gone"}
"""`LeaseLost.reason` of each way to lose a lease."""

_UNAVAILABLE = "Message does not exist or is not available for visibility timeout change"


def delete_message(tx: "Transaction", request: "requests.DeleteMessage", caller: "Caller") -> Empty:
    """Delete a received message, if the handle is of its latest receive and the timeout still runs.

    A message that is gone already is no error. compat="aws" deletes by any handle, as Amazon's standard queues do.
    Neither holds inside a transaction of the caller's: there the delete succeeds only if it deletes.

    Raises:
        ReceiptHandleIsInvalid: no receive of this queue issued the handle.
        InvalidParameterValue: its timeout has ended, or a newer receive replaced it; the message stays.
        LostMessage: the same, as an InvalidParameterValue that is a LeaseLost; in a caller's transaction also when the
            message is gone.
    Source: API_DeleteMessage; docs/differences.md for the two modes.
    """
    queue = lookup.find(tx.execute, request.queue_url, caller)
    _delete(tx, queue, request.receipt_handle, _receipt(tx, queue, request.receipt_handle))
    return Empty()


def delete_message_batch(
    tx: "Transaction", request: "requests.DeleteMessageBatch", caller: "Caller"
) -> DeleteMessageBatchResponse:
    """Delete up to ten; each handle succeeds or fails by itself. Source: API_DeleteMessageBatch."""
    queue = lookup.find(tx.execute, request.queue_url, caller)
    failures: dict[str, SQSError] = {}
    receipts = []
    for entry in request.entries:
        try:
            entry.check_entry(tx.settings.limits)
            receipts.append((entry, _receipt(tx, queue, entry.receipt_handle)))
        except SQSError as error:
            failures[entry.id] = error
    # One by one in a caller's transaction: what was deleted by this very batch is told apart from what was gone before.
    if tx.is_callers or not settle.delete_all_current(tx, queue, [receipt for _, receipt in receipts]):
        for entry, receipt in receipts:
            try:
                _delete(tx, queue, entry.receipt_handle, receipt)
            except SQSError as error:
                failures[entry.id] = error
    successful, failed = _divided(tx, request.entries, failures)
    return DeleteMessageBatchResponse(
        successful=[DeleteMessageBatchResultEntry(id=entry_id) for entry_id in successful] or None,
        failed=failed or None,
    )


def delete_many(
    tx: "Transaction", queue_url: str, handles: Sequence[str], caller: "Caller", *, missing_ok: bool
) -> None:
    """Delete the messages of any number of handles: all of them, or none and the first one's error.

    Args:
        missing_ok: in a caller's transaction, too, a message that is gone is no error.

    Raises:
        as `delete_message`; the place in `handles`, from 0, stands before the message.
    """
    queue = lookup.find(tx.execute, queue_url, caller)
    held: dict[int, Receipt] = {}
    late = []
    for place, handle in enumerate(handles):
        try:
            receipt = _receipt(tx, queue, handle)
            if settle.classify(tx, queue, receipt).is_held:
                held[receipt.lease_id] = receipt
            elif _is_late_delete(tx, queue, handle, receipt, missing_ok=missing_ok):
                late.append(receipt)
        except SQSError as error:
            raise _at(place, error) from error
    for receipt in late:
        settle.delete_any(tx, queue, receipt)
    settle.delete_all_current(tx, queue, list(held.values()))


def _at(place: int, error: SQSError) -> SQSError:
    placed = type(error)(f"message {place}: {error.message}")
    if isinstance(error, LeaseLost) and isinstance(placed, LeaseLost):
        placed.reason = error.reason
    return placed


def _divided(
    tx: "Transaction", entries: Sequence[Any], failures: dict[str, SQSError]
) -> tuple[list[str], list[BatchResultErrorEntry]]:
    """The ids of what succeeded and the answers to what failed, each in the request's order.

    A caller's transaction remembers the failures: it does not commit before the caller has said to have seen them.
    """
    successful = [entry.id for entry in entries if entry.id not in failures]
    failed = [failure(entry.id, failures[entry.id]) for entry in entries if entry.id in failures]
    if tx.is_callers:
        tx.unsettled += [failures[entry.id] for entry in entries if entry.id in failures]
    return successful, failed


def change_message_visibility(
    tx: "Transaction", request: "requests.ChangeMessageVisibility", caller: "Caller"
) -> Empty:
    """Hide an in-flight message for `visibility_timeout` seconds (0 to 43,200) from now.

    From now, not from its receive; 0 shows it at once. In flight at most 12 h in all. Not remembered: the next
    receive hides it for the queue's own time again.

    Raises:
        ReceiptHandleIsInvalid: no receive of this queue issued the handle.
        MessageNotInflight: its timeout has ended, or a newer receive replaced the handle. It is a LeaseLost.
        InvalidParameterValue: the change goes beyond 12 h in all, or the message is gone: that one is a LeaseLost.
    Source: API_ChangeMessageVisibility; quotas, "Message visibility timeout".
    """
    queue = lookup.find(tx.execute, request.queue_url, caller)
    _change(tx, queue, request.receipt_handle, request.visibility_timeout, _unavailable)
    return Empty()


def change_message_visibility_batch(
    tx: "Transaction", request: "requests.ChangeMessageVisibilityBatch", caller: "Caller"
) -> ChangeMessageVisibilityBatchResponse:
    """Change up to ten; each succeeds or fails by itself. Source: API_ChangeMessageVisibilityBatch."""
    queue = lookup.find(tx.execute, request.queue_url, caller)
    failures: dict[str, SQSError] = {}
    for entry in request.entries:
        try:
            timeout = entry.check_entry(tx.settings.limits)
            _change(tx, queue, entry.receipt_handle, timeout, _unavailable_entry)
        except SQSError as error:
            failures[entry.id] = error
    successful, failed = _divided(tx, request.entries, failures)
    return ChangeMessageVisibilityBatchResponse(
        successful=[ChangeMessageVisibilityBatchResultEntry(id=entry_id) for entry_id in successful] or None,
        failed=failed or None,
    )


def _receipt(tx: "Transaction", queue: Queue, handle: str) -> Receipt:
    receipt = tx.settings.sealer.parse(handle)
    if receipt is None:
        raise ReceiptHandleIsInvalid(f'The input receipt handle "{handle}" is not a valid receipt handle.')
    if receipt.queue_id != queue.id:
        raise ReceiptHandleIsInvalid(f'The receipt handle "{handle}" is not valid for this queue.')
    return receipt


def _delete(tx: "Transaction", queue: Queue, handle: str, receipt: Receipt) -> None:
    if settle.delete_all_current(tx, queue, (receipt,)):
        return
    if _is_late_delete(tx, queue, handle, receipt):
        settle.delete_any(tx, queue, receipt)


def _is_late_delete(
    tx: "Transaction", queue: Queue, handle: str, receipt: Receipt, *, missing_ok: bool = False
) -> bool:
    """Whether a handle that matched no running lease deletes all the same: Amazon's softer way.

    False: the message is gone, which is no error outside a transaction of the caller's.

    Raises:
        LostMessage: it does not.
    """
    lease = settle.classify(tx, queue, receipt).lease
    if lease is Lease.GONE:
        if tx.is_callers and not missing_ok:
            raise LostMessage(f"{_invalid(handle)} Message does not exist.", "gone")
        return False
    if tx.is_callers or tx.settings.strict_handles or queue.fifo:
        _expired(handle, lease)
    if _too_old(tx, receipt.received_at):
        _expired(handle, Lease.ENDED)
    return True


def _change(
    tx: "Transaction",
    queue: Queue,
    handle: str,
    visibility_timeout: int,
    unavailable: Callable[[str, Lease], SQSError],
) -> None:
    receipt = _receipt(tx, queue, handle)
    lease, received_at, _ = settle.classify(tx, queue, receipt)
    any_handle = not (tx.is_callers or tx.settings.strict_handles or queue.fifo)
    if lease is Lease.GONE or (any_handle and lease is Lease.MOVED):
        raise unavailable(handle, lease)
    if lease is not Lease.CURRENT and not any_handle:
        if not tx.settings.strict_handles:
            _expired(handle, lease)
        raise LostLease(
            f"{_invalid(handle)} Message is not in flight: its visibility timeout has ended, or it was received again "
            "since.",
            REASONS[lease],
        )
    if any_handle and _too_old(tx, receipt.received_at):
        _expired(handle, Lease.ENDED)
    _check_total(tx, received_at or receipt.received_at, visibility_timeout)
    # False only in compat="aws", for a message that is visible again: 200, and it stays so.
    settle.change_visibility(tx, queue, receipt, visibility_timeout, any_handle=any_handle)


def _unavailable(handle: str, lease: Lease) -> SQSError:
    return LostMessage(f"{_invalid(handle)} {_UNAVAILABLE}.", REASONS[lease])


def _unavailable_entry(_handle: str, lease: Lease) -> SQSError:
    """As recorded, Amazon answers a batch's entry with another code than a single call, and with these words alone."""
    return LostReceipt(_UNAVAILABLE, REASONS[lease])


def _too_old(tx: "Transaction", received_at: int) -> bool:
    return tx.now_ms - received_at > tx.settings.limits.visibility_total_seconds * 1000


def _invalid(handle: str) -> str:
    return f"Value {handle} for parameter ReceiptHandle is invalid. Reason:"


def _expired(handle: str, lease: Lease) -> NoReturn:
    raise LostMessage(f"{_invalid(handle)} The receipt handle has expired.", REASONS[lease])


def _check_total(tx: "Transaction", received_at: int, visibility_timeout: int) -> None:
    """At most 12 h from the latest receive, all changes together; never clipped. Source: quotas."""
    total_seconds = tx.settings.limits.visibility_total_seconds
    if tx.now_ms - received_at + visibility_timeout * 1000 > total_seconds * 1000:
        raise InvalidParameterValue(
            f"Value {visibility_timeout} for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout "
            f"for the message is beyond the limit [{total_seconds} seconds]"
        )
