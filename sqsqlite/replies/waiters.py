# SPDX-License-Identifier: Apache-2.0
"""The requests whose replies are awaited, and what became of the others."""

import heapq
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from sqsqlite.replies.addresses import WAITER, Reply, ReplyTimeout, RequesterClosed, python_values
from sqsqlite.store.clock import OWN_THREADS, Clock

# Of so many requests that are over a requester knows what a reply to them is: late, or repeated. At 100 bytes each.
_REMEMBERED = 10_000
# So many deadlines of requests that were answered are kept until it pays to drop them.
_STALE = 1_000


@dataclass
class Counts:
    """What a requester counted: `sent` = `answered` + `timed_out` + `failed` + the waiting ones.

    Attributes:
        sent: requests.
        answered: requests whose reply a waiter got.
        timed_out: requests whose reply did not come in time.
        failed: requests whose reply could not be awaited any longer: `close`, a lost queue of replies, Ctrl-C.
        late: replies to requests that had timed out or failed.
        repeated: further replies to requests that had their reply, such as one of a killed responder's successor.
        unknown: replies to no request that this requester knows.
        retries: receives that failed, by throttling or a broken connection, and were repeated.
    """

    sent: int = 0
    answered: int = 0
    timed_out: int = 0
    failed: int = 0
    late: int = 0
    repeated: int = 0
    unknown: int = 0
    retries: int = 0


class Tally:
    """Counts that several threads add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counts()

    def add(self, name: str, count: int = 1) -> None:
        with self._lock:
            setattr(self._counts, name, getattr(self._counts, name) + count)

    def copy(self) -> Counts:
        with self._lock:
            return replace(self._counts)


class Waiting:
    """A request whose reply is awaited. `is_over` is set when `reply` has a result or an error."""

    def __init__(self, queue: str, timeout: float, until_ms: int) -> None:
        self.queue = queue
        self.timeout = timeout
        self.until_ms = until_ms
        self.is_over = threading.Event()
        self.reply: Future[Reply] = Future()
        self.reply.set_running_or_notify_cancel()  # it can't be cancelled: the request is on its way
        self.reply.add_done_callback(lambda _: self.is_over.set())


class Waiters:
    """Who waits for replies by one queue of replies. For any number of threads.

    Args:
        trouble: gives what keeps replies from arriving just now, for the text of a timeout, or an empty text.
    """

    def __init__(self, clock: Clock, tally: Tally, trouble: Callable[[], str]) -> None:
        self._clock = clock
        self._tally = tally
        self._trouble = trouble
        self._lock = threading.Lock()
        self._waiting: dict[str, Waiting] = {}
        self._deadlines: list[
            tuple[int, str]
        ] = []  # a heap; names that wait no more are dropped as they come up
        self._past: OrderedDict[str, str] = OrderedDict()  # what a reply to a request that is over counts as
        self._refuse: Callable[[], RequesterClosed] | None = None
        self._earlier = threading.Event()
        self._timer: threading.Thread | None = None

    def add(self, name: str, waiting: Waiting, *, is_timed: bool) -> None:
        """Expect a reply.

        Args:
            is_timed: a thread of ours ends the wait in time; otherwise the caller does, by `expire`.

        Raises:
            RequesterClosed: `end` was called.
        """
        with self._lock:
            if self._refuse is not None:
                raise self._refuse()
            self._waiting[name] = waiting
            heapq.heappush(self._deadlines, (waiting.until_ms, name))
            if len(self._deadlines) > 2 * len(self._waiting) + _STALE:
                self._deadlines = [(one.until_ms, other) for other, one in self._waiting.items()]
                heapq.heapify(self._deadlines)
            is_first = self._deadlines[0][1] == name
            self._tally.add("sent")
            if is_timed and (self._timer is None or not self._timer.is_alive()):
                self._timer = threading.Thread(
                    target=self._expire_in_time, name=f"{OWN_THREADS}replies", daemon=True
                )
                self._timer.start()
        if is_first:
            self._earlier.set()

    def forget(self, name: str, *, is_sent: bool) -> None:
        """Expect no reply any more: the send failed, or the caller was interrupted."""
        with self._lock:
            if self._waiting.pop(name, None) is not None:
                self._remember(name, "late")
                if is_sent:
                    self._tally.add("failed")
                else:
                    self._tally.add("sent", -1)

    def hand_out(self, message: Mapping[str, Any]) -> None:
        """Give a reply to who waits for it, or count it as another kind.

        Args:
            message: as boto3 receives it.
        """
        attributes = message.get("MessageAttributes", {})
        name = attributes.get(WAITER, {}).get("StringValue", "")
        with self._lock:
            waiting = self._waiting.pop(name, None)
            kind = "answered" if waiting is not None else self._past.get(name, "unknown")
            self._tally.add(kind)
            if kind != "unknown":
                self._remember(name, "repeated")
        if waiting is not None:
            waiting.reply.set_result(Reply(message["Body"], python_values(attributes), message["MessageId"]))

    def expire(self) -> None:
        """End the waits whose time is over."""
        over = []
        now_ms = self._clock.now_ms()
        with self._lock:
            while self._deadlines and self._deadlines[0][0] <= now_ms:
                _, name = heapq.heappop(self._deadlines)
                waiting = self._waiting.pop(name, None)
                if waiting is not None:
                    over.append(waiting)
                    self._remember(name, "late")
            self._tally.add("timed_out", len(over))
        for waiting in over:
            waiting.reply.set_exception(
                ReplyTimeout(
                    f"no reply from {waiting.queue} within {waiting.timeout:g} s; the request may still be worked "
                    f"on, or wait in its queue{self._trouble()}"
                )
            )

    def end(self, make_error: Callable[[], RequesterClosed]) -> None:
        """Fail all waits, and those that would follow. Only the first time counts.

        Args:
            make_error: makes an error for each of them: one that several threads raise would collect their frames.
        """
        with self._lock:
            self._refuse = self._refuse or make_error
            ended, self._waiting = self._waiting, {}
            self._deadlines = []
            for name in ended:
                self._remember(name, "late")
            self._tally.add("failed", len(ended))
        self._earlier.set()
        for waiting in ended.values():
            waiting.reply.set_exception(make_error())

    @property
    def has_ended(self) -> bool:
        return self._refuse is not None

    def _remember(self, name: str, kind: str) -> None:
        """Keep in mind what a reply that is still to come counts as. The caller holds the lock."""
        self._past[name] = kind
        self._past.move_to_end(name)
        if len(self._past) > _REMEMBERED:
            self._past.popitem(last=False)

    def _expire_in_time(self) -> None:
        """End each wait at its instant, until none is left."""
        while True:
            self._earlier.clear()
            with self._lock:
                while self._deadlines and self._deadlines[0][1] not in self._waiting:
                    heapq.heappop(self._deadlines)
                if not self._deadlines:
                    self._timer = None
                    return
                until_ms = self._deadlines[0][0]
            self._clock.wait(self._earlier, until_ms)
            self.expire()
