# SPDX-License-Identifier: Apache-2.0
"""The fields of a form or a query string, in time and memory that grow with its length alone."""

import binascii
import re
import time
from collections.abc import Iterator

from sqsqlite.errors import InvalidParameterValue

_PIECE_BYTES = 64 * 1024

MOST_FIELDS = 5_000
"""Parameters of one request in a file with native limits: of a batch of a thousand messages without attributes."""

MOST_IN_FORM = 1_000
"""Parameters of a form by SQS's limits; ten messages with ten attributes each are some 500."""

MOST_IN_URL = 1_000
"""Parameters of a query string. It is read before the client is known, and has room for some 500 of a batch."""

_find_stray_percent = re.compile(rb"%(?![0-9A-Fa-f]{2})").search


def check_count(text: bytes, most: int) -> None:
    """Raise InvalidParameterValue for more parameters than `most`."""
    if text.count(b"&") >= most:
        raise InvalidParameterValue(f"More than {most} parameters were sent, which no action takes.")


def parse_form(text: bytes, most: int = MOST_FIELDS) -> dict[str, str]:
    """The fields of a query string or a form; of a repeated one the first.

    A line may end in front of each `&`, as in Amazon's sample requests. UTF-8 may stand as it is: `curl -d` encodes
    nothing.

    Raises:
        InvalidParameterValue: more than `most`, a percent sign without two hexadecimal digits, or bytes that are not
            UTF-8.
    """
    check_count(text, most)
    fields: dict[str, str] = {}
    *parts, last = text.split(b"&")
    try:
        for part in (*(_without_line_end(part) for part in parts), last):
            if part:
                name, _, value = part.partition(b"=")
                fields.setdefault(_unquote(name), _unquote(value))
    except UnicodeError as error:
        raise InvalidParameterValue("The parameters are not UTF-8.") from error
    return fields


def _without_line_end(part: bytes) -> bytes:
    return part.rstrip(b" \t\r\n") if part.endswith(b"\n") else part


def _unquote(text: bytes) -> str:
    """Plus signs are spaces, `%41` is A.

    Quoted-printable is the same with equals signs, and the standard library decodes it in C: a body of 8 MiB full of
    percent signs would keep a server busy for seconds, and need 100 times its length, otherwise.
    """
    if b"%" in text:
        return b"".join(map(_unquote_piece, _pieces(text))).decode()
    return text.replace(b"+", b" ").decode()


def _pieces(text: bytes) -> Iterator[bytes]:
    """The text in pieces that end behind an encoded byte, not within."""
    start = 0
    while start < len(text):
        if start:
            time.sleep(
                0
            )  # gives the interpreter's lock to the event loop, which would wait 5 ms for it otherwise
        end = start + _PIECE_BYTES
        percent = text.rfind(b"%", end - 2, end)
        if percent >= 0:
            end = percent
        yield text[start:end]
        start = end


def _unquote_piece(text: bytes) -> bytes:
    if _find_stray_percent(text):
        raise InvalidParameterValue("The parameters are not percent-encoded.")
    return binascii.a2b_qp(text.replace(b"+", b" ").replace(b"=", b"%3D").replace(b"%", b"="))
