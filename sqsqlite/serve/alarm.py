# SPDX-License-Identifier: Apache-2.0
"""Wakes the event loop at instants of the file's clock, by one thread that waits for the next instant.

A test that moves a manual clock wakes the loop in the same way.
"""

import asyncio
import threading
from collections.abc import Callable

from sqsqlite.store.clock import Clock
from sqsqlite.store.interrupts import Signal

_FOREVER = 1 << 62


class Alarm:
    """Calls a function in the event loop when the clock reaches the instant that was set last.

    Args:
        ring: the function to call.
    """

    def __init__(self, clock: Clock, ring: Callable[[], object]) -> None:
        self._clock = clock
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._changed = Signal()
        self._at = _FOREVER
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="sqsqlite-alarm", daemon=True)
        self._thread.start()

    def set(self, at_ms: int) -> None:
        """Ring at this instant instead of an earlier setting. In milliseconds since 1970 UTC."""
        if at_ms != self._at:
            self._at = at_ms
            self._changed.set()

    def _run(self) -> None:
        while not self._closed:
            at_ms = self._at
            if at_ms == _FOREVER:
                self._changed.wait()
            else:
                self._clock.wait(self._changed, at_ms)
            self._changed.clear()
            if self._at == at_ms != _FOREVER and self._clock.now_ms() >= at_ms:
                self._at = _FOREVER
                if not self._closed:
                    self._loop.call_soon_threadsafe(self._ring)

    async def close(self) -> None:
        """Stop the thread."""
        self._closed = True
        self._changed.set()
        await self._loop.run_in_executor(None, self._thread.join)
