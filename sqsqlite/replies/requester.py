# SPDX-License-Identifier: Apache-2.0
"""The side that asks: any number of waiters, one queue of replies, one thread that receives them."""

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Self

from sqsqlite.api.client_errors import is_missing, passes
from sqsqlite.api.connect import SQS
from sqsqlite.api.message import to_attributes
from sqsqlite.errors import StoreClosed, StoreError
from sqsqlite.replies import hosts
from sqsqlite.replies.addresses import (
    ADDRESS,
    WAITER,
    Reply,
    ReplyTimeout,
    RequesterClosed,
    client_of,
    python_values,
)
from sqsqlite.store.clock import OWN_THREADS, Clock, Waitable

IDLE_SECONDS = 300
"""How long after its last sign of life a queue of replies may be removed by other requesters."""
_POLL_SECONDS = 20
_SWEEP_SECONDS = 600
_PAUSE_SECONDS = 1.0
_LATE_KEPT = 10_000


@dataclass
class Counts:
    """What a requester counted.

    Attributes:
        sent: requests.
        answered: replies that a waiter got.
        timed_out: requests whose reply did not come in time.
        late: replies that came after that; deleted.
        unknown: replies to no request of this requester; deleted.
        failures: receives that failed and were repeated.
    """

    sent: int = 0
    answered: int = 0
    timed_out: int = 0
    late: int = 0
    unknown: int = 0
    failures: int = 0


class _SteadyClock:
    """Wall time from the start on, whatever becomes of the machine's clock, for clients that have no file."""

    def __init__(self) -> None:
        self._ahead_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        return (time.monotonic_ns() + self._ahead_ns) // 1_000_000

    def wait(self, event: Waitable, until_ms: int) -> bool:
        return event.wait(max(0, until_ms - self.now_ms()) / 1_000)


class _Waiting:
    """A request whose reply is awaited."""

    def __init__(self, queue: str, timeout: float, until_ms: int) -> None:
        self.queue = queue
        self.timeout = timeout
        self.until_ms = until_ms
        self.is_over = threading.Event()
        self.reply: Future[Reply] = Future()
        self.reply.set_running_or_notify_cancel()  # nobody may cancel it: the request is on its way
        self.reply.add_done_callback(lambda _: self.is_over.set())


