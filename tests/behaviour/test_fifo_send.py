# SPDX-License-Identifier: Apache-2.0
"""Sending to a FIFO queue: group, deduplication id, sequence number, and the errors of such a queue."""

import re
import string

import pytest

from tests.behaviour.bound_queue import BoundQueue, without_metadata
from tests.behaviour.refusals import (
    INVALID,
    MISSING,
    NO_DEDUPLICATION,
    NO_GROUP,
    bad_identifier,
    bad_value,
    no_delay_in_fifo,
    refused,
)

IDS = ("MessageGroupId", "MessageDeduplicationId")


@pytest.fixture
def explicit(make_fifo):
    """A FIFO queue whose senders name their deduplication ids."""
    return make_fifo("explicit.fifo", ContentBasedDeduplication="false")


def sequence_number(message):
    return int(message["Attributes"]["SequenceNumber"])


# The answer to a send, and the attributes of the message


@pytest.mark.rule("fifo-send.1")
def test_a_send_answers_with_id_digest_and_sequence_number(explicit):
    answer = explicit.send("test", MessageGroupId="g", MessageDeduplicationId="d")
    assert set(without_metadata(answer)) == {"MessageId", "MD5OfMessageBody", "SequenceNumber"}
    assert answer["MD5OfMessageBody"] == "098f6bcd4621d373cade4e832627b4f6"


@pytest.mark.rule("fifo-send.1", "fifo-send.2")
def test_all_adds_group_deduplication_id_and_sequence_number(explicit, clock):
    """All three as they were sent and answered, in addition to the four of every message."""
    sent = explicit.send("a", MessageGroupId="g", MessageDeduplicationId="d")
    message = explicit.receive_one()
    assert message["Attributes"] == {
        "ApproximateFirstReceiveTimestamp": str(clock.now_ms()),
        "ApproximateReceiveCount": "1",
        "SenderId": "000000000000",
        "SentTimestamp": str(clock.now_ms()),
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
        "SequenceNumber": sent["SequenceNumber"],
    }
    assert message["MessageId"] == sent["MessageId"]


@pytest.mark.rule("fifo-send.2")
@pytest.mark.parametrize("name", ["MessageGroupId", "MessageDeduplicationId", "SequenceNumber"])
def test_each_fifo_attribute_is_returned_by_name(fifo, name):
    fifo.send_group("g", "a")
    assert set(fifo.receive_one(AttributeNames=[name])["Attributes"]) == {name}


def test_without_names_no_fifo_attribute_is_returned(fifo):
    fifo.send_group("g", "a")
    assert "Attributes" not in fifo.receive_one(AttributeNames=[])


@pytest.mark.rule("fifo-send.5")
def test_a_message_is_the_same_at_every_receive(fifo, clock):
    fifo.send("a", MessageGroupId="g", MessageAttributes={"n": {"DataType": "Number", "StringValue": "1"}})
    seen = []
    for _ in range(3):
        message = fifo.receive_one(MessageAttributeNames=["All"])
        names = (*IDS, "SequenceNumber", "SentTimestamp")
        seen.append(
            (
                message["MessageId"],
                message["MD5OfMessageAttributes"],
                *(message["Attributes"][name] for name in names),
            )
        )
        clock.advance(30)
    assert len(set(seen)) == 1


# Sequence numbers


@pytest.mark.rule("fifo-send.3")
def test_a_sequence_number_has_20_digits(fifo):
    for answer in fifo.send_group("g", "a", "b", "c"):
        assert re.fullmatch("[0-9]{20}", answer["SequenceNumber"])


@pytest.mark.rule("fifo-send.4")
def test_sequence_numbers_grow_with_every_message_of_any_group(fifo):
    numbers = [
        answer["SequenceNumber"]
        for number in range(5)
        for answer in (*fifo.send_group("one", f"a{number}"), *fifo.send_group("two", f"b{number}"))
    ]
    assert numbers == sorted(set(numbers))


def test_sequence_numbers_continue_after_everything_was_deleted(fifo):
    first = fifo.send_group("g", "a")[0]["SequenceNumber"]
    fifo.delete(fifo.receive_one())
    assert fifo.send_group("g", "b")[0]["SequenceNumber"] > first


@pytest.mark.rule("fifo-send.4")
def test_sequence_numbers_continue_after_a_purge(fifo):
    first = fifo.send_group("g", "a", "b")[1]["SequenceNumber"]
    fifo.client.purge_queue(QueueUrl=fifo.url)
    assert fifo.send_group("g", "a")[0]["SequenceNumber"] > first


def test_sequence_numbers_continue_when_the_file_is_opened_again(open_sqs, clock):
    """Also if the last message is gone and the queue was created again: they never start again."""
    client = open_sqs()
    queue = BoundQueue.create_fifo(client)
    first = queue.send_group("g", "a")[0]["SequenceNumber"]
    queue.delete(queue.receive_one())
    client.close()
    again = BoundQueue(open_sqs(), queue.url)
    second = again.send_group("g", "b")[0]["SequenceNumber"]
    again.client.delete_queue(QueueUrl=again.url)
    clock.advance(60)
    third = BoundQueue.create_fifo(again.client).send_group("g", "c")[0]["SequenceNumber"]
    assert first < second < third


# Groups and deduplication ids


@pytest.mark.rule("fifo-send.6")
def test_a_message_needs_a_group(fifo):
    with refused(fifo.client, MISSING, NO_GROUP):
        fifo.send("a")
    with refused(fifo.client, MISSING, NO_GROUP):
        fifo.send("a", MessageDeduplicationId="d")
    assert fifo.counts == (0, 0, 0)


