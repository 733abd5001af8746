# SPDX-License-Identifier: Apache-2.0
"""AWS JSON 1.0: a header names the action, and the body holds JSON. Source: API reference, sample requests."""

import time

import msgspec

from sqsqlite.access.exchange import TARGET, Exchange
from sqsqlite.contract import shapes
from sqsqlite.contract.limits import Limits
from sqsqlite.contract.requests import Request
from sqsqlite.contract.responses import Empty, Response
from sqsqlite.errors import SerializationException, SQSError
from sqsqlite.serve.protocol import Answer

_MOST_VALUES = 5_000
_VALUES_OF_AN_ENTRY = 100  # ten attributes, each with all of its members
_PIECE_BYTES = 64 * 1024


def check_value_count(text: bytes, limits: Limits) -> None:
    """Refuse more values than any action takes: 5,000, or 100 for each entry that a batch may have.

    A value is a member of an object or an array at any depth. Parsing 8 MiB of tiny values would take a second and
    400 MB, and hold the interpreter's lock most of that time. Counting stops at the limit, and lets other threads run
    between pieces of the text.

    Raises:
        SerializationException: the text has more values. Text that is not JSON may pass; the parser refuses it.
    """
    most = max(_MOST_VALUES, _VALUES_OF_AN_ENTRY * limits.batch_entry_count)
    # Each value takes two characters: itself and a comma or a bracket.
    if len(text) > 2 * most and _has_more(text, most):
        raise SerializationException(
            f"The request body has more than {most} values, the most that an action takes."
        )


def _has_more(text: bytes, most: int) -> bool:
    """Whether the text has more than `most` commas and opening brackets outside strings: one for each value."""
    found = start = 0
    is_in_string = False
    while start < len(text):
        if start:
            # The event loop would otherwise wait 5 ms for the interpreter's lock.
            time.sleep(0)
        piece = text[start : start + _PIECE_BYTES]
        start += len(piece)
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2 and start < len(text):
            # The last backslash escapes a character of the next piece: read both there.
            piece = piece[:-1]
            start -= 1
        parts = piece.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        outside = b"".join(parts[is_in_string::2])
        found += outside.count(b",") + outside.count(b"{") + outside.count(b"[")
        if found > most:
            return True
        is_in_string ^= len(parts) % 2 == 0
    return False


_PREFIX = b"AmazonSQS."
_CONTENT_TYPE = (b"content-type", b"application/x-amz-json-1.0")
_encode = msgspec.json.Encoder().encode


class _Named(msgspec.Struct):
    """The queue's URL. The decoder skips all other members, so they take no memory."""

    queue_url: str = msgspec.field(name="QueueUrl", default="")


_read_named = msgspec.json.Decoder(_Named).decode


class JsonProtocol:
    """The protocol of current SDKs."""

    # The text, its UTF-8, and a backslash before each byte of the UTF-8.
    copies = 4
    """The most bytes of memory that one byte of a message takes while its answer is made."""

    @staticmethod
    def names_action_in_body(exchange: Exchange) -> bool:  # noqa: ARG004 - as Query's
        """Never: a header names the action."""
        return False

    @staticmethod
    def check_size(exchange: Exchange, limits: Limits) -> None:
        """Count the values of the body. Raises SerializationException if there are too many."""
        check_value_count(exchange.body, limits)

    @staticmethod
    def action(exchange: Exchange) -> str:
        """The name after `AmazonSQS.`, empty if the target names another service."""
        target = exchange.headers.get(TARGET, b"")
        return target[len(_PREFIX) :].decode("latin-1") if target.startswith(_PREFIX) else ""

    @staticmethod
    def queue_url(exchange: Exchange) -> str:
        """QueueUrl, empty if the body is not an object with one."""
        try:
            return _read_named(exchange.body or b"{}").queue_url
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return ""

    @staticmethod
    def read(exchange: Exchange, kind: type[Request], limits: Limits) -> Request:
        """The parsed body.

        Raises:
            SerializationException: the body is not this action's JSON.
            SQSError: a value is invalid for every queue.
        """
        return shapes.parse_json(kind, exchange.body or b"{}", limits)

    @staticmethod
    def answer(exchange: Exchange, kind: type[Request], response: Response) -> Answer:  # noqa: ARG004 - as Query's
        """The members that are set. An action without a result has an empty body."""
        body = b"" if isinstance(response, Empty) else _encode(response)
        return Answer(200, _headers(exchange, body), body)

    @staticmethod
    def refuse(exchange: Exchange, error: SQSError) -> Answer:
        """The error's JSON shape, and its Query code in a header, which SDKs show."""
        body = _encode({"__type": f"{error.json_namespace}#{error.code}", "message": error.message})
        headers = _headers(exchange, body)
        headers.append((b"x-amzn-query-error", f"{error.query_code};{error.fault}".encode("latin-1")))
        return Answer(error.http_status, headers, body)


def _headers(exchange: Exchange, body: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"x-amzn-requestid", exchange.request_id.encode()),
        _CONTENT_TYPE,
        (b"content-length", b"%d" % len(body)),
    ]
