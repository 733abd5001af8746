# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 by uvicorn and httptools, within limits of size and time.

This module alone depends on the private parts of uvicorn and httptools. `http_rules` says what a request may look like.
"""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import httptools
import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from sqsqlite.serve.application import Application
from sqsqlite.serve.connections import Acceptor, Shared
from sqsqlite.serve.http_rules import Head, Refusal, body_too_long, head_too_long
from sqsqlite.serve.protocol import IS_GONE, UNTIL_READ, WRITE_WHOLE, Answer

GRACE_SECONDS = 10.0
"""How long a stop waits for answers. Long polls are answered at once."""
# Seconds in which the last refusals reach their clients.
_LAST_SECONDS = 1.0
# The server believes X-Forwarded-... of these addresses, all on this machine. uvicorn would ask the environment.
_PROXIES = ("127.0.0.0/8", "::1")
# The longest body that is joined with its head, and so copied.
_COPIED_BYTES = 64 * 1024
# Seconds for a client that is still sending to read its refusal.
_LINGER_SECONDS = 2
_NO_ROOM = (503, "Too many long requests are being sent at the same time.")


def write_whole(cycle: RequestResponseCycle, answer: Answer) -> bool:
    """Write head and body in one piece. uvicorn's `send` makes two writes, and so two packets.

    The headers come from the server, never from a client, so nothing checks them for line ends.

    Returns:
        False: nothing was written, and the caller sends the answer in ASGI's way. The reason is a client that does not
        read or has disconnected, a HEAD request, a connection that closes after this answer, or a long answer.
    """
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


@dataclass(slots=True)
class _Unanswered:
    """An unanswered request, and how many bytes of its body have arrived."""

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
        self._due: float | None = None  # by the loop's clock: when the head or the body must be complete
        self._unread_since: float | None = None
        self._in_head = False
        self._steps = 0  # beginnings and ends of heads, and pieces of bodies
        self._head_bytes = 0  # read since the last step
        self._body_bytes = 0
        self._held_bytes = 0
        self._unanswered: deque[_Unanswered] = deque()  # the server works on the first
        self._refusal: Refusal | None = None
        self._is_over = False
        self._read: list[Callable[[], object]] = []  # called when the client has read its answer
        self._is_held_up = False  # the next request waits until the client reads its answer

    # --- The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse the connection if there are too many, else begin to watch the time."""
        super().connection_made(transport)
        self._watch = self.loop.call_later(self._period, self._check_times)
        if self._is_one_too_many:
            self._refuse(503, "Too many connections are open.")
        else:
            self._due = self.loop.time() + self._limits.head_seconds

    def connection_lost(self, exc: Exception | None) -> None:
        """Release all that the connection holds."""
        if self._watch is not None:
            self._watch.cancel()
        self._is_over = True
        self._shared.open.discard(self)
        self._shared.unread.pop(self, None)
        for request in self._unanswered:
            # uvicorn informs only the last request.
            request.cycle.disconnected = True
            request.cycle.message_event.set()
        self._let_go_of_bodies()
        super().connection_lost(exc)
        self._call_readers()

    def data_received(self, data: bytes) -> None:
        """Pass the data to the parser, which calls the methods below."""
        if self._is_over or self._refusal is not None:
            return
        self._unset_keepalive_if_required()
        steps_before = self._steps
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse_unparsed()
        else:
            # The parser reports headers and trailers only when they are complete. Endless ones are counted here. Data
            # that completes a step may also contain the end of something else, so it does not count.
            self._head_bytes = self._head_bytes + len(data) if self._steps == steps_before else 0
            if self._head_bytes > self._limits.head_bytes or (
                self._in_head and len(self.url) > self._limits.head_bytes
            ):
                self._refuse(*head_too_long(self.url, self.headers, self._limits))
            if self._due is None and self._is_answered:
                # Empty lines before a request do not begin one.
                self._due = self.loop.time() + self._limits.head_seconds

    def _feed(self, data: bytes) -> None:
        """Parse all data. The parser stops at a head that asks for an upgrade: give it the head without that header.

        Source: RFC 9110, section 7.8: a server may ignore the Upgrade header.
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
        """The server stops: answer complete requests, and refuse an incomplete one."""
        if self._due is None or (self._is_answered and not self._in_head):
            super().shutdown()
        else:
            self._refuse(503, "The server is stopping.")

    def pause_writing(self) -> None:
        """The client does not read its answer. If too much is unread, drop the clients that have waited longest."""
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
        """The client reads again."""
        self._unread_since = None
        self._shared.unread.pop(self, None)
        super().resume_writing()
        self._call_readers()
        self.flow.resume_reading()
        if self._is_held_up:
            self._is_held_up = False
            self._go_on()

    def _until_read(self, on_read: Callable[[], object]) -> None:
        """Call the function when the client has read its answer or has disconnected."""
        self._read.append(on_read)
        if not self.flow.write_paused:
            self._call_readers()

    def _call_readers(self) -> None:
        while self._read:
            self._read.pop()()

    def _check_times(self) -> None:
        """End the connection of a client that exceeds a time limit."""
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
        self._watch = self.loop.call_later(self._period, self._check_times)
        # While reading is paused, the client cannot send: pipelined requests wait for an answer.
        if self._due is not None and now >= self._due and not self.flow.read_paused:
            self._due = None
            if self._is_answered and not self._in_head:
                # There is no request to answer.
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
        """Keep a header. A trailer, which follows the body, is ignored."""
        if self._in_head:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Refuse the request, or begin to execute it."""
        if self._is_upgrade:
            return  # the parser gets this head again, see `_feed`
        self._refusal = self._check_head()
        if self._refusal is not None:
            raise ValueError(self._refusal)
        super().on_headers_complete()
        cycle = self.cycle
        self._unanswered.append(_Unanswered(cycle))
        if len(self.pipeline) <= self._limits.pipelined // 2 and not self.flow.write_paused:
            # uvicorn has paused reading, and so would not notice that the client disconnects.
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
        """Count and keep a part of the body."""
        self._steps += 1
        self._body_bytes += len(body)
        if self._body_bytes > self._limits.body_bytes:
            self._refusal = body_too_long(self._limits)
        elif not self._is_answered:
            self._unanswered[-1].body_bytes += len(body)
            self._hold(len(body))
            self._make_room()
        if self._refusal is not None:
            raise ValueError(self._refusal)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete. The client's time limits end."""
        if self._is_upgrade:
            return
        self._due = None
        self._shared.receiving.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A request was answered: begin the next."""
        self._hold(-self._unanswered.popleft().body_bytes)
        if self.flow.write_paused:
            # The next answer would also wait in memory.
            self._is_held_up = True
        else:
            self._go_on()

    def _go_on(self) -> None:
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and self._refusal is not None:
            self._end(*self._refusal)

    @property
    def _is_upgrade(self) -> bool:
        """Whether the parser stops at this head because it asks for another protocol."""
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    @property
    def _is_answered(self) -> bool:
        """Whether no request waits for its answer."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def _check_head(self) -> Refusal | None:
        """The refusal of the head, if it breaks a rule. Moves the host of an absolute URL into the headers."""
        head = Head(
            self.parser.get_method().decode("ascii"), self.parser.get_http_version(), self.url, self.headers
        )
        refusal = head.refusal(self._limits)
        if refusal is None and len(self.pipeline) >= self._limits.pipelined:
            refusal = 400, "Too many requests were sent without waiting for their answers."
        self.url = head.url
        self.expect_100_continue = head.expects_continue
        return refusal

    # --- The end of the connection

    def _refuse(self, status: int, reason: str) -> None:
        """Answer earlier requests, then refuse this one, then close."""
        self._refusal = (status, reason)
        self._due = None
        cycle = self.cycle
        if self._is_answered:
            self._end(status, reason)
        elif not self._in_head and cycle.more_body:
            # The refused request itself, which still waits for its body. Its execution has not begun.
            waiting = [queued for queued in self.pipeline if queued[0] is cycle]
            if waiting:
                self.pipeline.remove(waiting[0])
                cycle.body = bytearray()
                self._hold(-self._unanswered.pop().body_bytes)
            else:
                cycle.disconnected = True
                cycle.message_event.set()
                self._end(status, reason)

    def _refuse_unparsed(self) -> None:
        """The parser has stopped: refuse for the reason that a method above found, or else for bad syntax."""
        self._refuse(*(self._refusal or (400, "The request is not valid HTTP/1.1 (RFC 9112).")))

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
            # Closing with unread bytes would discard the answer: the client would see a reset.
            self.transport.write_eof()
            self.flow.resume_reading()
            self.loop.call_later(_LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()

    # --- The memory that bodies take

    def _hold(self, added: int) -> None:
        """Count bytes of bodies. Bytes beyond `short_bytes` count for all connections together."""
        short = self._limits.short_bytes
        counted = max(0, self._held_bytes - short)
        self._held_bytes += added
        self._shared.bodies_bytes += max(0, self._held_bytes - short) - counted

    def _make_room(self) -> None:
        """Refuse the bodies that began to arrive first, this one included, until the rest fits."""
        shared = self._shared
        if self._held_bytes > self._limits.short_bytes:
            shared.receiving.setdefault(self, self._give_way)
        while shared.bodies_bytes > self._limits.bodies_bytes and self in shared.receiving:
            oldest = next(iter(shared.receiving))
            if oldest is self:
                # The parser is working on this body, so `on_body` raises the refusal.
                self._refusal = _NO_ROOM
                return
            shared.receiving.pop(oldest)()

    def _give_way(self) -> None:
        self._refuse(*_NO_ROOM)

    def _let_go_of_bodies(self) -> None:
        self._shared.receiving.pop(self, None)
        self._unanswered.clear()
        self._hold(-self._held_bytes)


class HttpServer(uvicorn.Server):
    """uvicorn's server: accepts connections within the limits, and ends long polls before it stops.

    Args:
        application: the ASGI application. The caller starts and stops it.
        shared: the state and the limits of all connections.
        tls_certificate, tls_key: PEM files; both or neither.
        behind_proxy: believe X-Forwarded-Proto and X-Forwarded-For of a proxy on this machine.
        accepting_fails: called with the error when accepting begins to fail.
    """

    def __init__(
        self,
        application: Application,
        shared: Shared,
        *,
        tls_certificate: Path | None,
        tls_key: Path | None,
        behind_proxy: bool,
        accepting_fails: Callable[[OSError], object],
    ) -> None:
        super().__init__(
            Config(
                application,
                http=HttpProtocol,
                ws="none",
                timeout_keep_alive=cast("int", shared.limits.idle_seconds),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                proxy_headers=behind_proxy,
                forwarded_allow_ips=list(_PROXIES),
                ssl_certfile=tls_certificate,
                ssl_keyfile=tls_key,
            )
        )
        self._application = application
        self._shared = shared
        self._accepting_fails = accepting_fails
        self._acceptors: list[Acceptor] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program: uvicorn would raise them again while the application stops."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept within our limits. uvicorn itself accepts everything and gives TLS handshakes a minute."""
        await super().startup(sockets=[])
        for listener in sockets or []:
            acceptor = Acceptor(listener, self._connect, self._shared, self.config.ssl, self._accepting_fails)
            acceptor.start()
            self._acceptors.append(acceptor)

    def _connect(self, is_one_too_many: bool) -> HttpProtocol:
        return HttpProtocol(
            self.config,
            self.server_state,
            self.lifespan.state,
            shared=self._shared,
            is_one_too_many=is_one_too_many,
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer the long polls, then wait for the other answers. Give up after `GRACE_SECONDS`."""
        for acceptor in self._acceptors:
            await acceptor.stop()
        self._application.end_waits()
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self.give_up)
        await super().shutdown(sockets)

    def give_up(self) -> None:
        """Refuse writes that have not begun. Soon after, drop the clients that do not read their answers."""
        self._application.give_up()
        asyncio.get_running_loop().call_later(_LAST_SECONDS, self._drop_connections)

    def _drop_connections(self) -> None:
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        self.force_exit = True
