# SPDX-License-Identifier: Apache-2.0
"""One clock for a whole file: integer milliseconds since 1970 UTC, injected. It ignores steps of the wall clock.

At the first open after a boot the clock jumps to wall time. The jump (the machine was off, a virtual machine was
paused, the wall clock was set late) does not age a message: otherwise one boot could make a whole backlog expire. So
the file keeps the jumps, and a message expires when the clock has counted its retention without them.
"""

import json
import threading
import time
from pathlib import Path
from typing import NamedTuple, Protocol

from sqsqlite.contract.limits import SQS
from sqsqlite.store.interrupts import refuse_handlers
from sqsqlite.store.used_up import refuse_used_up

OWN_THREADS = "sqsqlite-"
"""How the names of this package's own threads begin."""

_TIME_NAMESPACE = Path("/proc/self/timens_offsets")


class Waitable(Protocol):
    """An event that a clock waits for: a `threading.Event` or anything like it."""

    def is_set(self) -> bool: ...
    def set(self) -> None: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Clock(Protocol):
    """The methods of a clock. Tests use `ManualClock`, everything else `FileClock`."""

    def now_ms(self) -> int:
        """The present instant, in milliseconds since 1970 UTC."""

    def wait(self, event: Waitable, until_ms: int) -> bool:
        """Sleep until `event` is set (True) or the clock shows `until_ms` (False)."""


class WallClock:
    """The machine's wall clock, for systems without a boot-time clock and before a file has been read."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wait(self, event: Waitable, until_ms: int) -> bool:
        return event.wait(max(0, until_ms - self.now_ms()) / 1000)


def boot_ns() -> int:
    """Nanoseconds since the machine's boot. Call it only where there is a boot-time clock.

    A container may have a boot-time clock of its own (a time namespace). The machine is the same, so the file's clock
    ignores that.
    """
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - _namespace_ns()


def _namespace_ns() -> int:
    """How far this process's boot-time clock is ahead of the machine's."""
    try:
        lines = _TIME_NAMESPACE.read_text().splitlines()
    except OSError as error:
        refuse_handlers(error)
        refuse_used_up(error)
        return 0  # another system, or Linux before 5.6
    for line in lines:
        name, seconds, nanoseconds = line.split()
        if name == "boottime":
            return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return 0


class FileClock:
    """The boot-time clock plus an offset from the file, so every process on the machine sees the same instant.

    A step of the wall clock while the machine is up (an operator, NTP) would end every lease early or freeze it.
    The boot-time clock has no steps and goes on during suspend. The first open after a boot sets a new offset
    (see `store/meta.py`).
    """

    def __init__(self, offset_ms: int) -> None:
        self._offset_ns = offset_ms * 1_000_000 - _namespace_ns()

    def now_ms(self) -> int:
        return (self._offset_ns + time.clock_gettime_ns(time.CLOCK_BOOTTIME)) // 1_000_000

    def wait(self, event: Waitable, until_ms: int) -> bool:
        return event.wait(max(0, until_ms - self.now_ms()) / 1000)

    def behind_ms(self) -> int:
        """How far the wall clock is ahead because it was set, or a virtual machine was paused, since the boot."""
        return time.time_ns() // 1_000_000 - self.now_ms()


class _Waiting(NamedTuple):
    """A thread that sleeps on a ManualClock."""

    event: Waitable
    until_ms: int
    thread: threading.Thread


class ManualClock:
    """A clock that stands still until a test moves it, and then wakes each thread whose instant it passes.

    If every thread of the program waits on the clock, no thread can move it. Then the clock moves itself to the first
    instant that a thread waits for. So a long poll in a test of one thread ends at once, with the clock at its end.

    Args:
        now_ms: the first instant, milliseconds since 1970 UTC.
        patience: seconds of real time that a wait may last although other threads could move the clock; then it
            raises TimeoutError. More than 0.

    Raises:
        ValueError: `patience` is not more than 0.
    """

    def __init__(self, now_ms: int = 1_800_000_000_000, *, patience: float = 60.0) -> None:
        if not patience > 0:
            raise ValueError(f"ManualClock(patience={patience!r}): seconds, more than 0, are allowed")
        self._now_ms = now_ms
        self._patience = patience
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, seconds: float = 0, *, ms: int = 0) -> None:
        """Move forward by `seconds` and `ms`, and wake the threads whose instant has come.

        Raises:
            ValueError: that would be backwards.
        """
        forward_ms = round(seconds * 1000) + ms
        if forward_ms < 0:
            raise ValueError(
                f"advance(seconds={seconds!r}, ms={ms!r}): 0 or more is allowed; time goes forward"
            )
        with self._changed:
            due = self._move_to(self._now_ms + forward_ms)
        for waiting in due:
            waiting.event.set()

    def _move_to(self, now_ms: int) -> "list[_Waiting]":
        """Show another instant. Returns the threads whose instant has come: the caller wakes them outside the lock."""
        self._now_ms = now_ms
        due = [waiting for waiting in self._waiting if waiting.until_ms <= now_ms]
        # From here on they do not count as waiting: `until_waiting` must not count a thread that is about to wake.
        for waiting in due:
            self._waiting.remove(waiting)
        return due

    def wait(self, event: Waitable, until_ms: int) -> bool:
        """Sleep until `event` is set (True) or the clock shows `until_ms` (False).

        Raises:
            TimeoutError: nothing moved the clock or set the event for `patience` seconds of real time. Not in our own
                threads: upkeep waits as long as its move task does.
        """
        waiting = _Waiting(event, until_ms, threading.current_thread())
        due: list[_Waiting] = []
        with self._changed:
            if self._now_ms >= until_ms:
                return event.is_set()
            self._waiting.append(waiting)
            self._changed.notify_all()
            if not event.is_set() and self._all_wait():
                due = self._move_to(min(one.until_ms for one in self._waiting))
        for one in due:
            one.event.set()
        try:
            if not event.wait(None if _is_ours(waiting.thread) else self._patience):
                raise TimeoutError(
                    f"nothing moved the ManualClock for {self._patience:g} s while {waiting.thread.name} waited on it "
                    f"for {until_ms - self._now_ms} ms: call advance() in another thread, or receive without a wait"
                )
        finally:
            with self._changed:
                if waiting in self._waiting:
                    self._waiting.remove(waiting)
        return self._now_ms < until_ms

    def _all_wait(self) -> bool:
        """Whether every thread that could move the clock waits on it. Our own threads never move it."""
        asleep = {waiting.thread for waiting in self._waiting if not waiting.event.is_set()}
        able = {
            thread
            for thread in threading.enumerate()
            # A thread that the interpreter did not start belongs to a tool: pytest-xdist has one in each worker.
            if not (_is_ours(thread) or thread.name.startswith("Dummy-"))
        }
        return able <= asleep and threading.current_thread() in able

    def until_waiting(self, count: int = 1, timeout: float = 10.0) -> None:
        """Block (in real time) until `count` threads wait on this clock, so a test knows that a long poll sleeps."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._waiting) >= count, timeout):
                raise TimeoutError(f"{len(self._waiting)} of {count} waiters after {timeout} s")


