"""The ASGI application: an HTTP request in, an SQS answer out. Both protocols on one port, told apart by headers."""

import asyncio
import time
import traceback
import uuid
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from sqsqlite.access.exchange import TARGET, TRACE_ID, Exchange
from sqsqlite.access.failures import InternalFailure
from sqsqlite.access.signature import digest_of
from sqsqlite.actions import queue_rows
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract.message_attributes import TRACE_HEADER, MessageAttributeValue
from sqsqlite.contract.names import queue_name
from sqsqlite.contract.requests import ReceiveMessage, SendMessage, StartMessageMoveTask
from sqsqlite.contract.shapes import ACTIONS
from sqsqlite.errors import InvalidAction, QueueDoesNotExist, SQSError, StoreError
from sqsqlite.serve.body import LONG_BYTES, Disconnected, LongBodies, read_body
from sqsqlite.serve.budget import Budget, Share
from sqsqlite.serve.json_protocol import JsonProtocol
from sqsqlite.serve.operations import Operations
from sqsqlite.serve.protocol import (
    FAILED,
    IS_GONE,
    UNTIL_READ,
    WRITE_WHOLE,
    Answer,
    Headers,
    Observe,
    Served,
    WireProtocol,
    failure_of,
)
from sqsqlite.serve.query_protocol import QueryProtocol, unknown_operation

if TYPE_CHECKING:
    from sqsqlite.access.access import Access
    from sqsqlite.access.identity import Identity
    from sqsqlite.contract.requests import Request
    from sqsqlite.contract.responses import ReceiveMessageResponse, Response
    from sqsqlite.serve.metrics import Metrics
    from sqsqlite.serve.pages import MonitoringPages
    from sqsqlite.store.store import Store

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# A body is text too, once it is read: four bytes a character if one of them is beyond the others, and its UTF-8.
_TEXT_COPIES = 5
# A body up to this size does not wait for memory: even 5,000 of them take little.
_SHORT_BODY_BYTES = 4 * 1024
# Of an action that does not exist, what is repeated: a form has room for 8 MiB, and XML makes six times as much of it.
_LONGEST_NAME = 1_000


class HttpApplication:
    """One file's endpoint, in one event loop.

    Args:
        store: the open file.
        access: who may do what.
        pages: what is answered beside SQS's actions: health and metrics.
        metrics: what it counts.
        observers: told of each request after it was answered, within the loop.
        budget: the memory that answers take.
        texts: the memory that requests take which are carried out, beside their bodies.
    """

    def __init__(
        self,
        store: "Store",
        access: "Access",
        pages: "MonitoringPages",
        base_url: str | None,
        metrics: "Metrics",
        observers: Sequence[Observe],
        budget: Budget,
        texts: Budget,
    ) -> None:
        self._store = store
        self._access = access
        self._pages = pages
        self._base_url = base_url
        self._metrics = metrics
        self._observers = observers
        self._budget = budget
        self._texts = texts
        self._operations: Operations | None = None
        self._bodies = LongBodies()
        self._json = JsonProtocol()
        self._query = QueryProtocol()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's three arguments."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)

    def start(self) -> None:
        """Begin: within the event loop that the requests come in."""
        self._operations = Operations(self._store, self._metrics.commits.observe, self._metrics.waits)

    def end_waits(self) -> None:
        """Answer the long polls now; new ones don't wait."""
        assert self._operations is not None
        self._operations.end_waits()

    def give_up(self) -> None:
        """Refuse the writes that still wait for their turn, and let `stop` wait for none of them."""
        assert self._operations is not None
        self._operations.give_up()

    async def stop(self) -> None:
        """Write what was submitted, and end the threads."""
        assert self._operations is not None
        await self._operations.close()
        self._bodies.close()

    @property
    def waiting(self) -> int:
        """Long polls that wait at this moment."""
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
        client = _Client(receive, extensions.get(IS_GONE, _never), share, len(exchange.body), text)
        try:
            with text:
                answer = await self._answer(exchange, client)
            client.end_watch()
            # The messages are part of it now, and are not held besides.
            share.hold_answer(len(answer.body))
            await _send(write_whole, send, answer)
        except Disconnected:
            return
        finally:
            client.end_watch()
            extensions.get(UNTIL_READ, _at_once)(share.release)
        self._tell(exchange, answer, time.perf_counter() - started)

    def _tell(self, exchange: Exchange, answer: Answer, seconds: float) -> None:
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

    async def _answer(self, exchange: Exchange, client: "_Client") -> Answer:
        protocol: WireProtocol = self._json if TARGET in exchange.headers else self._query
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
                assert self._operations is not None
                authorize_move = self._access.authorize_move
                await self._operations.in_thread(authorize_move, exchange, identity, request, caller)
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
        except Exception as error:  # noqa: BLE001 - a fault of ours: told to whoever runs the server, not to the client
            refusal = InternalFailure(FAILED)
            exchange.cause = "".join(traceback.format_exception(error))
        exchange.code = refusal.query_code
        try:
            return protocol.refuse(exchange, refusal)
        finally:
            # It knows this frame, and with it the request: a cycle would keep both until it is collected.
            del refusal

    async def _admit(
        self, protocol: WireProtocol, exchange: Exchange, client: "_Client"
    ) -> "tuple[type[Request], Identity]":
        """The action asked for, and who asks.

        Where keys are in force, nothing is parsed or stands in line for memory before the signature is checked, and
        nothing is hashed whose headers alone are refused. So an action that stands in the body is read last.
        """
        in_body = protocol.names_action_in_body(exchange)
        kind = None if in_body else self._kind(protocol, exchange)
        body = exchange.body
        if len(body) > LONG_BYTES and self._access.needs_digest(exchange):
            exchange.digest = await self._bodies.work(body, client, digest_of, body)
        identity = self._access.authenticate(exchange)
        await client.until_room_for_text()
        await self._bodies.work(body, client, protocol.check_size, exchange, self._store.settings.limits)
        return kind or self._kind(protocol, exchange), identity

    def _kind(self, protocol: WireProtocol, exchange: Exchange) -> "type[Request]":
        action = protocol.action(exchange)
        if not action and protocol is self._query:
            raise _NoAction
        kind = ACTIONS.get(action)
        if kind is None:
            asked = (action or exchange.header(TARGET))[:_LONGEST_NAME]
            raise InvalidAction(f"The action {asked} is not valid for this endpoint.")
        exchange.action = action
        return kind

    async def _execute(self, request: "Request", caller: Caller, client: "_Client") -> "Response":
        assert self._operations is not None
        if isinstance(request, ReceiveMessage):
            client.forget_text()
        response = await self._operations.execute(request, caller, client)
        # No lease for a client that has gone: the only action that must know.
        if isinstance(request, ReceiveMessage) and client.is_gone():
            # A moment ago: the watch has not heard of it yet. From here to the socket nothing waits.
            await self._operations.give_back(cast("ReceiveMessageResponse", response), request, caller)
        return response

    def _caller(self, exchange: Exchange, identity: "Identity") -> Caller:
        host = exchange.header(b"host") or "localhost"
        base_url = self._base_url or f"{exchange.scheme}://{host}"
        return Caller(identity.account_id, None, base_url)

    async def _read(
        self,
        protocol: WireProtocol,
        exchange: Exchange,
        client: "_Client",
        kind: "type[Request]",
        caller: Caller,
    ) -> "Request":
        """The request; an own queue that does not exist is told before anything else that is wrong, as SQS does."""
        try:
            limits = self._store.settings.limits
            request = await self._bodies.work(exchange.body, client, protocol.read, exchange, kind, limits)
            return _traced(exchange, request)
        except SQSError as error:
            url = await self._bodies.work(exchange.body, client, protocol.queue_url, exchange)
            # Of another account's nothing is told before it is known whether the caller may ask.
            is_own = bool(url) and queue_rows.place(url, caller)[0] == caller.account_id
            if is_own and not isinstance(error, QueueDoesNotExist):
                with self._store.reading() as snapshot:
                    queue_rows.find(snapshot, url, caller)
            raise


