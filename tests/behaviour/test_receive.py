# SPDX-License-Identifier: Apache-2.0
"""Receiving: number, choice, order and attributes of the messages, and the limit of messages in flight."""

import re

import pytest

from sqsqlite.actions import opening
from sqsqlite.contract.limits import SQS
from tests.behaviour.bound_queue import BoundQueue, without_metadata
from tests.behaviour.refusals import INVALID, bad_value, out_of_range, refused, wrong_queue_type

SYSTEM_ATTRIBUTES = {
    "ApproximateFirstReceiveTimestamp",
    "ApproximateReceiveCount",
    "SenderId",
    "SentTimestamp",
}
TOO_MANY = (
    "Too many messages have been received without being deleted. Please delete your received messages or let them "
    "timeout before receiving more."
)


def string(value):
    return {"DataType": "String", "StringValue": value}


@pytest.mark.rule("receive.7")
def test_an_empty_queue_answers_without_the_key(queue):
    """Neither an error nor an empty list: `Messages` is absent."""
    assert without_metadata(queue.client.receive_message(QueueUrl=queue.url)) == {}


@pytest.mark.rule("receive.1", "receive.8")
def test_a_plain_receive_brings_one_message_with_four_keys(queue):
    queue.send_all("one", "two")
    answer = queue.client.receive_message(QueueUrl=queue.url)
    assert [set(message) for message in answer["Messages"]] == [
        {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"}
    ]


@pytest.mark.rule("receive.2")
@pytest.mark.parametrize("number", [1, 2, 9, 10])
def test_a_receive_returns_the_requested_number_if_there_are_enough(queue, number):
    queue.send_all(*"abcdefghijkl")
    assert len(queue.receive(number)) == number
    assert len(queue.receive(10)) == min(10, 12 - number)


@pytest.mark.rule("receive.3")
@pytest.mark.parametrize("number", [-1, 0, 11])
def test_a_receive_asks_for_1_to_10_messages(queue, number):
    with refused(queue.client, INVALID, out_of_range("MaxNumberOfMessages", number, 1, 10)):
        queue.receive(number)


@pytest.mark.rule("receive.4")
@pytest.mark.parametrize("timeout", [-1, 43_201])
def test_a_visibility_timeout_is_0_to_12_hours(queue, timeout):
    """Larger values are refused, never clipped."""
    queue.send()
    with refused(queue.client, INVALID, out_of_range("VisibilityTimeout", timeout, 0, 43_200)):
        queue.receive(VisibilityTimeout=timeout)
    assert queue.counts == (1, 0, 0)


@pytest.mark.rule("receive.5")
@pytest.mark.parametrize("seconds", [-1, 21])
def test_a_wait_is_0_to_20_seconds(queue, seconds):
    with refused(
        queue.client, INVALID, bad_value(seconds, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")
    ):
        queue.receive(WaitTimeSeconds=seconds)


@pytest.mark.rule("receive.6")
def test_an_attempt_id_needs_a_fifo_queue(queue):
    with refused(queue.client, INVALID, wrong_queue_type("ReceiveRequestAttemptId", "a")):
        queue.receive(ReceiveRequestAttemptId="a")


@pytest.mark.rule("receive.22")
def test_messages_come_in_the_order_they_were_sent(queue):
    """Best effort in SQS, exact here."""
    queue.send_all(*"abcdefghijklmnopqrstuvwxyz")
    assert "".join(queue.bodies() + queue.bodies() + queue.bodies()) == "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.rule("receive.23")
def test_a_returned_message_keeps_its_place(queue, clock):
    """The older message is received before those sent after it."""
    queue.send("older")
    queue.receive_one(VisibilityTimeout=5)
    queue.send_all("newer", "newest")
    clock.advance(5)
    assert queue.bodies() == ["older", "newer", "newest"]


@pytest.mark.rule("visibility.8")
def test_a_message_given_back_at_once_keeps_its_place(queue):
    queue.send_all("older", "newer")
    queue.change(queue.receive_one(), 0)
    assert queue.bodies() == ["older", "newer"]


@pytest.mark.rule("receive.23")
def test_returned_messages_come_in_the_order_of_sending_however_their_timeouts_ended(queue, clock):
    queue.send_all("a", "b", "c")
    for timeout in (3, 2, 1):
        queue.receive_one(VisibilityTimeout=timeout)
    clock.advance(3)
    assert queue.bodies() == ["a", "b", "c"]


# The attributes of a received message


@pytest.mark.rule("receive.9", "receive.10", "receive.15")
def test_all_returns_these_four_system_attributes_as_texts(queue, clock):
    sent_at = clock.now_ms()
    queue.send()
    clock.advance(2)
    message = queue.receive_one(AttributeNames=["All"])
    assert message["Attributes"] == {
        "ApproximateFirstReceiveTimestamp": str(sent_at + 2000),
        "ApproximateReceiveCount": "1",
        "SenderId": "000000000000",
        "SentTimestamp": str(sent_at),
    }


@pytest.mark.rule("receive.10", "receive.11", "receive.12")
@pytest.mark.parametrize("parameter", ["AttributeNames", "MessageSystemAttributeNames"])
@pytest.mark.parametrize("name", sorted(SYSTEM_ATTRIBUTES))
def test_a_system_attribute_is_returned_by_name_under_either_parameter(queue, parameter, name):
    queue.send()
    [message] = queue.receive(**{"AttributeNames": [], parameter: [name]})
    assert set(message["Attributes"]) == {name}


@pytest.mark.rule("receive.11")
def test_names_under_both_parameters_are_joined(queue):
    queue.send()
    message = queue.receive_one(
        AttributeNames=["SenderId"], MessageSystemAttributeNames=["SentTimestamp", "SenderId"]
    )
    assert set(message["Attributes"]) == {"SenderId", "SentTimestamp"}


@pytest.mark.rule("receive.13")
def test_a_system_attribute_that_the_message_lacks_is_left_out(queue):
    queue.send()
    names = ["SequenceNumber", "MessageGroupId", "AWSTraceHeader", "DeadLetterQueueSourceArn"]
    assert "Attributes" not in queue.receive_one(AttributeNames=names)


@pytest.mark.rule("receive.14")
@pytest.mark.parametrize("name", ["Nothing", ".*", "*", "all", "senderid", "Policy"])
def test_an_unknown_system_attribute_is_refused(queue, name):
    """Also attributes of queues, and patterns."""
    queue.send()
    with refused(queue.client, "InvalidAttributeName", f"Unknown Attribute {name}."):
        queue.receive(AttributeNames=["SenderId", name])
    assert queue.counts == (1, 0, 0)


@pytest.mark.rule("receive.15", "receive.16", "receive.17")
def test_the_receive_count_rises_at_each_receive_and_the_first_instant_stays(queue, clock):
    queue.send()
    seen = []
    first_at = clock.now_ms()
    for _ in range(3):
        seen.append(queue.receive_one(VisibilityTimeout=5)["Attributes"])
        clock.advance(5)
    assert [attributes["ApproximateReceiveCount"] for attributes in seen] == ["1", "2", "3"]
    assert {attributes["ApproximateFirstReceiveTimestamp"] for attributes in seen} == {str(first_at)}


@pytest.mark.rule("receive.18", "receive.19", "receive.20", "receive.21")
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], set()),
        (["All"], {"Hello", "Help.Me", "General"}),
        ([".*"], {"Hello", "Help.Me", "General"}),
        (["*"], {"Hello", "Help.Me", "General"}),
        (["Hel.*"], {"Hello", "Help.Me"}),
        (["Help.*"], {"Help.Me"}),
        (["Help"], set()),
        (["hello"], set()),
        (["Hello", "General"], {"Hello", "General"}),
        (["General", "Hel.*"], {"Hello", "Help.Me", "General"}),
        (["AWS.", "..foo", "nobody", "%", "", "Hello"], {"Hello"}),
    ],
)
def test_message_attributes_are_chosen_by_name_prefix_or_all(queue, names, expected):
    """Unknown and even impossible names are ignored."""
    queue.send(MessageAttributes={name: string("x") for name in ("Hello", "Help.Me", "General")})
    message = queue.receive_one(MessageAttributeNames=names)
    assert set(message.get("MessageAttributes", {})) == expected
    assert ("MD5OfMessageAttributes" in message) == bool(expected)


