# SPDX-License-Identifier: Apache-2.0
"""The pages next to SQS's actions: /health and /metrics."""

import asyncio
import ipaddress
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqsqlite.access.exchange import Exchange
from sqsqlite.access.open_access import Hosts
from sqsqlite.errors import SQSQLiteError
from sqsqlite.operators.inspect import touch
from sqsqlite.serve.metrics import CONTENT_TYPE, Metrics, QueueGauges, gauge
from sqsqlite.serve.protocol import Answer

if TYPE_CHECKING:
    from sqsqlite.store.store import Store

_TEXT = b"text/plain; charset=utf-8"


class MonitoringPages:
    """Answers GET and HEAD of /health and /metrics.

    Both need no signature, because the programs that read them can't sign. /health says only whether the file can be
    read. /metrics names queues, so it answers only programs on this machine, unless `metrics_for_all` is set.

    Args:
        counted: the server's own metrics.
        metrics_for_all: answer /metrics to other machines as well.
        hosts: names that the Host header of /metrics may contain. None: only those of loopback.
        elapsed: seconds on a clock that never goes back. It decides when to measure the queues again.
    """

    def __init__(
        self,
        store: "Store",
        counted: Metrics,
        *,
        metrics_for_all: bool,
        hosts: Hosts | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._counted = counted
        self._metrics_for_all = metrics_for_all
        self._hosts = hosts or Hosts()
        self._queues = QueueGauges(store, elapsed)

    async def find(self, exchange: Exchange) -> Answer | None:
        """The page that the request asks for. None: the request is for SQS."""
        if exchange.method == "POST":
            return None
        if exchange.path == b"/health":
            return await self._health(exchange)
        if exchange.path == b"/metrics":
            return await self._metrics(exchange)
        return _answer(exchange, 405, "Actions need GET or POST.\n") if exchange.method == "HEAD" else None

    async def _health(self, exchange: Exchange) -> Answer:
        try:
            await asyncio.to_thread(touch, self._store)
        except SQSQLiteError:
            return _answer(exchange, 503, "The file can't be read.\n")
        return _answer(exchange, 200, "ok\n")

    async def _metrics(self, exchange: Exchange) -> Answer:
        if not self._metrics_for_all:
            if not _is_from_here(exchange.client_address):
                return _answer(exchange, 403, "Only programs on this machine may read the metrics.\n")
            if not self._hosts.knows(exchange.header(b"host")):
                return _answer(
                    exchange,
                    403,
                    "The server does not know this host name. Add it with --allowed-host NAME.\n",
                )
        try:
            queues = await self._queues.text()
        except SQSQLiteError:
            return _answer(exchange, 503, "The file can't be read.\n")
        own = [
            *self._counted.lines(),
            *gauge("sqsqlite_wal_bytes", "Size of the write-ahead log.", self._wal_bytes()),
        ]
        return _answer(exchange, 200, "\n".join([*own, queues]), CONTENT_TYPE)

    def _wal_bytes(self) -> int:
        try:
            return self._store.path.with_name(f"{self._store.path.name}-wal").stat().st_size
        except FileNotFoundError:
            return 0


def _is_from_here(address: str | None) -> bool:
    try:
        return address is None or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _answer(exchange: Exchange, status: int, text: str, content_type: bytes = _TEXT) -> Answer:
    body = text.encode()
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    if status == 405:
        headers.append((b"allow", b"GET, POST"))
    return Answer(status, headers, b"" if exchange.method == "HEAD" else body)
