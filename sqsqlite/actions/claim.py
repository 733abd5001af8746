# SPDX-License-Identifier: Apache-2.0
"""Receiving from a standard queue: promote what is due, claim, then fix what should not have been claimed.

Exhausted and expired messages are dealt with after the claim, not looked for before it: it costs nothing where nothing
is wrong, which is nearly always.
"""

from typing import TYPE_CHECKING, Any

from sqsqlite.actions import damaged, dead_letters, fair, sweep
from sqsqlite.actions.messages import in_tens
from sqsqlite.actions.queue_rows import Claim, QueueRow, Receivable, Received, StoredMessage
from sqsqlite.contract.message_attributes import load_attributes
from sqsqlite.sql import messages as sql
from sqsqlite.sql import queues as queue_sql
from sqsqlite.store.clock import Jumps

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction

# What one claim deals with that stands in its way (exhausted, beyond retention, damaged) before it lets others write.
MOST_IN_THE_WAY = 1_000
# Messages that a claim shows again, when their delays or timeouts have ended: 50 ms of work, as is 1,000 of tenants.
MOST_PROMOTED = 10_000


def next_expiry(execute: Any, queue: QueueRow, jumps: Jumps) -> int:
    """When the retention of the oldest message ends. The queue must have one."""
    sent_at: int = execute(queue_sql.NEXT_EXPIRY, (queue.epoch_id,)).fetchone()[0]
    return jumps.expires_at(queue.message_retention_period_seconds, sent_at)


def next_place_in_flight(tx: "Transaction", queue: QueueRow) -> int:
    """When one message less will be in flight, of a queue that has some: a timeout ends, or a retention may."""
    bounds = {"epoch_id": queue.epoch_id, "now_ms": tx.now_ms}
    visible_at: int = tx.execute(queue_sql.NEXT_PLACE_IN_FLIGHT, bounds).fetchone()[0]
    return min(visible_at, next_expiry(tx.execute, queue, tx.settings.jumps))


def promote(tx: "Transaction", queue: QueueRow) -> None:
    """Let messages whose delay or timeout has ended be claimed again: up to 10,000, 1,000 where they draw turns.

    All at once, since the claim goes by age: of the messages that end together, one left behind may be the oldest.
        Those
    beyond retention go first: else which of the others come would depend on whether they were swept already.
    """
    sweep.delete_expired(tx, queue.id, queue.epoch_id, queue.expired_at(tx), sweep.CHUNK_ROWS)
    if queue.has_tenants:
        was_in_flight = fair.promote(tx, queue)
    else:
        bounds = {"epoch_id": queue.epoch_id, "now_ms": tx.now_ms, "limit": MOST_PROMOTED}
        was_in_flight = tx.execute(sql.PROMOTE, bounds).fetchall()
    delta = tx.delta(queue.epoch_id)
    in_flight = sum(row[0] for row in was_in_flight)
    delta.in_flight -= in_flight
    delta.delayed -= len(was_in_flight) - in_flight


def claim(
    tx: "Transaction",
    queue: QueueRow,
    state: Receivable,
    max_messages: int,
    visibility_timeout_seconds: int,
    *,
    attributes: bool = True,
) -> list[Received] | None:
    """Claim up to `max_messages` visible messages, hide them for `visibility_timeout_seconds`, and read them.

    Args:
        attributes: False: the request asks for none, so sender, group, trace header and user attributes stay unread.

    Returns:
        None: a thousand stood in the way and are dealt with; there may be others behind them.

    On the way, messages beyond retention are deleted and exhausted ones go to the dead-letter queue; both make place
    for others. A damaged message is claimed and not handed out: it comes back after its timeout, and each time counts,
    so a dead-letter queue takes it in the end.
    """
    now_ms = tx.now_ms
    if state.is_due(now_ms):
        promote(tx, queue)
    visible_at = now_ms + visibility_timeout_seconds * 1000 if visibility_timeout_seconds else 0
    last: Claim | None = None
    damaged_count = 0
    while True:
        if last is None:
            rows = tx.run(sql.CLAIM, (visible_at, now_ms, queue.epoch_id, max_messages)).fetchall()
        else:
            # All that was claimed is damaged: what stands behind it must not wait for its next time.
            bounds = (visible_at, now_ms, queue.epoch_id, max_messages, last.turn, last.id)
            rows = tx.execute(sql.CLAIM_AFTER, bounds).fetchall()
        if not rows:
            return []
        claims = [Claim(*row) for row in rows]
        kept = _settle_claims(tx, queue, state, claims, max_messages, visible_at)
        if kept is None:
            return None
        if not kept:
            return []
        found = read(tx, queue, kept, attributes=attributes)
        if found:
            return found
        damaged_count += len(kept)
        if visible_at and damaged_count >= MOST_IN_THE_WAY:
            return None  # with a timeout of 0 the next claim would meet the same ones: this one goes on
        last = max(*claims, *kept)


