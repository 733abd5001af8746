# SPDX-License-Identifier: Apache-2.0
"""Forms are parsed as by the standard library, but with less memory."""

import tracemalloc
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqsqlite.contract.urlencoded import MOST_FIELDS, parse_form
from sqsqlite.errors import InvalidParameterValue

# The encoding of each byte ends in the same part.
PARTS = [
    "é",
    "日",
    "a",
    "B",
    "%41",
    "%3d",
    "%3D",
    "%26",
    "%C3%A9",
    "%00",
    "%0A",
    "%0D",
    "=",
    "==",
    "+",
    "&",
    "_",
    " ",
]


@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
def test_fields_are_those_of_the_standard_library(text):
    expected = {}
    for name, value in parse_qsl(text, keep_blank_values=True, errors="strict"):
        expected.setdefault(name, value)
    assert parse_form(text.encode()) == expected


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(data):
    try:
        found = parse_form(data)
    except InvalidParameterValue:
        return
    assert all(isinstance(value, str) for value in found.values())


def test_every_byte_can_be_encoded_either_way():
    for number in range(128):
        for encoded in (b"%%%02x" % number, b"%%%02X" % number):
            assert parse_form(b"x=" + encoded) == {"x": chr(number)}


def test_line_break_is_allowed_only_before_a_parameter():
    assert parse_form(b"a=1\n&b=2\r\n&c=3 \t\n&d=4\n") == {"a": "1", "b": "2", "c": "3", "d": "4\n"}
    assert parse_form(b"a=x\ny&b=2 &c") == {"a": "x\ny", "b": "2 ", "c": ""}


@pytest.mark.parametrize(
    "text", [b"a=100%", b"a=%4", b"a=%zz", b"a=%%41", b"%=a", b"a=%=41", b"a=%\n41", b"a=%4&1=b"]
)
def test_percent_sign_without_two_hex_digits_is_refused(text):
    with pytest.raises(InvalidParameterValue):
        parse_form(text)


def test_number_of_fields_is_limited():
    assert len(parse_form(b"&".join(b"n%d=" % number for number in range(MOST_FIELDS)))) == MOST_FIELDS
    with pytest.raises(InvalidParameterValue, match="More than 5000"):
        parse_form(b"&" * MOST_FIELDS)


@pytest.mark.parametrize(
    "text", [b"%41" * 300_000, b"a%41" * 200_000, b"=" * 900_000, b" " * 900_000 + b"\n&", b"+" * 900_000]
)
def test_memory_is_a_few_times_the_length(text):
    tracemalloc.start()
    try:
        parse_form(b"x=" + text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(text)
