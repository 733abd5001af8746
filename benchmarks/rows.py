# SPDX-License-Identifier: Apache-2.0
"""The results of a benchmark: rows of a throughput table, or single figures with their goals."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One workload through one door. Rates are medians over rounds, latencies are those of all rounds together.

    Attributes:
        comparison: number of the cell: rows of one cell were measured by turns.
        call: messages in one call: 1 or 10; latencies are of calls (of a receive and a delete together).
        ratio_to_bare, ratio_to_full: medians of the rounds' own ratios; None where the baseline did not run.
    """

    comparison: int
    workload: str
    door: str
    threads: int
    processes: int
    body_bytes: int
    call: int
    synchronous: str
    sqlite_version: str
    messages_per_second: float
    p50_ms: float
    p99_ms: float
    longest_ms: float
    ratio_to_bare: float | None = None
    ratio_to_full: float | None = None
    leaves_out: str = ""

    HEADINGS = (
        "workload", "door", "threads", "processes", "body bytes", "synchronous", "SQLite", "messages/s", "p50 ms",
        "p99 ms", "longest ms", "to bare", "to full",
    )  # fmt: skip

    @property
    def file(self) -> str:
        """The name of the CSV file: send or receive_delete."""
        return self.workload.replace("+", "_")

    def record(self) -> dict[str, object]:
        return {
            "workload": self.workload,
            "door": self.door,
            "threads": self.threads,
            "processes": self.processes,
            "body_bytes": self.body_bytes,
            "messages_per_call": self.call,
            "synchronous": self.synchronous,
            "sqlite_version": self.sqlite_version,
            "messages_per_second": self.messages_per_second,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "longest_ms": self.longest_ms,
            "ratio_to_bare": self.ratio_to_bare,
            "ratio_to_full": self.ratio_to_full,
            "comparison": self.comparison,
        }

    def cells(self) -> list[str]:
        return [
            self.workload if self.call == 1 else f"{self.workload}, batches of ten",
            self.door,
            str(self.threads),
            str(self.processes),
            f"{self.body_bytes:,}",
            self.synchronous,
            self.sqlite_version,
            f"{self.messages_per_second:,.0f}",
            f"{self.p50_ms:.3f}",
            f"{self.p99_ms:.3f}",
            f"{self.longest_ms:.1f}",
            "" if self.ratio_to_bare is None else f"{self.ratio_to_bare:.2f}",
            "" if self.ratio_to_full is None else f"{self.ratio_to_full:.2f}",
        ]


@dataclass(frozen=True)
class Figure:
    """One number.

    Attributes:
        goal: in words with the unit; empty without a goal.
        beside: a number to compare it with: a baseline's, or the number of calls.
    """

    name: str
    value: float
    unit: str
    synchronous: str
    sqlite_version: str
    goal: str = ""
    beside: str = ""

    HEADINGS = ("what", "measured", "goal", "compared with", "synchronous", "SQLite")

    def record(self) -> dict[str, object]:
        return {
            "what": self.name,
            "value": self.value,
            "unit": self.unit,
            "goal": self.goal,
            "compared_with": self.beside,
            "synchronous": self.synchronous,
            "sqlite_version": self.sqlite_version,
        }

    def cells(self) -> list[str]:
        number = f"{self.value:,.0f}" if abs(self.value) >= 1000 else f"{self.value:.3g}"
        return [
            self.name,
            f"{number} {self.unit}".strip(),
            self.goal,
            self.beside,
            self.synchronous,
            self.sqlite_version,
        ]


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie: one of them, not between two."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def milliseconds(seconds: float) -> float:
    return seconds * 1000
