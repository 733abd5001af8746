"""Metrics as Prometheus reads them: the server's own under `sqsqlite_`, the queues' under CloudWatch's names.

Source: Prometheus, "Exposition formats", version 0.0.4; developer guide, "Available CloudWatch metrics".
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, MutableSequence, Sequence

from sqsqlite.access.failures import EndpointError
from sqsqlite.contract.shapes import ACTIONS
from sqsqlite.errors import SQSError
from sqsqlite.operators.metrics import QueueMetrics
from sqsqlite.serve.counts import Counts
from sqsqlite.serve.served import Served

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0)
_OPERATIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_ACTIONS = sorted(ACTIONS)
_CODES = sorted(
    {"", *(kind.query_code for kind in (*SQSError.__subclasses__(), *EndpointError.__subclasses__()))}
)
_STATUSES = range(100, 600)
_ACTION_PLACES = {action: place for place, action in enumerate(_ACTIONS)}
_CODE_PLACES = {code: place for place, code in enumerate(_CODES)}

# Where each number stands among those of a process.
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


class Histogram:
    """Counts of values by upper bounds, and their sum.

    Args:
        numbers: where it keeps them: a number for each bound, one for what lies above, and the sum.
    """

    def __init__(
        self, bounds: Sequence[float], numbers: "MutableSequence[float] | memoryview[float]"
    ) -> None:
        self._bounds = bounds
        self._numbers = numbers

    def observe(self, value: float) -> None:
        """Count a value."""
        self._numbers[bisect_left(self._bounds, value)] += 1
        self._numbers[-1] += value

    @property
    def count(self) -> int:
        """How many values were counted."""
        return int(sum(self._numbers[:-1]))

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """Buckets, sum and count, as they stand."""
        *counts, sum_ = self._numbers
        total = 0
        comma = "," if labels else ""
        for bound, count in zip((*map(str, self._bounds), "+Inf"), counts, strict=True):
            total += int(count)
            yield f'{name}_bucket{{{labels}{comma}le="{bound}"}} {total}'
        braces = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{braces} {sum_}"
        yield f"{name}_count{braces} {total}"


def shared_counts(processes: int = 1) -> Counts:
    """What the metrics of some processes are kept in: made before they are forked."""
    return Counts(_SIZE, processes)


class Metrics:
    """What the server counts of itself, and what all its processes have counted.

    One event loop counts; `commits` is counted by the thread that writes.

    Args:
        counts: those that its processes share; None: it is the only one.
        place: the place of this process among them, from 0.
    """

    def __init__(self, counts: Counts | None = None, place: int = 0) -> None:
        self._all = counts or shared_counts()
        self._own = self._all.of(place)
        # The polls of the process that was here before have ended with it.
        self._own[_WAITING_POLLS] = 0
        self.commits = Histogram(_OPERATIONS, self._own[_COMMITS])
        self._requests = self._own[_REQUESTS]
        self._refused = self._own[_REFUSED]
        self._times = [Histogram(_SECONDS, self._own[place]) for place in _TIMES]

    def waits(self, change: int) -> None:
        """So many long polls more wait, or fewer."""
        self._own[_WAITING_POLLS] += change

    def served(self, served: Served) -> None:
        """A request was answered."""
        if not served.action:
            self._refused[served.status - _STATUSES.start] += 1
            return
        action = _ACTION_PLACES[served.action]
        self._requests[action * len(_CODES) + _CODE_PLACES[served.code]] += 1
        self._times[action].observe(served.seconds)

    def lines(self) -> Iterator[str]:
        """All of them, over all processes."""
        sums = self._all.sums()
        yield from _head(
            "sqsqlite_requests_total", "counter", "Requests answered; code is empty without an error."
        )
        named = ((action, code) for action in _ACTIONS for code in _CODES)
        for (action, code), count in zip(named, sums[_REQUESTS], strict=True):
            if count:
                yield f'sqsqlite_requests_total{{action="{action}",code="{code}"}} {int(count)}'
        yield from _head(
            "sqsqlite_refused_total", "counter", "Requests that were no action's, by HTTP status."
        )
        for status, count in zip(_STATUSES, sums[_REFUSED], strict=True):
            if count:
                yield f'sqsqlite_refused_total{{status="{status}"}} {int(count)}'
        yield from _head(
            "sqsqlite_request_seconds", "histogram", "Time to the answer, waits for messages included."
        )
        for action, place in zip(_ACTIONS, _TIMES, strict=True):
            histogram = Histogram(_SECONDS, sums[place])
            if histogram.count:
                yield from histogram.lines("sqsqlite_request_seconds", f'action="{action}"')
        yield from _head("sqsqlite_commit_operations", "histogram", "Operations that shared a commit.")
        yield from Histogram(_OPERATIONS, sums[_COMMITS]).lines("sqsqlite_commit_operations")
        yield from gauge(
            "sqsqlite_waiting_polls", "Long polls that wait for messages.", int(sums[_WAITING_POLLS])
        )


def gauge(name: str, help_text: str, value: float) -> list[str]:
    """One number that goes up and down."""
    return [*_head(name, "gauge", help_text), f"{name} {value}"]


def queue_lines(queues: Iterable[tuple[str, QueueMetrics]]) -> Iterator[str]:
    """CloudWatch's metrics of queues, each behind its account's id."""
    by_metric: dict[str, list[str]] = {}
    for account_id, queue in queues:
        # Neither an id nor a name has a character that would need escaping.
        labels = f'AccountId="{account_id}",QueueName="{queue.name}"'
        for name, value in queue.cloudwatch().items():
            by_metric.setdefault(name, []).append(f"{name}{{{labels}}} {value}")
    for name, lines in by_metric.items():
        yield from _head(name, "gauge", "As CloudWatch's metric of this name: see the page on operations.")
        yield from lines


def _head(name: str, kind: str, help_text: str) -> tuple[str, str]:
    return f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"
