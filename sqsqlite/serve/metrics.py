# SPDX-License-Identifier: Apache-2.0
"""Metrics in Prometheus's text format: the server's own under `sqsqlite_`, the queues' under CloudWatch's names.

Source: Prometheus, "Exposition formats", version 0.0.4; developer guide, "Available CloudWatch metrics".
"""

import asyncio
import mmap
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from typing import TYPE_CHECKING

from sqsqlite.access.exchange import EndpointError
from sqsqlite.contract.shapes import ACTIONS
from sqsqlite.errors import SQSError
from sqsqlite.operators.metrics import QueueMetrics, metrics_of_all
from sqsqlite.serve.protocol import Served

if TYPE_CHECKING:
    from sqsqlite.store.store import Store

KEPT_SECONDS = 1.0
"""The shortest time for which a measurement is reused."""
KEPT_TIMES = 10
"""A measurement is reused for this many times the time it took, so scrapes use at most a tenth of a core."""
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

_BYTES = 8  # of one number in shared memory
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0)
_OPERATIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_ACTIONS = sorted(ACTIONS)
_CODES = sorted(
    {"", *(kind.query_code for kind in (*SQSError.__subclasses__(), *EndpointError.__subclasses__()))}
)
_STATUSES = range(100, 600)
_ACTION_PLACES = {action: place for place, action in enumerate(_ACTIONS)}
_CODE_PLACES = {code: place for place, code in enumerate(_CODES)}

# The position of each number in a row.
_WAITING_POLLS = 0
_COMMITS = slice(1, 1 + len(_OPERATIONS) + 2)
_REFUSED = slice(_COMMITS.stop, _COMMITS.stop + len(_STATUSES))
_REQUESTS = slice(_REFUSED.stop, _REFUSED.stop + len(_ACTIONS) * len(_CODES))
_TIMES = [
    slice(start, start + len(_SECONDS) + 2)
    for start in range(
        _REQUESTS.stop, _REQUESTS.stop + len(_ACTIONS) * (len(_SECONDS) + 2), len(_SECONDS) + 2
    )
]
_SIZE = _TIMES[-1].stop


class SharedCounts:
    """Shared memory with a row of numbers for each of several processes. All numbers start at 0.

    Make it before forking the processes. Only one process writes a row, so no lock is needed. The process that replaces
    a dead one goes on with its row, so sums of counters never decrease.

    Args:
        size: numbers in a row.
        places: rows, at least 1.
    """

    def __init__(self, size: int, places: int) -> None:
        self._size = size
        self._places = range(places)
        self._numbers = memoryview(mmap.mmap(-1, size * places * _BYTES)).cast("d")

    def of(self, place: int) -> "memoryview[float]":
        """The row of a process. `place` starts at 0."""
        return self._numbers[place * self._size : (place + 1) * self._size]

    def sums(self) -> list[float]:
        """Each number, summed over all processes."""
        return [sum(numbers) for numbers in zip(*(self.of(place) for place in self._places), strict=True)]


class Histogram:
    """Counts values by upper bounds, and adds them up.

    Args:
        bounds: upper bounds, in ascending order.
        numbers: the memory it writes to: a count for each bound, a count for larger values, the sum.
    """

    def __init__(
        self, bounds: Sequence[float], numbers: "MutableSequence[float] | memoryview[float]"
    ) -> None:
        self._bounds = bounds
        self._numbers = numbers

    def observe(self, value: float) -> None:
        """Count one value."""
        self._numbers[bisect_left(self._bounds, value)] += 1
        self._numbers[-1] += value

    @property
    def count(self) -> int:
        """How many values were counted."""
        return int(sum(self._numbers[:-1]))

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """The buckets, the sum and the count as Prometheus's lines."""
        *counts, sum_ = self._numbers
        total = 0
        comma = "," if labels else ""
        for bound, count in zip((*map(str, self._bounds), "+Inf"), counts, strict=True):
            total += int(count)
            yield f'{name}_bucket{{{labels}{comma}le="{bound}"}} {total}'
        braces = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{braces} {sum_}"
        yield f"{name}_count{braces} {total}"


