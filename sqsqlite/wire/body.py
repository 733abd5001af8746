"""Reading the body of an HTTP request. How long it may be, and how slow, is a matter of `http_limits`."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any


class Disconnected(Exception):
    """The client went before its request was there."""


async def read_body(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> bytes:
    """The whole body.

    Raises:
        Disconnected: as said.
    """
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            return b"".join(chunks) + chunk if chunks else chunk
        chunks.append(chunk)
