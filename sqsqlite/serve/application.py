# SPDX-License-Identifier: Apache-2.0
"""The ASGI application: an HTTP request in, an SQS answer out. A header tells which of two protocols it uses."""

import time
import traceback
import uuid
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from sqsqlite.access.access import Access
from sqsqlite.access.exchange import TARGET, TRACE_ID, Exchange, Identity, InternalFailure
from sqsqlite.access.signature import digest_of
from sqsqlite.actions import queue_rows
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract.message_attributes import TRACE_HEADER, MessageAttributeValue
from sqsqlite.contract.names import queue_name
from sqsqlite.contract.requests import ReceiveMessage, Request, SendMessage, StartMessageMoveTask
from sqsqlite.contract.responses import ReceiveMessageResponse, Response
from sqsqlite.contract.shapes import ACTIONS
from sqsqlite.errors import InvalidAction, QueueDoesNotExist, SQSError, StoreError
from sqsqlite.serve.budget import Budget, Share
from sqsqlite.serve.client import LONG_BYTES, Disconnected, HttpClient, LongBodies, Receive, read_body
from sqsqlite.serve.json_protocol import JsonProtocol
from sqsqlite.serve.metrics import Metrics
from sqsqlite.serve.operations import Operations
from sqsqlite.serve.pages import MonitoringPages
from sqsqlite.serve.protocol import (
    FAILED,
    IS_GONE,
    UNTIL_READ,
    WRITE_WHOLE,
    Answer,
    Headers,
    Observe,
    Served,
    failure_of,
)
from sqsqlite.serve.query_protocol import QueryProtocol, unknown_operation
from sqsqlite.serve.rate_limit import RateLimit

if TYPE_CHECKING:
    from sqsqlite.store.store import Store

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Protocol = JsonProtocol | QueryProtocol

# An error repeats this many characters of an unknown action's name. A form could send 8 MiB, and XML escapes make six
# times as much of it.
_LONGEST_NAME = 1_000


