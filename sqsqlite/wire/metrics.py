"""Metrics as Prometheus reads them: the server's own under `sqsqlite_`, the queues' under CloudWatch's names.

Source: Prometheus, "Exposition formats", version 0.0.4; developer guide, "Available CloudWatch metrics".
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sqsqlite.service.metrics import QueueMetrics
from sqsqlite.wire.served import Served

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0)
_OPERATIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Histogram:
    """Counts of values by upper bounds, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """Buckets, sum and count, as they stand."""
        counts, total = list(self._counts), 0
        comma = "," if labels else ""
        for bound, count in zip((*map(str, self._bounds), "+Inf"), counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels}{comma}le="{bound}"}} {total}'
        braces = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{braces} {self._sum}"
        yield f"{name}_count{braces} {total}"


class Metrics:
    """What the server counts of itself. One event loop counts; `commits` is counted by the thread that writes."""

    def __init__(self) -> None:
        self.commits = Histogram(_OPERATIONS)
        self._requests: Counter[tuple[str, str]] = Counter()
        self._refused: Counter[int] = Counter()
        self._seconds: dict[str, Histogram] = {}

    def served(self, served: Served) -> None:
        """A request was answered."""
        if not served.action:
            self._refused[served.status] += 1
            return
        self._requests[served.action, served.code] += 1
        histogram = self._seconds.get(served.action)
        if histogram is None:
            histogram = self._seconds[served.action] = Histogram(_SECONDS)
        histogram.observe(served.seconds)

    def lines(self) -> Iterator[str]:
        """All of them."""
        yield from _head(
            "sqsqlite_requests_total", "counter", "Requests answered; code is empty without an error."
        )
        for (action, code), count in sorted(self._requests.items()):
            yield f'sqsqlite_requests_total{{action="{action}",code="{code}"}} {count}'
        yield from _head(
            "sqsqlite_refused_total", "counter", "Requests that were no action's, by HTTP status."
        )
        for status, count in sorted(self._refused.items()):
            yield f'sqsqlite_refused_total{{status="{status}"}} {count}'
        yield from _head(
            "sqsqlite_request_seconds", "histogram", "Time to the answer, waits for messages included."
        )
        for action, histogram in sorted(self._seconds.items()):
            yield from histogram.lines("sqsqlite_request_seconds", f'action="{action}"')
        yield from _head("sqsqlite_commit_operations", "histogram", "Operations that shared a commit.")
        yield from self.commits.lines("sqsqlite_commit_operations")


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
