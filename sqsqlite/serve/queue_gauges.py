"""The metrics of queues for /metrics, measured as often as the server can afford, however often they are asked for."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqsqlite.operators.metrics import metrics_of_all
from sqsqlite.serve.metrics import queue_lines

if TYPE_CHECKING:
    from sqsqlite.store.store import Store

KEPT_SECONDS = 1.0
"""How long a measurement is given again, at least."""
KEPT_TIMES = 10
"""How many times as long as it took: scrapes get a tenth of a core at most."""


class QueueGauges:
    """The lines of all queues of all accounts.

    Args:
        elapsed: seconds on a clock that never goes back.
    """

    def __init__(self, store: "Store", elapsed: Callable[[], float]) -> None:
        self._store = store
        self._elapsed = elapsed
        self._text = ""
        self._kept_until: float | None = None
        self._measuring = asyncio.Lock()

    async def text(self) -> str:
        """The lines, measured now or a short time ago; those who ask meanwhile wait for the same measurement.

        Raises:
            StoreError: why the file can't be read. That is not kept.
        """
        async with self._measuring:
            began = self._elapsed()
            if self._kept_until is None or began >= self._kept_until:
                self._text = await asyncio.to_thread(self._measure)
                ended = self._elapsed()
                self._kept_until = ended + max(KEPT_SECONDS, KEPT_TIMES * (ended - began))
            return self._text

    def _measure(self) -> str:
        return "".join(f"{line}\n" for line in queue_lines(metrics_of_all(self._store)))
