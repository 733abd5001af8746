# SPDX-License-Identifier: Apache-2.0
"""Sending: bodies, sizes, delays, attributes, digests."""

import hashlib
import re
import uuid

import pytest

from tests.behaviour.bound_queue import without_metadata
from tests.behaviour.refusals import INVALID, MISSING, bad_identifier, bad_value, refused, wrong_queue_type

MAXIMUM = 1_048_576


def too_long(limit):
    return f"One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes."


def string(value, label=""):
    return {"DataType": f"String{label}", "StringValue": value}


def number(value, label=""):
    return {"DataType": f"Number{label}", "StringValue": value}


def binary(value, label=""):
    return {"DataType": f"Binary{label}", "BinaryValue": value}


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


@pytest.mark.rule("send.1", "send.3", "send.4")
def test_a_send_answers_with_the_id_and_the_digest_alone(queue):
    """A UUID, and the MD5 of the body's UTF-8."""
    answer = queue.send("hello")
    assert without_metadata(answer) == {
        "MessageId": str(uuid.UUID(answer["MessageId"])),
        "MD5OfMessageBody": "5d41402abc4b2a76b9719d911017c592",
    }
    message = queue.receive_one()
    assert (message["MessageId"], message["MD5OfBody"]) == (
        answer["MessageId"],
        "5d41402abc4b2a76b9719d911017c592",
    )


@pytest.mark.rule("send.2")
def test_every_message_has_an_id_of_its_own(queue):
    assert len({queue.send("same")["MessageId"] for _ in range(50)}) == 50


@pytest.mark.rule("send.3", "send.5", "send.10")
@pytest.mark.parametrize(
    ("body", "digest"),
    [
        ("test", "098f6bcd4621d373cade4e832627b4f6"),
        ("Zürich", "103a821a3a6a0b923c9f74a39662bb51"),
        ("\t\n\r ~\ud7ff\ue000\ufffd\U00010000\U0010ffff", None),
        ("x", None),
        ("'\"; DROP TABLE sqs_messages; --", None),
        ("<&>\r\n", None),
    ],
)
def test_a_body_comes_back_as_it_was_sent(queue, body, digest):
    """Every character that SQS allows, at the ends of their ranges."""
    answer = queue.send(body)
    message = queue.receive_one()
    assert message["Body"] == body
    assert answer["MD5OfMessageBody"] == message["MD5OfBody"] == (digest or md5(body))


@pytest.mark.rule("send.7", "send.8", "metadata.26")
@pytest.mark.parametrize("character", ["\0", "\x08", "\x0b", "\x1f", "\ufffe", "\uffff"])
def test_a_character_that_sqs_does_not_allow_is_refused(queue, character):
    with refused(queue.client, "InvalidMessageContents", re.compile("Invalid characters found")):
        queue.send(f"before {character} after")
    with refused(queue.client, INVALID, re.compile("has invalid characters")):
        queue.send("hello", MessageAttributes={"a": string(character)})
    with refused(queue.client, INVALID, re.compile("has invalid characters")):
        queue.send("hello", MessageSystemAttributes={"AWSTraceHeader": string(character)})
    assert queue.counts == (0, 0, 0)


@pytest.mark.rule("send.6")
def test_an_empty_body_is_a_missing_parameter(queue):
    with refused(queue.client, MISSING, "The request must contain the parameter MessageBody."):
        queue.send("")


@pytest.mark.rule("attribute.3", "send.11", "send.12")
def test_a_body_of_exactly_1_mib_is_allowed_and_one_more_byte_is_not(queue):
    queue.send("x" * MAXIMUM)
    assert len(queue.receive_one()["Body"]) == MAXIMUM
    with refused(queue.client, INVALID, too_long(MAXIMUM)):
        queue.send("x" * (MAXIMUM + 1))


