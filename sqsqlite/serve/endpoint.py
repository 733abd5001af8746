# SPDX-License-Identifier: Apache-2.0
"""The endpoint as a program starts it: options, address, access keys, and a server in each process."""

import asyncio
import contextlib
import ipaddress
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

from sqsqlite.access.access import Access, Latch
from sqsqlite.access.key_file import KeyFile
from sqsqlite.access.open_access import Hosts
from sqsqlite.api.connect import SQS
from sqsqlite.serve.application import Application, HttpApplication
from sqsqlite.serve.budget import Budget
from sqsqlite.serve.connections import Shared, connections_possible
from sqsqlite.serve.http_protocol import HttpServer
from sqsqlite.serve.http_rules import HttpLimits
from sqsqlite.serve.logs import Log
from sqsqlite.serve.metrics import Metrics, shared_counts
from sqsqlite.serve.pages import MonitoringPages
from sqsqlite.serve.processes import Ready, supervise
from sqsqlite.serve.protocol import Observe, Served
from sqsqlite.serve.rate_limit import RateLimit

if TYPE_CHECKING:
    from sqsqlite.store.store import Store

__all__ = ["Endpoint", "EndpointOptions", "Ready", "Server", "Unprotected", "supervise"]

# Connections that the system holds until the server accepts them.
_BACKLOG = 2_048


class Unprotected(ValueError):
    """Other machines can reach the address, and there is no access key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOptions:
    """Where and how to serve.

    Attributes:
        host: an address or name of this machine.
        port: 1 to 65,535. 0: any free port.
        base_url: the beginning of queue URLs. None: the scheme and the Host header of each request.
        allowed_hosts: more names that the Host header may contain while there are no access keys, and for /metrics.
        key_file: more access keys, in the format of the AWS CLI's credentials file.
        tls_certificate, tls_key: PEM files; both or neither.
        require_tls: refuse requests that did not come over HTTPS.
        behind_proxy: believe X-Forwarded-Proto and X-Forwarded-For. Set it only if a proxy on this machine sets them:
            otherwise every client on this machine could.
        rate_limit: requests per second of each account. None: no limit.
        processes: number of processes that share the port, at least 1.
        metrics_for_all: answer /metrics to other machines as well.
    """

    host: str = "127.0.0.1"
    port: int = 9324
    base_url: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    key_file: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    require_tls: bool = False
    behind_proxy: bool = False
    rate_limit: float | None = None
    processes: int = 1
    metrics_for_all: bool = False


class Server:
    """The server of one process. Programs get it from `Endpoint.server`.

    Args:
        access: decides who may do what. None: the access keys in the file decide.
        listener: a listening socket. None: the server binds the host and port of the options.
        metrics: shared with other processes. None: the server's own.
        log: receives a line of JSON for each request. None: no log.
        http_limits: None: the defaults.
    """

    def __init__(
        self,
        store: "Store",
        options: EndpointOptions,
        access: Access | None = None,
        listener: socket.socket | None = None,
        metrics: Metrics | None = None,
        log: TextIO | None = None,
        http_limits: HttpLimits | None = None,
    ) -> None:
        self._store = store
        metrics = metrics or Metrics()
        self._log = None if log is None else Log(log)
        self._observers: list[Observe] = [metrics.served]
        if self._log is not None:
            self._observers.append(self._log.served)
        limits = http_limits or HttpLimits()
        limits = replace(limits, connections=connections_possible(limits.connections))
        self._options = options
        self._metrics = metrics
        self._budget = Budget(limits.answers_bytes)
        self._texts = Budget(limits.texts_bytes)
        self._rate_limit = (
            None if options.rate_limit is None else RateLimit(options.rate_limit / options.processes)
        )
        self._application = self.application(access or Access(store, hosts=hosts_of(options)))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket = listener or _listen(options.host, options.port)
        self._http = HttpServer(
            self._application,
            Shared(limits, self._refused, self._budget),
            tls_certificate=options.tls_certificate,
            tls_key=options.tls_key,
            behind_proxy=options.behind_proxy,
            accepting_fails=lambda error: self._log_event("accept_failed", cause=str(error)),
        )

    def application(self, access: Access) -> Application:
        """What this server runs."""
        return self.application_of(self._store, access, hosts_of(self._options))

    def application_of(self, store: "Store", access: Access, hosts: Hosts) -> HttpApplication:
        """Make the application of one open file, within this server's limits."""
        return HttpApplication(
            store,
            access,
            MonitoringPages(store, self._metrics, metrics_for_all=self._options.metrics_for_all, hosts=hosts),
            _base_url(self._options),
            self._metrics,
            self._observers,
            self._budget,
            self._texts,
            self._rate_limit,
        )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        name: tuple[Any, ...] = self._socket.getsockname()
        return name[0], name[1]

    @property
    def waiting(self) -> int:
        """How many long polls wait now."""
        return self._application.waiting

    def run(self) -> None:
        """Serve until `stop` is called."""
        runner = asyncio.Runner(loop_factory=self._http.config.get_loop_factory())
        with runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._application.start()
        self._loop = asyncio.get_running_loop()
        if self._log is not None:
            self._log.start()
        self._log_event("started", address="{}:{}".format(*self.address))
        try:
            await self._http.serve(sockets=[self._socket])
        finally:
            await self._application.stop()
            self._log_event("stopped")
            if self._log is not None:
                self._log.close()

    def _log_event(self, event: str, **facts: str) -> None:
        if self._log is not None:
            self._log.event(event, file=str(self._store.path), **facts)

    def _refused(self, status: int, reason: str, client_address: str | None) -> None:
        """Count and log a request that HTTP's rules or limits refuse. The application never sees it."""
        served = Served("", "", "", "", client_address, status, "", 0.0, 0, 0, reason)
        for observe in self._observers:
            observe(served)

    def stop(self, *, at_once: bool = False) -> None:
        """End `run`. Call it from a signal handler or another thread.

        Args:
            at_once: do not wait for requests under way. Writes that have not begun are refused.
        """
        self._http.should_exit = True
        if at_once and self._loop is not None:
            # The loop may have just ended.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._http.give_up)


