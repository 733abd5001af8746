"""`sqsqlite serve`: the application on uvicorn, until it is told to stop."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import uvicorn

from sqsqlite.access.hosts import Hosts
from sqsqlite.access.keyed_access import KeyedAccess
from sqsqlite.serve.application import Application, Options
from sqsqlite.serve.budget import Budget
from sqsqlite.serve.connections import Acceptor, HttpLimits, Shared, room_for
from sqsqlite.serve.http_protocol import HttpProtocol
from sqsqlite.serve.logs import Log
from sqsqlite.serve.metrics import Metrics
from sqsqlite.serve.pages import Pages
from sqsqlite.serve.protocol import Observe, Served

if TYPE_CHECKING:
    from sqsqlite.access.access import Access
    from sqsqlite.store.store import Store

# Seconds that a stop waits for answers under way: long polls are answered at once.
GRACE_SECONDS = 10.0
# Seconds in which the refusals of what was given up reach their clients.
_LAST_SECONDS = 1.0
# Whose X-Forwarded-... are believed: this machine's. Left to itself, uvicorn asks a variable of the environment.
_PROXIES = ("127.0.0.0/8", "::1")
# Connections that the system keeps until they are accepted.
BACKLOG = 2_048


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where and how to listen.

    Attributes:
        host: an address or name of this machine.
        port: 1 to 65535; 0: any that is free.
        tls_certificate, tls_key: PEM files; both or neither.
        behind_proxy: a proxy on this machine says in X-Forwarded-Proto and X-Forwarded-For how the client came and from
            where. Without one any client of this machine could say so.
        log: where a line goes for each request; None: nowhere.
        metrics_for_all: answer /metrics to other machines too.
        allowed_hosts: further names by which the server may be asked while there are no keys, and for /metrics.
    """

    host: str = "127.0.0.1"
    port: int = 9324
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    presents: Options = field(default_factory=Options)
    log: TextIO | None = None
    metrics_for_all: bool = False
    allowed_hosts: tuple[str, ...] = ()
    http_limits: HttpLimits = field(default_factory=HttpLimits)

    @property
    def hosts(self) -> Hosts:
        """All names by which it may be asked."""
        return Hosts((self.host, *self.allowed_hosts), self.presents.base_url)


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

    def __init__(
        self,
        config: uvicorn.Config,
        application: Application,
        shared: Shared,
        accepting_fails: Callable[[OSError], object],
    ) -> None:
        super().__init__(config)
        self._application = application
        self._shared = shared
        self._accepting_fails = accepting_fails
        self._acceptors: list[Acceptor] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them to who runs it: uvicorn would raise them again after its end, while the application stops."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections by our own count: uvicorn accepts all, and leaves TLS handshakes a minute."""
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
        for acceptor in self._acceptors:
            await acceptor.stop()
        self._application.end_waits()
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self.give_up)
        await super().shutdown(sockets)

    def give_up(self) -> None:
        """Refuse what has not begun, and soon leave even those who don't take their answers."""
        self._application.give_up()
        asyncio.get_running_loop().call_later(_LAST_SECONDS, self._leave)

    def _leave(self) -> None:
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        self.force_exit = True


class Server:
    """One process's endpoint.

    Args:
        access: who may do what; None: by the keys of the file.
        listener: a socket that listens already; None: one for the options' host and port.
        metrics: where it counts, if it is one of several processes; None: by itself.
    """

    def __init__(
        self,
        store: "Store",
        options: ServerOptions,
        access: "Access | None" = None,
        listener: socket.socket | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._store = store
        metrics = metrics or Metrics()
        self._log = None if options.log is None else Log(options.log)
        self._observers: list[Observe] = [metrics.served]
        if self._log is not None:
            self._observers.append(self._log.served)
        limits = options.http_limits
        limits = replace(limits, connections=room_for(limits.connections))
        budget = Budget(limits.answers_bytes)
        self._application = Application(
            store,
            access or KeyedAccess(store, hosts=options.hosts),
            Pages(
                store,
                metrics,
                metrics_for_all=options.metrics_for_all,
                hosts=options.hosts,
            ),
            options.presents,
            metrics,
            self._observers,
            budget,
            Budget(limits.texts_bytes),
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket = listener or listen(options.host, options.port)
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                self._application,
                http=HttpProtocol,
                ws="none",
                timeout_keep_alive=cast("int", limits.idle_seconds),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                proxy_headers=options.behind_proxy,
                forwarded_allow_ips=list(_PROXIES),
                ssl_certfile=options.tls_certificate,
                ssl_keyfile=options.tls_key,
            ),
            self._application,
            Shared(limits, self._refused, budget),
            lambda error: self._tell("accept_failed", cause=str(error)),
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
        """Serve until `stop`."""
        runner = asyncio.Runner(loop_factory=self._uvicorn.config.get_loop_factory())
        with runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._application.start()
        self._loop = asyncio.get_running_loop()
        if self._log is not None:
            self._log.start()
        self._tell("started", address="{}:{}".format(*self.address))
        try:
            await self._uvicorn.serve(sockets=[self._socket])
        finally:
            await self._application.stop()
            self._tell("stopped")
            if self._log is not None:
                self._log.close()

    def _tell(self, event: str, **facts: str) -> None:
        if self._log is not None:
            self._log.tell(event, file=str(self._store.path), **facts)

    def _refused(self, status: int, reason: str, client_address: str | None) -> None:
        """A request that HTTP's rules and limits let nobody see."""
        served = Served("", "", "", "", client_address, status, "", 0.0, 0, 0, reason)
        for observe in self._observers:
            observe(served)

    def stop(self, *, at_once: bool = False) -> None:
        """End `run`: from a signal handler or another thread.

        Args:
            at_once: don't wait for requests under way: those that have not begun to be written are refused.
        """
        self._uvicorn.should_exit = True
        if at_once and self._loop is not None:
            # The loop may have ended a moment ago.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._uvicorn.give_up)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0: on any that is free. Raises OSError where it can't."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
