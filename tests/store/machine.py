# SPDX-License-Identifier: Apache-2.0
"""A machine whose clocks a test moves: the wall clock, the boot-time clock and the boot id."""

import time

import pytest

from sqsqlite.store import meta

HOUR = 3_600
DAY = 24 * HOUR


class Machine:
    """The clocks of a machine, in seconds. They run with the real clocks, plus what the test adds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._wall_ns = self._boot_ns = self._boots = 0
        wall, clock = time.time_ns, time.clock_gettime_ns
        monkeypatch.setattr(time, "time_ns", lambda: wall() + self._wall_ns)
        monkeypatch.setattr(time, "time", lambda: (wall() + self._wall_ns) / 1e9)
        monkeypatch.setattr(time, "clock_gettime_ns", lambda which: clock(which) + self._boot_ns)
        monkeypatch.setattr(meta, "boot_id", lambda: b"boot %d" % self._boots)

    def runs(self, seconds: float) -> None:
        """The machine is up for this time."""
        self.is_paused(seconds)
        self._boot_ns += round(seconds * 1e9)

    def is_paused(self, seconds: float) -> None:
        """A virtual machine is paused for this time; or the wall clock is set forward, or back."""
        self._wall_ns += round(seconds * 1e9)

    def boots(self, *, off: float = 0) -> None:
        """The machine is switched off, and on again after this time."""
        self.is_paused(off)
        self._boots += 1
        self._boot_ns = 0