class Endpoint:
    """A bound address. Call `server` in each process that serves there.

    A context manager: leaving the block closes the address.

    Args:
        has_keys: whether the file has access keys.

    Raises:
        Unprotected: other machines can reach the address, and there is no access key.
        BadKeyFile: the key file can't be read, or a section is incomplete.
        OSError: the address does not belong to this machine, or is in use.
    """

    def __init__(self, options: EndpointOptions, *, has_keys: bool) -> None:
        self._options = options
        self._key_file = None if options.key_file is None else KeyFile(options.key_file)
        self.is_keyed = has_keys or self._key_file is not None
        if not self.is_keyed:
            self._refuse_strangers()
        self._latch = Latch(is_set=self.is_keyed)
        self._counts = shared_counts(options.processes)
        self._listener = _listen(options.host, options.port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    @property
    def url(self) -> str:
        """The endpoint URL for clients."""
        host, port = self.address
        scheme = "http" if self._options.tls_certificate is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def server(self, sqs: SQS, place: int = 0, log: TextIO | None = None) -> Server:
        """Make the server of this process.

        Its `run()` serves until another thread or a signal handler calls its `stop()`.

        Args:
            sqs: the open file. Open it in this process, not before a fork.
            place: the number of this process, from 0.
            log: receives a line of JSON for each request.

        Raises:
            Unprotected: other machines can reach the address, and the last access key has been removed.
        """
        options = self._options
        store = sqs._store  # noqa: SLF001 # the endpoint works on the open file, not on Python's calls
        keyed = Access(
            store, self._key_file, require_tls=options.require_tls, latch=self._latch, hosts=hosts_of(options)
        )
        if not keyed.is_in_force:
            self._refuse_strangers()
        return Server(store, options, keyed, self._listener, Metrics(self._counts, place), log)

    def _refuse_strangers(self) -> None:
        if not _is_loopback(self._options.host):
            raise Unprotected(
                f"{self._options.host}: other machines can reach this address, and there is no access key, so anyone "
                "could do anything. Add a key with `sqsqlite keys add`, or name a file of keys with --keys FILE."
            )


def _base_url(options: EndpointOptions) -> str | None:
    return (options.base_url or "").rstrip("/") or None


def hosts_of(options: EndpointOptions) -> Hosts:
    """All names that a Host header may contain."""
    return Hosts((options.host, *options.allowed_hosts), _base_url(options))


def _is_loopback(host: str) -> bool:
    """Whether only programs on this machine can connect to the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket. Port 0: any free port. Raises OSError if the address cannot be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
