# SPDX-License-Identifier: Apache-2.0
"""Receiving from FIFO queues: group by group, from each the visible messages at its front, in order.

A group with a message in flight waits. Messages beyond retention and exhausted ones are dealt with before the claim,
because they stand at the front of their group and hold up the others. A receive with a ReceiveRequestAttemptId whose
answer got lost is answered again, for five minutes.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from sqsqlite.actions import dead_letters, groups, sweep
from sqsqlite.actions.claim import MOST_IN_THE_WAY, next_expiry, promote, read
from sqsqlite.actions.dead_letters import Exhausted
from sqsqlite.actions.queue_rows import Claim, QueueRow, Receivable, Received
from sqsqlite.errors import Corrupt, InvalidParameterValue
from sqsqlite.sql import fifo as sql
from sqsqlite.store.clock import Jumps

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


class Front(NamedTuple):
    """A message at the front of its group."""

    id: int
    visible_at: int
    received: int
    receive_count: int
    queue_receive_count: int
    sent_at: int


class _Walk:
    """One claim: what it does not hand out, and how much of that it has met."""

    def __init__(self, tx: "Transaction", queue: QueueRow, state: Receivable) -> None:
        self.expired_at = queue.expired_at(tx)
        self.in_the_way = 0
        self._tx = tx
        self._queue = queue
        self._state = state
        self._target: QueueRow | None = None

    def target_of(self, found: Front) -> QueueRow | None:
        """The dead-letter queue, if the message is exhausted; without that queue it stays receivable."""
        limit = self._state.max_receive_count
        if limit is None or found.queue_receive_count < limit:
            return None
        if self._target is None:
            self._target = dead_letters.find_target(self._tx, self._queue, self._state.dead_letter_target_arn)
        return self._target


def next_at(execute: Any, queue: QueueRow, jumps: Jumps) -> int | None:
    """The instant of the next possible receive; None: not before the next send.

    When the retention of the oldest message ends, the message may free its group, in flight or not.
    """
    head_visible_at: int | None = execute(sql.NEXT_HEAD, (queue.epoch_id,)).fetchone()[0]
    if head_visible_at is None:
        return None
    return min(head_visible_at, next_expiry(execute, queue, jumps))


def claim(
    tx: "Transaction",
    queue: QueueRow,
    state: Receivable,
    max_messages: int,
    visibility_timeout_seconds: int,
    *,
    attributes: bool = True,
) -> list[Received] | None:
    """Claim up to `max_messages`, from one group as many as it has, then from the next.

    Arguments and result are those of `receive.claim`.
    """
    now_ms = tx.now_ms
    if state.is_due(now_ms):
        promote(tx, queue)
    walk = _Walk(tx, queue, state)
    expired = sweep.delete_expired(tx, queue.id, queue.epoch_id, walk.expired_at, MOST_IN_THE_WAY)
    visible_at = now_ms + visibility_timeout_seconds * 1000 if visibility_timeout_seconds else 0
    seen: set[int] = set()
    while True:
        rows = _claim_groups(tx, queue, walk, seen, max_messages, visible_at)
        if not rows:
            return None if max(expired, walk.in_the_way) >= MOST_IN_THE_WAY else []
        tx.delta(queue.epoch_id).received += len(rows)
        if visible_at:
            tx.wake(queue.id, visible_at)
        found = with_deduplication_ids(tx, queue, rows, attributes=attributes)
        if len(found) < len(rows):
            found = _up_to_damage(tx, queue, rows, found, hidden=visible_at > 0)
        if found:
            return found
        if visible_at:
            walk.in_the_way += len(rows)  # with a timeout of 0 another claim would meet the same ones


def _claim_groups(
    tx: "Transaction", queue: QueueRow, walk: _Walk, seen: set[int], max_messages: int, visible_at: int
) -> list[Any]:
    """Claim up to `max_messages` messages from groups that are not among the `seen`: their rows."""
    rows: list[Any] = []
    while len(rows) < max_messages and walk.in_the_way < MOST_IN_THE_WAY:
        # A group that was claimed with a timeout of 0 is ready again, and must not be claimed twice.
        bounds = (queue.epoch_id, tx.now_ms, max_messages - len(rows) + len(seen))
        ready = [row[0] for row in tx.execute(sql.LIST_READY_GROUPS, bounds).fetchall()]
        fresh = [group_key for group_key in ready if group_key not in seen]
        if not fresh:
            break
        for group_key in fresh:
            seen.add(group_key)
            rows += _claim_group(tx, queue, walk, group_key, max_messages - len(rows), visible_at)
            if len(rows) == max_messages:
                break
    return rows


def with_deduplication_ids(
    tx: "Transaction", queue: QueueRow, rows: list[Any], *, attributes: bool
) -> list[Received]:
    """The messages of rows that are a Claim and a deduplication id. Damaged ones are left out, as `read` does."""
    found = read(tx, queue, [Claim(*row[:7]) for row in rows], attributes=attributes)
    if len(found) == len(rows):
        return [one._replace(deduplication_id=row[7]) for one, row in zip(found, rows, strict=True)]
    deduplication_ids = {row[1]: row[7] for row in rows}
    return [one._replace(deduplication_id=deduplication_ids[one.claim.id]) for one in found]


def _up_to_damage(
    tx: "Transaction", queue: QueueRow, rows: list[Any], found: list[Received], *, hidden: bool
) -> list[Received]:
    """The messages before the first damaged one of their group.

    The damaged one stays in flight and holds up its group, as a message does that is never deleted. The messages
    behind it keep their place and their receive counts: no consumer has seen them.
    """
    readable = {one.claim.id for one in found}
    group_keys = {
        row[1]: tx.execute(sql.SELECT_GROUP_KEY, (queue.epoch_id, row[1])).fetchone()[1] for row in rows
    }
    blocked: dict[int, int] = {}
    for row in rows:
        if row[1] not in readable:
            blocked.setdefault(group_keys[row[1]], row[1])
    behind = [row[1] for row in rows if row[1] > blocked.get(group_keys[row[1]], row[1])]
    tx.connection.executemany(sql.UNDO_CLAIM, [(row_id,) for row_id in behind])
    delta = tx.delta(queue.epoch_id)
    delta.received -= len(behind)
    if hidden:
        delta.in_flight -= len(behind)
    return [one for one in found if one.claim.id not in behind]


def _claim_group(
    tx: "Transaction", queue: QueueRow, walk: _Walk, group_key: int, wanted: int, visible_at: int
) -> list[Any]:
    """Claim the visible messages at the group's front, up to `wanted`: their rows, in order."""
    front = _front(tx, queue, walk, group_key, wanted)
    if not front:
        return []
    last_id = front[-1].id
    rows: list[Any] = tx.execute(sql.CLAIM_GROUP, (visible_at, tx.now_ms, group_key, last_id)).fetchall()
    tx.execute(sql.SET_GROUP_HEAD, (visible_at or tx.now_ms, group_key))
    delta = tx.delta(queue.epoch_id)
    delta.in_flight += len(front) if visible_at else 0
    # What was due and not promoted yet is still counted as hidden.
    delta.in_flight -= sum(1 for found in front if found.visible_at and found.received)
    delta.delayed -= sum(1 for found in front if found.visible_at and not found.received)
    rows.sort(key=lambda row: row[1])
    return rows


