# SPDX-License-Identifier: Apache-2.0
"""Accepting connections within their limit, and the state that they share.

Each connection counts from the moment it is accepted, during its TLS handshake too. Each takes a file descriptor, and
some descriptors stay free for SQLite, which must open the queues' files.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from sqsqlite.serve.budget import Budget
from sqsqlite.serve.http_rules import HttpLimits

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

# For the queues' file, its WAL and its locks in each thread's connection, the log, and the rest of the program.
_OTHERS = 256
# Connections beyond the limit that get a 503 at the same time. The server closes further ones without an answer.
REFUSED_AT_ONCE = 64
# Seconds until the next try after the system had no descriptor or memory for a connection.
_PAUSE_SECONDS = 0.1


@dataclass(slots=True)
class Shared:
    """State that all connections of one server share.

    Attributes:
        refused: called with status, reason and client address for each request refused by HTTP's rules.
        budget: the memory that answers take.
        open: accepted connections that are not closed, including TLS handshakes under way.
        bodies_bytes: bodies of unanswered requests, without each connection's `short_bytes`.
        unread: connections whose clients do not read their answers, the longest waiting first.
        receiving: for each connection that receives a long body, a function that refuses it; the earliest first.
    """

    limits: HttpLimits
    refused: Callable[[int, str, str | None], None]
    budget: Budget
    open: set[asyncio.BaseProtocol] = field(default_factory=set)
    bodies_bytes: int = 0
    unread: dict[asyncio.Protocol, asyncio.Transport] = field(default_factory=dict)
    receiving: dict[object, Callable[[], None]] = field(default_factory=dict)


def connections_possible(connections: int) -> int:
    """Raise this process's limit of open files as far as needed and allowed.

    Returns:
        How many of the wanted `connections` fit below the limit: at least 1.
    """
    if resource is None:
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHERS
    if soft == resource.RLIM_INFINITY:
        return connections
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(connections, max(1, soft - _OTHERS))


class Acceptor:
    """Accepts the connections of one listening socket.

    Args:
        listener: the caller closes it, after `stop`.
        connect: makes the protocol of a connection. Its argument is True if there are too many connections and the
            protocol must refuse.
        tls: None: plain HTTP.
        report: called with the error when accepting begins to fail.
    """

    def __init__(
        self,
        listener: socket.socket,
        connect: Callable[[bool], asyncio.Protocol],
        shared: Shared,
        tls: ssl.SSLContext | None,
        report: Callable[[OSError], object],
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._connect = connect
        self._shared = shared
        self._tls = tls
        self._report = report
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to accept. Call it within the event loop."""
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def stop(self) -> None:
        """Stop accepting, and cancel the handshakes under way."""
        assert self._accepting is not None
        handshakes = list(self._handshakes)
        for task in (self._accepting, *handshakes):
            task.cancel()
        await asyncio.gather(*handshakes, return_exceptions=True)
        with contextlib.suppress(asyncio.CancelledError):
            await self._accepting

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        is_failing = False
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listener)
            except ConnectionAbortedError:
                continue  # the client has closed the connection already
            except OSError as error:
                # Usually no descriptors are left. The system keeps new connections waiting until there are some.
                if not is_failing:
                    self._report(error)
                is_failing = True
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            is_failing = False
            self._take(accepted)
            # A flood of new connections must not keep the loop from serving the open ones.
            await asyncio.sleep(0)

    def _take(self, accepted: socket.socket) -> None:
        shared = self._shared
        too_many = len(shared.open) - shared.limits.connections
        if too_many >= REFUSED_AT_ONCE:
            accepted.close()
            return
        protocol = self._connect(too_many >= 0)
        shared.open.add(protocol)
        handshake = asyncio.get_running_loop().create_task(self._shake_hands(accepted, protocol))
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, accepted: socket.socket, protocol: asyncio.Protocol) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=self._shared.limits.head_seconds if self._tls else None,
            )
        except BaseException as error:
            # The protocol never learned of this connection, so it cannot remove itself.
            self._shared.open.discard(protocol)
            if not isinstance(error, OSError):  # the client disconnected, was too slow, or does not speak TLS
                raise