@pytest.mark.rule("metadata.6")
def test_the_digest_covers_the_attributes_returned(queue):
    everything = {"General": "Kenobi", "Hello": "There", "Help.Me": "Me"}
    queue.send(MessageAttributes={name: string(value) for name, value in everything.items()})
    chosen = queue.receive_one(MessageAttributeNames=["General", "Hello"], VisibilityTimeout=0)
    assert chosen["MD5OfMessageAttributes"] == "fca026605781cb4126a1e9044df24232"
    whole = queue.receive_one(MessageAttributeNames=["All"])
    assert whole["MD5OfMessageAttributes"] == "4c360f3fdafd970e05fae2f149d997f5"


# Messages in flight


@pytest.fixture
def three_in_flight(monkeypatch, open_sqs):
    """A queue with a limit of 3 messages in flight instead of 120,000. 10 messages wait."""
    monkeypatch.setitem(opening.LIMITS, "three", SQS._replace(standard_in_flight_count=3))

    def make(**options):
        queue = BoundQueue.create(open_sqs(limits="three", **options))
        queue.send_all(*"abcdefghij")
        return queue

    return make


@pytest.mark.rule("receive.24")
def test_the_limit_is_120000_in_flight_in_a_standard_queue():
    assert SQS.standard_in_flight_count == 120_000