@pytest.mark.rule("send.11", "send.12", "send.13", "send.18")
def test_size_is_counted_in_bytes_of_utf8(make_queue):
    queue = make_queue(MaximumMessageSize=1024)
    queue.send("ü" * 512)
    with refused(queue.client, INVALID, too_long(1024)):
        queue.send("ü" * 512 + "x")


@pytest.mark.rule("send.14", "send.15", "send.16", "send.17")
def test_names_types_and_values_of_attributes_count_towards_the_size(make_queue):
    """The system attributes do not count."""
    queue = make_queue(MaximumMessageSize=1024)
    attributes = {
        "name": string("välue", ".label"),
        "blob": binary(b"\0" * 10),
    }
    used = len("name") + len("String.label") + len("välue".encode()) + len("blob") + len("Binary") + 10
    trace = {"AWSTraceHeader": string("Root=1-5759e988-bd862e3fe1be46a994272793")}
    body = "x" * (1024 - used)
    queue.send(body, MessageAttributes=attributes, MessageSystemAttributes=trace)
    with refused(queue.client, INVALID, too_long(1024)):
        queue.send(body + "x", MessageAttributes=attributes)


# Delays


@pytest.mark.rule("send.19")
def test_a_delayed_message_is_received_after_its_delay(queue, clock):
    queue.send("later", DelaySeconds=900)
    clock.advance(899.999)
    assert queue.receive() == []
    clock.advance(ms=1)
    assert queue.bodies() == ["later"]


@pytest.mark.rule("send.20", "send.21")
def test_a_queues_delay_is_for_messages_without_their_own(make_queue, clock):
    queue = make_queue(DelaySeconds=10)
    queue.send("own", DelaySeconds=0)
    queue.send("the queue's")
    assert queue.bodies() == ["own"]
    clock.advance(10)
    assert queue.bodies() == ["the queue's"]


@pytest.mark.rule("send.20", "send.22")
def test_a_changed_delay_is_for_later_sends_only(make_queue, clock):
    queue = make_queue(DelaySeconds=10)
    queue.send("before")
    queue.set(DelaySeconds=0)
    queue.send("after")
    assert queue.bodies() == ["after"]
    clock.advance(10)
    assert queue.bodies() == ["before"]


@pytest.mark.rule("send.23")
@pytest.mark.parametrize("delay", [-1, 901])
def test_a_delay_is_0_to_900_seconds(queue, delay):
    reason = "DelaySeconds must be >= 0 and <= 900."
    with refused(queue.client, INVALID, bad_value(delay, "DelaySeconds", reason)):
        queue.send(DelaySeconds=delay)


# Attributes


ATTRIBUTES = {
    "Blob": binary(b"\x00\xff", ".gif"),
    "City": string("Zürich"),
    "n": number("42"),
}


@pytest.mark.rule("metadata.1")
def test_attributes_come_back_typed_and_exactly_as_sent(queue):
    """Also labels, raw bytes and the digits of a number."""
    attributes = {
        **ATTRIBUTES,
        "precise": number("0012.3400e+2", ".float"),
        "A-b_9.c": string(" spaces and\ttabs "),
    }
    queue.send(MessageAttributes=attributes)
    assert queue.receive_one(MessageAttributeNames=["All"])["MessageAttributes"] == attributes


@pytest.mark.rule("metadata.3", "metadata.4", "metadata.5")
@pytest.mark.parametrize(
    ("attributes", "digest"),
    [
        (ATTRIBUTES, "384e95b09b07bd783252164424eef92b"),
        ({"timestamp": number("1493147359900")}, "235c5c510d26fb653d073faed50ae77c"),
        (
            {"General": string("Kenobi"), "Hello": string("There"), "Help.Me": string("Me")},
            "4c360f3fdafd970e05fae2f149d997f5",
        ),
        ({"Hello": string("There"), "General": string("Kenobi")}, "fca026605781cb4126a1e9044df24232"),
        ({"k": string("x")}, "a45daa70926828a2f0a1db3418e6feb4"),
    ],
)
def test_digests_of_attributes_are_sqss(queue, attributes, digest):
    """Known vectors. The order of the attributes does not matter."""
    assert queue.send(MessageAttributes=attributes)["MD5OfMessageAttributes"] == digest
    received = queue.receive_one(MessageAttributeNames=["All"])
    assert received["MD5OfMessageAttributes"] == digest


