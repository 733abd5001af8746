# SPDX-License-Identifier: Apache-2.0
"""ReceiveMessage: one claim, or a wait for something to claim."""

from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.actions import claim as receive
from sqsqlite.actions import queue_rows, receive_fifo, sweep
from sqsqlite.actions.messages import sequence_number, uuid_text
from sqsqlite.actions.queue_rows import QueueRow, Receivable, Received
from sqsqlite.contract.digests import md5_of_attributes
from sqsqlite.contract.responses import ReceivedMessage, ReceiveMessageResponse
from sqsqlite.errors import InvalidParameterValue, OverLimit
from sqsqlite.sql import fifo as statements_fifo
from sqsqlite.sql import messages as statements
from sqsqlite.sql import queues as sql
from sqsqlite.store.interrupts import until_done
from sqsqlite.store.wake import SAFETY_NET, Waiter

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract import requests
    from sqsqlite.contract.message_attributes import MessageAttributeValue
    from sqsqlite.contract.receipts import Sealer
    from sqsqlite.store.clock import Jumps
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction

    Execute = Callable[..., Any]

AT_ONCE = 0
"""When to claim again, of a claim that dealt with a thousand messages in its way: others may write in between."""

# A long poll's pause where all that is visible is damaged, milliseconds.
DAMAGED_PAUSE_MS = 100

_OVER_LIMIT = (
    "Too many messages have been received without being deleted. Please delete your received messages or let them "
    "timeout before receiving more."
)


class Found(NamedTuple):
    """What a claim brings: one message or more. `received_at`: in milliseconds since 1970 UTC."""

    queue: QueueRow
    messages: list[Received]
    received_at: int

    def handle(self, one: Received, sealer: "Sealer") -> str:
        """The receipt handle of one of the messages."""
        lease = one.claim
        received_at = self.received_at if one.received_at is None else one.received_at
        return sealer.issue(self.queue.id, lease.id, one.message.message_id[:4], received_at, lease.token)


def receive_message(store: "Store", request: "requests.ReceiveMessage", caller: "Caller") -> Found | None:
    """Receive up to MaxNumberOfMessages, waiting up to WaitTimeSeconds for the first. None: there was none.

    Inside a transaction of the caller's it does not wait: no other process could send meanwhile.

    Raises:
        QueueDoesNotExist: no queue has this URL, also when it is deleted during the wait.
        OverLimit: 120,000 messages of a standard queue are in flight (compat="aws": then a long poll ends empty).
        InvalidParameterValue: ReceiveRequestAttemptId on a standard queue.
    Source: API_ReceiveMessage.
    """
    if store.transaction_of_thread is not None or not looks_empty(store, request, caller):
        found, again_at = store.write(claim, request, caller)
        while again_at == AT_ONCE and not store.closed:
            found, again_at = store.write(claim, request, caller)
        if found or store.transaction_of_thread is not None:
            store.found_empty.discard(request.queue_url)
            return found
    return _wait(store, request, caller)


class Look(NamedTuple):
    """What a receive would find. `next_at`: when there may be something to claim; None: not before the next send."""

    queue: QueueRow
    wait_seconds: int
    next_at: int | None


def look(store: "Store", request: "requests.ReceiveMessage", caller: "Caller") -> Look:
    """Look at the queue without a write transaction.

    Raises:
        QueueDoesNotExist, InvalidParameterValue: as `receive_message`.
    """
    with store.reading() as snapshot:
        queue, state = queue_rows.find_to_receive(snapshot, request.queue_url, caller)
        next_at = _next_at(snapshot.execute, queue, state, store.settings.jumps)
    _check(queue, request)
    return Look(queue, _wait_seconds(request, state), next_at)


def looks_empty(store: "Store", request: "requests.ReceiveMessage", caller: "Caller") -> bool:
    """A look, where the last receive found nothing: an empty queue then costs no write lock."""
    if request.queue_url not in store.found_empty or request.receive_request_attempt_id is not None:
        return False
    next_at = look(store, request, caller).next_at
    return next_at is None or next_at > store.clock.now_ms()


def _next_at(execute: "Execute", queue: QueueRow, state: Receivable, jumps: "Jumps") -> int | None:
    return receive_fifo.next_at(execute, queue, jumps) if queue.fifo else state.next_at


def _wait(store: "Store", request: "requests.ReceiveMessage", caller: "Caller") -> Found | None:
    store.found_empty.add(request.queue_url)
    started_at = store.clock.now_ms()
    queue, wait_seconds, _ = look(store, request, caller)
    if not wait_seconds:
        store.transactions.remember_empty_receive(queue.epoch_id)
        return None
    until = started_at + wait_seconds * 1000
    waiter = Waiter(queue.id)
    try:
        store.waker.register(waiter)
        while not store.closed:
            # From here on no news is missed, so look before sleeping.
            waiter.event.clear()
            waiter.receivable = False
            waiter.due_at = None
            queue, _, next_at = look(store, request, caller)
            if next_at is not None and next_at <= store.clock.now_ms():
                found, next_at = store.write(claim, request, caller)
                if found:
                    store.found_empty.discard(request.queue_url)
                    return found
            if not _sleep(store, waiter, next_at, until):
                break
    finally:
        until_done(lambda: store.waker.forget(waiter))
    store.transactions.remember_empty_receive(queue.epoch_id)
    return None


