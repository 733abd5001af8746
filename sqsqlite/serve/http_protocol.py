"""An answer in one write.

ASGI sends head and body one after the other, and uvicorn writes each of them: two calls of the system, two packets, and
a client that wakes up for the first of them.

HTTP/1.1 of uvicorn with httptools, held to limits of size and time, and to one reading of each request.

llhttp, beneath httptools, refuses what could be read in two ways: Content-Length beside Transfer-Encoding, two of
either, bad chunk sizes, bare line feeds, folded headers, control characters. What is left to refuse is refused here.
Source: RFC 9112, sections 3 (request line and Host), 6 (bodies) and 9 (connections).
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from sqsqlite.serve.connections import Shared
from sqsqlite.serve.protocol import IS_GONE, UNTIL_READ, WRITE_WHOLE, Answer

_COPIED_BYTES = 64 * 1024


def write_whole(cycle: RequestResponseCycle, answer: Answer) -> bool:
    """Answer a request of a connection that stays open, as uvicorn's `send` would in two steps.

    Names and values of the headers are the server's own, none a client's: they are not looked through for line ends.

    Returns:
        False: nothing was written, as it takes more than that: the client does not read or has gone, or wants the head
        alone, or no more answers on this connection; or the answer is long.
    """
    # A long one would be copied.
    is_plain = cycle.keep_alive and cycle.scope["method"] != "HEAD" and len(answer.body) <= _COPIED_BYTES
    if not is_plain or cycle.disconnected or cycle.flow.write_paused:
        return False
    parts = [STATUS_LINE[answer.status]]
    for name, value in (*cycle.default_headers, *answer.headers):
        parts += (name, b": ", value, b"\r\n")
    parts += (b"\r\n", answer.body)
    cycle.waiting_for_100_continue = False
    cycle.response_started = True
    cycle.transport.write(b"".join(parts))
    cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True


# Seconds in which a client that is still sending may read why it was refused.
_LINGER_SECONDS = 2
_NO_ROOM = (503, "There are too many long requests at once.")
_METHODS = ("GET", "POST", "HEAD")
# Of these a second one would be read by one program and not by another.
_ONCE = (
    b"authorization",
    b"content-type",
    b"expect",
    b"host",
    b"transfer-encoding",
    b"x-amz-date",
    b"x-amz-security-token",
    b"x-amz-target",
)
_is_host = re.compile(rb"([A-Za-z0-9._~-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?").fullmatch
_match_absolute = re.compile(rb"https?://([^/?#]*)(/[^?#]*)?(.*)", re.IGNORECASE | re.DOTALL).fullmatch


@dataclass(slots=True)
class _Asked:
    """A request, and how much of its body has come."""

    cycle: RequestResponseCycle
    body_bytes: int = 0


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        shared: Shared,
        is_one_too_many: bool = False,
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._shared = shared
        self._is_one_too_many = is_one_too_many
        self._limits = limits = shared.limits
        self._period = min(limits.head_seconds, limits.body_seconds, limits.unread_seconds) / 4
        self._watch: asyncio.TimerHandle | None = None
        self._due: float | None = None  # by the loop's clock: when the head or the body must be there
        self._unread_since: float | None = None
        self._in_head = False
        self._steps = 0  # beginnings and ends of heads, and pieces of bodies
        self._head_bytes = 0  # read since the last of them
        self._body_bytes = 0
        self._held_bytes = 0
        self._asked: deque[_Asked] = deque()  # not answered yet, the first is being carried out
        self._wrong: tuple[int, str] | None = None
        self._is_over = False
        self._read: list[Callable[[], object]] = []  # called when the client has taken its answer
        self._is_held_up = False  # the next request waits until the client takes its answer

    # --- The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse it if there are too many, else begin to watch the time."""
        super().connection_made(transport)
        self._watch = self.loop.call_later(self._period, self._look)
        if self._is_one_too_many:
            self._refuse(503, "There are too many connections.")
        else:
            self._due = self.loop.time() + self._limits.head_seconds

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        if self._watch is not None:
            self._watch.cancel()
        self._is_over = True
        self._shared.open.discard(self)
        self._shared.unread.pop(self, None)
        for request in self._asked:
            # uvicorn tells the last one alone.
            request.cycle.disconnected = True
            request.cycle.message_event.set()
        self._let_go_of_bodies()
        super().connection_lost(exc)
        self._tell_read()

    def data_received(self, data: bytes) -> None:
        """Hand what has come to the parser, which calls the methods below."""
        if self._is_over or self._wrong is not None:
            return
        self._unset_keepalive_if_required()
        steps_before = self._steps
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse(*self._wrong_or(400, "This is not HTTP/1.1 as RFC 9112 has it."))
        else:
            # Headers and trailers are told of when they are whole: one that never ends is counted here. What is read at
            # once may begin with the end of something else.
            self._head_bytes = self._head_bytes + len(data) if self._steps == steps_before else 0
            if self._head_bytes > self._limits.head_bytes or (
                self._in_head and len(self.url) > self._limits.head_bytes
            ):
                self._refuse(*self._head_too_long())
            if self._due is None and self._is_answered:
                # Empty lines before a request are passed over, and are no request.
                self._due = self.loop.time() + self._limits.head_seconds

    def _feed(self, data: bytes) -> None:
        """Parse it all. The parser stops at a head that asks for an upgrade: it is given the same without that.

        Source: RFC 9110, section 7.8: a server may ignore the header.
        """
        while True:
            try:
                return self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as stop:
                data = self._head_without_upgrade() + data[stop.args[0] :]

    def _head_without_upgrade(self) -> bytes:
        start = (
            self.parser.get_method(),
            self.url,
            b"HTTP/" + self.parser.get_http_version().encode("ascii"),
        )
        lines = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([b" ".join(start), *lines, b"", b""])

    def shutdown(self) -> None:
        """The server is being stopped: what was asked is answered, a request that is not there whole is refused."""
        if self._due is None or (self._is_answered and not self._in_head):
            super().shutdown()
        else:
            self._refuse(503, "The server is being stopped.")

    def pause_writing(self) -> None:
        """The client does not take its answer: leave those who have taken nothing for longest, if it is too much."""
        self._unread_since = self.loop.time()
        super().pause_writing()
        self.flow.pause_reading()
        unread = self._shared.unread
        unread[self] = self.transport
        size = sum(transport.get_write_buffer_size() for transport in unread.values())
        while size > self._limits.unread_bytes:
            transport = unread.pop(next(iter(unread)))
            size -= transport.get_write_buffer_size()
            transport.abort()

    def resume_writing(self) -> None:
        """It does again."""
        self._unread_since = None
        self._shared.unread.pop(self, None)
        super().resume_writing()
        self._tell_read()
        self.flow.resume_reading()
        if self._is_held_up:
            self._is_held_up = False
            self._go_on()

    def _until_read(self, tell: Callable[[], object]) -> None:
        """Call it when the client has taken its answer, or is gone."""
        self._read.append(tell)
        if not self.flow.write_paused:
            self._tell_read()

    def _tell_read(self) -> None:
        while self._read:
            self._read.pop()()

    def _look(self) -> None:
        """Whether the client keeps to the time limits."""
        now = self.loop.time()
        limits = self._limits
        patience = limits.unread_seconds
        if self._shared.budget.is_scarce:
            patience = min(patience, limits.scarce_seconds)
        if self._unread_since is None and self.transport.is_closing():
            self._unread_since = now
        if self._unread_since is not None and now - self._unread_since > patience:
            self.transport.abort()
            return
        self._watch = self.loop.call_later(self._period, self._look)
        # What waits behind a request of the same connection is not read meanwhile.
        if self._due is not None and now >= self._due and not self.flow.read_paused:
            self._due = None
            if self._is_answered and not self._in_head:
                # Nothing is asked, so nothing is answered.
                self.transport.close()
            else:
                self._refuse(408, "The request took too long to arrive.")

    # --- One request, as the parser finds it

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self._in_head = True
        self._steps += 1
        self._body_bytes = 0
        self._due = self.loop.time() + self._limits.head_seconds

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; behind the body it is a trailer, and passed over."""
        if self._in_head:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Refuse the request, or begin to carry it out."""
        if self._is_upgrade:
            return  # it comes again
        self._wrong = self._what_is_wrong()
        if self._wrong is not None:
            raise ValueError(self._wrong)
        super().on_headers_complete()
        cycle = self.cycle
        self._asked.append(_Asked(cycle))
        if len(self.pipeline) <= self._limits.pipelined // 2 and not self.flow.write_paused:
            # uvicorn reads no further, and so would not hear that the client has gone.
            self.flow.resume_reading()
        self.scope["extensions"] = {
            IS_GONE: lambda: cycle.disconnected,  # type: ignore[dict-item]
            WRITE_WHOLE: partial(write_whole, cycle),  # type: ignore[dict-item]
            UNTIL_READ: self._until_read,  # type: ignore[dict-item]
        }
        self._in_head = False
        self._steps += 1
        self._due = self.loop.time() + self._limits.body_seconds

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._steps += 1
        self._body_bytes += len(body)
        if self._body_bytes > self._limits.body_bytes:
            self._wrong = self._body_too_long()
        elif not self._is_answered:
            self._asked[-1].body_bytes += len(body)
            self._hold(len(body))
            self._make_room()
        if self._wrong is not None:
            raise ValueError(self._wrong)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there: from here on the server takes the time."""
        if self._is_upgrade:
            return
        self._due = None
        self._shared.receiving.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A request was answered."""
        self._hold(-self._asked.popleft().body_bytes)
        if self.flow.write_paused:
            # The next answer would wait in memory too.
            self._is_held_up = True
        else:
            self._go_on()

    def _go_on(self) -> None:
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and self._wrong is not None:
            self._end(*self._wrong)

    @property
    def _is_upgrade(self) -> bool:
        """The parser leaves this head's request to another protocol."""
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    @property
    def _is_answered(self) -> bool:
        """Nothing was asked, or what was asked was answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    # --- What is wrong with it

    def _wrong_or(self, status: int, reason: str) -> tuple[int, str]:
        """What one of the methods above has found, else what the parser has."""
        return self._wrong or (status, reason)

    def _what_is_wrong(self) -> tuple[int, str] | None:
        """Status and reason; None: nothing. Puts an absolute URL's host into the Host header."""
        headers = self.headers
        named = dict(headers)
        method = self.parser.get_method().decode("ascii")
        version = self.parser.get_http_version()
        if version not in ("1.1", "1.0"):
            return 400, "Only HTTP/1.1 and HTTP/1.0 are spoken here."
        if method not in _METHODS:
            return 405, f"Only {', '.join(_METHODS)} are allowed."
        size = len(self.url) + sum(len(name) + len(value) for name, value in headers) + 4 * len(headers)
        if size > self._limits.head_bytes or len(headers) > self._limits.header_count:
            return self._head_too_long()
        if len(named) != len(headers):
            names = [name for name, _ in headers]
            for name in _ONCE:
                if names.count(name) > 1:
                    return 400, f"The header {name.decode()} was sent twice."
        if len(self.pipeline) >= self._limits.pipelined:
            return 400, "Too many requests were sent without waiting for their answers."
        return self._wrong_address(named, version) or self._wrong_framing(named, version)

    def _wrong_address(self, named: dict[bytes, bytes], version: str) -> tuple[int, str] | None:
        if not self.url.startswith(b"/"):
            found = _match_absolute(self.url)
            if found is None:
                return 400, "The request's target is no path and no http URL."
            self.url = (found[2] or b"/") + found[3]
            named[b"host"] = found[1]
            self.headers[:] = [(name, value) for name, value in self.headers if name != b"host"]
            self.headers.append((b"host", found[1]))
        host = named.get(b"host")
        if host is None:
            return (400, "The header host is missing.") if version == "1.1" else None
        # Queue URLs repeat it.
        return None if _is_host(host) else (400, "The header host is no name or address with a port.")

    def _wrong_framing(self, named: dict[bytes, bytes], version: str) -> tuple[int, str] | None:
        if b"transfer-encoding" in named and (
            version == "1.0" or named[b"transfer-encoding"].lower() != b"chunked"
        ):
            return 400, "The only transfer coding is chunked, in HTTP/1.1."
        if b"expect" in named:
            if named[b"expect"].lower() != b"100-continue":
                return 417, "The only expectation is 100-continue."
            self.expect_100_continue = True
        length = named.get(b"content-length", b"0")
        if len(length) > 15 or int(length) > self._limits.body_bytes:
            return self._body_too_long()
        return None

    def _head_too_long(self) -> tuple[int, str]:
        limits = self._limits
        if not self.headers and len(self.url) > limits.head_bytes // 2:
            return 414, f"The request's URL is longer than {limits.head_bytes} bytes."
        return 431, f"There are more than {limits.head_bytes} bytes or {limits.header_count} headers."

    def _body_too_long(self) -> tuple[int, str]:
        return 413, f"The body is longer than {self._limits.body_bytes} bytes."

    # --- The end of the connection

    def _refuse(self, status: int, reason: str) -> None:
        """Answer what was asked before, then this, then close."""
        self._wrong = (status, reason)
        self._due = None
        cycle = self.cycle
        if self._is_answered:
            self._end(status, reason)
        elif not self._in_head and cycle.more_body:
            # This very request, which nobody has begun to carry out: it waits for its body.
            waiting = [queued for queued in self.pipeline if queued[0] is cycle]
            if waiting:
                self.pipeline.remove(waiting[0])
                cycle.body = bytearray()
                self._hold(-self._asked.pop().body_bytes)
            else:
                cycle.disconnected = True
                cycle.message_event.set()
                self._end(status, reason)

    def _end(self, status: int, reason: str) -> None:
        if self._is_over or self.transport.is_closing():
            return
        self._is_over = True
        self._let_go_of_bodies()
        self._unset_keepalive_if_required()
        self._shared.refused(status, reason, self.client[0] if self.client else None)
        body = f"{reason}\n".encode("ascii")
        lines = [
            STATUS_LINE[status],
            b"".join(b"%s: %s\r\n" % header for header in self.server_state.default_headers),
            b"allow: GET, POST, HEAD\r\n" if status == 405 else b"",
            b"content-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body),
            body,
        ]
        self.transport.write(b"".join(lines))
        if self.transport.can_write_eof():
            # A close with bytes unread would reach the client before the answer does.
            self.transport.write_eof()
            self.flow.resume_reading()
            self.loop.call_later(_LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()

    # --- The memory that bodies take

    def _hold(self, added: int) -> None:
        """Count bytes of bodies, those beyond the short ones for all connections."""
        short = self._limits.short_bytes
        counted = max(0, self._held_bytes - short)
        self._held_bytes += added
        self._shared.bodies_bytes += max(0, self._held_bytes - short) - counted

    def _make_room(self) -> None:
        """Refuse the bodies that have been coming for longest, and this one if it is the last, until the rest fits."""
        shared = self._shared
        if self._held_bytes > self._limits.short_bytes:
            shared.receiving.setdefault(self, self._give_way)
        while shared.bodies_bytes > self._limits.bodies_bytes and self in shared.receiving:
            oldest = next(iter(shared.receiving))
            if oldest is self:
                # Raised by who asked: the parser stands in the middle of it.
                self._wrong = _NO_ROOM
                return
            shared.receiving.pop(oldest)()

    def _give_way(self) -> None:
        self._refuse(*_NO_ROOM)

    def _let_go_of_bodies(self) -> None:
        self._shared.receiving.pop(self, None)
        self._asked.clear()
        self._hold(-self._held_bytes)