@pytest.mark.rule("metadata.7", "metadata.8")
def test_the_trace_header_is_kept_and_digested(queue):
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
    answer = queue.send(MessageSystemAttributes={"AWSTraceHeader": string(trace)})
    assert answer["MD5OfMessageSystemAttributes"] == "5ae4d5d7636402d80f4eb6d213245a88"
    assert queue.receive_one()["Attributes"]["AWSTraceHeader"] == trace


@pytest.mark.rule("metadata.9")
@pytest.mark.parametrize(
    "attributes",
    [
        {"SenderId": string("me")},
        {"AWSTraceHeader": number("1")},
        {"AWSTraceHeader": string("")},
        {"AWSTraceHeader": binary(b"x")},
    ],
)
def test_the_trace_header_is_the_only_system_attribute_and_a_text(queue, attributes):
    with refused(queue.client, INVALID, re.compile("AWSTraceHeader")):
        queue.send(MessageSystemAttributes=attributes)


@pytest.mark.rule("metadata.10")
def test_a_message_has_at_most_10_attributes(queue):
    queue.send(MessageAttributes={str(n): string("x") for n in range(10)})
    with refused(
        queue.client, INVALID, "Number of message attributes [11] exceeds the allowed maximum [10]."
    ):
        queue.send(MessageAttributes={str(n): string("x") for n in range(11)})


@pytest.mark.rule("metadata.12", "metadata.14", "metadata.16")
@pytest.mark.parametrize("name", ["n" * 256, "a..b", "\u00c0", "\u017f", "-", "_", "aws", "Amazonas.x"])
def test_names_of_attributes_that_are_allowed(queue, name):
    queue.send(MessageAttributes={name: string("x")})
    assert queue.receive_one(MessageAttributeNames=["All"])["MessageAttributes"] == {name: string("x")}


@pytest.mark.rule("metadata.11", "metadata.13", "metadata.15", "metadata.17", "metadata.18")
@pytest.mark.parametrize(
    "name", ["", "n" * 257, "a b", "a/b", ".a", "a.", "AWS.x", "aws.x", "Amazon.x", "aMaZoN.x", "日"]
)
def test_names_of_attributes_that_are_refused(queue, name):
    with refused(queue.client, INVALID, re.compile(r"^Message \(user\) attribute name")):
        queue.send(MessageAttributes={name: string("x")})


@pytest.mark.rule("metadata.19", "metadata.20", "metadata.21")
@pytest.mark.parametrize("data_type", ["", "string", "Text", "Stringly", ".String", "String." + "x" * 250])
def test_types_are_string_number_and_binary_with_a_label_or_without(queue, data_type):
    """At most 256 characters in all."""
    with refused(
        queue.client,
        INVALID,
        "The type of message (user) attribute 'a' is invalid. You must use only the following supported type "
        "prefixes: Binary, Number, String.",
    ):
        queue.send(MessageAttributes={"a": {"DataType": data_type, "StringValue": "x"}})


@pytest.mark.rule("metadata.22", "metadata.33")
def test_a_type_of_256_characters_is_allowed(queue):
    attributes = {"a": string("x", "." + "l" * 249)}
    queue.send(MessageAttributes=attributes)
    assert queue.receive_one(MessageAttributeNames=["a"])["MessageAttributes"] == attributes


