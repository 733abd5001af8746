# SPDX-License-Identifier: Apache-2.0
"""ReceiveMessage, on both types of queue. Contract, sections 3.11, 7, 8.2, 8.4 and 10.2."""

# ruff: noqa: N803 - SQS's parameters have SQS's names

import json

from tests.model import fairness, sending
from tests.model.state import (
    ACCOUNT,
    FIVE_MINUTES,
    IN_FLIGHT_LONGEST,
    SECOND,
    Attempt,
    Receipt,
    Refusal,
    bad_value,
    counts,
    is_expired,
    is_visible,
    md5,
    md5_of_attributes,
)

STEPS = 9  # the number of remembered steps on a message's way through dead-letter queues

SYSTEM_ATTRIBUTES = (
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "MessageGroupId",
    "MessageDeduplicationId",
    "SequenceNumber",
    "AWSTraceHeader",
    "DeadLetterQueueSourceArn",
)


def receive_message(state, QueueUrl, **params):
    queue = state.queue(QueueUrl)
    _check(queue, params)
    timeout = params.get("VisibilityTimeout")
    if timeout is None:
        timeout = queue.seconds("VisibilityTimeout")
    attempt_id = params.get("ReceiveRequestAttemptId")
    replayed = _replay(state, queue, attempt_id, timeout) if attempt_id is not None else None
    if replayed is not None:
        taken = replayed
    else:
        room = state.in_flight_limits[queue.fifo] - counts(state, queue)[1]
        most = min(params.get("MaxNumberOfMessages", 1), room)
        taken = _claim(state, queue, most, timeout)
        if attempt_id is not None and taken:
            queue.attempts[attempt_id] = Attempt(
                state.now, [(message, message.receipt, message.visible_at) for message in taken]
            )
    return {"Messages": [_shown(message, params) for message in taken]} if taken else {}


