"""Receiving from a standard queue: promote what is due, claim, then fix what should not have been claimed.

Exhausted and expired messages are dealt with after the claim, not looked for before it: it costs nothing where nothing
is wrong, which is nearly always.
"""

from typing import TYPE_CHECKING

from sqsqlite import statements as sql
from sqsqlite.engine import dead_letters
from sqsqlite.engine.rows import Claim, Counts, Queue, Received, StoredMessage

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction

# Claims in one receive that may meet only expired or exhausted messages before it gives up for this time.
ROUNDS = 100


def promote(tx: "Transaction", queue: Queue) -> None:
    """Let messages whose delay or timeout has ended be claimed again: up to 100."""
    was_in_flight = tx.execute(sql.PROMOTE, {"epoch_id": queue.epoch_id, "now_ms": tx.now_ms}).fetchall()
    delta = tx.delta(queue.epoch_id)
    in_flight = sum(row[0] for row in was_in_flight)
    delta.in_flight -= in_flight
    delta.delayed -= len(was_in_flight) - in_flight


def claim(
    tx: "Transaction", queue: Queue, counts: Counts, max_messages: int, visibility_timeout_seconds: int
) -> list[Received]:
    """Claim up to `max_messages` visible messages, hide them for `visibility_timeout_seconds`, and read them.

    On the way, messages beyond retention are deleted and exhausted ones go to the dead-letter queue; both make place
    for others.
    """
    now_ms = tx.now_ms
    if counts.next_visible_at is not None and counts.next_visible_at <= now_ms:
        promote(tx, queue)
    row = {
        "epoch_id": queue.epoch_id,
        "now_ms": now_ms,
        "visible_at": now_ms + visibility_timeout_seconds * 1000 if visibility_timeout_seconds else 0,
        "max_messages": max_messages,
    }
    claims = tx.execute(sql.CLAIM, row).fetchall()
    if not claims:
        return []
    hides = visibility_timeout_seconds > 0
    delta = tx.delta(queue.epoch_id)
    if hides:
        delta.in_flight += len(claims)
    kept = _fix(tx, queue, [Claim._make(found) for found in claims], row)
    if not kept:
        return []
    kept.sort()
    delta.received += len(kept)
    if hides:
        tx.wake(queue.id, row["visible_at"])
    return _read(tx, queue, kept)


def _fix(tx: "Transaction", queue: Queue, claims: list[Claim], row: dict[str, int]) -> list[Claim]:
    """Sort out what may not be handed out, and claim others instead."""
    expired_at = queue.expired_at(tx.now_ms)
    max_receive_count = queue.max_receive_count
    target = None
    kept: list[Claim] = []
    asked = row["max_messages"]
    for _ in range(ROUNDS):
        last = max(claims)
        expired = [found for found in claims if found.sent_at <= expired_at]
        live = [found for found in claims if found.sent_at > expired_at] if expired else claims
        exhausted: list[Claim] = []
        if max_receive_count is not None:
            exhausted = [found for found in live if found.queue_receive_count > max_receive_count]
        if exhausted:
            target = target or dead_letters.find_target(tx, queue)
            if target is None:
                exhausted = []  # there is no such queue any more: the messages stay receivable here
        if not expired and not exhausted:
            kept += live
            return kept
        hidden = row["visible_at"] > 0
        if exhausted and target is not None:
            moved = {found.id for found in exhausted}
            live = [found for found in live if found.id not in moved]
            dead_letters.move(tx, queue, target, exhausted, hidden=hidden)
        kept += live
        after = (last.turn, last.id)
        if expired:
            _delete_expired(tx, queue, expired, hidden=hidden)
            after = (last.turn, max(last.id, _first_live(tx, queue, expired_at) - 1))
        row = {**row, "max_messages": asked - len(kept), "after_turn": after[0], "after_id": after[1]}
        claims = [Claim._make(found) for found in tx.execute(sql.CLAIM_AFTER, row).fetchall()]
        if not claims:
            return kept
        if hidden:
            tx.delta(queue.epoch_id).in_flight += len(claims)
    kept += [found for found in claims if found.sent_at > expired_at]
    return kept


def _first_live(tx: "Transaction", queue: Queue, expired_at: int) -> int:
    found = tx.execute(sql.FIND_FIRST_LIVE, {"epoch_id": queue.epoch_id, "expired_at": expired_at}).fetchone()
    return 0 if found is None else int(found[0])


def _delete_expired(tx: "Transaction", queue: Queue, expired: list[Claim], *, hidden: bool) -> None:
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


def _read(tx: "Transaction", queue: Queue, claims: list[Claim]) -> list[Received]:
    if len(claims) == 1:
        row = tx.execute(sql.SELECT_MESSAGE, (claims[0].id,)).fetchone()
        messages = {row[0]: row}
    else:
        messages = {}
        for start in range(0, len(claims), 10):
            ids = [found.id for found in claims[start : start + 10]]
            ids += ids[:1] * (10 - len(ids))
            messages.update((row[0], row) for row in tx.execute(sql.SELECT_MESSAGES, ids))
    sources = dead_letters.sources(tx, claims) if queue.holds_dead_letters else {}
    return [
        Received(found, StoredMessage._make(messages[found.id]), sources.get(found.id)) for found in claims
    ]
