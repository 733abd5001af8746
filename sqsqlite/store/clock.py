"""One clock for a whole file: integer milliseconds since 1970 UTC, injected, and deaf to steps of the wall clock."""

import threading
import time
from pathlib import Path
from typing import Protocol

_TIME_NAMESPACE = Path("/proc/self/timens_offsets")


class Event(Protocol):
    """What a clock waits for: a `threading.Event` or anything like it."""

    def is_set(self) -> bool: ...
    def set(self) -> None: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Clock(Protocol):
    """What the store asks of a clock. Tests bring `ManualClock`; everything else runs on `FileClock`."""

    def now_ms(self) -> int:
        """The present instant, in milliseconds since 1970 UTC."""

    def wait(self, event: Event, until_ms: int) -> bool:
        """Sleep until `event` is set (True) or the clock shows `until_ms` (False)."""


class WallClock:
    """The machine's wall clock: for systems without a boot-time clock, and before a file was read."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wait(self, event: Event, until_ms: int) -> bool:
        return event.wait(max(0, until_ms - self.now_ms()) / 1000)


def boot_ns() -> int:
    """Nanoseconds since the machine's boot; only where there is a boot-time clock.

    A container may have a boot-time clock of its own (a time namespace). The machine is the same, so the file's clock
    counts without that.
    """
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - _namespace_ns()


def _namespace_ns() -> int:
    """By how much this process's boot-time clock is ahead of the machine's."""
    try:
        lines = _TIME_NAMESPACE.read_text().splitlines()
    except OSError:  # no Linux, or one before 5.6
        return 0
    for line in lines:
        name, seconds, nanoseconds = line.split()
        if name == "boottime":
            return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return 0


class FileClock:
    """Boot-time clock plus an offset that stands in the file, so every process on the machine shows the same instant.

    A step of the wall clock while the machine is up (an operator, NTP) would free every lease early or freeze it;
    the boot-time clock knows no steps and goes on through suspend. The offset is set anew at the first open after a
    boot (see `store/meta.py`).
    """

    def __init__(self, offset_ms: int) -> None:
        self._offset_ns = offset_ms * 1_000_000 - _namespace_ns()

    def now_ms(self) -> int:
        return (self._offset_ns + time.clock_gettime_ns(time.CLOCK_BOOTTIME)) // 1_000_000

    def wait(self, event: Event, until_ms: int) -> bool:
        return event.wait(max(0, until_ms - self.now_ms()) / 1000)

    def behind_ms(self) -> int:
        """By how much the wall clock is ahead: it was set, or a virtual machine was paused, since the boot."""
        return time.time_ns() // 1_000_000 - self.now_ms()


class ManualClock:
    """A clock that stands still until a test moves it; it wakes whoever waits for an instant that it passes.

    Args:
        now_ms: the first instant, milliseconds since 1970 UTC.
    """

    def __init__(self, now_ms: int = 1_800_000_000_000) -> None:
        self._now_ms = now_ms
        self._changed = threading.Condition()
        self._waiting: list[tuple[Event, int]] = []

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, seconds: float = 0, *, ms: int = 0) -> None:
        """Move forward by `seconds` and `ms`, and wake those whose instant has come.

        Raises:
            ValueError: that would be backwards.
        """
        forward_ms = round(seconds * 1000) + ms
        if forward_ms < 0:
            raise ValueError(
                f"advance(seconds={seconds!r}, ms={ms!r}): 0 or more is allowed; time goes forward"
            )
        with self._changed:
            self._now_ms += forward_ms
            due = [waiting for waiting in self._waiting if waiting[1] <= self._now_ms]
            # They wait no more from here on: `until_waiting` must not take one for asleep that has yet to wake.
            for waiting in due:
                self._waiting.remove(waiting)
        for event, _ in due:
            event.set()

    def wait(self, event: Event, until_ms: int) -> bool:
        with self._changed:
            if self._now_ms >= until_ms:
                return event.is_set()
            self._waiting.append((event, until_ms))
            self._changed.notify_all()
        try:
            event.wait()
        finally:
            with self._changed:
                if (event, until_ms) in self._waiting:
                    self._waiting.remove((event, until_ms))
        return self._now_ms < until_ms

    def until_waiting(self, count: int = 1, timeout: float = 10.0) -> None:
        """Block (real time) until `count` threads wait on this clock: how a test knows that a long poll sleeps."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._waiting) >= count, timeout):
                raise TimeoutError(f"{len(self._waiting)} of {count} waiters after {timeout} s")
