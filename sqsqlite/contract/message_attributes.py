# SPDX-License-Identifier: Apache-2.0
"""Message attributes: what they look like, which are allowed, and how a row keeps them.

Source: developer guide, "Amazon SQS message metadata"; API_MessageAttributeValue.
"""

import base64
import re
from collections.abc import Mapping
from decimal import Decimal

import msgspec

from sqsqlite.contract.digests import has_valid_characters
from sqsqlite.contract.limits import Limits
from sqsqlite.errors import InvalidParameterValue, UnsupportedOperation

TRACE_HEADER = "AWSTraceHeader"  # the one system attribute that a sender may set

# Letters of Latin-1 and Latin Extended-A too: Amazon takes U+00C0 to U+017F. The two holes are the signs × and ÷.
_is_name = re.compile(r"[A-Za-z0-9_.\-\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u017F]+").fullmatch
_is_number = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?").fullmatch
_RESERVED_PREFIXES = ("aws.", "amazon.")
_BASE_TYPES = ("String", "Number", "Binary")


class MessageAttributeValue(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="pascal"
):
    """One typed attribute, of a message or of the system.

    Attributes:
        string_value: the value of a String or Number.
        binary_value: the value of a Binary, raw bytes.
        string_list_values: reserved by SQS, refused.
        binary_list_values: reserved by SQS, refused.
        data_type: "String", "Number" or "Binary", each with an optional ".label".
    """

    string_value: str | None = None
    binary_value: bytes | None = None
    string_list_values: list[str] | None = None
    binary_list_values: list[bytes] | None = None
    data_type: str


Attributes = Mapping[str, MessageAttributeValue]


def check_attributes(attributes: Attributes, limits: Limits) -> None:
    """Check a message's own attributes: how many, then each one's name, type and value.

    Raises:
        InvalidParameterValue: too many, or a name, type or value that is not allowed, or a forbidden character.
        UnsupportedOperation: a list value.
    """
    if len(attributes) > limits.message_attribute_count:
        raise InvalidParameterValue(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum "
            f"[{limits.message_attribute_count}]."
        )
    for name, value in attributes.items():
        _check_name(name, limits)
        _check_type(name, value, limits)
        _check_value(name, value, limits)


def check_system_attributes(attributes: Attributes) -> None:
    """Check the attributes that a sender sets for the system: AWSTraceHeader, a String, and no other.

    Raises:
        InvalidParameterValue: another name or type, an empty value, or a forbidden character.
    Source: API_SendMessage, MessageSystemAttributes.
    """
    for name, value in attributes.items():
        if name != TRACE_HEADER or value.data_type != "String":
            raise InvalidParameterValue(
                f"Value {name} of type {value.data_type} for parameter MessageSystemAttributes is invalid. "
                f"Reason: The only supported message system attribute is {TRACE_HEADER}, of type String."
            )
        if not value.string_value or value.binary_value is not None:
            raise InvalidParameterValue(
                f"Message (system) attribute '{name}' must contain a non-empty value of type 'String'."
            )
        _check_characters(name, value.string_value)


def _check_name(name: str, limits: Limits) -> None:
    if len(name) > limits.message_attribute_name_characters:
        raise InvalidParameterValue(
            f"Message (user) attribute names must be shorter than {limits.message_attribute_name_characters} Bytes"
        )
    if not _is_name(name):
        raise InvalidParameterValue(
            f"Message (user) attribute name {name!r} is invalid. "
            "It can only include letters, digits, hyphens, underscores and periods."
        )
    if name.startswith(".") or name.endswith("."):
        raise InvalidParameterValue(
            f"Message (user) attribute name '{name}' is invalid. It can not start or end with a period."
        )
    if name.lower().startswith(_RESERVED_PREFIXES):
        raise InvalidParameterValue(
            f"Message (user) attribute name '{name}' is invalid. The prefixes 'AWS.' and 'Amazon.' are reserved."
        )


def _check_type(name: str, value: MessageAttributeValue, limits: Limits) -> None:
    data_type = value.data_type
    if (
        data_type.partition(".")[0] not in _BASE_TYPES
        or len(data_type) > limits.data_type_characters
        or not has_valid_characters(data_type)
    ):
        raise InvalidParameterValue(
            f"The type of message (user) attribute '{name}' is invalid. "
            "You must use only the following supported type prefixes: Binary, Number, String."
        )


def _check_value(name: str, value: MessageAttributeValue, limits: Limits) -> None:
    if value.string_list_values or value.binary_list_values:
        raise UnsupportedOperation(
            f"Message attribute list values are not supported: '{name}' has StringListValues or BinaryListValues."
        )
    base = value.data_type.partition(".")[0]
    own, other = value.string_value, value.binary_value
    if not (other if base == "Binary" else own):
        raise InvalidParameterValue(
            f"Message (user) attribute '{name}' must contain a non-empty value of type '{base}'."
        )
    if (own if base == "Binary" else other) is not None:
        raise InvalidParameterValue(
            f"The message (user) attribute '{name}' must contain a value of type '{base}' only."
        )
    if own is not None:
        _check_characters(name, own)
        if base == "Number":
            _check_number(name, own, limits)


def _check_characters(name: str, value: str) -> None:
    # Not a body's InvalidMessageContents: recorded of Amazon.
    if not has_valid_characters(value):
        raise InvalidParameterValue(f"The value of message attribute '{name}' has invalid characters.")


def _check_number(name: str, value: str, limits: Limits) -> None:
    # The pattern first: Decimal also takes "NaN", underscores and digits of other scripts.
    if _is_number(value):
        number = Decimal(value)
        digits = "".join(map(str, number.as_tuple().digits)).strip("0")
        if not digits:
            return
        # 10 to the upper end is the largest magnitude, not merely the largest power of ten.
        exponent = number.adjusted() + (digits != "1")
        lowest, highest = limits.number_exponent.low, limits.number_exponent.high
        if len(digits) <= limits.number_digits and lowest <= number.adjusted() and exponent <= highest:
            return
    raise InvalidParameterValue(f"Can't cast the value of message (user) attribute '{name}' to a number.")


_decode_rows = msgspec.json.Decoder(list[tuple[str, str, str]]).decode
_encode_rows = msgspec.json.Encoder().encode


def store_attributes(attributes: Attributes) -> str:
    """Checked attributes as compact JSON `[[name, data type, value], ...]`, by name; a Binary's value in Base64."""
    rows = [
        (name, value.data_type, value.binary_value if value.string_value is None else value.string_value)
        for name, value in sorted(attributes.items())
    ]
    return _encode_rows(rows).decode()


def load_attributes(text: str) -> dict[str, MessageAttributeValue]:
    """The attributes that `store_attributes` wrote.

    Raises:
        msgspec.DecodeError: the text is not of that form.
    """
    return {
        name: MessageAttributeValue(data_type=data_type, binary_value=base64.b64decode(value))
        if data_type.startswith("Binary")
        else MessageAttributeValue(data_type=data_type, string_value=value)
        for name, data_type, value in _decode_rows(text)
    }
