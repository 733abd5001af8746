"""The body of an HTTP request: receiving it, and working on a long one beside the event loop.

How long it may be, and how slow, is a matter of `http_limits`.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, Protocol, TypeVar

LONG_BYTES = 64 * 1024
"""A longer body is hashed and read in a thread. That of a shorter one costs more than it saves."""

P = ParamSpec("P")
T = TypeVar("T")


class Disconnected(Exception):
    """The client went away before it had an answer."""


class Client(Protocol):
    """The client that sent the body."""

    def gone(self) -> "asyncio.Future[None]":
        """Ends when the connection is closed."""


async def read_body(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> bytes:
    """The whole body.

    Raises:
        Disconnected: the connection was closed before the end of the body.
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


class LongBodies:
    """One thread for the work on long bodies, so that short requests do not wait for it.

    More threads would not finish earlier: Python's parsers hold the interpreter's lock, for which each of the threads
    competes with the event loop.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqsqlite-body")

    async def work(
        self, body: bytes, client: Client, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What the function returns: at once for a short body, else from the thread.

        Raises:
            Disconnected: the client went away. Its body is dropped, even while it waits for the thread: a client that
                sends and closes, again and again, would fill the memory otherwise.
        """
        if len(body) <= LONG_BYTES:
            return function(*args, **kwargs)
        future = asyncio.wrap_future(self._thread.submit(function, *args, **kwargs))
        try:
            await asyncio.wait((future, client.gone()), return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                raise Disconnected
            return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)
