"""Reading the body of an HTTP request, within bounds."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from sqsqlite.wire.exchange import Answer, Exchange


class Disconnected(Exception):
    """The client went before its request was there."""


class BodyTooLong(Exception):
    """More bytes than any action needs."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self.limit_bytes = limit_bytes

    def answer(self, exchange: Exchange) -> Answer:
        """413, and the end of the connection: what is left of the body is not read."""
        body = f"The body is longer than {self.limit_bytes} bytes.".encode()
        headers = [
            (b"x-amzn-requestid", exchange.request_id.encode()),
            (b"content-type", b"text/plain"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        return Answer(413, headers, body)


async def read_body(
    exchange: Exchange, receive: Callable[[], Awaitable[MutableMapping[str, Any]]], limit_bytes: int
) -> bytes:
    """The whole body.

    Raises:
        BodyTooLong: as told by Content-Length, or as found.
        Disconnected: as said.
    """
    told = exchange.header(b"content-length")
    if told.isdigit() and int(told) > limit_bytes:
        raise BodyTooLong(limit_bytes)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit_bytes:
            raise BodyTooLong(limit_bytes)
        if not message.get("more_body", False):
            return b"".join(chunks) + chunk if chunks else chunk
        chunks.append(chunk)
