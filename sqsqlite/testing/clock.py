# SPDX-License-Identifier: Apache-2.0
"""A clock for tests that runs like the machine's, and that a test can move forward."""

import threading
import time
from typing import NamedTuple

from sqsqlite.store.clock import OWN_THREADS, Waitable


class _Waiting(NamedTuple):
    """A thread that sleeps until its event is set or the clock shows an instant."""

    event: Waitable
    until_ms: int


class MovableClock:
    """A clock that runs, and that `advance` moves forward: an hour of visibility timeout passes in no time.

    Unlike `ManualClock` it does not stand still, so code under test that sleeps for a second sees a delay of a second
    end. It belongs to one process; `sqsqlite serve --test-mode` has one for clients in any process.

    Args:
        waits: False: a receive that would wait does not; the clock moves to the end of the wait at once. For tests of
            one thread, whose long polls of an empty queue would take their 20 s.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self._waits = waits
        # The monotonic clock ignores that the machine's own clock is set meanwhile.
        self._ahead_ns = time.time_ns() - time.monotonic_ns()
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._bell: threading.Thread | None = None

    def now_ms(self) -> int:
        """The present instant, in milliseconds since 1970 UTC."""
        return (time.monotonic_ns() + self._ahead_ns) // 1_000_000

    def advance(self, seconds: float = 0, *, ms: int = 0) -> None:
        """Move forward by `seconds` and `ms`, and wake the receives whose instant has come.

        Raises:
            ValueError: that would be backwards.
        """
        forward_ms = round(seconds * 1000) + ms
        if forward_ms < 0:
            raise ValueError(
                f"advance(seconds={seconds!r}, ms={ms!r}): 0 or more is allowed; time goes forward"
            )
        with self._changed:
            self._ahead_ns += forward_ms * 1_000_000
            self._changed.notify_all()

    def reset(self) -> None:
        """Show the machine's time again, which may be earlier: only while no open file goes by this clock."""
        with self._changed:
            self._ahead_ns = time.time_ns() - time.monotonic_ns()
            self._changed.notify_all()

    def wait(self, event: Waitable, until_ms: int) -> bool:
        """Sleep until `event` is set (True) or the clock shows `until_ms` (False). Then `event` is set too."""
        if not (self._waits or threading.current_thread().name.startswith(OWN_THREADS)):
            if not event.is_set():
                self.advance(ms=max(0, until_ms - self.now_ms()))
            return event.is_set()
        waiting = _Waiting(event, until_ms)
        with self._changed:
            if self.now_ms() >= until_ms:
                return event.is_set()
            self._waiting.append(waiting)
            self._changed.notify_all()
            if self._bell is None or not self._bell.is_alive():
                self._bell = threading.Thread(target=self._ring, name=f"{OWN_THREADS}clock", daemon=True)
                self._bell.start()
        try:
            event.wait()
        finally:
            with self._changed:
                self._waiting = [one for one in self._waiting if one is not waiting]
        return self.now_ms() < until_ms

    def _ring(self) -> None:
        """Set the event of each wait whose instant has come. The thread ends when nothing waits any more."""
        with self._changed:
            while self._waiting:
                now_ms = self.now_ms()
                due = [one for one in self._waiting if one.until_ms <= now_ms]
                for one in due:
                    self._waiting.remove(one)
                    one.event.set()
                if self._waiting:
                    next_ms = min(one.until_ms for one in self._waiting)
                    self._changed.wait(min(max(0, next_ms - now_ms) / 1000, threading.TIMEOUT_MAX))
            self._bell = None