class Application(Protocol):
    """What the server runs: HttpApplication, or in test mode several of them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...
    def start(self) -> None: ...
    async def stop(self) -> None: ...
    def end_waits(self) -> None: ...
    def give_up(self) -> None: ...
    @property
    def waiting(self) -> int: ...


class HttpApplication:
    """One file's endpoint, in one event loop.

    Args:
        store: the open file.
        access: who may do what.
        pages: /health and /metrics.
        base_url: the beginning of queue URLs. None: the scheme and the Host header of each request.
        metrics: what the server counts of itself.
        observers: called within the loop after each answered request.
        budget: the memory for answers.
        texts: the memory for parsed requests, without their bodies.
        rate_limit: None: no limit.
    """

    def __init__(
        self,
        store: "Store",
        access: Access,
        pages: MonitoringPages,
        base_url: str | None,
        metrics: Metrics,
        observers: Sequence[Observe],
        budget: Budget,
        texts: Budget,
        rate_limit: RateLimit | None = None,
    ) -> None:
        self._store = store
        self._access = access
        self._pages = pages
        self._base_url = base_url
        self._metrics = metrics
        self._observers = observers
        self._budget = budget
        self._texts = texts
        self._rate_limit = rate_limit
        self._operations: Operations | None = None
        self._bodies = LongBodies()
        self._json = JsonProtocol()
        self._query = QueryProtocol()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. The arguments are ASGI's."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)

    def start(self) -> None:
        """Begin. Call it within the event loop of the requests."""
        self._operations = Operations(self._store, self._metrics.commits.observe, self._metrics.waits)

    async def stop(self) -> None:
        """Finish the submitted writes, and stop the threads."""
        await self._started.close()
        self._bodies.close()

    def end_waits(self) -> None:
        """Answer the long polls now. New ones do not wait."""
        self._started.end_waits()

    def give_up(self) -> None:
        """Refuse the writes that have not begun."""
        self._started.give_up()

    @property
    def _started(self) -> Operations:
        """Executes the requests. Exists after `start`."""
        assert self._operations is not None
        return self._operations

    @property
    def waiting(self) -> int:
        """How many long polls wait now."""
        return 0 if self._operations is None else self._operations.waiting

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(
            scope["method"],
            scope["scheme"],
            scope.get("raw_path") or scope["path"].encode(),
            scope["query_string"],
            _by_name(scope["headers"]),
            b"",
            str(uuid.uuid4()),
            client_address=scope["client"][0] if scope.get("client") else None,
        )
        try:
            exchange.body = await read_body(receive)
        except Disconnected:
            return
        started = time.perf_counter()
        extensions = scope.get("extensions") or {}
        write_whole = extensions.get(WRITE_WHOLE)
        page = await self._pages.find(exchange)
        if page is not None:
            await _send(write_whole, send, page)
            return
        share = Share(self._budget)
        text = Share(self._texts)
        client = HttpClient(receive, extensions.get(IS_GONE, _never), share, len(exchange.body), text)
        try:
            with text:
                answer = await self._answer(exchange, client)
            client.end_watch()
            # The answer contains the messages, so their own memory is free.
            share.hold_answer(len(answer.body))
            await _send(write_whole, send, answer)
        except Disconnected:
            return
        finally:
            client.end_watch()
            extensions.get(UNTIL_READ, _at_once)(share.release)
        self._observe(exchange, answer, time.perf_counter() - started)

    def _observe(self, exchange: Exchange, answer: Answer, seconds: float) -> None:
        served = Served(
            exchange.request_id,
            exchange.action,
            exchange.queue,
            exchange.account_id,
            exchange.client_address,
            answer.status,
            exchange.code,
            seconds,
            len(exchange.body),
            len(answer.body),
            exchange.cause,
            exchange.user,
            exchange.access_key_id,
        )
        for observe in self._observers:
            observe(served)

    async def _answer(self, exchange: Exchange, client: HttpClient) -> Answer:
        protocol: _Protocol = self._json if TARGET in exchange.headers else self._query
        try:
            client.share.copies = protocol.copies
            kind, identity = await self._admit(protocol, exchange, client)
            caller = self._caller(exchange, identity)
            exchange.account_id = caller.account_id
            request = await self._read(protocol, exchange, client, kind, caller)
            exchange.queue = _queue_of(request)
            client.key_id = exchange.key_id
            client.check_key = partial(self._access.check_key, exchange)
            client.check = partial(self._access.authorize, exchange, identity, request, caller)
            caller = self._access.authorize(exchange, identity, request, caller)
            if isinstance(request, StartMessageMoveTask):
                authorize_move = self._access.authorize_move
                await self._started.in_thread(authorize_move, exchange, identity, request, caller)
            return protocol.answer(exchange, kind, await self._execute(request, caller, client))
        except Disconnected:
            raise
        except _NoAction:
            return unknown_operation(exchange)
        except SQSError as error:
            refusal = error
        except StoreError as error:
            refusal = failure_of(error)
            exchange.cause = f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - a bug: the log has the cause, the client does not
            refusal = InternalFailure(FAILED)
            exchange.cause = "".join(traceback.format_exception(error))
        exchange.code = refusal.query_code
        try:
            return protocol.refuse(exchange, refusal)
        finally:
            # The error refers to this frame, and the frame to the request: without `del`, the cycle would keep both.
            del refusal

    async def _admit(
        self, protocol: _Protocol, exchange: Exchange, client: HttpClient
    ) -> tuple[type[Request], Identity]:
        """Find the action, and authenticate the caller.

        If access keys are in force, a request is not parsed and does not wait for memory before its signature has been
        checked. If its headers alone are refused, its body is not even hashed. So an action in the body is read last.
        """
        in_body = protocol.names_action_in_body(exchange)
        kind = None if in_body else self._kind(protocol, exchange)
        body = exchange.body
        if len(body) > LONG_BYTES and self._access.needs_digest(exchange):
            exchange.digest = await self._bodies.work(body, client, digest_of, body)
        identity = self._access.authenticate(exchange)
        if self._rate_limit is not None:
            self._rate_limit.count(identity.account_id)
        await client.until_memory_for_text()
        await self._bodies.work(body, client, protocol.check_size, exchange, self._store.settings.limits)
        return kind or self._kind(protocol, exchange), identity

    def _kind(self, protocol: _Protocol, exchange: Exchange) -> type[Request]:
        action = protocol.action(exchange)
        if not action and protocol is self._query:
            raise _NoAction
        kind = ACTIONS.get(action)
        if kind is None:
            asked = (action or exchange.header(TARGET))[:_LONGEST_NAME]
            raise InvalidAction(f"The action {asked} is not valid for this endpoint.")
        exchange.action = action
        return kind

    async def _execute(self, request: Request, caller: Caller, client: HttpClient) -> Response:
        if isinstance(request, ReceiveMessage):
            client.forget_text()
        response = await self._started.execute(request, caller, client)
        # A client that has disconnected must not keep a lease.
        if isinstance(request, ReceiveMessage) and client.is_gone():
            # The client disconnected a moment ago. From here to the socket nothing waits.
            await self._started.give_back(cast("ReceiveMessageResponse", response), request, caller)
        return response

    def _caller(self, exchange: Exchange, identity: Identity) -> Caller:
        host = exchange.header(b"host") or "localhost"
        base_url = self._base_url or f"{exchange.scheme}://{host}"
        return Caller(identity.account_id, None, base_url)

    async def _read(
        self,
        protocol: _Protocol,
        exchange: Exchange,
        client: HttpClient,
        kind: type[Request],
        caller: Caller,
    ) -> Request:
        """Parse the request. Like SQS, report a missing queue of the caller before any other fault of the request."""
        try:
            limits = self._store.settings.limits
            request = await self._bodies.work(exchange.body, client, protocol.read, exchange, kind, limits)
            return _traced(exchange, request)
        except SQSError as error:
            url = await self._bodies.work(exchange.body, client, protocol.queue_url, exchange)
            # Before authorization, do not reveal whether a queue of another account exists.
            is_own = bool(url) and queue_rows.place(url, caller)[0] == caller.account_id
            if is_own and not isinstance(error, QueueDoesNotExist):
                with self._store.reading() as snapshot:
                    queue_rows.find(snapshot, url, caller)
            raise


class _NoAction(Exception):
    """A request of the Query protocol names no action."""


def _never() -> bool:
    return False


def _at_once(on_read: Callable[[], object]) -> None:
    on_read()


def _by_name(headers: Headers) -> dict[bytes, bytes]:
    """The headers by name. Values of a repeated header are joined (RFC 9110, section 5.3)."""
    found = dict(headers)
    if len(found) < len(headers):
        found = {}
        for name, value in headers:
            trimmed = value.strip(b" \t")
            found[name] = found[name] + b"," + trimmed if name in found else trimmed
    return found


def _traced(exchange: Exchange, request: Request) -> Request:
    """Like SQS, copy the HTTP header X-Amzn-Trace-Id to AWSTraceHeader of a message that has none."""
    trace = exchange.header(TRACE_ID)
    if not trace or not isinstance(request, SendMessage) or request.message_system_attributes:
        return request
    value = MessageAttributeValue(data_type="String", string_value=trace)
    return msgspec.structs.replace(request, message_system_attributes={TRACE_HEADER: value})


def _queue_of(request: Request) -> str:
    """The name of the request's queue, empty if it has none."""
    named: str = getattr(request, "queue_url", "") or getattr(request, "queue_name", "")
    try:
        return queue_name(named)[1]
    except SQSError:
        return ""


async def _send(write_whole: Callable[[Answer], bool] | None, send: Send, answer: Answer) -> None:
    if write_whole is not None and write_whole(answer):
        return
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    await send({"type": "http.response.body", "body": answer.body})
