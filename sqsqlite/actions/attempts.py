"""ReceiveRequestAttemptId: a receive from a FIFO queue whose answer got lost is answered again, for five minutes."""

from typing import TYPE_CHECKING, Any

import msgspec

from sqsqlite.actions import groups
from sqsqlite.actions.fifo_receive import with_deduplication_ids
from sqsqlite.actions.rows import Queue, Received
from sqsqlite.errors import Corrupt, InvalidParameterValue
from sqsqlite.sql import fifo as sql

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction

_Leases = list[tuple[int, str, int]]  # row id, token in hexadecimal, visible_at

_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(_Leases)


def remember(
    tx: "Transaction",
    queue: Queue,
    attempt_id: str,
    found: list[Received],
    visibility_timeout_seconds: int,
) -> None:
    """Note what a receive is answered, for a repetition of it."""
    visible_at = tx.now_ms + visibility_timeout_seconds * 1000 if visibility_timeout_seconds else 0
    expires_at = tx.now_ms + tx.settings.limits.receive_attempt_seconds * 1000
    leases = [(one.claim.id, one.claim.token.hex(), visible_at) for one in found]
    _note(tx, queue, attempt_id, leases, expires_at)


def replay(
    tx: "Transaction", queue: Queue, attempt_id: str, visibility_timeout_seconds: int
) -> list[Received] | None:
    """The messages that the attempt was answered with, under the same handles, hidden anew.

    None: no such attempt within five minutes, or the timeout of its messages has ended: it is a new receive.

    Raises:
        InvalidParameterValue: one of the messages was deleted since, or its visibility changed.
        Corrupt: one of them can't be read any more.
    Source: API_ReceiveMessage, ReceiveRequestAttemptId.
    """
    row = tx.execute(sql.SELECT_RECEIVE_ATTEMPT, (queue.epoch_id, attempt_id, tx.now_ms)).fetchone()
    if row is None:
        return None
    noted, expires_at = _decoder.decode(row[0]), row[1]
    if any(visible_at <= tx.now_ms for _, _, visible_at in noted):
        return None
    leases = [_as_noted(tx, queue, attempt_id, *lease) for lease in noted]
    visible_at = tx.now_ms + visibility_timeout_seconds * 1000 if visibility_timeout_seconds else 0
    hidden = [_hide_again(tx, queue, lease, visible_at) for lease in leases]
    _note(tx, queue, attempt_id, hidden, expires_at)
    if visible_at:
        tx.wake(queue.id, visible_at)
    else:
        tx.delta(queue.epoch_id).in_flight -= len(leases)
        tx.wake(queue.id, 0)
    found = with_deduplication_ids(tx, queue, [row[:8] for row in leases], attributes=True)
    if len(found) < len(leases):
        raise Corrupt("; ".join(tx.damaged))
    return [one._replace(received_at=row[9]) for one, row in zip(found, leases, strict=True)]


def _as_noted(
    tx: "Transaction", queue: Queue, attempt_id: str, lease_id: int, token: str, visible_at: int
) -> Any:
    """The lease's row, if the message is there yet and nobody has touched it since the attempt was answered."""
    row = tx.execute(sql.SELECT_ATTEMPTED_LEASE, (lease_id, queue.epoch_id)).fetchone()
    gone = row is None or row[2] is None or row[5] <= queue.expired_at(tx.now_ms, tx.settings.jumps)
    if gone or row[2].hex() != token or row[8] != visible_at:
        raise InvalidParameterValue(
            f"Value {attempt_id} for parameter ReceiveRequestAttemptId is invalid. Reason: The receiveRequestAttemptId "
            "is not valid anymore since the receive call is not retryable."
        )
    return row


def _hide_again(tx: "Transaction", queue: Queue, lease: Any, visible_at: int) -> tuple[int, str, int]:
    """Begin the lease's timeout anew, though never beyond what one receive may have in all."""
    lease_id, token, received_at = lease[1], lease[2], lease[9]
    longest = received_at + tx.settings.limits.visibility_total_seconds * 1000
    visible_at = min(visible_at, longest)
    tx.execute(sql.HIDE_AGAIN, (visible_at, lease_id))
    groups.change(tx, queue, lease_id, visible_at)
    return lease_id, token.hex(), visible_at


def _note(
    tx: "Transaction", queue: Queue, attempt_id: str, leases: list[tuple[int, str, int]], expires_at: int
) -> None:
    noted = _encode(leases).decode()
    tx.execute(sql.SET_RECEIVE_ATTEMPT, (queue.epoch_id, attempt_id, noted, expires_at))
