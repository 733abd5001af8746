# SPDX-License-Identifier: Apache-2.0
"""The client of one request: receiving its body, watching its connection, and parsing long bodies in a thread."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from sqsqlite.serve.budget import Share

LONG_BYTES = 64 * 1024
"""A thread hashes and parses bodies longer than this. For shorter ones the thread would cost more than it saves."""
# Parsed text takes up to four bytes per character, and its UTF-8.
_TEXT_COPIES = 5
# Bodies up to this size do not wait for memory: even 5,000 of them take little.
_SHORT_BODY_BYTES = 4 * 1024

P = ParamSpec("P")
T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Disconnected(Exception):
    """The client disconnected before it had an answer."""


async def read_body(receive: Receive) -> bytes:
    """Receive the whole body.

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


class HttpClient:
    """The client that waits for an answer.

    Args:
        receive: ASGI's function: returns a message when the connection is closed.
        is_gone: whether the connection is closed at this moment. Always False if the server can't know. May be called
            from any thread.
        share: the memory that the answer takes. The code that writes the answer releases it.
        size_bytes: length of the request's body.
        text: the memory that the parsed request takes.

    Attributes:
        key_id: the access key that signed the request. For a session, the key that it belongs to. Empty: unsigned.
        check_key: raises an SQSError if that key has been removed.
        check: raises AccessDenied if the client may no longer do what it asked for.
    """

    def __init__(
        self,
        receive: Receive,
        is_gone: Callable[[], bool],
        share: Share,
        size_bytes: int,
        text: Share,
    ) -> None:
        self.is_gone = is_gone
        self.share = share
        self.size_bytes = size_bytes
        self.key_id = ""
        self.check_key: Callable[[], object] = _allow
        self.check: Callable[[], object] = _allow
        self._receive = receive
        self._text = text
        self._watch: asyncio.Task[None] | None = None

    def gone(self) -> asyncio.Future[None]:
        """Watch the connection. The future ends when the client closes it. Only waits longer than a commit need it."""
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._until_gone())
        return self._watch

    async def until_memory_for_text(self) -> None:
        """Wait until there is memory for the parsed body.

        Raises:
            Disconnected: the client disconnected, so its body is dropped at once. Clients that send and disconnect
                again and again would otherwise fill the memory.
        """
        size_bytes = _TEXT_COPIES * self.size_bytes
        if self.size_bytes > _SHORT_BODY_BYTES and not await self._text.until_held(size_bytes, self.gone):
            raise Disconnected

    def forget_text(self) -> None:
        """Release the memory for the parsed body: a request that waits is short, even if its body was long."""
        self._text.release()

    def end_watch(self) -> None:
        """Stop watching the connection."""
        if self._watch is not None:
            self._watch.cancel()
            # The task keeps its CancelledError, whose traceback refers to this object and so to the request.
            self._watch = None

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


class LongBodies:
    """One thread that parses long bodies, so short requests do not wait for them.

    More threads would not be faster: Python's parsers hold the interpreter's lock, and the threads would compete for it
    with the event loop.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqsqlite-body")

    async def work(
        self, body: bytes, client: HttpClient, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call the function, in the thread if the body is long, and return its result.

        Raises:
            Disconnected: the client disconnected. Its body is dropped even while it waits for the thread: a client that
                sends and disconnects again and again would otherwise fill the memory.
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
        """Stop the thread."""
        self._thread.shutdown(cancel_futures=True)


def _allow() -> None:
    pass
