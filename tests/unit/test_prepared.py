# SPDX-License-Identifier: Apache-2.0
"""A message is checked once, completely and in SQS's order."""

import pytest

from sqsqlite.contract.limits import NATIVE, SQS
from sqsqlite.contract.message_attributes import MessageAttributeValue
from sqsqlite.contract.prepared import check_fifo_identifiers, check_queue_type, prepare_message
from sqsqlite.errors import InvalidMessageContents, InvalidParameterValue, MissingParameter

CITY = {"City": MessageAttributeValue(data_type="String", string_value="Zürich")}
TRACE = {"AWSTraceHeader": MessageAttributeValue(data_type="String", string_value="Root=1")}
PUNCTUATION = r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~"""


def refusal(*args, **kwargs):
    with pytest.raises(InvalidParameterValue) as refused:
        prepare_message(*args, **kwargs)
    return refused.value.message


def test_a_prepared_message_has_all_values_of_its_row():
    message = prepare_message(
        "hello", CITY, TRACE, group_id="g", deduplication_id="d", delay_seconds=5, limits=SQS
    )
    assert (message.body, message.body_md5.hex()) == ("hello", "5d41402abc4b2a76b9719d911017c592")
    assert message.size_bytes == len("helloCityString") + 7
    assert message.attributes_json == '[["City","String","Zürich"]]'
    assert (message.group_id, message.deduplication_id, message.delay_seconds) == ("g", "d", 5)
    assert message.trace_header == "Root=1"
    assert len({message.attributes_md5, message.trace_md5}) == 2


def test_omitted_values_are_none():
    message = prepare_message("Zürich")
    assert message.size_bytes == 7
    assert (
        message.attributes_json is message.attributes_md5 is message.trace_header is message.trace_md5 is None
    )
    assert message.group_id is message.deduplication_id is message.delay_seconds is None


@pytest.mark.rule("send.6")
def test_an_empty_body_is_missing():
    with pytest.raises(MissingParameter, match=r"^The request must contain the parameter MessageBody\.$"):
        prepare_message("")


@pytest.mark.rule("send.11", "send.12")
@pytest.mark.parametrize(
    ("body", "attributes"), [("x" * 100, None), ("ü" * 50, None), ("x" * 83, CITY), ("ü" * 41 + "x", CITY)]
)
def test_a_body_may_have_the_maximum_size_and_not_one_byte_more(body, attributes):
    assert prepare_message(body, attributes, maximum_size_bytes=100).size_bytes == 100
    assert refusal(body + "x", attributes, maximum_size_bytes=100) == (
        "One or more parameters are invalid. Reason: Message must be shorter than 100 bytes."
    )


@pytest.mark.rule("batch.19")
def test_a_batch_words_the_size_differently():
    assert refusal("x" * 101, maximum_size_bytes=100, in_batch=True) == (
        "One or more parameters cannot be validated. Reason: Message must be shorter than 100 bytes."
    )


def test_native_limits_allow_longer_bodies_and_delays():
    assert refusal("x" * 1_048_577).endswith("shorter than 1048576 bytes.")
    assert prepare_message("x" * 1_048_577, delay_seconds=86_400, limits=NATIVE).size_bytes == 1_048_577


def test_size_comes_before_characters_and_characters_before_attributes():
    bad = {"AWS.x": MessageAttributeValue(data_type="String", string_value="x")}
    assert "shorter than" in refusal("\x00" * 101, bad, maximum_size_bytes=100)
    assert "shorter than" in refusal("\ud800" * 34, bad, maximum_size_bytes=100)
    with pytest.raises(InvalidMessageContents):
        prepare_message("\x00", bad, delay_seconds=-1)
    assert "reserved" in refusal("x", bad, {"Other": CITY["City"]}, delay_seconds=-1)
    assert "MessageSystemAttributes" in refusal("x", CITY, {"Other": CITY["City"]}, deduplication_id="")
    assert "MessageDeduplicationId" in refusal("x", group_id="", deduplication_id="", delay_seconds=-1)
    assert "MessageGroupId" in refusal("x", group_id="", delay_seconds=-1)


@pytest.mark.rule("fifo-send.9")
@pytest.mark.parametrize("value", ["a", "Z9" * 64, PUNCTUATION])
def test_identifiers_may_have_letters_digits_and_punctuation(value):
    assert prepare_message("x", group_id=value, deduplication_id=value).group_id == value


@pytest.mark.rule("send.25", "send.26", "fifo-send.11")
@pytest.mark.parametrize("value", ["", "a" * 129, "two words", "ü", "a\n", "\x7f"])
@pytest.mark.parametrize(
    ("parameter", "keyword"), [("MessageGroupId", "group_id"), ("MessageDeduplicationId", "deduplication_id")]
)
def test_other_identifiers_are_refused(parameter, keyword, value):
    assert refusal("x", **{keyword: value}) == (
        f"Value {value} for parameter {parameter} is invalid. Reason: {parameter} can only include "
        "alphanumeric and punctuation characters. 1 to 128 in length."
    )


@pytest.mark.rule("send.23")
@pytest.mark.parametrize("delay", [-1, 901, 10**30])
def test_a_delay_out_of_range_is_refused(delay):
    assert refusal("x", delay_seconds=delay) == (
        f"Value {delay} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."
    )


@pytest.mark.rule("send.24")
def test_each_type_of_queue_refuses_parameters_of_the_other():
    delayed = prepare_message("x", delay_seconds=1)
    check_queue_type(delayed, fifo=False)
    with pytest.raises(
        InvalidParameterValue, match="The request include parameter that is not valid for this"
    ):
        check_queue_type(delayed, fifo=True)
    check_queue_type(prepare_message("x", delay_seconds=0), fifo=True)
    named = prepare_message("x", deduplication_id="d")
    check_queue_type(named, fifo=True)
    with pytest.raises(
        InvalidParameterValue, match="Value d for parameter MessageDeduplicationId is invalid"
    ):
        check_queue_type(named, fifo=False)


@pytest.mark.rule("fifo-send.6", "fifo-send.7")
@pytest.mark.parametrize(("in_batch", "kind"), [(False, MissingParameter), (True, InvalidParameterValue)])
def test_a_fifo_message_needs_a_group(in_batch, kind):
    with pytest.raises(kind, match=r"^The request must contain the parameter MessageGroupId\.$"):
        check_fifo_identifiers(None, "d", content_based_deduplication=True, in_batch=in_batch)


@pytest.mark.rule("fifo-send.8")
def test_a_fifo_message_needs_a_deduplication_id_or_its_content():
    check_fifo_identifiers("g", "d", content_based_deduplication=False)
    check_fifo_identifiers("g", None, content_based_deduplication=True)
    with pytest.raises(
        InvalidParameterValue, match="ContentBasedDeduplication enabled or MessageDeduplicationId"
    ):
        check_fifo_identifiers("g", None, content_based_deduplication=False)
