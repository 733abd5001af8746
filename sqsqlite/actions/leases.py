# SPDX-License-Identifier: Apache-2.0
"""What has become of a received message: its lease by the receipt that a consumer shows."""

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from sqsqlite.actions.queue_rows import QueueRow
from sqsqlite.contract.receipts import Receipt
from sqsqlite.contract.responses import BatchResultErrorEntry, failure
from sqsqlite.errors import LostMessage, ReceiptHandleIsInvalid, SQSError
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


def classify(tx: "Transaction", queue: QueueRow, receipt: Receipt) -> Standing:
    """How a receipt stands to its lease: one look-up by row id."""
    row = tx.execute(sql.CLASSIFY_LEASE, {"id": receipt.lease_id}).fetchone()
    if row is None:
        return Standing(Lease.GONE)
    epoch_id, token, visible_at, sent_at, received_at, discarded_at, retention_seconds = row
    held = epoch_id == queue.epoch_id and token == receipt.token and visible_at > tx.now_ms
    # Discarded, or beyond the retention of the queue that it is in by now.
    if discarded_at is not None or sent_at <= tx.expired_at(retention_seconds or 0):
        return Standing(Lease.GONE, is_held=held)
    if epoch_id != queue.epoch_id:
        return Standing(Lease.MOVED)
    if token != receipt.token:
        return Standing(Lease.REPLACED, received_at)
    return Standing(Lease.CURRENT if held else Lease.ENDED, received_at, held)


REASONS = {Lease.ENDED: "ended", Lease.REPLACED: "replaced", Lease.MOVED: "moved", Lease.GONE: "gone"}
"""`LeaseLost.reason` of each way to lose a lease."""


def receipt_of(tx: "Transaction", queue: QueueRow, handle: str) -> Receipt:
    """What a receipt handle says.

    Raises:
        ReceiptHandleIsInvalid: this file did not issue the handle, or issued it for another queue.
    """
    receipt = tx.settings.sealer.parse(handle)
    if receipt is None:
        raise ReceiptHandleIsInvalid(f'The input receipt handle "{handle}" is not a valid receipt handle.')
    if receipt.queue_id != queue.id:
        raise ReceiptHandleIsInvalid(f'The receipt handle "{handle}" is not valid for this queue.')
    return receipt


def divided(
    tx: "Transaction", entries: Sequence[Any], failures: dict[str, SQSError]
) -> tuple[list[str], list[BatchResultErrorEntry]]:
    """The ids of what succeeded and the answers to what failed, each in the request's order.

    A caller's transaction remembers the failures: it commits only after the caller has accepted them.
    """
    successful = [entry.id for entry in entries if entry.id not in failures]
    failed = [failure(entry.id, failures[entry.id]) for entry in entries if entry.id in failures]
    if tx.is_callers:
        tx.unsettled += tuple(failures[entry.id] for entry in entries if entry.id in failures)
    return successful, failed


def invalid_handle(handle: str) -> str:
    """How SQS begins its sentence on a handle that it refuses."""
    return f"Value {handle} for parameter ReceiptHandle is invalid. Reason:"


def too_old(tx: "Transaction", received_at: int) -> bool:
    """Whether a message received then may no longer be in flight: 12 h have passed."""
    return tx.now_ms - received_at > tx.settings.limits.visibility_total_seconds * 1000


def expired(handle: str, lease: Lease) -> NoReturn:
    """Raise LostMessage: the handle's lease has ended."""
    raise LostMessage(f"{invalid_handle(handle)} The receipt handle has expired.", REASONS[lease])
