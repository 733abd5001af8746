# SPDX-License-Identifier: Apache-2.0
"""Which message attributes are allowed, and that a row returns them as given."""

import json

import pytest

from sqsqlite.contract.limits import SQS
from sqsqlite.contract.message_attributes import (
    MessageAttributeValue,
    check_attributes,
    check_system_attributes,
    load_attributes,
    store_attributes,
)
from sqsqlite.errors import InvalidParameterValue, UnsupportedOperation


def text(value, data_type="String"):
    return MessageAttributeValue(data_type=data_type, string_value=value)


def binary(value, data_type="Binary"):
    return MessageAttributeValue(data_type=data_type, binary_value=value)


def refusal(attributes):
    with pytest.raises(InvalidParameterValue) as refused:
        check_attributes(attributes, SQS)
    return refused.value.message


def test_ten_attributes_are_allowed_and_eleven_are_not():
    check_attributes({f"a{n}": text("x") for n in range(10)}, SQS)
    assert refusal({f"a{n}": text("x") for n in range(11)}) == (
        "Number of message attributes [11] exceeds the allowed maximum [10]."
    )


@pytest.mark.parametrize(
    "name", ["a", "A-b_c.9", "a..b", "Àÿŏ", "a" * 256, "AWS", "awsome", "Amazonas.x", "AWSTraceHeader"]
)
def test_good_names_pass(name):
    check_attributes({name: text("x")}, SQS)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "can only include"),
        ("two words", "can only include"),
        ("a\N{MULTIPLICATION SIGN}b", "can only include"),
        ("ж", "can only include"),
        ("a\n", "can only include"),
        (".a", "start or end with a period"),
        ("a.", "start or end with a period"),
        ("AWS.a", "reserved"),
        ("aWs.a", "reserved"),
        ("amazon.a", "reserved"),
        ("a" * 257, "must be shorter than 256 Bytes"),
    ],
)
def test_bad_names_are_refused(name, why):
    assert why in refusal({name: text("x")})


@pytest.mark.parametrize("data_type", ["String", "String.json", "String.a.b", "String.ü"])
def test_types_may_have_a_label(data_type):
    check_attributes({"a": text("x", data_type)}, SQS)


@pytest.mark.rule("metadata.19")
@pytest.mark.parametrize(
    "data_type", ["", "string", "Strings", "Text", ".String", "String.\x00", "String." + "x" * 250]
)
def test_bad_types_are_refused(data_type):
    assert refusal({"a": text("x", data_type)}) == (
        "The type of message (user) attribute 'a' is invalid. "
        "You must use only the following supported type prefixes: Binary, Number, String."
    )


@pytest.mark.rule("metadata.23", "metadata.24")
@pytest.mark.parametrize(
    ("value", "base"),
    [
        (text("", "String.label"), "String"),
        (text("", "Number"), "Number"),
        (binary(b""), "Binary"),
        (binary(b"x", "String"), "String"),
        (text("x", "Binary"), "Binary"),
        (MessageAttributeValue(data_type="String"), "String"),
    ],
)
def test_an_empty_or_misplaced_value_is_refused(value, base):
    assert refusal({"a": value}) == (
        f"Message (user) attribute 'a' must contain a non-empty value of type '{base}'."
    )


@pytest.mark.rule("metadata.25")
@pytest.mark.parametrize("data_type", ["String", "Binary"])
def test_two_values_are_refused(data_type):
    value = MessageAttributeValue(data_type=data_type, string_value="x", binary_value=b"x")
    assert "must contain a value of type" in refusal({"a": value})


@pytest.mark.rule("metadata.32")
@pytest.mark.parametrize("lists", [{"string_list_values": ["x"]}, {"binary_list_values": [b"x"]}])
def test_list_values_are_refused(lists):
    with pytest.raises(UnsupportedOperation, match="'a'"):
        check_attributes({"a": MessageAttributeValue(data_type="String", string_value="x", **lists)}, SQS)


@pytest.mark.rule("metadata.26")
def test_values_have_the_characters_of_bodies():
    with pytest.raises(InvalidParameterValue, match="'a'"):
        check_attributes({"a": text("x\x00")}, SQS)


@pytest.mark.rule("metadata.29", "metadata.31")
@pytest.mark.parametrize(
    "number",
    [
        "0",
        "-0.0",
        "42",
        "-1.5",
        "+7",
        ".5",
        "5.",
        "1e126",
        "-1e126",
        "1e-128",
        "00042.00",
        "9" * 38,
        "9" * 38 + "0" * 50,
    ],
)
def test_numbers_pass(number):
    check_attributes({"a": text(number, "Number.int")}, SQS)


@pytest.mark.rule("metadata.27", "metadata.28", "metadata.30")
@pytest.mark.parametrize(
    "number",
    [
        "x",
        " 1",
        "1\n",
        "1_000",
        "٣",
        "NaN",
        "Infinity",
        "0x10",
        "1e",
        "1.1e126",
        "1e127",
        "1e-129",
        "1e99999",
        "9" * 39,
    ],
)
def test_an_invalid_or_too_precise_number_is_refused(number):
    assert refusal({"a": text(number, "Number")}) == (
        "Can't cast the value of message (user) attribute 'a' to a number."
    )


@pytest.mark.rule("metadata.9")
def test_the_trace_header_is_the_one_system_attribute():
    check_system_attributes({"AWSTraceHeader": text("Root=1")})
    for attributes in (
        {"Other": text("x")},
        {"AWSTraceHeader": text("1", "Number")},
        {"AWSTraceHeader": text("")},
        {"AWSTraceHeader": binary(b"x", "String")},
    ):
        with pytest.raises(InvalidParameterValue, match=next(iter(attributes))):
            check_system_attributes(attributes)
    with pytest.raises(InvalidParameterValue):
        check_system_attributes({"AWSTraceHeader": text("\x01")})


def test_a_row_keeps_attributes_by_name_and_gives_them_back():
    attributes = {
        "z": text("Zürich", "String.city"),
        "Blob": binary(b"\x00\xff", "Binary.gif"),
        "n": text("042.0", "Number"),
    }
    stored = store_attributes(attributes)
    assert json.loads(stored) == [
        ["Blob", "Binary.gif", "AP8="],
        ["n", "Number", "042.0"],
        ["z", "String.city", "Zürich"],
    ]
    assert ", " not in stored
    assert load_attributes(stored) == attributes
    assert list(load_attributes(stored)) == ["Blob", "n", "z"]