def _sleep(store: "Store", waiter: "Waiter", next_at: int | None, until: int) -> bool:
    """Until news, the next due instant, or the end of the wait (False)."""
    clock = store.clock
    while True:
        now_ms = clock.now_ms()
        due_at = waiter.due_at
        if due_at is not None and (next_at is None or due_at < next_at):
            next_at = due_at
        if now_ms >= until:
            return False
        if waiter.receivable or (next_at is not None and next_at <= now_ms):
            return True
        wake_at = until if next_at is None else min(until, next_at)
        if waiter.is_deaf:
            clock.wait(waiter.event, min(wake_at, now_ms + round(SAFETY_NET * 1000)))
            return True
        clock.wait(waiter.event, wake_at)
        # What is heard from here on sets the event again; what was heard before stands in the waiter.
        waiter.event.clear()


def _wait_seconds(request: "requests.ReceiveMessage", state: Receivable) -> int:
    if request.wait_time_seconds is None:
        return state.receive_message_wait_time_seconds
    return request.wait_time_seconds


def _check(queue: QueueRow, request: "requests.ReceiveMessage") -> None:
    if request.receive_request_attempt_id is not None and not queue.fifo:
        raise InvalidParameterValue(
            f"Value {request.receive_request_attempt_id} for parameter ReceiveRequestAttemptId is invalid. "
            "Reason: The request includes a parameter that is not valid for this queue type."
        )


def claim(
    tx: "Transaction", request: "requests.ReceiveMessage", caller: "Caller"
) -> tuple[Found | None, int | None]:
    """One claim, without waiting: what it brings, and if that is nothing, when to try again.

    AT_ONCE: there may be something to claim. None: after the next send.
    """
    queue, state = queue_rows.find_to_receive(tx, request.queue_url, caller)
    _check(queue, request)
    # Counts of this very transaction are not in the row yet.
    if not queue.fifo and queue.epoch_id not in tx.deltas:
        next_at = state.next_at
        if next_at is None or next_at > tx.now_ms:
            return None, next_at
    timeout = request.visibility_timeout
    if timeout is None:
        timeout = state.visibility_timeout_seconds
    found = None
    if queue.fifo and request.receive_request_attempt_id is not None:
        found = receive_fifo.replay(tx, queue, request.receive_request_attempt_id, timeout)
    if found is None:
        asked = request.max_number_of_messages or 1
        room = _places_in_flight(tx, queue, state, asked)
        if room <= 0:
            if not queue.fifo and (tx.settings.compat == "docs" or not _wait_seconds(request, state)):
                if _has_receivable(tx, request, caller):
                    raise OverLimit(_OVER_LIMIT)
                return None, receive.next_place_in_flight(tx, queue)
            # A FIFO queue has no more to give; nor has, for a long poll, a standard queue of today's Amazon.
            return None, receive.next_place_in_flight(tx, queue)
        asked = min(asked, room)
        wants_attributes = bool(request.message_attribute_names or request.system_attribute_names)
        claim_from = receive_fifo.claim if queue.fifo else receive.claim
        found = claim_from(tx, queue, state, asked, timeout, attributes=wants_attributes)
        if found is None:
            return None, AT_ONCE
        if found and request.receive_request_attempt_id is not None:
            receive_fifo.remember(tx, queue, request.receive_request_attempt_id, found, timeout)
    if not found:
        return None, _again_at(tx, queue, state)
    return Found(queue, found, tx.now_ms), None


def size_ahead(tx: "Transaction", request: "requests.ReceiveMessage", caller: "Caller") -> int:
    """How many bytes the messages have, as SQS counts them, that a claim would bring now.

    An estimate: what is exhausted or beyond its retention counts, and the claim brings others instead.

    Raises:
        QueueDoesNotExist: no queue has this name or URL.
    """
    queue = queue_rows.find(tx, request.queue_url, caller)
    asked = request.max_number_of_messages or 1
    if request.receive_request_attempt_id is not None:
        return asked * queue.maximum_message_size_bytes  # it may repeat what another receive was answered
    bounds = {"epoch_id": queue.epoch_id, "now_ms": tx.now_ms, "max_messages": asked}
    if queue.fifo:
        rows = tx.execute(statements_fifo.LIST_SIZES_AHEAD_IN_GROUPS, bounds).fetchall()
    else:
        due = tx.execute(statements.LIST_SIZES_DUE, bounds).fetchall()
        del bounds["now_ms"]
        rows = due + tx.execute(statements.LIST_SIZES_AHEAD, bounds).fetchall()
    return sum(row[0] for row in rows)


