# SPDX-License-Identifier: Apache-2.0
"""SendMessage and its batch, deduplication, and the turns of fair queues. Contract, sections 3.9, 3.10, 5, 8 and 9."""

# ruff: noqa: N803 - SQS's parameters have SQS's names

import hashlib
import re

from tests.model import fairness
from tests.model.state import (
    FIVE_MINUTES,
    SECOND,
    Group,
    Message,
    Refusal,
    Sent,
    bad_value,
    invalid,
    md5,
    md5_of_attributes,
    missing,
)

BATCH_BYTES = 1_048_576
NO_DEDUPLICATION = (
    "The queue should either have ContentBasedDeduplication enabled or "
    "MessageDeduplicationId provided explicitly"
)


def send_message(state, QueueUrl, **params):
    queue = state.queue(QueueUrl)
    check_message(queue, params)
    if queue.fifo:
        _check_identified(queue, params, missing("MessageGroupId"))
    return accept(state, queue, params)


def send_message_batch(state, QueueUrl, Entries):
    queue = state.queue(QueueUrl)
    check_batch("SendMessageBatchRequestEntry", Entries)
    total = sum(map(size, Entries))
    if total > BATCH_BYTES:
        raise Refusal(
            "AWS.SimpleQueueService.BatchRequestTooLong",
            f"Batch requests cannot be longer than {BATCH_BYTES} bytes. You have sent {total} bytes.",
        )
    if queue.fifo:
        for entry in Entries:
            _check_identified(queue, entry, invalid("The request must contain the parameter MessageGroupId."))
    return each_entry(Entries, lambda entry: _accept_entry(state, queue, entry))


def _accept_entry(state, queue, entry):
    check_message(queue, entry, in_batch=True)
    return accept(state, queue, entry)


def check_batch(entry_type, entries):
    if not entries:
        text = f"There should be at least one {entry_type} in the request."
        raise Refusal("AWS.SimpleQueueService.EmptyBatchRequest", text)
    if len(entries) > 10:
        text = f"Maximum number of entries per request are 10. You have sent {len(entries)}."
        raise Refusal("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", text)
    ids = [entry["Id"] for entry in entries]
    if not all(re.fullmatch("[A-Za-z0-9_-]{1,80}", entry_id) for entry_id in ids):
        raise Refusal(
            "AWS.SimpleQueueService.InvalidBatchEntryId",
            "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
            "It can be at most 80 letters long.",
        )
    for place, entry_id in enumerate(ids):
        if entry_id in ids[:place]:
            text = f"Id {entry_id} repeated."
            raise Refusal("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", text)


def each_entry(entries, action):
    """Carry each entry out by itself. A refusal is that entry's failure. An empty list is left out of the answer."""
    successful, failed = [], []
    for entry in entries:
        try:
            done = action(entry)
        except Refusal as refusal:
            failed.append({"Id": entry["Id"], "SenderFault": True, "refusal": refusal})
        else:
            successful.append({"Id": entry["Id"], **done})
    answer = {"Successful": successful, "Failed": failed}
    return {key: found for key, found in answer.items() if found}


def size(params):
    total = len(params["MessageBody"].encode())
    for name, value in params.get("MessageAttributes", {}).items():
        content = value.get("BinaryValue") or value.get("StringValue", "").encode()
        total += len(name) + len(value["DataType"]) + len(content)
    return total


def check_message(queue, params, *, in_batch=False):
    body = params["MessageBody"]
    if not body:
        raise missing("MessageBody")
    most = queue.seconds("MaximumMessageSize")
    if size(params) > most:
        what = "cannot be validated" if in_batch else "are invalid"
        raise invalid(f"One or more parameters {what}. Reason: Message must be shorter than {most} bytes.")
    if re.search("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", body):
        raise Refusal("InvalidMessageContents")
    for name, value in params.get("MessageAttributes", {}).items():
        if not (value.get("StringValue") or value.get("BinaryValue")):
            text = f"Message (user) attribute '{name}' must contain a non-empty value of type 'String'."
            raise invalid(text)
    for parameter in ("MessageDeduplicationId", "MessageGroupId"):
        check_identifier(parameter, params.get(parameter))
    _check_delay(queue, params.get("DelaySeconds"))
    if not queue.fifo and params.get("MessageDeduplicationId") is not None:
        reason = "The request includes a parameter that is not valid for this queue type."
        raise bad_value(params["MessageDeduplicationId"], "MessageDeduplicationId", reason)