@pytest.mark.rule("receive.25")
@pytest.mark.parametrize("compat", ["docs", "aws"])
def test_near_the_limit_a_receive_returns_fewer_messages(three_in_flight, compat):
    queue = three_in_flight(compat=compat)
    assert queue.bodies(2) == ["a", "b"]
    assert queue.bodies(10) == ["c"]


@pytest.mark.rule("receive.26", "error.4")
@pytest.mark.parametrize("compat", ["docs", "aws"])
def test_at_the_limit_a_short_poll_is_refused(three_in_flight, compat):
    queue = three_in_flight(compat=compat)
    queue.receive(3)
    with refused(queue.client, "OverLimit", TOO_MANY):
        queue.receive()


def test_at_the_limit_a_queue_whose_other_messages_have_expired_is_empty(three_in_flight, clock):
    queue = three_in_flight()
    queue.set(MessageRetentionPeriod=60)
    clock.advance(60)
    queue.send("old", DelaySeconds=58)
    clock.advance(57)
    queue.send_all("young 1", "young 2", "young 3")
    assert len(queue.receive(3)) == 3
    clock.advance(2)
    with refused(queue.client, "OverLimit", TOO_MANY):
        queue.receive()
    clock.advance(1)
    assert queue.receive() == []


@pytest.mark.rule("receive.27")
def test_at_the_limit_a_long_poll_is_refused_too(three_in_flight):
    """compat="docs": the API reference has no exception."""
    queue = three_in_flight()
    queue.receive(3)
    with refused(queue.client, "OverLimit", TOO_MANY):
        queue.receive(WaitTimeSeconds=20)


@pytest.mark.rule("receive.28")
def test_at_the_limit_amazons_long_poll_ends_empty(three_in_flight, clock, background):
    """compat="aws": no error, no messages."""
    queue = three_in_flight(compat="aws")
    queue.receive(3)
    waiting = background(queue.receive, WaitTimeSeconds=20)
    clock.until_waiting()
    clock.advance(20)
    assert waiting.result(20) == []


@pytest.mark.rule("receive.30")
@pytest.mark.parametrize("way", ["deleted", "given back", "timed out"])
def test_messages_that_leave_flight_make_room(three_in_flight, clock, way):
    queue = three_in_flight()
    messages = queue.receive(3)
    if way == "deleted":
        queue.delete(messages[0])
    elif way == "given back":
        queue.change(messages[0], 0)
    else:
        clock.advance(30)
    expected = {"deleted": ["d"], "given back": ["a"], "timed out": ["a", "b", "c"]}
    assert queue.bodies() == expected[way]


def test_expired_messages_in_flight_make_room(three_in_flight, clock):
    queue = three_in_flight()
    queue.set(MessageRetentionPeriod=60)
    queue.receive(3, VisibilityTimeout=3600)
    clock.advance(60)
    queue.send("young")
    assert queue.counts == (1, 0, 0)
    assert queue.bodies() == ["young"]


@pytest.mark.rule("receive.29")
def test_visible_and_delayed_messages_do_not_count_as_in_flight(three_in_flight):
    queue = three_in_flight()
    for _ in range(5):
        queue.send(DelaySeconds=10)
    assert queue.bodies() == ["a", "b", "c"]
    assert queue.counts == (7, 3, 5)


def test_the_limit_is_each_queues_own(three_in_flight):
    queue = three_in_flight()
    queue.receive(3)
    other = BoundQueue.create(queue.client, "other")
    other.send("free")
    assert other.bodies() == ["free"]


@pytest.mark.rule("receive.3")
def test_an_unknown_option_of_a_receive_changes_nothing(queue):
    """A refused receive leaves the message as it was: visible, its count untouched."""
    queue.send()
    with refused(queue.client, INVALID, re.compile("MaxNumberOfMessages")):
        queue.receive(11)
    assert queue.receive_one()["Attributes"]["ApproximateReceiveCount"] == "1"
