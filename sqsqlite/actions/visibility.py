# SPDX-License-Identifier: Apache-2.0
"""ChangeMessageVisibility and its batch."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqsqlite.actions import fair, groups, queue_rows
from sqsqlite.actions.leases import (
    REASONS,
    Lease,
    classify,
    divided,
    expired,
    invalid_handle,
    receipt_of,
    too_old,
)
from sqsqlite.actions.queue_rows import QueueRow
from sqsqlite.contract.receipts import Receipt
from sqsqlite.contract.responses import (
    ChangeMessageVisibilityBatchResponse,
    ChangeMessageVisibilityBatchResultEntry,
    Empty,
)
from sqsqlite.errors import (
    InvalidParameterValue,
    LostLease,
    LostMessage,
    LostReceipt,
    SQSError,
)
from sqsqlite.sql import messages as sql

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract import requests
    from sqsqlite.store.transaction import Transaction


def change_visibility(
    tx: "Transaction", queue: QueueRow, receipt: Receipt, visibility_timeout_seconds: int, *, any_handle: bool
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
        "expired_at": queue.expired_at(tx),
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


_UNAVAILABLE = "Message does not exist or is not available for visibility timeout change"


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
    queue = queue_rows.find(tx, request.queue_url, caller)
    _change(tx, queue, request.receipt_handle, request.visibility_timeout, _unavailable)
    return Empty()


def change_message_visibility_batch(
    tx: "Transaction", request: "requests.ChangeMessageVisibilityBatch", caller: "Caller"
) -> ChangeMessageVisibilityBatchResponse:
    """Change up to ten; each succeeds or fails by itself. Source: API_ChangeMessageVisibilityBatch."""
    queue = queue_rows.find(tx, request.queue_url, caller)
    failures: dict[str, SQSError] = {}
    for entry in request.entries:
        try:
            timeout = entry.check_entry(tx.settings.limits)
            _change(tx, queue, entry.receipt_handle, timeout, _unavailable_entry)
        except SQSError as error:
            failures[entry.id] = error
    successful, failed = divided(tx, request.entries, failures)
    return ChangeMessageVisibilityBatchResponse(
        successful=[ChangeMessageVisibilityBatchResultEntry(id=entry_id) for entry_id in successful] or None,
        failed=failed or None,
    )


def _change(
    tx: "Transaction",
    queue: QueueRow,
    handle: str,
    visibility_timeout: int,
    unavailable: Callable[[str, Lease], SQSError],
) -> None:
    receipt = receipt_of(tx, queue, handle)
    lease, received_at, _ = classify(tx, queue, receipt)
    any_handle = not (tx.is_callers or tx.settings.strict_handles or queue.fifo)
    if lease is Lease.GONE or (any_handle and lease is Lease.MOVED):
        raise unavailable(handle, lease)
    if lease is not Lease.CURRENT and not any_handle:
        if not tx.settings.strict_handles:
            expired(handle, lease)
        raise LostLease(
            f"{invalid_handle(handle)} Message is not in flight: its visibility timeout has ended, or it was "
            "received again since.",
            REASONS[lease],
        )
    if any_handle and too_old(tx, receipt.received_at):
        expired(handle, Lease.ENDED)
    _check_total(tx, received_at or receipt.received_at, visibility_timeout)
    # False only in compat="aws", for a message that is visible again: 200, and it stays so.
    change_visibility(tx, queue, receipt, visibility_timeout, any_handle=any_handle)


def _unavailable(handle: str, lease: Lease) -> SQSError:
    return LostMessage(f"{invalid_handle(handle)} {_UNAVAILABLE}.", REASONS[lease])


def _unavailable_entry(_handle: str, lease: Lease) -> SQSError:
    """As recorded, Amazon answers a batch's entry with another code than a single call, and with these words alone."""
    return LostReceipt(_UNAVAILABLE, REASONS[lease])


def _check_total(tx: "Transaction", received_at: int, visibility_timeout: int) -> None:
    """At most 12 h from the latest receive, all changes together; never clipped. Source: quotas."""
    total_seconds = tx.settings.limits.visibility_total_seconds
    if tx.now_ms - received_at + visibility_timeout * 1000 > total_seconds * 1000:
        raise InvalidParameterValue(
            f"Value {visibility_timeout} for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout "
            f"for the message is beyond the limit [{total_seconds} seconds]"
        )