def _is_ours(thread: threading.Thread) -> bool:
    return thread.name.startswith(OWN_THREADS)


# The most jumps that the file keeps. A laptop that boots four times a day makes this many within the longest
# retention. Each costs a receive about 50 ns while it is within the queue's retention.
MOST_JUMPS = 64
_LONGEST_RETENTION_SECONDS = SQS.message_retention_period_seconds.high


class Jump(NamedTuple):
    """One jump: the clock showed `at_ms - length_ms` or less, and then `at_ms`.

    Attributes:
        at_ms: the instant at which it ended, in milliseconds since 1970 UTC.
        length_ms: more than 0.
    """

    at_ms: int
    length_ms: int


class Jumps(NamedTuple):
    """The jumps that may still matter to a message, newest first."""

    newest_first: tuple[Jump, ...] = ()

    def expired_at(self, retention_seconds: int, now_ms: int) -> int:
        """Messages sent at or before this instant are beyond the retention.

        Exact for messages sent before, between and after jumps. A message may seem to be sent within a jump, because
        the file knows the last instant before a jump only to the minute. It counts as sent at the end of the jump.
        """
        expired_at = now_ms - retention_seconds * 1000
        for at_ms, length_ms in self.newest_first:
            if expired_at >= at_ms:
                break
            expired_at -= length_ms
        return expired_at

    def expires_at(self, retention_seconds: int, sent_at: int) -> int:
        """The first instant at which a message sent at `sent_at` is beyond the retention, if no jump follows."""
        counted_from = sent_at
        for at_ms, length_ms in reversed(self.newest_first):
            if counted_from < at_ms:
                counted_from = min(counted_from + length_ms, at_ms)
        return counted_from + retention_seconds * 1000

    def steps(self, now_ms: int) -> list[tuple[int, int]]:
        """Pairs of `(above_ms, length_ms)` for SQL that computes `expired_at` of many queues.

        For a retention longer than `above_ms` milliseconds, `expired_at` is `length_ms` earlier.
        """
        found = []
        counted_ms = now_ms
        for at_ms, length_ms in self.newest_first:
            found.append((counted_ms - at_ms, length_ms))
            counted_ms -= length_ms
        return found

    def after(self, last_at: int, now_ms: int) -> "Jumps":
        """These jumps and one from `last_at` to `now_ms`, without the jumps before the oldest possible message.

        If there are too many, the two oldest become one: a message sent between them may stay longer than its
        retention, never shorter.
        """
        jumps = self.newest_first
        if jumps:
            last_at = max(last_at, jumps[0].at_ms)
        if now_ms > last_at:
            jumps = (Jump(now_ms, now_ms - last_at), *jumps)
        expired_at = now_ms - _LONGEST_RETENTION_SECONDS * 1000
        kept: list[Jump] = []
        for jump in jumps:
            if expired_at >= jump.at_ms:
                break
            expired_at -= jump.length_ms
            kept.append(jump)
        while len(kept) > MOST_JUMPS:
            oldest = kept.pop()
            kept[-1] = Jump(kept[-1].at_ms, kept[-1].length_ms + oldest.length_ms)
        return Jumps(tuple(kept))

    def to_bytes(self) -> bytes:
        """The bytes that the file stores."""
        return json.dumps(self.newest_first).encode()

    @staticmethod
    def from_bytes(stored: bytes | None) -> "Jumps":
        """Read what `to_bytes` made. Empty if nothing was stored."""
        return Jumps(tuple(Jump(*pair) for pair in json.loads(stored or b"[]")))