@pytest.mark.rule("metadata.23", "metadata.24")
@pytest.mark.parametrize(
    ("value", "base"),
    [
        (string(""), "String"),
        (number(""), "Number"),
        (binary(b""), "Binary"),
        ({"DataType": "String"}, "String"),
        ({"DataType": "String", "BinaryValue": b"x"}, "String"),
        ({"DataType": "Binary", "StringValue": "x"}, "Binary"),
    ],
)
def test_a_value_is_not_empty_and_of_its_type(queue, value, base):
    with refused(
        queue.client,
        INVALID,
        f"Message (user) attribute 'a' must contain a non-empty value of type '{base}'.",
    ):
        queue.send(MessageAttributes={"a": value})


@pytest.mark.rule("metadata.25")
def test_a_value_of_two_kinds_is_refused(queue):
    with refused(queue.client, INVALID, re.compile("'a' must contain a value of type 'String' only")):
        queue.send(MessageAttributes={"a": {**string("x"), "BinaryValue": b"x"}})


@pytest.mark.rule("metadata.2", "metadata.29", "metadata.31")
@pytest.mark.parametrize(
    "value", ["0", "-0", "1e126", "-1e126", "1e-128", "9" * 38, ".5", "1.", "+7", "007", "1" + "0" * 60]
)
def test_numbers_have_38_digits_and_a_magnitude_up_to_1e126(queue, value):
    """Kept as written: zeros are not trimmed."""
    queue.send(MessageAttributes={"n": number(value)})
    received = queue.receive_one(MessageAttributeNames=["n"])
    assert received["MessageAttributes"]["n"]["StringValue"] == value


@pytest.mark.rule("metadata.27", "metadata.28", "metadata.30")
@pytest.mark.parametrize(
    "value",
    ["x", "1x", "0x1", "1,5", "--1", "NaN", "Infinity", "1e127", "1e-129", "9" * 39, "1_000", "٣", " 1"],
)
def test_an_invalid_number_is_refused(queue, value):
    with refused(queue.client, INVALID, "Can't cast the value of message (user) attribute 'n' to a number."):
        queue.send(MessageAttributes={"n": number(value)})


@pytest.mark.rule("metadata.32")
def test_list_values_are_not_implemented(queue):
    """SQS does not implement them either."""
    with refused(queue.client, "UnsupportedOperation", re.compile("list values are not supported")):
        queue.send(MessageAttributes={"a": {**string("x"), "StringListValues": ["x"]}})


# Groups and deduplication ids


@pytest.mark.rule("fair.1")
def test_a_group_on_a_standard_queue_is_a_tenant_and_comes_back(queue):
    """It implies no order, no sequence number and no deduplication."""
    answer = queue.send("a", MessageGroupId="tenant!~")
    assert "SequenceNumber" not in answer
    queue.send("a", MessageGroupId="tenant!~")
    messages = queue.receive(10)
    assert [message["Attributes"]["MessageGroupId"] for message in messages] == ["tenant!~"] * 2
    assert "SequenceNumber" not in messages[0]["Attributes"]


@pytest.mark.rule("send.25", "send.26")
@pytest.mark.parametrize("group_id", ["", "g" * 129, "a b", "ä", "a\n"])
def test_a_group_has_1_to_128_letters_digits_and_punctuation_characters(queue, group_id):
    queue.send(MessageGroupId="g" * 128)
    with refused(queue.client, INVALID, bad_identifier("MessageGroupId", group_id)):
        queue.send(MessageGroupId=group_id)


@pytest.mark.rule("send.24")
def test_a_deduplication_id_needs_a_fifo_queue(queue):
    with refused(queue.client, INVALID, wrong_queue_type("MessageDeduplicationId", "d")):
        queue.send(MessageDeduplicationId="d")


@pytest.mark.rule("send.27")
def test_a_refused_send_leaves_nothing_behind(queue):
    with refused(queue.client, INVALID, re.compile("DelaySeconds")):
        queue.send(DelaySeconds=901)
    assert queue.counts == (0, 0, 0)
    assert queue.receive() == []
