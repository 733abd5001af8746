"""`sqsqlite serve`: the application on uvicorn, until it is told to stop."""

import asyncio
import ipaddress
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from sqsqlite.wire.access import OpenAccess
from sqsqlite.wire.application import Application, Options
from sqsqlite.wire.pages import Pages

if TYPE_CHECKING:
    from sqsqlite.store.store import Store

# Seconds that a stop waits for answers under way: long polls are answered at once.
GRACE_SECONDS = 10
# Connections that the system keeps until they are accepted.
BACKLOG = 2_048


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where and how to listen.

    Attributes:
        host: an address or name of this machine.
        port: 1 to 65535; 0: any that is free.
        tls_certificate, tls_key: PEM files; both or neither.
    """

    host: str = "127.0.0.1"
    port: int = 9324
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    presents: Options = field(default_factory=Options)


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Uvicorn(uvicorn.Server):
    """uvicorn, which waits for answers under way: long polls are given theirs first."""

    def __init__(self, config: uvicorn.Config, application: Application) -> None:
        super().__init__(config)
        self._application = application

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._application.end_waits()
        await super().shutdown(sockets)


class Server:
    """One process's endpoint."""

    def __init__(self, store: "Store", options: ServerOptions) -> None:
        self._store = store
        self._application = Application(store, OpenAccess(), Pages(store), options.presents)
        self._socket = _listen(options.host, options.port)
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                self._application,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=GRACE_SECONDS,
                ssl_certfile=options.tls_certificate,
                ssl_keyfile=options.tls_key,
            ),
            self._application,
        )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it listens on."""
        name: tuple[Any, ...] = self._socket.getsockname()
        return name[0], name[1]

    @property
    def waiting(self) -> int:
        """Long polls that wait at this moment."""
        return self._application.waiting

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or `stop`."""
        runner = asyncio.Runner(loop_factory=self._uvicorn.config.get_loop_factory())
        with runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._application.start()
        try:
            await self._uvicorn.serve(sockets=[self._socket])
        finally:
            await self._application.stop()

    def stop(self) -> None:
        """End `run`: from a signal handler or another thread."""
        self._uvicorn.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(BACKLOG)
    return listener
