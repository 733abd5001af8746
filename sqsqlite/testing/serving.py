# SPDX-License-Identifier: Apache-2.0
"""The endpoint in test mode: any credentials, a file for each region, one clock that clients move."""

import asyncio
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TextIO
from urllib.parse import unquote

from sqsqlite.access.access import Access
from sqsqlite.access.exchange import Exchange, Identity
from sqsqlite.access.open_access import Hosts
from sqsqlite.actions.opening import check_region
from sqsqlite.api.connect import SQS
from sqsqlite.contract.names import DEFAULT_REGION
from sqsqlite.errors import StoreError
from sqsqlite.serve.application import Application, HttpApplication, Scope, Send
from sqsqlite.serve.client import Receive
from sqsqlite.serve.endpoint import Endpoint, EndpointOptions, Server
from sqsqlite.store.store import Store
from sqsqlite.testing.pages import TestModePages, send_text
from sqsqlite.testing.regions import Regions

__all__ = ["EndpointInTestMode", "EndpointOptions"]

# The credential scope in the Authorization header, and in the query of a presigned URL.
_in_header = re.compile(rb"Credential=([^/,\s]*)/[0-9]{8}/([^/,\s]*)/").search
_in_query = re.compile(r"(?:^|&)X-Amz-Credential=([^/&]*)/[0-9]{8}/([^/&]*)/").search
_is_account = re.compile(r"[0-9]{12}").fullmatch
_is_address = re.compile(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}|\[[0-9a-f:.]+\]", re.IGNORECASE).fullmatch
# Names that lead to this machine from a container, or by which LocalStack is asked.
_LOCAL_NAMES = ("host.docker.internal", "host.containers.internal", "localhost.localstack.cloud")

Fill = Callable[[SQS], object]


class NearHosts(Hosts):
    """Loopback's names and the others that no page of a stranger can have.

    Its address, a name without a dot (a service of a compose file), and names that lead to this machine.
    """

    def knows(self, host: str) -> bool:
        """Return whether a Host header names one of them."""
        name = host.rpartition(":")[0] if re.search(r":[0-9]*$", host) else host
        plain = name.lower().removesuffix(".")
        return (
            super().knows(host)
            or re.fullmatch(r"[a-z0-9_-]+", plain) is not None
            or _is_address(plain) is not None
            or any(plain == local or plain.endswith(f".{local}") for local in _LOCAL_NAMES)
        )


class AnyCredentials(Access):
    """Every request is allowed, whatever it is signed with. An access key id of 12 digits names its account."""

    def needs_digest(self, exchange: Exchange) -> bool:  # noqa: ARG002 # the base class reads it
        """Return False: no signature is checked."""
        return False

    def authenticate(self, exchange: Exchange) -> Identity:
        """Return the account of the access key id, else the endpoint's own.

        Raises:
            AccessDenied: as OpenAccess, for a page of another site or a name that is not this server's.
        """
        identity = self._open.authenticate(exchange)
        key_id, _ = credential_of(exchange)
        return Identity(key_id) if _is_account(key_id) else identity


def credential_of(exchange: Exchange) -> tuple[str, str]:
    """The access key id and the region of a request's signature. Empty: it has none."""
    found = _in_header(exchange.headers.get(b"authorization", b""))
    if found is not None:
        return found[1].decode("latin-1"), found[2].decode("latin-1")
    presigned = _in_query(unquote(exchange.query.decode("latin-1")))
    return (presigned[1], presigned[2]) if presigned else ("", "")


