# SPDX-License-Identifier: Apache-2.0
"""Encoding, sizes and MD5 digests. The vectors are SQS's own where it could be recorded."""

import pytest

from sqsqlite.contract.digests import (
    attributes_size_bytes,
    encode_body,
    has_valid_characters,
    md5_of_attributes,
    md5_of_body,
    message_size_bytes,
    utf8_length,
)
from sqsqlite.contract.message_attributes import MessageAttributeValue
from sqsqlite.errors import InvalidMessageContents


def text(value, data_type="String"):
    return MessageAttributeValue(data_type=data_type, string_value=value)


def binary(value, data_type="Binary"):
    return MessageAttributeValue(data_type=data_type, binary_value=value)


TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
MIXED = {"n": text("42", "Number"), "City": text("Zürich"), "Blob": binary(b"\x00\xff", "Binary.gif")}


@pytest.mark.rule("send.3")
@pytest.mark.parametrize(
    ("body", "digest"),
    [
        ("test", "098f6bcd4621d373cade4e832627b4f6"),
        ("hello", "5d41402abc4b2a76b9719d911017c592"),
        ("Zürich", "103a821a3a6a0b923c9f74a39662bb51"),
    ],
)
def test_digest_of_a_body_is_that_of_its_utf8(body, digest):
    assert md5_of_body(encode_body(body)).hex() == digest


@pytest.mark.rule("metadata.3", "metadata.4", "metadata.5")
@pytest.mark.parametrize(
    ("attributes", "digest"),
    [
        (MIXED, "384e95b09b07bd783252164424eef92b"),
        ({"timestamp": text("1493147359900", "Number")}, "235c5c510d26fb653d073faed50ae77c"),
        (
            {"Help.Me": text("Me"), "Hello": text("There"), "General": text("Kenobi")},
            "4c360f3fdafd970e05fae2f149d997f5",
        ),
        ({"General": text("Kenobi"), "Hello": text("There")}, "fca026605781cb4126a1e9044df24232"),
        ({"AWSTraceHeader": text(TRACE)}, "5ae4d5d7636402d80f4eb6d213245a88"),
        ({"k": text("x")}, "a45daa70926828a2f0a1db3418e6feb4"),
    ],
)
def test_digest_of_attributes_is_the_one_that_sdks_compare(attributes, digest):
    assert md5_of_attributes(attributes) == digest


@pytest.mark.rule("send.14", "send.15", "send.16")
def test_size_counts_names_types_and_values_in_bytes():
    assert attributes_size_bytes(MIXED) == len("BlobBinary.gif") + 2 + len("CityString") + 7 + len(
        "nNumber42"
    )
    assert message_size_bytes("Zürich", {"k": text("x")}) == 7 + len("kStringx")
    assert message_size_bytes("Zürich", None) == utf8_length("Zürich") == 7


@pytest.mark.rule("send.10")
@pytest.mark.parametrize(
    "body",
    [
        "\t\n\r",
        " ~\x7f",
        "\x80\ud7ff",
        "\ue000\ufffd",
        "\U00010000\U0010ffff",
        "\U0001fffe",  # A noncharacter too, but SQS allows it.
        "\ufdd0",
        "\u7fef\u6fbf\u7fbf",  # Bytes that resemble those of U+FFFE, in other characters.
    ],
)
def test_allowed_characters_pass_unchanged(body):
    assert encode_body(body) == body.encode()
    assert has_valid_characters(body)


@pytest.mark.rule("send.7", "send.8", "send.9")
@pytest.mark.parametrize(
    "character",
    [
        *(chr(code) for code in range(0x20) if chr(code) not in "\t\n\r"),
        "\ud800",
        "\ufffe",
        "\uffff",
    ],
)
@pytest.mark.parametrize("around", ["{}", "before{}after", "ü{}"])
def test_forbidden_characters_are_refused_at_any_place(character, around):
    body = around.format(character)
    assert not has_valid_characters(body)
    with pytest.raises(InvalidMessageContents) as refused:
        encode_body(body)
    assert refused.value.message.startswith(
        "Invalid characters found. Valid unicode characters are #x9 | #xA |"
    )