class Requester:
    """Sends requests and gives their replies back. Any number of threads may use it. A context manager.

    It makes a queue for replies at the first request, and `close` removes it. If the process is killed, another
    requester removes the queue after five minutes.

    Args:
        sqs_or_client: an open file, or a client with boto3's methods. It stays the caller's to close.
    """

    def __init__(self, sqs_or_client: Any) -> None:
        self._sqs = sqs_or_client if isinstance(sqs_or_client, SQS) else None
        self._client = client_of(sqs_or_client)
        self._clock: Clock = _SteadyClock() if self._sqs is None else self._sqs._store.clock  # noqa: SLF001
        self.counts = Counts()
        self._begin()

    def _begin(self) -> None:
        """The state of one process: a forked child begins anew, since the thread stayed in the parent."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waiting: dict[str, _Waiting] = {}
        self._late: dict[str, None] = {}
        self._host: str | None = None
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._is_closed = False
        self._signed_at = self._swept_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- asking

    def call(
        self,
        queue: str,
        body: str,
        timeout: float = 30.0,
        *,
        attributes: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        deduplication_id: str | None = None,
    ) -> Reply:
        """Send a request and wait for its reply.

        Args:
            queue: the queue that a `Responder` receives from: a name or URL; for a client of an endpoint a URL.
            body: the request.
            timeout: seconds to wait, more than 0.
            attributes: as `Queue.send` takes them, at most 9.
            group_id, deduplication_id: for a FIFO queue, and group_id for a fair one.

        Raises:
            ReplyTimeout: no reply came in time.
            RequesterClosed: `close` was called, or the queue of replies is gone.
            QueueDoesNotExist, InvalidMessageContents, InvalidParameterValue: as for any message.
            StoreError: the call stands in a transaction, so the request would be sent only after the wait.
        """
        waiting = self._ask(queue, body, timeout, attributes, group_id, deduplication_id)
        self._clock.wait(waiting.is_over, waiting.until_ms)
        if not waiting.reply.done():
            self._expire(self._clock.now_ms())
        # Whoever was first has set it; a reply at the last moment counts.
        return waiting.reply.result()

    def submit(
        self,
        queue: str,
        body: str,
        timeout: float = 30.0,
        *,
        attributes: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        deduplication_id: str | None = None,
    ) -> "Future[Reply]":
        """Send a request; the reply comes by the future. Arguments and errors: as `call`, within the future.

        A timeout is noticed up to 20 s late.
        """
        return self._ask(queue, body, timeout, attributes, group_id, deduplication_id).reply

    def _ask(
        self,
        queue: str,
        body: str,
        timeout: float,
        attributes: Mapping[str, Any] | None,
        group_id: str | None,
        deduplication_id: str | None,
    ) -> _Waiting:
        if not 0 < timeout <= threading.TIMEOUT_MAX:
            raise ValueError(f"timeout={timeout!r}: seconds, more than 0, are allowed")
        if self._sqs is not None and self._sqs._store.transaction_of_thread is not None:  # noqa: SLF001
            raise StoreError(
                "call() inside a transaction waits for the reply to a request that is sent only at its end: call it "
                "after the transaction"
            )
        host = self._ready_host()
        waiter = secrets.token_hex(16)
        waiting = _Waiting(queue, timeout, self._clock.now_ms() + round(timeout * 1_000))
        request = {
            "QueueUrl": queue,
            "MessageBody": body,
            "MessageAttributes": to_attributes({**(attributes or {}), ADDRESS: f"{host}#{waiter}"}),
            "MessageGroupId": group_id,
            "MessageDeduplicationId": deduplication_id,
        }
        with self._lock:
            self._waiting[waiter] = waiting
        try:
            self._client.send_message(**{name: value for name, value in request.items() if value is not None})
        except BaseException:
            with self._lock:
                self._waiting.pop(waiter, None)
            raise
        self.counts.sent += 1
        return waiting

    def _ready_host(self) -> str:
        """The URL of the queue of replies, with a thread that receives from it."""
        if self._pid != os.getpid():
            self._begin()
        with self._lock:
            if self._is_closed:
                raise RequesterClosed("the requester was closed")
            if self._error is not None:
                raise RequesterClosed(f"replies can't be received any more: {self._error}") from self._error
            if self._host is None:
                hosts.sweep(self._client, self._clock.now_ms())
                self._host = hosts.make(self._client, self._clock.now_ms(), IDLE_SECONDS)
                self._signed_at = self._swept_at = time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                # Its name keeps a ManualClock from counting it among the threads that could move the clock.
                self._thread = threading.Thread(
                    target=self._receive_replies,
                    args=(self._host,),
                    name=f"{OWN_THREADS}replies",
                    daemon=True,
                )
                self._thread.start()
            return self._host

    # --- the thread

    def _receive_replies(self, host: str) -> None:
        """Hand replies out until `close`, or until the queue is gone."""
        while not self._is_closed:
            try:
                self._receive_once(host)
            except Exception as error:  # noqa: BLE001 # the waiters get it
                if self._is_closed:
                    return
                if is_missing(error):
                    # Another requester took this one for dead, since the process had been stopped: begin anew.
                    self._end_all(
                        RequesterClosed(f"{host}: the queue of replies was removed by others"), host
                    )
                    return
                if isinstance(error, StoreClosed) or not passes(error):
                    self._error = error
                    self._end_all(RequesterClosed(f"replies can't be received any more: {error}"), host)
                    return
                self.counts.failures += 1
                time.sleep(_PAUSE_SECONDS)

    def _receive_once(self, host: str) -> None:
        got = self._client.receive_message(
            QueueUrl=host,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=_POLL_SECONDS,
            MessageAttributeNames=["All"],
        ).get("Messages", [])
        for message in got:
            self._hand_out(message)
        if got:
            entries = [
                {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
                for place, message in enumerate(got)
            ]
            self._client.delete_message_batch(QueueUrl=host, Entries=entries)
        self._expire(self._clock.now_ms())
        now = time.monotonic()
        if now - self._signed_at > IDLE_SECONDS / 5:
            hosts.sign(self._client, host, self._clock.now_ms())
            self._signed_at = now
        if now - self._swept_at > _SWEEP_SECONDS:
            hosts.sweep(self._client, self._clock.now_ms())
            self._swept_at = now

    def _hand_out(self, message: dict[str, Any]) -> None:
        attributes = message.get("MessageAttributes", {})
        waiter = attributes.get(WAITER, {}).get("StringValue", "")
        with self._lock:
            waiting = self._waiting.pop(waiter, None)
            if waiting is not None:
                self.counts.answered += 1
            elif waiter in self._late:
                self.counts.late += 1
            elif not self._is_closed:
                self.counts.unknown += 1
        if waiting is not None:
            waiting.reply.set_result(Reply(message["Body"], python_values(attributes), message["MessageId"]))

    def _expire(self, now_ms: int) -> None:
        """End the waits whose time is over."""
        with self._lock:
            over = {name: one for name, one in self._waiting.items() if one.until_ms <= now_ms}
            for name in over:
                del self._waiting[name]
                self._late[name] = None
            for name in list(self._late)[: max(0, len(self._late) - _LATE_KEPT)]:
                del self._late[name]
            self.counts.timed_out += len(over)
        for waiting in over.values():
            waiting.reply.set_exception(
                ReplyTimeout(
                    f"no reply from {waiting.queue} within {waiting.timeout:g} s; the request may still be worked on"
                )
            )

    def _end_all(self, error: Exception, host: str) -> None:
        with self._lock:
            ended, self._waiting = self._waiting, {}
            if self._host == host:
                self._host = None
        for waiting in ended.values():
            waiting.reply.set_exception(error)

    # --- the end

    def close(self) -> None:
        """Fail the outstanding requests, and remove the queue of replies. A second time does nothing.

        Raises:
            StoreError: the file refuses; another requester removes the queue later.
        """
        if self._pid != os.getpid():
            self._begin()
        with self._lock:
            host, self._is_closed = self._host, True
            self._late |= dict.fromkeys(self._waiting)
        self._end_all(RequesterClosed("the requester was closed"), host or "")
        if host is not None:
            with contextlib.suppress(StoreClosed):
                # A message ends the long poll at once.
                with contextlib.suppress(Exception):
                    self._client.send_message(QueueUrl=host, MessageBody="close")
                if self._thread is not None:
                    self._thread.join()
                hosts.remove(self._client, host)
        with self._lock:
            self._host = None