def shared_counts(processes: int = 1) -> SharedCounts:
    """Memory for the metrics of all processes. Call it before forking them."""
    return SharedCounts(_SIZE, processes)


class Metrics:
    """The server's own metrics. Each process counts for itself; `lines` sums over all of them.

    Only the thread that writes counts `commits`. Only the event loop counts the rest.

    Args:
        counts: the memory that the processes share. None: this is the only process.
        place: the number of this process, from 0.
    """

    def __init__(self, counts: SharedCounts | None = None, place: int = 0) -> None:
        self._all = counts or shared_counts()
        self._own = self._all.of(place)
        # The long polls of the process that this one replaces ended with it.
        self._own[_WAITING_POLLS] = 0
        self.commits = Histogram(_OPERATIONS, self._own[_COMMITS])
        self._requests = self._own[_REQUESTS]
        self._refused = self._own[_REFUSED]
        self._times = [Histogram(_SECONDS, self._own[place]) for place in _TIMES]

    def waits(self, change: int) -> None:
        """Count long polls that begin (positive) or end (negative) their wait."""
        self._own[_WAITING_POLLS] += change

    def served(self, served: Served) -> None:
        """Count an answered request."""
        if not served.action:
            self._refused[served.status - _STATUSES.start] += 1
            return
        action = _ACTION_PLACES[served.action]
        self._requests[action * len(_CODES) + _CODE_PLACES[served.code]] += 1
        self._times[action].observe(served.seconds)

    def lines(self) -> Iterator[str]:
        """All of the server's metrics, summed over its processes."""
        sums = self._all.sums()
        yield from _head(
            "sqsqlite_requests_total", "counter", "Requests answered; code is empty without an error."
        )
        named = ((action, code) for action in _ACTIONS for code in _CODES)
        for (action, code), count in zip(named, sums[_REQUESTS], strict=True):
            if count:
                yield f'sqsqlite_requests_total{{action="{action}",code="{code}"}} {int(count)}'
        yield from _head(
            "sqsqlite_refused_total",
            "counter",
            "Requests refused before an action was known, by HTTP status.",
        )
        for status, count in zip(_STATUSES, sums[_REFUSED], strict=True):
            if count:
                yield f'sqsqlite_refused_total{{status="{status}"}} {int(count)}'
        yield from _head(
            "sqsqlite_request_seconds", "histogram", "Time to the answer, including waits for messages."
        )
        for action, place in zip(_ACTIONS, _TIMES, strict=True):
            histogram = Histogram(_SECONDS, sums[place])
            if histogram.count:
                yield from histogram.lines("sqsqlite_request_seconds", f'action="{action}"')
        yield from _head("sqsqlite_commit_operations", "histogram", "Operations in one commit.")
        yield from Histogram(_OPERATIONS, sums[_COMMITS]).lines("sqsqlite_commit_operations")
        yield from gauge(
            "sqsqlite_waiting_polls", "Long polls waiting for messages.", int(sums[_WAITING_POLLS])
        )


def gauge(name: str, help_text: str, value: float) -> list[str]:
    """The lines of one number that can rise and fall."""
    return [*_head(name, "gauge", help_text), f"{name} {value}"]


def queue_lines(queues: Iterable[tuple[str, QueueMetrics]]) -> Iterator[str]:
    """CloudWatch's metrics of queues.

    Args:
        queues: each queue with the id of its account.
    """
    by_metric: dict[str, list[str]] = {}
    for account_id, queue in queues:
        # Ids and names contain no character that needs escaping.
        labels = f'AccountId="{account_id}",QueueName="{queue.name}"'
        for name, value in queue.cloudwatch().items():
            by_metric.setdefault(name, []).append(f"{name}{{{labels}}} {value}")
    for name, lines in by_metric.items():
        yield from _head(name, "gauge", "The CloudWatch metric of this name. See the page on operations.")
        yield from lines


def _head(name: str, kind: str, help_text: str) -> tuple[str, str]:
    return f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"


class QueueGauges:
    """The metrics of all queues of all accounts, reused for a short time however often they are asked for.

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
        """The lines, measured now or a short time ago. Concurrent calls share one measurement.

        Raises:
            StoreError: the file can't be read. The next call tries again.
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
