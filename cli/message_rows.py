# SPDX-License-Identifier: Apache-2.0
"""Messages as rows of data. Received, peeked and sent messages use the same names."""

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqsqlite import Peeked


class BadMessage(ValueError):
    """A line of input that is not a message; the text says what a line must be.

    Attributes:
        row: the object on the line; None if the line is not an object.
    """

    row: dict[str, Any] | None = None


def instant(milliseconds: int | None) -> str | None:
    """An instant as ISO 8601 in UTC, from milliseconds since 1970."""
    if not milliseconds:
        return None
    text = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def received_row(message: dict[str, Any]) -> dict[str, Any]:
    """The row of a message of ReceiveMessage, which asked for all attributes."""
    system = message["Attributes"]
    return {
        "message_id": message["MessageId"],
        "receive_count": int(system["ApproximateReceiveCount"]),
        "sent_at": instant(int(system["SentTimestamp"])),
        "body": message["Body"],
        "attributes": _attributes(message.get("MessageAttributes", {})),
        "group_id": system.get("MessageGroupId"),
        "deduplication_id": system.get("MessageDeduplicationId"),
        "sequence_number": system.get("SequenceNumber"),
        "trace_header": system.get("AWSTraceHeader"),
        "dead_letter_source_arn": system.get("DeadLetterQueueSourceArn"),
        "receipt_handle": message["ReceiptHandle"],
    }


def peeked_row(message: "Peeked") -> dict[str, Any]:
    """The row of a message that was read, but not received."""
    typed = {
        name: {
            "DataType": value.data_type,
            "StringValue": value.string_value,
            "BinaryValue": value.binary_value,
        }
        for name, value in message.attributes.items()
    }
    return {
        "message_id": message.message_id,
        "state": message.state,
        "visible_at": instant(message.visible_at),
        "receive_count": message.receive_count,
        "sent_at": instant(message.sent_at),
        "body": message.body,
        "attributes": _attributes(typed),
        "group_id": message.group_id,
        "deduplication_id": message.deduplication_id,
        "sequence_number": message.sequence_number,
        "trace_header": message.trace_header,
        "dead_letter_source_arn": message.dead_letter_source_arn,
    }


# Keys of rows that are not sent. With them, `send --jsonl` takes the rows of `peek` and `receive` unchanged.
ONLY_SHOWN = frozenset(
    {
        "age_seconds",
        "dead_letter_source_arn",
        "error",
        "line",
        "message_id",
        "moved_at",
        "receipt_handle",
        "receive_count",
        "receives",
        "sent_at",
        "sequence_number",
        "source",
        "state",
        "visible_at",
    }
)


def _attributes(typed: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in typed.items()}


def _plain(value: dict[str, Any]) -> Any:
    """Text and whole numbers as themselves; other values keep their type next to them."""
    data_type, text = value["DataType"], value.get("StringValue")
    if data_type == "String":
        return text
    if data_type == "Number" and text is not None and text == _whole(text):
        return int(text)
    if value.get("BinaryValue") is not None:
        return {"DataType": data_type, "BinaryValue": base64.b64encode(value["BinaryValue"]).decode("ascii")}
    return {"DataType": data_type, "StringValue": text}


def _whole(text: str) -> str | None:
    return str(int(text)) if text.lstrip("-").isdecimal() and text.isascii() else None


def message_of(row: Any) -> dict[str, Any]:
    """Turn a row, or an object that a user wrote, into the arguments of `Queue.send`.

    Raises:
        BadMessage: the row is not an object, its body is not text, a key is unknown, or a value has a wrong type.
    """
    if not isinstance(row, dict):
        raise BadMessage('each line must be a JSON object, such as {"body": "hello"}')
    unknown = row.keys() - _SENT - ONLY_SHOWN
    if unknown:
        raise BadMessage(
            f"{', '.join(sorted(unknown))}: unknown; the known keys are {', '.join(sorted(_SENT))}"
        )
    message = {name: value for name, value in row.items() if name in _SENT and value is not None}
    if not isinstance(message.get("body"), str):
        raise BadMessage("body is missing or not text; JSON inside a body must be text too")
    for name in _TEXTS & message.keys():
        if not isinstance(message[name], str):
            raise BadMessage(f"{name} is {_json(message[name])}: it must be text")
    if not _is_whole_number(message.get("delay", 0)):
        raise BadMessage(f"delay is {_json(message['delay'])}: it must be a whole number of seconds")
    if "attributes" in message:
        message["attributes"] = _attributes_of(message["attributes"])
    return message


_TEXTS = frozenset({"deduplication_id", "group_id", "trace_header"})
_SENT = _TEXTS | {"attributes", "body", "delay"}
_VALUES = frozenset({"StringValue", "BinaryValue"})


def _is_whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _json(value: Any) -> str:
    """A value as JSON, as on the line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _attributes_of(attributes: Any) -> dict[str, Any]:
    if not isinstance(attributes, dict):
        raise BadMessage('attributes must be a JSON object, such as {"kind": "greeting"}')
    return {name: _attribute_of(name, value) for name, value in attributes.items()}


def _attribute_of(name: str, value: Any) -> Any:
    """Text, a number, or SQS's own form, with the bytes decoded from Base64."""
    from decimal import Decimal

    if isinstance(value, str | float | Decimal) or _is_whole_number(value):
        return value
    given = value.keys() if isinstance(value, dict) else {None}
    texts = isinstance(value, dict) and all(text is None or isinstance(text, str) for text in value.values())
    if not texts or "DataType" not in given or given - _VALUES - {"DataType"}:
        raise BadMessage(
            f"attribute {name} is {_json(value)}: it must be text, a number, or an object with DataType and "
            "StringValue or BinaryValue"
        )
    if value.get("BinaryValue") is None:
        return value
    try:
        return {**value, "BinaryValue": base64.b64decode(value["BinaryValue"], validate=True)}
    except ValueError as error:
        raise BadMessage(f"attribute {name}: its BinaryValue is not Base64") from error