@pytest.mark.rule("fifo-send.8")
def test_a_message_needs_a_deduplication_id_unless_its_body_makes_one(explicit, fifo):
    with refused(explicit.client, INVALID, NO_DEDUPLICATION):
        explicit.send("a", MessageGroupId="g")
    assert explicit.counts == (0, 0, 0)
    fifo.send("a", MessageGroupId="g")
    assert fifo.counts == (1, 0, 0)


@pytest.mark.rule("fifo-send.8")
def test_content_based_deduplication_can_be_switched(explicit):
    """The change applies from the next send on."""
    explicit.set(ContentBasedDeduplication="true")
    explicit.send("a", MessageGroupId="g")
    explicit.set(ContentBasedDeduplication="false")
    with refused(explicit.client, INVALID, NO_DEDUPLICATION):
        explicit.send("b", MessageGroupId="g")
    assert explicit.bodies() == ["a"]


@pytest.mark.rule("fifo-send.9")
@pytest.mark.parametrize("parameter", IDS)
def test_an_id_takes_every_letter_digit_and_punctuation_character(explicit, parameter):
    value = string.ascii_letters + string.digits + string.punctuation
    explicit.send("a", **{**dict.fromkeys(IDS, "x"), parameter: value})
    assert explicit.receive_one()["Attributes"][parameter] == value


@pytest.mark.rule("fifo-send.10")
@pytest.mark.parametrize("parameter", IDS)
def test_an_id_has_up_to_128_characters(explicit, parameter):
    explicit.send("a", **{**dict.fromkeys(IDS, "x"), parameter: "i" * 128})
    assert explicit.receive_one()["Attributes"][parameter] == "i" * 128


@pytest.mark.rule("fifo-send.11")
@pytest.mark.parametrize("parameter", IDS)
@pytest.mark.parametrize("value", ["", "i" * 129, "a b", "ä", "a\n", "a\t"])
def test_other_ids_are_refused(explicit, parameter, value):
    with refused(explicit.client, INVALID, bad_identifier(parameter, value)):
        explicit.send("a", **{**dict.fromkeys(IDS, "x"), parameter: value})
    assert explicit.counts == (0, 0, 0)


@pytest.mark.rule("fifo-send.12")
def test_group_ids_differ_by_letter_case(fifo):
    fifo.send_group("g", "small")
    fifo.send_group("G", "large")
    fifo.receive_one()
    assert fifo.bodies() == ["large"]


# Delay


@pytest.mark.rule("fifo-send.13")
@pytest.mark.parametrize("seconds", [1, 900])
def test_a_message_has_no_delay_of_its_own(fifo, seconds):
    with refused(fifo.client, INVALID, no_delay_in_fifo(seconds)):
        fifo.send("a", MessageGroupId="g", DelaySeconds=seconds)
    assert fifo.counts == (0, 0, 0)


@pytest.mark.parametrize("seconds", [-1, 901])
def test_a_delay_out_of_range_is_refused_as_on_every_queue(fifo, seconds):
    with refused(
        fifo.client, INVALID, bad_value(seconds, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")
    ):
        fifo.send("a", MessageGroupId="g", DelaySeconds=seconds)


@pytest.mark.rule("fifo-send.14", "fifo-visibility.9")
def test_a_delay_of_0_is_accepted_and_has_no_effect(make_fifo, clock):
    """The queue's own delay still applies. On a standard queue, 0 would make the message visible at once."""
    queue = make_fifo(DelaySeconds=5)
    queue.send("a", MessageGroupId="g", DelaySeconds=0)
    assert queue.counts == (0, 0, 1)
    assert queue.bodies() == []
    clock.advance(5)
    assert queue.bodies() == ["a"]


# Checks that every queue has


@pytest.mark.rule("fifo-send.15")
def test_errors_of_a_message_are_checked_in_sqss_order(explicit):
    """Body, then deduplication id, then group id, then the rules of this type of queue."""
    with refused(explicit.client, MISSING, "The request must contain the parameter MessageBody."):
        explicit.send("", MessageDeduplicationId="a b", MessageGroupId="a b")
    with refused(explicit.client, INVALID, bad_identifier("MessageDeduplicationId", "a b")):
        explicit.send("a", MessageDeduplicationId="a b", MessageGroupId="a b", DelaySeconds=1)
    with refused(explicit.client, INVALID, bad_identifier("MessageGroupId", "a b")):
        explicit.send("a", MessageGroupId="a b", DelaySeconds=1)


def test_a_fifo_queue_limits_size_and_characters_too(make_fifo):
    queue = make_fifo(MaximumMessageSize=1024)
    queue.send_group("g", "x" * 1024)
    with refused(queue.client, INVALID, re.compile("Message must be shorter than 1024 bytes")):
        queue.send_group("g", "x" * 1025)
    with refused(queue.client, "InvalidMessageContents", re.compile("Invalid characters found")):
        queue.send_group("g", "\0")
    assert queue.counts == (1, 0, 0)


@pytest.mark.rule("fifo-send.16")
def test_a_refused_send_leaves_no_deduplication_id(fifo):
    """Its body may be sent again at once, because no deduplication id was stored."""
    with refused(fifo.client, INVALID, re.compile("DelaySeconds")):
        fifo.send("a", MessageGroupId="g", DelaySeconds=5)
    fifo.send("a", MessageGroupId="g")
    assert fifo.bodies() == ["a"]