class _NoAction(Exception):
    """A request of the Query protocol has no Action."""


class _Client:
    """Who waits for an answer.

    Args:
        receive: gives a message when the connection is closed.
        is_gone: whether it is, at this very moment; False where the server can't tell.
        share: what the answer takes of the memory.
        size_bytes: of the request.
        text: what the request takes of the memory, beside its body.

    Attributes:
        key_id: the key that they signed with, of a session its parent's; empty: none.
        check_key: whether that key is still there, once they were asked who they are: raises an SQSError.
        check: whether they may still do what they ask: raises AccessDenied.
    """

    def __init__(
        self,
        receive: Receive,
        is_gone: Callable[[], bool],
        share: Share,
        size_bytes: int,
        text: Share,
    ) -> None:
        self.is_gone = is_gone
        self.share = share
        self.size_bytes = size_bytes
        self.key_id = ""
        self.check_key: Callable[[], object] = _never
        self.check: Callable[[], object] = _never
        self._receive = receive
        self._text = text
        self._watch: asyncio.Task[None] | None = None

    def gone(self) -> "asyncio.Future[None]":
        """Ends when the connection is closed: for those who wait longer than a commit takes."""
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._until_gone())
        return self._watch

    async def until_room_for_text(self) -> None:
        """Wait until there is memory for what is read from the body.

        Raises:
            Disconnected: the client went away. Its body is dropped: those who send and close, again and again, would
                fill the memory otherwise, however long the line stands still.
        """
        size_bytes = _TEXT_COPIES * self.size_bytes
        if self.size_bytes > _SHORT_BODY_BYTES and not await self._text.until_held(size_bytes, self.gone):
            raise Disconnected

    def forget_text(self) -> None:
        """It waits now, and its request is short, whatever its body was."""
        self._text.release()

    def end_watch(self) -> None:
        """Nobody waits any more."""
        if self._watch is not None:
            self._watch.cancel()
            # It keeps its cancellation, whose traceback knows this object, and with it the request.
            self._watch = None

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _never() -> bool:
    return False


def _at_once(tell: Callable[[], object]) -> None:
    tell()


def _by_name(headers: Headers) -> dict[bytes, bytes]:
    """Headers by their names; those given twice joined, which RFC 9110, section 5.3, calls the same."""
    found = dict(headers)
    if len(found) < len(headers):
        found = {}
        for name, value in headers:
            trimmed = value.strip(b" \t")
            found[name] = found[name] + b"," + trimmed if name in found else trimmed
    return found


def _traced(exchange: Exchange, request: "Request") -> "Request":
    """The request; a send without AWSTraceHeader has that of the HTTP header X-Amzn-Trace-Id, as with SQS."""
    trace = exchange.header(TRACE_ID)
    if not trace or not isinstance(request, SendMessage) or request.message_system_attributes:
        return request
    value = MessageAttributeValue(data_type="String", string_value=trace)
    return msgspec.structs.replace(request, message_system_attributes={TRACE_HEADER: value})


def _queue_of(request: "Request") -> str:
    """The name of the queue that a request names, empty if it names none."""
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