class RegionalApplication:
    """The application of each region, made at the region's first request.

    Args:
        make: makes the application of one open file.
        region: of requests without a signature.
        fill: makes the queues that a region has from the start.
    """

    def __init__(
        self,
        regions: Regions,
        make: Callable[[Store], HttpApplication],
        hosts: Hosts,
        region: str,
        fill: Fill,
    ) -> None:
        self._regions = regions
        self._make = make
        self._region = region
        self._fill = fill
        self._applications: dict[str, HttpApplication] = {}
        self._changing = asyncio.Lock()
        self._is_ending = False
        self._pages = TestModePages(regions.clock, hosts, self._reset)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. The arguments are ASGI's."""
        if scope["type"] != "http" or await self._pages.answer(scope, receive, send):
            return
        headers = {name: value for name, value in scope["headers"] if name == b"authorization"}
        exchange = Exchange("", "", b"", scope["query_string"], headers, b"", "")
        try:
            application = await self._application(credential_of(exchange)[1] or self._region)
        except ValueError as error:  # no region, or one too many
            await send_text(send, 400, f"{error}\n")
            return
        except StoreError as error:
            await send_text(send, 500, f"{type(error).__name__}: {error}\n")
            return
        await application(scope, receive, send)

    async def _application(self, region: str) -> HttpApplication:
        found = self._applications.get(region)
        if found is not None and not self._changing.locked():
            return found
        check_region(region)
        async with self._changing:
            if region not in self._applications:
                store = await asyncio.to_thread(self._filled, region)
                made = self._make(store)
                made.start()
                if self._is_ending:
                    made.end_waits()
                self._applications[region] = made
            return self._applications[region]

    def _filled(self, region: str) -> Store:
        store = self._regions.store(region)
        if region == self._region:
            self._fill(SQS(store))
        return store

    async def _reset(self) -> None:
        """Answer the requests under way, remove all files, set the clock back, and make the first queues again."""
        async with self._changing:
            applications, self._applications = self._applications, {}
            for application in applications.values():
                await application.stop()
            await asyncio.to_thread(self._regions.clear)

    def start(self) -> None:
        """Begin. Call it within the event loop of the requests."""

    async def stop(self) -> None:
        """Finish the submitted writes, and stop the threads."""
        for application in self._applications.values():
            await application.stop()

    def end_waits(self) -> None:
        """Answer the long polls now. New ones do not wait."""
        self._is_ending = True
        for application in self._applications.values():
            application.end_waits()

    def give_up(self) -> None:
        """Refuse the writes that have not begun."""
        for application in self._applications.values():
            application.give_up()

    @property
    def waiting(self) -> int:
        """How many long polls wait now."""
        return sum(application.waiting for application in self._applications.values())


class ServerInTestMode(Server):
    """The server of the process. `EndpointInTestMode` makes it.

    Args:
        region: of requests without a signature; its file exists from the start.
        fill: makes the queues that this region has from the start, and again after a reset.
    """

    def __init__(
        self,
        regions: Regions,
        options: EndpointOptions,
        listener: socket.socket,
        region: str,
        fill: Fill,
        log: TextIO | None = None,
    ) -> None:
        self._regions = regions
        self._region = region
        self._fill = fill
        store = regions.store(region)
        fill(SQS(store))
        super().__init__(store, options, listener=listener, log=log)

    def application(self, access: Access) -> Application:  # noqa: ARG002 # each region has its own
        """What this server runs."""
        near = NearHosts((self._options.host, *self._options.allowed_hosts), self._options.base_url)

        def make(store: Store) -> HttpApplication:
            return self.application_of(store, AnyCredentials(store, hosts=near), near)

        return RegionalApplication(self._regions, make, near, self._region, self._fill)


class EndpointInTestMode(Endpoint):
    """A bound address, at any address of this machine. A context manager: leaving the block removes the files.

    Args:
        options: `processes` is 1, and there is no key file.
        path: a file that does not exist yet, for the region that requests without a signature mean; those of other
            regions lie beside it. None: all are in a temporary folder.
        fill: makes the queues that this region has from the start, and again after a reset.
        region, synchronous, compat, limits: as `sqsqlite.connect` takes them.

    Raises:
        ValueError: the path exists, or an option has a value that is not allowed.
        OSError: the address does not belong to this machine, or is in use.
    """

    def __init__(
        self,
        options: EndpointOptions,
        *,
        path: Path | None = None,
        fill: Fill = lambda _: None,
        region: str = DEFAULT_REGION,
        synchronous: str = "OFF",
        compat: str = "aws",
        limits: str = "sqs",
    ) -> None:
        if path is not None and path.exists():
            raise ValueError(
                f"{path}: this file exists. Test mode makes a file of its own and throws it away: name a path that "
                "does not exist. (If a test run was killed and left the file, remove it.)"
            )
        self._region = region
        self._fill = fill
        super().__init__(options, has_keys=False)
        try:
            self._regions = Regions(
                path=path, region=region, synchronous=synchronous, compat=compat, limits=limits
            )
        except BaseException:
            super().__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._regions.remove()

    @property
    def path(self) -> Path:
        """The file of the region that requests without a signature mean."""
        return self._regions.path_of(self._region)

    def server_in_test_mode(self, log: TextIO | None = None) -> ServerInTestMode:
        """Make the server. Its `run()` serves until another thread or a signal handler calls its `stop()`."""
        return ServerInTestMode(self._regions, self._options, self._listener, self._region, self._fill, log)

    def _refuse_strangers(self) -> None:
        """Every address is allowed: what the server holds is thrown away."""
