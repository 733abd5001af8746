"""Accepting connections. Each counts from here on, TLS handshakes too, so that the files of the queues find room."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

from sqsqlite.serve.http_limits import Shared

# Connections that may be told at one time that there are too many. Those beyond them are closed without an answer.
REFUSED_AT_ONCE = 64
# Seconds until the next try when the system can't give a connection a descriptor or memory.
_PAUSE_SECONDS = 0.1


class Acceptor:
    """Takes the connections of one listening socket.

    Args:
        listener: the caller closes it, after `stop`.
        connect: makes a connection's protocol; True: there are too many, and it is to say so.
        tls: None: without.
        tell: called with the error when accepting begins to fail.
    """

    def __init__(
        self,
        listener: socket.socket,
        connect: Callable[[bool], asyncio.Protocol],
        shared: Shared,
        tls: ssl.SSLContext | None,
        tell: Callable[[OSError], object],
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._connect = connect
        self._shared = shared
        self._tls = tls
        self._tell = tell
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin: within the event loop."""
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def stop(self) -> None:
        """Accept no more, and end the handshakes that are under way."""
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
                continue  # the client has gone already
            except OSError as error:
                # Above all, no descriptors are left. The system keeps those who connect until there are some.
                if not is_failing:
                    self._tell(error)
                is_failing = True
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            is_failing = False
            self._take(accepted)
            # A flood of connections must not keep the loop from those that are open.
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
            # The protocol has heard nothing of it.
            self._shared.open.discard(protocol)
            if not isinstance(error, OSError):  # the client went away, was too slow, or does not speak TLS
                raise
