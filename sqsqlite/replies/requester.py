# SPDX-License-Identifier: Apache-2.0
"""The side that asks: any number of waiters, one queue of replies, one thread that receives them."""

import os
import secrets
import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Self

from sqsqlite.api.client import Client
from sqsqlite.api.connect import SQS
from sqsqlite.api.message import to_attributes
from sqsqlite.api.queue import Queue
from sqsqlite.errors import StoreError
from sqsqlite.replies.addresses import ADDRESS, Reply, RequesterClosed, client_of
from sqsqlite.replies.receiver import Receiver, broken
from sqsqlite.replies.waiters import Counts, Tally, Waiting
from sqsqlite.store.clock import Clock, Waitable
from sqsqlite.store.store import Store

IDLE_SECONDS = range(15, 86_401)
"""What `idle_seconds` may be. Below, a slow receive could keep a sign of life from coming in time."""


class _SteadyClock:
    """Wall time from the start on, whatever becomes of the machine's clock, for clients that have no file."""

    def __init__(self) -> None:
        self._ahead_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        return (time.monotonic_ns() + self._ahead_ns) // 1_000_000

    def wait(self, event: Waitable, until_ms: int) -> bool:
        return event.wait(max(0, until_ms - self.now_ms()) / 1_000)


class Requester:
    """Sends requests and gives their replies back. Any number of threads may use it. A context manager.

    It makes a queue for replies at the first request, and `close` removes it. If the process is killed, another
    requester removes the queue. A forked child has a queue of its own for its own requests; over a boto3 client of an
    endpoint, make another client and requester in the child, as boto3 asks for.

    Args:
        sqs_or_client: an open file, or a client with boto3's methods. It stays the caller's to close.
        idle_seconds: 15 to 86,400: how long after the last sign of life of this process others may remove its queue
            of replies. The process renews the sign five times in that time.

    Raises:
        ValueError: `idle_seconds` is not allowed.
    """

    def __init__(self, sqs_or_client: Any, *, idle_seconds: int = 300) -> None:
        if idle_seconds not in IDLE_SECONDS:
            raise ValueError(
                f"idle_seconds={idle_seconds!r}: whole seconds from {IDLE_SECONDS[0]} to {IDLE_SECONDS[-1]:,} are "
                "allowed"
            )
        self._client = client_of(sqs_or_client)
        self._store: Store | None = (
            sqs_or_client._store if isinstance(sqs_or_client, SQS | Client) else None  # noqa: SLF001
        )
        self._clock: Clock = _SteadyClock() if self._store is None else self._store.clock
        self._idle_seconds = int(idle_seconds)
        self._urls: dict[str, str] = {}
        self._is_closed = False
        self._begin()
        _requesters.add(self)

    def _begin(self) -> None:
        """The state of one process: a forked child begins anew, since the threads stayed in the parent."""
        self._opening = threading.Lock()
        self._receiver: Receiver | None = None
        self._tally = Tally()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def counts(self) -> Counts:
        """What this requester has counted so far, in this process."""
        return self._tally.copy()

    def call(
        self,
        queue: Queue | str,
        body: str,
        timeout: float = 30.0,
        *,
        attributes: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        deduplication_id: str | None = None,
    ) -> Reply:
        """Send a request and wait for its reply.

        Args:
            queue: what a responder receives from: a `Queue`, a name or a URL.
            body: the request.
            timeout: seconds to wait, more than 0.
            attributes: as `Queue.send` takes them, at most 9.
            group_id: for a FIFO queue, or a fair one.
            deduplication_id: for a FIFO queue. Default: one of its own for each call, since only the first of equal
                requests would be answered.

        Raises:
            ReplyTimeout: no reply came in time.
            RequesterClosed: `close` was called, or replies can't be received any more; its cause is the reason.
            StoreError: the call stands in a transaction, so the request would be sent only after the wait; or in the
                callback of a future, which keeps the thread that receives the reply.
            QueueDoesNotExist, InvalidMessageContents, InvalidParameterValue: as for any message.
        """
        if self._receiver is not None and self._receiver.thread is threading.current_thread():
            raise StoreError(
                "call() in the callback of a future waits for a reply that only this thread could receive: use "
                "submit(), or call it in another thread"
            )
        receiver, name, waiting = self._ask(
            queue, body, timeout, attributes, group_id, deduplication_id, is_timed=False
        )
        try:
            while not waiting.is_over.is_set() and self._clock.now_ms() < waiting.until_ms:
                self._clock.wait(waiting.is_over, waiting.until_ms)
        except BaseException:  # Ctrl-C, or a ManualClock that nobody moves
            receiver.waiters.forget(name, is_sent=True)
            raise
        # If a reply came at the last moment, it counts.
        receiver.waiters.expire()
        return waiting.reply.result()

    def submit(
        self,
        queue: Queue | str,
        body: str,
        timeout: float = 30.0,
        *,
        attributes: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        deduplication_id: str | None = None,
    ) -> "Future[Reply]":
        """Send a request, and return at once: its reply, or what `call` would raise, comes by the future.

        The future can't be cancelled. Its callbacks run on the threads that receive replies for all.

        Raises: what `call` raises before it waits.
        """
        return self._ask(queue, body, timeout, attributes, group_id, deduplication_id, is_timed=True)[2].reply

    def _ask(
        self,
        queue: Queue | str,
        body: str,
        timeout: float,
        attributes: Mapping[str, Any] | None,
        group_id: str | None,
        deduplication_id: str | None,
        *,
        is_timed: bool,
    ) -> tuple[Receiver, str, Waiting]:
        if not 0 < timeout <= threading.TIMEOUT_MAX:
            raise ValueError(f"timeout={timeout!r}: seconds, more than 0, are allowed")
        self._refuse_transaction(
            "a request is sent only at the end of the transaction, and the reply comes later"
        )
        url = self._url_of(queue)
        receiver = self._ready()
        name = secrets.token_hex(16)
        if deduplication_id is None and url.endswith(".fifo"):
            deduplication_id = name
        request = {
            "QueueUrl": url,
            "MessageBody": body,
            "MessageAttributes": to_attributes({**(attributes or {}), ADDRESS: f"{receiver.url}#{name}"}),
            "MessageGroupId": group_id,
            "MessageDeduplicationId": deduplication_id,
        }
        named = queue.name if isinstance(queue, Queue) else queue
        waiting = Waiting(named, timeout, self._clock.now_ms() + round(timeout * 1_000))
        receiver.waiters.add(name, waiting, is_timed=is_timed)
        try:
            self._client.send_message(**{key: value for key, value in request.items() if value is not None})
        except BaseException:
            receiver.waiters.forget(name, is_sent=False)
            raise
        return receiver, name, waiting

    def _url_of(self, queue: Queue | str) -> str:
        """What the client takes for the queue. boto3 at Amazon takes no names, so they are looked up once."""
        if isinstance(queue, Queue):
            queue = queue.name
        if self._store is not None or "/" in queue or ":" in queue:
            return queue
        if queue not in self._urls:
            self._urls[queue] = self._client.get_queue_url(QueueName=queue)["QueueUrl"]
        return self._urls[queue]

    def _ready(self) -> Receiver:
        """The receiver of replies: a new one if there is none, or if the last one's queue is gone."""
        with self._opening:
            if self._is_closed:
                raise RequesterClosed("the requester was closed")
            found = self._receiver
            if found is not None and found.error is not None:
                raise broken(found.error)
            if found is None or found.waiters.has_ended:
                found = Receiver(self._client, self._clock, self._tally, self._idle_seconds)
                self._receiver = found
            return found

    def _refuse_transaction(self, why: str) -> None:
        if self._store is not None and self._store.transaction_of_thread is not None:
            raise StoreError(f"inside `with sqs.transaction()` {why}: do it after the transaction")

    def close(self) -> None:
        """Fail the outstanding requests, and remove the queue of replies. A second time does nothing.

        Raises:
            StoreError, or an error of the client: the queue could not be removed. Close again, or another requester
                removes it later.
        """
        with self._opening:
            self._is_closed = True
            receiver = self._receiver
        if receiver is not None:
            self._refuse_transaction("the queue of replies can't be removed")
            receiver.stop()
            self._receiver = None


_requesters: "weakref.WeakSet[Requester]" = weakref.WeakSet()


def _begin_in_child() -> None:
    for requester in list(_requesters):
        requester._begin()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
