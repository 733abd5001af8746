"""An endpoint as a program starts it: its options, its address, its keys, and a server in each process."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

from sqsqlite.access.key_file import KeyFile
from sqsqlite.access.keyed_access import KeyedAccess
from sqsqlite.access.latch import Latch
from sqsqlite.serve.application import Options
from sqsqlite.serve.metrics import Metrics, shared_counts
from sqsqlite.serve.processes import Ready, supervise
from sqsqlite.serve.server import Server, ServerOptions, is_loopback, listen
from sqsqlite.serve.throttle import Throttled

if TYPE_CHECKING:
    from sqsqlite.access.access import Access
    from sqsqlite.api.connect import SQS

__all__ = ["Endpoint", "EndpointOptions", "Ready", "Server", "Unprotected", "supervise"]


class Unprotected(ValueError):
    """Other machines could reach the address, and there is no access key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOptions:
    """Where and how to serve.

    Attributes:
        host: an address or name of this machine.
        port: 1 to 65,535; 0: any free one.
        base_url: the beginning of queue URLs; None: the scheme and the Host header of each request.
        allowed_hosts: without access keys, further names in the Host header that are answered.
        key_file: more access keys, in the form of the AWS CLI's credentials.
        tls_certificate, tls_key: PEM files; both or neither.
        require_tls: refuse requests that did not come over HTTPS.
        behind_proxy: believe X-Forwarded-Proto and X-Forwarded-For of a proxy on this machine.
        rate_limit: requests a second of each account; None: no limit.
        processes: how many processes share the port.
        metrics_for_all: answer /metrics to other machines too.
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


class Endpoint:
    """A bound address. `server` serves a file there, in this process or in each of several forked ones.

    A context manager; its end closes the address.

    Args:
        has_keys: whether the file has access keys.

    Raises:
        Unprotected: other machines could reach the address, and there are no access keys.
        BadKeyFile: the key file can't be read, or a section lacks something.
        OSError: the address is not this machine's, or is in use.
    """

    def __init__(self, options: EndpointOptions, *, has_keys: bool) -> None:
        self._options = options
        self._key_file = None if options.key_file is None else KeyFile(options.key_file)
        self.is_keyed = has_keys or self._key_file is not None
        if not self.is_keyed:
            self._refuse_strangers()
        self._latch = Latch(is_set=self.is_keyed)
        self._counts = shared_counts(options.processes)
        self._listener = listen(options.host, options.port)

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
        """The URL that clients take as their endpoint."""
        host, port = self.address
        scheme = "http" if self._options.tls_certificate is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def server(self, sqs: "SQS", place: int = 0, log: TextIO | None = None) -> Server:
        """A server for this process. Its `run()` serves until another thread or a signal handler calls its `stop()`.

        Args:
            sqs: the file, opened in this process.
            place: the number of this process among several, from 0.
            log: receives a line of JSON for each request.

        Raises:
            Unprotected: the last access key was removed meanwhile.
        """
        given = self._options
        options = ServerOptions(
            host=given.host,
            port=given.port,
            tls_certificate=given.tls_certificate,
            tls_key=given.tls_key,
            behind_proxy=given.behind_proxy,
            presents=Options((given.base_url or "").rstrip("/") or None),
            log=log,
            metrics_for_all=given.metrics_for_all,
            allowed_hosts=given.allowed_hosts,
        )
        store = sqs._store  # noqa: SLF001 # the endpoint works on the open file, not on Python's calls
        keyed = KeyedAccess(
            store, self._key_file, require_tls=given.require_tls, latch=self._latch, hosts=options.hosts
        )
        if not keyed.is_in_force:
            self._refuse_strangers()
        limit = given.rate_limit
        access: Access = keyed if limit is None else Throttled(keyed, limit / given.processes)
        return Server(store, options, access, self._listener, Metrics(self._counts, place))

    def _refuse_strangers(self) -> None:
        if not is_loopback(self._options.host):
            raise Unprotected(
                f"{self._options.host}: other machines can reach this address, and there is no access key: everybody "
                "could do everything. `sqsqlite keys add` makes a key, --keys FILE names some."
            )