def claim_within(tx: "Transaction", request: "requests.ReceiveMessage", caller: "Caller") -> Found | None:
    """Claim in the caller's own transaction, to the end: no other connection can write in between."""
    found, again_at = claim(tx, request, caller)
    while again_at == AT_ONCE:
        found, again_at = claim(tx, request, caller)
    return found


def _again_at(tx: "Transaction", queue: QueueRow, state: Receivable) -> int | None:
    if not queue.fifo:
        return state.next_visible_at
    next_at = receive_fifo.next_at(tx.execute, queue, tx.settings.jumps)
    if next_at is not None and next_at <= tx.now_ms:
        # Damaged, and claimed with a timeout of 0, so still visible: a poll would claim it over and over.
        return tx.now_ms + DAMAGED_PAUSE_MS
    return next_at


def _has_receivable(tx: "Transaction", request: "requests.ReceiveMessage", caller: "Caller") -> bool:
    """Whether anything is visible still, now that what has expired is deleted: an empty queue is not an error."""
    queue, state = queue_rows.find_to_receive(tx, request.queue_url, caller)
    delta = tx.delta(queue.epoch_id)
    hidden = state.in_flight + state.delayed + delta.in_flight + delta.delayed
    return state.messages + delta.messages > hidden or state.is_due(tx.now_ms)


def _places_in_flight(tx: "Transaction", queue: QueueRow, state: Receivable, asked: int) -> int:
    """How many more messages may be in flight. Source: quotas, "In-flight messages"."""
    delta = tx.deltas.get(queue.epoch_id)
    in_flight = state.in_flight + (delta.in_flight if delta is not None else 0)
    limits = tx.settings.limits
    limit = limits.fifo_in_flight_count if queue.fifo else limits.standard_in_flight_count
    if in_flight + asked > limit:
        in_flight -= _no_longer_in_flight(tx, queue)
    return limit - in_flight


def _no_longer_in_flight(tx: "Transaction", queue: QueueRow) -> int:
    """How many are still counted whose timeout or retention has ended."""
    before = tx.delta(queue.epoch_id).in_flight
    sweep.delete_expired(tx, queue.id, queue.epoch_id, queue.expired_at(tx), sweep.CHUNK_ROWS)
    expired = before - tx.delta(queue.epoch_id).in_flight
    due: int = tx.execute(sql.COUNT_DUE, {"epoch_id": queue.epoch_id, "now_ms": tx.now_ms}).fetchone()[0]
    return due + expired


def answer_to(
    found: Found | None, request: "requests.ReceiveMessage", sealer: "Sealer"
) -> ReceiveMessageResponse:
    """What SQS answers: the messages, with the attributes that were asked for, in SQS's words."""
    if found is None:
        return ReceiveMessageResponse()
    asked, wanted = request.system_attribute_names, request.message_attribute_names
    return ReceiveMessageResponse(
        messages=[_answered(found, one, asked, wanted, sealer) for one in found.messages]
    )


def _answered(
    found: Found, one: Received, asked: frozenset[str], wanted: list[str] | None, sealer: "Sealer"
) -> ReceivedMessage:
    message = one.message
    selected = _select(one.attributes, wanted) if wanted and one.attributes else None
    return ReceivedMessage(
        message_id=uuid_text(message.message_id),
        receipt_handle=found.handle(one, sealer),
        md5_of_body=message.body_md5.hex(),
        body=message.body,
        attributes=_system_attributes(found.queue, asked, one) if asked else None,
        md5_of_message_attributes=md5_of_attributes(selected) if selected else None,
        message_attributes=selected or None,
    )


def _system_attributes(queue: QueueRow, asked: frozenset[str], found: Received) -> dict[str, str] | None:
    lease, message = found.claim, found.message
    values = {
        "ApproximateFirstReceiveTimestamp": str(lease.first_received_at),
        "ApproximateReceiveCount": str(lease.receive_count),
        "SenderId": message.sender_id or queue.account_id,
        "SentTimestamp": str(lease.sent_at),
        "AWSTraceHeader": message.trace_header,
        "MessageGroupId": message.group_id,
        "DeadLetterQueueSourceArn": found.source_arn,
        "MessageDeduplicationId": found.deduplication_id,
        "SequenceNumber": sequence_number(lease.id) if queue.fifo else None,
    }
    everything = "All" in asked
    chosen = {
        name: value for name, value in values.items() if value is not None and (everything or name in asked)
    }
    return chosen or None


def _select(
    attributes: "dict[str, MessageAttributeValue]", names: list[str]
) -> "dict[str, MessageAttributeValue]":
    """The attributes that MessageAttributeNames asks for: names, `prefix.*`, or everything."""
    if any(name in ("All", ".*", "*") for name in names):
        return attributes
    prefixes = tuple(name[:-2] for name in names if name.endswith(".*"))
    return {name: value for name, value in attributes.items() if name in names or name.startswith(prefixes)}
