"""The fields of a form or a query string, in time and memory that grow with its length alone."""

import binascii
import re

from sqsqlite.errors import InvalidParameterValue

MOST_FIELDS = 5_000
"""Parameters of one request; ten messages with ten attributes each are some 500."""

_find_stray_percent = re.compile(rb"%(?![0-9A-Fa-f]{2})").search


def parse_form(text: bytes) -> dict[str, str]:
    """The fields of a query string or a form; of a repeated one the first.

    A line may end in front of each `&`, as in Amazon's sample requests. UTF-8 may stand as it is: `curl -d` encodes
    nothing.

    Raises:
        InvalidParameterValue: too many, a percent sign without two hexadecimal digits, or bytes that are no UTF-8.
    """
    if text.count(b"&") >= MOST_FIELDS:
        raise InvalidParameterValue(f"More than {MOST_FIELDS} parameters were sent, which no action takes.")
    if _find_stray_percent(text):
        raise InvalidParameterValue("The parameters are not percent-encoded.")
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
    text = text.replace(b"+", b" ")
    if b"%" in text:
        text = binascii.a2b_qp(text.replace(b"=", b"%3D").replace(b"%", b"="))
    return text.decode()
