# SPDX-License-Identifier: Apache-2.0
"""Bytes of a message: its encoding, size, allowed characters and MD5 digests.

Source: API_SendMessage (characters); developer guide, "Calculating the MD5 message digest for message attributes".
"""

from collections.abc import Mapping
from hashlib import md5
from typing import Protocol

from sqsqlite.errors import InvalidMessageContents


class AttributeValue(Protocol):
    """What a digest needs of a message attribute."""

    @property
    def data_type(self) -> str:
        """The type: "String", "Number" or "Binary", each with an optional ".label"."""

    @property
    def string_value(self) -> str | None:
        """The value of a String or Number."""

    @property
    def binary_value(self) -> bytes | None:
        """The value of a Binary."""


# Below U+0020 only tab, line feed and carriage return are allowed; above, all but surrogates, U+FFFE and U+FFFF.
_CONTROL_BYTES = bytes(byte for byte in range(0x20) if byte not in b"\t\n\r")
_NONCHARACTERS = ("\ufffe".encode(), "\uffff".encode())
_INVALID_CHARACTERS = (
    "Invalid characters found. Valid unicode characters are "
    "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
)


def utf8_length(text: str) -> int:
    """Bytes of the text in UTF-8; a lone surrogate, which UTF-8 has not, counts three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def has_valid_characters(text: str) -> bool:
    """Whether SQS allows all characters of the text in a body or attribute."""
    try:
        check_characters(text.encode())
    except (UnicodeEncodeError, InvalidMessageContents):
        return False
    return True


def check_characters(encoded: bytes) -> None:
    """Refuse UTF-8 that holds a forbidden character.

    Raises:
        InvalidMessageContents: a control character other than tab, line feed and carriage return, U+FFFE or U+FFFF.
    """
    # One pass in C over any length; deleting nothing leaves the length as it was.
    if len(encoded.translate(None, _CONTROL_BYTES)) != len(encoded):
        raise InvalidMessageContents(_INVALID_CHARACTERS)
    if not encoded.isascii() and any(character in encoded for character in _NONCHARACTERS):
        raise InvalidMessageContents(_INVALID_CHARACTERS)


def to_utf8(text: str) -> bytes:
    """The text in UTF-8, its characters not yet checked.

    Raises:
        InvalidMessageContents: a lone surrogate.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidMessageContents(_INVALID_CHARACTERS) from error


def encode_body(body: str) -> bytes:
    """The body in UTF-8.

    Raises:
        InvalidMessageContents: a character that SQS does not allow.
    """
    encoded = to_utf8(body)
    check_characters(encoded)
    return encoded


def md5_of_body(encoded: bytes) -> bytearray:
    """MD5 of the encoded body, 16 raw bytes; responses show it in lower-case hexadecimal.

    A bytearray, because the driver binds it without asking its adapters (actions/send.py).
    """
    return bytearray(md5(encoded, usedforsecurity=False).digest())


def md5_of_attributes(attributes: Mapping[str, AttributeValue]) -> str:
    """MD5 of checked attributes (not empty), user's or system's, in lower-case hexadecimal."""
    pieces: list[bytes] = []
    for name, value in sorted(attributes.items(), key=lambda item: item[0]):
        binary = value.data_type.startswith("Binary")
        _with_length(pieces, name.encode())
        _with_length(pieces, value.data_type.encode())
        pieces.append(b"\x02" if binary else b"\x01")
        _with_length(pieces, _value_bytes(value))
    return md5(b"".join(pieces), usedforsecurity=False).hexdigest()


def attributes_size_bytes(attributes: Mapping[str, AttributeValue]) -> int:
    """Bytes that user attributes add to a message's size: name, data type with its label, and value of each."""
    return sum(
        utf8_length(name) + utf8_length(value.data_type) + len(_value_bytes(value))
        for name, value in attributes.items()
    )


def message_size_bytes(body: str, attributes: Mapping[str, AttributeValue] | None) -> int:
    """Size of a message as its limits count it: the body in UTF-8 and all user attributes."""
    return utf8_length(body) + (attributes_size_bytes(attributes) if attributes else 0)


def _value_bytes(value: AttributeValue) -> bytes:
    if value.binary_value is not None:
        return value.binary_value
    return (value.string_value or "").encode("utf-8", "surrogatepass")


def _with_length(pieces: list[bytes], content: bytes) -> None:
    pieces += (len(content).to_bytes(4, "big"), content)