def _settle_claims(
    tx: "Transaction", queue: QueueRow, state: Receivable, claims: list[Claim], asked: int, visible_at: int
) -> list[Claim] | None:
    """Those of the claims that may be handed out, in order of service, and counted. None: as `claim`."""
    delta = tx.delta(queue.epoch_id)
    if visible_at:
        delta.in_flight += len(claims)
    if _needs_fixing(state, claims, queue.expired_at(tx)):
        fixed = _fix(tx, queue, state, claims, asked, visible_at)
        if not fixed:
            return fixed
        claims = fixed
    if len(claims) > 1:
        claims.sort()
    delta.received += len(claims)
    if queue.has_tenants:
        delta.turn = max(delta.turn, claims[-1].turn)
    if visible_at:
        tx.wake(queue.id, visible_at)
    return claims


def _needs_fixing(state: Receivable, claims: list[Claim], expired_at: int) -> bool:
    limit = state.max_receive_count
    for found in claims:
        if found.sent_at <= expired_at or (limit is not None and found.queue_receive_count > limit):
            return True
    return False


def _fix(
    tx: "Transaction", queue: QueueRow, state: Receivable, claims: list[Claim], asked: int, visible_at: int
) -> list[Claim] | None:
    """Sort out what may not be handed out, and claim others instead. None: as `claim`."""
    expired_at = queue.expired_at(tx)
    target = dead_letters.find_target(tx, queue, state.dead_letter_target_arn)
    limit = state.max_receive_count
    hidden = visible_at > 0
    kept: list[Claim] = []
    in_the_way = 0
    while True:
        last = max(claims)
        after_id = last.id
        expired = [found for found in claims if found.sent_at <= expired_at]
        live = [found for found in claims if found.sent_at > expired_at]
        if target is not None and limit is not None:
            # Without a target (the queue was deleted) exhausted messages stay receivable here.
            exhausted = [found for found in live if found.queue_receive_count > limit]
            live = [found for found in live if found.queue_receive_count <= limit]
            if exhausted:
                dead_letters.move(tx, queue, target, exhausted, hidden=hidden)
        kept += live
        if expired:
            _delete_expired(tx, queue, expired, hidden=hidden)
            after_id = max(after_id, _first_live(tx, queue, expired_at) - 1)
        if len(live) == len(claims) or len(kept) == asked:
            return kept
        in_the_way += len(claims) - len(live)
        if in_the_way >= MOST_IN_THE_WAY:
            return kept or None
        row = (visible_at, tx.now_ms, queue.epoch_id, asked - len(kept), last.turn, after_id)
        claims = [Claim(*found) for found in tx.execute(sql.CLAIM_AFTER, row).fetchall()]
        if not claims:
            return kept
        if hidden:
            tx.delta(queue.epoch_id).in_flight += len(claims)


def _first_live(tx: "Transaction", queue: QueueRow, expired_at: int) -> int:
    found = tx.execute(sql.FIND_FIRST_LIVE, {"epoch_id": queue.epoch_id, "expired_at": expired_at}).fetchone()
    return 0 if found is None else int(found[0])


def _delete_expired(tx: "Transaction", queue: QueueRow, expired: list[Claim], *, hidden: bool) -> None:
    for found in expired:
        tx.execute(sql.DELETE_ANY_LEASE, {"id": found.id, "epoch_id": queue.epoch_id}).fetchall()
    ids = [(found.id,) for found in expired]
    tx.connection.executemany(sql.DELETE_MESSAGE, ids)
    if queue.holds_dead_letters:
        tx.connection.executemany(sql.DELETE_DEAD_LETTER, ids)
    delta = tx.delta(queue.epoch_id)
    delta.messages -= len(expired)
    if hidden:
        delta.in_flight -= len(expired)
    tx.sweep = True


def read(tx: "Transaction", queue: QueueRow, claims: list[Claim], *, attributes: bool) -> list[Received]:
    """The messages of the claims, in their order. Damaged ones are left out, and noted in `tx.damaged`."""
    try:
        messages = _messages(tx, [found.id for found in claims], attributes=attributes)
        sources = dead_letters.sources(tx, claims) if queue.holds_dead_letters else {}
        return [
            _received(found, messages[found.id], sources.get(found.id), attributes=attributes)
            for found in claims
        ]
    except damaged.ERRORS as error:
        damaged.refuse_other(error)
    messages = damaged.read_one_by_one(tx, queue, [found.id for found in claims], attributes=attributes)
    healthy = [found for found in claims if found.id in messages]
    sources = dead_letters.sources(tx, healthy) if queue.holds_dead_letters else {}
    return [
        _received(found, messages[found.id], sources.get(found.id), attributes=attributes)
        for found in healthy
    ]


def _received(claim: Claim, message: StoredMessage, source_arn: str | None, *, attributes: bool) -> Received:
    """One message. Raises TypeError or ValueError where its row is damaged, though it could be read."""
    if type(message.body) is not str or not len(message.message_id) == len(message.body_md5) == 16:
        raise TypeError("a damaged row")
    own = load_attributes(message.attributes) if attributes and message.attributes else None
    return Received(claim, message, source_arn, own)


def _messages(tx: "Transaction", ids: list[int], *, attributes: bool) -> dict[int, StoredMessage]:
    if len(ids) == 1:
        return {ids[0]: StoredMessage(*tx.run(sql.SELECT_MESSAGE, ids).fetchone())}
    statement = sql.SELECT_TEN_MESSAGES if attributes else sql.SELECT_TEN_BODIES
    found = {}
    for ten in in_tens(ids):
        for row in tx.run(statement, ten).fetchall():
            found[row[0]] = StoredMessage(*row)
    return found