def check_identifier(parameter, value):
    if value is not None and not re.fullmatch("[!-~]{1,128}", value):
        reason = f"{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length."
        raise bad_value(value, parameter, reason)


def _check_delay(queue, delay):
    if delay is not None and not 0 <= delay <= 900:
        raise bad_value(delay, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")
    if delay and queue.fifo:
        reason = "The request include parameter that is not valid for this queue type."
        raise bad_value(delay, "DelaySeconds", reason)


def _check_identified(queue, params, no_group):
    if params.get("MessageGroupId") is None:
        raise no_group
    if (
        params.get("MessageDeduplicationId") is None
        and queue.attributes["ContentBasedDeduplication"] == "false"
    ):
        raise invalid(NO_DEDUPLICATION)


def accept(state, queue, params):
    """Store a checked message, or recognise it as a duplicate, and give the answer's members."""
    body = params["MessageBody"]
    answer = {"MD5OfMessageBody": md5(body.encode())}
    if params.get("MessageAttributes"):
        answer["MD5OfMessageAttributes"] = md5_of_attributes(params["MessageAttributes"])
    if params.get("MessageSystemAttributes"):
        answer["MD5OfMessageSystemAttributes"] = md5_of_attributes(params["MessageSystemAttributes"])
    deduplication_id = sequence = None
    if queue.fifo:
        deduplication_id = params.get("MessageDeduplicationId") or hashlib.sha256(body.encode()).hexdigest()
        original = _original(state, queue, params["MessageGroupId"], deduplication_id)
        if original is not None:
            state.happened["duplicate"] += 1
            return {**answer, "MessageId": original.message_id, "SequenceNumber": original.sequence}
    delay = params.get("DelaySeconds")
    if delay is None or queue.fifo:
        delay = queue.seconds("DelaySeconds")
    number = state.number()
    if queue.fifo:
        sequence = number
    message = Message(
        number=number,
        queue=queue,
        message_id=f"message {number}",
        body=body,
        attributes=params.get("MessageAttributes", {}),
        trace=params.get("MessageSystemAttributes", {}).get("AWSTraceHeader", {}).get("StringValue"),
        group=params.get("MessageGroupId"),
        deduplication_id=deduplication_id,
        sequence=sequence,
        sent_at=state.now,
        visible_at=state.now + delay * SECOND if delay else 0,
    )
    if queue.fifo:
        in_groups = queue.sent.setdefault(deduplication_id, {})
        in_groups[message.group] = Sent(state.now, message.message_id, sequence)
        answer["SequenceNumber"] = sequence
    put(state, queue, message)
    if not queue.fifo:
        fairness.draw(state, queue, message)
    return {**answer, "MessageId": message.message_id}


def _original(state, queue, group, deduplication_id):
    """The send of the last five minutes that this one repeats. If several groups had the id, its own group's."""
    found = {
        name: sent
        for name, sent in sorted(queue.sent.get(deduplication_id, {}).items())
        if state.now - sent.at < FIVE_MINUTES
    }
    scope = queue.attributes["DeduplicationScope"] if state.compat == "docs" else queue.first_scope
    if group in found:
        return found[group]
    return next(iter(found.values()), None) if scope == "queue" else None


def put(state, queue, message):
    """Put a message into a queue in the order of sending, and a new group behind the existing groups."""
    message.queue = queue
    queue.messages.append(message)
    queue.messages.sort(key=lambda one: one.number)
    if queue.fifo:
        _join(state, queue, message)


def _join(state, queue, message):
    """A new group stands behind the existing ones.

    A dead letter may come first in a group that waits: then it waits only for what is in flight, no longer for a delay.
    """
    group = queue.groups.get(message.group)
    messages = [one for one in queue.messages if one.group == message.group]
    if group is None:
        queue.groups[message.group] = Group(state.number(), max(message.visible_at, state.now))
    elif messages[0] is message and group.ready_at > state.now:
        in_flight = [one.visible_at for one in messages if one.receipt and one.visible_at > state.now]
        group.ready_at = max([state.now, *in_flight])