def _check(queue, params):
    most = params.get("MaxNumberOfMessages", 1)
    if not 1 <= most <= 10:
        raise bad_value(most, "MaxNumberOfMessages", "Must be between 1 and 10, if provided.")
    timeout = params.get("VisibilityTimeout", 0)
    if not 0 <= timeout <= 43_200:
        raise bad_value(timeout, "VisibilityTimeout", "Must be between 0 and 43200, if provided.")
    wait = params.get("WaitTimeSeconds", 0)
    if not 0 <= wait <= 20:
        raise bad_value(wait, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")
    for name in params.get("AttributeNames", ()):
        if name != "All" and name not in SYSTEM_ATTRIBUTES:
            raise Refusal("InvalidAttributeName", f"Unknown Attribute {name}.")
    attempt_id = params.get("ReceiveRequestAttemptId")
    sending.check_identifier("ReceiveRequestAttemptId", attempt_id)
    if attempt_id is not None and not queue.fifo:
        reason = "The request includes a parameter that is not valid for this queue type."
        raise bad_value(attempt_id, "ReceiveRequestAttemptId", reason)


def _claim(state, queue, most, timeout):
    expire(state, queue)
    if queue.fifo:
        return _claim_groups(state, queue, most, timeout) if most > 0 else []
    fairness.promote(state, queue)
    waiting = [message for message in queue.messages if message.visible_at == 0]
    if most <= 0 and waiting:
        raise Refusal(
            "OverLimit",
            "Too many messages have been received without being deleted. Please delete your received messages "
            "or let them timeout before receiving more.",
        )
    waiting.sort(key=lambda message: message.order)
    taken = []
    for message in waiting:
        if len(taken) == most:
            break
        if not _dies(state, message):
            _take(state, message, timeout)
            taken.append(message)
    queue.turn = max([queue.turn, *(message.turn for message in taken)])
    return taken


def _claim_groups(state, queue, most, timeout):
    """The group that has waited longest gives all it can, then the next."""
    taken = []
    for group_id, group in sorted(queue.groups.items(), key=lambda item: (item[1].ready_at, item[1].number)):
        if group.ready_at > state.now:
            waiting = any(is_visible(state, message) for message in of_group(queue, group_id))
            state.happened["group blocked"] += waiting
            continue
        if len(taken) == most:
            break
        for message in of_group(queue, group_id):
            if len(taken) == most or not is_visible(state, message):
                break
            if not _dies(state, message):
                _take(state, message, timeout)
                taken.append(message)
        if group_id in queue.groups:
            release(state, queue, group_id)
    return taken


def of_group(queue, group_id):
    return [message for message in queue.messages if message.group == group_id]


def release(state, queue, group_id):
    """The group waits for its first message: the instant from which it can be received, not before now."""
    queue.groups[group_id].ready_at = max(of_group(queue, group_id)[0].visible_at, state.now)


def reconsider(state, queue, group_id, *, new_first=False):
    """After messages of a group went, came or were changed, where that does not release it.

    A group whose first message is visible waits for those in flight, unless it could be received already.
    """
    messages = of_group(queue, group_id)
    if not messages:
        del queue.groups[group_id]
        return
    group = queue.groups[group_id]
    if not is_visible(state, messages[0]):
        if new_first:
            group.ready_at = messages[0].visible_at
    elif new_first or group.ready_at > state.now:
        in_flight = [one.visible_at for one in messages if one.receipt and not is_visible(state, one)]
        group.ready_at = max([state.now, *in_flight])


def changed(state, queue, message):
    """After a change of a received message's visibility."""
    if of_group(queue, message.group)[0] is message:
        release(state, queue, message.group)
    else:
        reconsider(state, queue, message.group)


def remove(state, message):
    """Take a message out of its queue. If it was the first of its group, the group may become free."""
    queue = message.queue
    was_first = queue.fifo and of_group(queue, message.group)[0] is message
    queue.messages.remove(message)
    message.queue = None
    if queue.fifo:
        reconsider(state, queue, message.group, new_first=was_first)


def expire(state, queue):
    """Remove expired messages."""
    for message in [message for message in queue.messages if is_expired(state, queue, message)]:
        state.happened["expired"] += 1
        remove(state, message)


def delays_changed(state, queue, old_delay):
    """A FIFO queue's delay holds for messages that are there already, unless they have been received.

    One that is visible before the old delay is over was moved here, and stays visible.
    """
    delay = queue.seconds("DelaySeconds") * SECOND
    for message in queue.messages:
        if message.first_received_at is None:
            was_visible = is_visible(state, message)
            if was_visible and message.sent_at + old_delay > state.now:
                continue
            message.visible_at = message.sent_at + delay
            first = of_group(queue, message.group)[0] is message
            if first and not (was_visible and is_visible(state, message)):
                release(state, queue, message.group)


def _dies(state, message):
    """Whether this receive would exceed the count: then the message moves to the dead-letter queue."""
    source = message.queue
    policy = json.loads(source.attributes.get("RedrivePolicy", "{}"))
    target = state.queue_of_arn(policy.get("deadLetterTargetArn"))
    if target is None or target is source or message.receives_here < policy["maxReceiveCount"]:
        return False
    remove(state, message)
    state.happened["dead letter of a dead-letter queue" if message.source_arn else "dead letter"] += 1
    message.source_arns = (*message.source_arns, source.arn)[-STEPS:]
    message.died_at = state.now
    message.receives_here = 0
    message.receipt = message.received_at = None
    message.visible_at = 0
    message.turn = target.turn
    if source.fifo:
        message.deduplication_id = message.message_id
        if state.compat == "aws":
            message.sent_at = state.now
    sending.put(state, target, message)
    return True


def _take(state, message, timeout):
    state.happened["received" if message.receive_count == 0 else "received again"] += 1
    message.receive_count += 1
    message.receives_here += 1
    message.received_at = state.now
    message.first_received_at = message.first_received_at or state.now
    message.visible_at = state.now + timeout * SECOND if timeout else 0
    message.receipt = f"receipt {state.number()}"
    state.receipts[message.receipt] = Receipt(message.queue, message, state.now)


def _replay(state, queue, attempt_id, timeout):
    """The messages of a repeated receive, hidden again; None if it is a new receive."""
    attempt = queue.attempts.get(attempt_id)
    if attempt is None or state.now - attempt.at >= FIVE_MINUTES:
        return None
    if any(visible_at <= state.now for _, _, visible_at in attempt.taken):
        return None
    for message, receipt, visible_at in attempt.taken:
        gone = message.queue is not queue or is_expired(state, queue, message)
        if gone or (message.receipt, message.visible_at) != (receipt, visible_at):
            reason = (
                "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable."
            )
            raise bad_value(attempt_id, "ReceiveRequestAttemptId", reason)
    state.happened["receive attempt replayed"] += 1
    taken = [message for message, _, _ in attempt.taken]
    for message in taken:
        until = min(state.now + timeout * SECOND, message.received_at + IN_FLIGHT_LONGEST)
        message.visible_at = until if timeout else 0
        changed(state, queue, message)
    queue.attempts[attempt_id] = Attempt(
        attempt.at, [(message, message.receipt, message.visible_at) for message in taken]
    )
    return taken


def _shown(message, params):
    shown = {
        "MessageId": message.message_id,
        "ReceiptHandle": message.receipt,
        "MD5OfBody": md5(message.body.encode()),
        "Body": message.body,
    }
    asked = params.get("AttributeNames", ())
    values = {
        "SenderId": ACCOUNT,
        "SentTimestamp": str(message.sent_at),
        "ApproximateReceiveCount": str(message.receive_count),
        "ApproximateFirstReceiveTimestamp": str(message.first_received_at),
        "MessageGroupId": message.group,
        "MessageDeduplicationId": message.deduplication_id,
        "SequenceNumber": message.sequence,
        "AWSTraceHeader": message.trace,
        "DeadLetterQueueSourceArn": message.source_arn,
    }
    system = {
        name: value for name, value in values.items() if value is not None and {"All", name} & set(asked)
    }
    if system:
        shown["Attributes"] = system
    user = _selected(message.attributes, params.get("MessageAttributeNames", ()))
    if user:
        shown["MessageAttributes"] = user
        shown["MD5OfMessageAttributes"] = md5_of_attributes(user)
    return shown


def _selected(attributes, names):
    if {"All", ".*", "*"} & set(names):
        return attributes
    prefixes = tuple(name[:-2] for name in names if name.endswith(".*"))
    return {name: value for name, value in attributes.items() if name in names or name.startswith(prefixes)}