def _front(tx: "Transaction", queue: QueueRow, walk: _Walk, group_key: int, wanted: int) -> list[Front]:
    """The first messages of the group that can be claimed now, once the exhausted ones were moved away."""
    while walk.in_the_way < MOST_IN_THE_WAY:
        visible: list[Front] = []
        exhausted: list[Exhausted] = []
        target = None
        for row in tx.execute(sql.LIST_GROUP, (group_key, wanted)).fetchall():
            found = Front(*row)
            if found.visible_at > tx.now_ms or found.sent_at <= walk.expired_at:
                break  # beyond retention, and there were more than one claim deletes: the next one goes on
            if (dead_letter_queue := walk.target_of(found)) is None:
                visible.append(found)
            else:
                target = dead_letter_queue
                hidden = found.visible_at > 0
                exhausted.append(Exhausted(found.id, found.receive_count, found.sent_at, hidden))
        if target is None:
            if not visible:
                walk.in_the_way += 1
                _put_off(tx, queue, group_key)
            return visible
        walk.in_the_way += len(exhausted)
        dead_letters.move_fifo(tx, queue, target, exhausted)
        groups.refresh(tx, queue.id, group_key, exhausted[0].id)
    return []


def _put_off(tx: "Transaction", queue: QueueRow, group_key: int) -> None:
    """Nothing at the front can be claimed: the group waits for its head, if it still has one."""
    head = tx.execute(sql.SELECT_HEAD, (group_key,)).fetchone()
    if head is not None:
        groups.release(tx, queue.id, group_key, head[1])


_Leases = list[tuple[int, str, int]]  # row id, token in hexadecimal, visible_at

_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(_Leases)


def remember(
    tx: "Transaction",
    queue: QueueRow,
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
    tx: "Transaction", queue: QueueRow, attempt_id: str, visibility_timeout_seconds: int
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
    tx: "Transaction", queue: QueueRow, attempt_id: str, lease_id: int, token: str, visible_at: int
) -> Any:
    """The lease's row, if the message is still there and untouched since the attempt was answered."""
    row = tx.execute(sql.SELECT_ATTEMPTED_LEASE, (lease_id, queue.epoch_id)).fetchone()
    gone = row is None or row[2] is None or row[5] <= queue.expired_at(tx)
    if gone or row[2].hex() != token or row[8] != visible_at:
        raise InvalidParameterValue(
            f"Value {attempt_id} for parameter ReceiveRequestAttemptId is invalid. Reason: The receiveRequestAttemptId "
            "is not valid anymore since the receive call is not retryable."
        )
    return row


def _hide_again(tx: "Transaction", queue: QueueRow, lease: Any, visible_at: int) -> tuple[int, str, int]:
    """Begin the lease's timeout anew, though never beyond what one receive may have in all."""
    lease_id, token, received_at = lease[1], lease[2], lease[9]
    longest = received_at + tx.settings.limits.visibility_total_seconds * 1000
    visible_at = min(visible_at, longest)
    tx.execute(sql.HIDE_AGAIN, (visible_at, lease_id))
    groups.change(tx, queue, lease_id, visible_at)
    return lease_id, token.hex(), visible_at


def _note(
    tx: "Transaction", queue: QueueRow, attempt_id: str, leases: list[tuple[int, str, int]], expires_at: int
) -> None:
    noted = _encode(leases).decode()
    tx.execute(sql.SET_RECEIVE_ATTEMPT, (queue.epoch_id, attempt_id, noted, expires_at))
