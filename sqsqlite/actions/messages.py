# SPDX-License-Identifier: Apache-2.0
"""A message's own row, its ids, and look-ups of ten rows by one statement.

The hot statements are bound to int, str or bytearray, never None or bytes: the driver sends those two through its
adapters, which costs a microsecond each. Hence the statement for plain messages, and the bytearrays. A statement with
ten places is prepared once, whatever the number of rows asked for.
"""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqsqlite.contract.prepared import PreparedMessage
from sqsqlite.sql import messages as sql

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


# Row ids are below 2**63: the sum has 20 digits, always, and is more than 10**19 + 2**63, with which it began once.
# Mixed digits: tools that redact accounts in recorded answers would find the default one, twelve zeros, in a round one.
_FIRST_SEQUENCE_NUMBER = 19_753_186_429_753_186_429


def sequence_number(sequence: int) -> str:
    """20 digits, which sort as text, and grow with each message that is stored in the file."""
    return str(_FIRST_SEQUENCE_NUMBER + sequence)


def uuid_text(message_id: bytes | bytearray) -> str:
    """16 bytes as the text of a UUID."""
    text = message_id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_TEN = 10


def new_message_id() -> bytearray:
    """A random UUID (version 4), as its 16 bytes."""
    value = bytearray(os.urandom(16))
    value[6] = value[6] & 0x0F | 0x40
    value[8] = value[8] & 0x3F | 0x80
    return value


def new_message_ids(count: int) -> list[bytearray]:
    """Several at once: the system is asked for random bytes only once."""
    random = bytearray(os.urandom(16 * count))
    random[6::16] = bytes([byte & 0x0F | 0x40 for byte in random[6::16]])
    random[8::16] = bytes([byte & 0x3F | 0x80 for byte in random[8::16]])
    return [random[start : start + 16] for start in range(0, len(random), 16)]


def message_row(
    message: "PreparedMessage", message_id: bytearray, sender_id: str | None
) -> tuple[str, tuple[Any, ...]]:
    """The statement that stores the message's own row, without a lease, and what it binds."""
    row: tuple[Any, ...]
    if sender_id is not None or message.attributes_json is not None or message.trace_header is not None:
        statement, row = sql.INSERT_MESSAGE, _row(message, message_id, sender_id)
    elif message.group_id is None:
        statement, row = sql.INSERT_PLAIN_MESSAGE, (message_id, message.body_md5, message.body)
    else:
        row = (message_id, message.body_md5, message.group_id, message.body)
        statement = sql.INSERT_GROUPED_MESSAGE
    return statement, row


def insert_messages(
    tx: "Transaction",
    messages: "Sequence[PreparedMessage]",
    message_ids: list[bytearray],
    sender_id: str | None,
) -> int:
    """Store several. Gives the first row id; the others follow it, since no other transaction can write."""
    if len(messages) == 1:
        return int(tx.run(*message_row(messages[0], message_ids[0], sender_id)).lastrowid)
    if sender_id is None and all(_has_body_alone(message) for message in messages):
        if all(message.group_id is None for message in messages):
            return _insert_plain(tx, messages, message_ids)
        if all(message.group_id is not None for message in messages):
            return _insert_grouped(tx, messages, message_ids)
    return _insert(tx, messages, message_ids, sender_id)


def _has_body_alone(message: "PreparedMessage") -> bool:
    return message.attributes_json is None and message.trace_header is None


def _insert_plain(
    tx: "Transaction", messages: "Sequence[PreparedMessage]", message_ids: list[bytearray]
) -> int:
    """Body and ids only."""
    rows: list[Any] = []
    for message, message_id in zip(messages, message_ids, strict=True):
        rows += (message_id, message.body_md5, message.body)
    first = 0
    width = 3 * _TEN
    for start in range(0, len(rows), width):
        some = rows[start : start + width]
        if len(some) == width:
            last = tx.run(sql.INSERT_TEN_PLAIN_MESSAGES, some).lastrowid
            first = first or last - _TEN + 1
        else:
            for place in range(0, len(some), 3):
                last = tx.run(sql.INSERT_PLAIN_MESSAGE, some[place : place + 3]).lastrowid
                first = first or last
    return int(first)


def _insert_grouped(
    tx: "Transaction", messages: "Sequence[PreparedMessage]", message_ids: list[bytearray]
) -> int:
    rows = [
        (message_id, message.body_md5, message.group_id, message.body)
        for message, message_id in zip(messages, message_ids, strict=True)
    ]
    first: int = tx.execute(sql.INSERT_GROUPED_MESSAGE, rows[0]).lastrowid
    tx.connection.executemany(sql.INSERT_GROUPED_MESSAGE, rows[1:])
    return first


def _insert(
    tx: "Transaction",
    messages: "Sequence[PreparedMessage]",
    message_ids: list[bytearray],
    sender_id: str | None,
) -> int:
    rows = [
        _row(message, message_id, sender_id)
        for message, message_id in zip(messages, message_ids, strict=True)
    ]
    first: int = tx.execute(sql.INSERT_MESSAGE, rows[0]).lastrowid
    tx.connection.executemany(sql.INSERT_MESSAGE, rows[1:])
    return first


def _row(message: "PreparedMessage", message_id: bytearray, sender_id: str | None) -> tuple[Any, ...]:
    return (
        message_id,
        message.body_md5,
        sender_id,
        message.group_id,
        message.trace_header,
        message.attributes_json,
        message.body,
    )


T = TypeVar("T")

TEN = 10


def in_tens(values: Sequence[T]) -> Iterator[list[T]]:
    """The values, ten at a time; places left over in the last ten repeat its first value."""
    for start in range(0, len(values), TEN):
        ten = list(values[start : start + TEN])
        yield ten + ten[:1] * (TEN - len(ten))
