# SPDX-License-Identifier: Apache-2.0
"""The rows of the comparison of servers: one for each workload and server, measured or not."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from rows import median


@dataclass(frozen=True)
class Load:
    """One server under one workload in one round. Latencies are of requests, as wrk has them."""

    messages_per_second: float
    p50_ms: float
    p99_ms: float
    failed: int


@dataclass(frozen=True)
class ServerRow:
    """One workload on one server. Numbers are medians over the rounds, and the slowest and fastest round.

    Attributes:
        durability: what an answered SendMessage guarantees.
        ours_to_it: median of the rounds' own ratios of messages a second.
        goal: the wanted ratio; empty without a goal.
        note: the reason for missing numbers, or a remark on them.
    """

    workload: str
    server: str
    version: str
    durability: str
    rounds: int
    messages_per_second: float | None = None
    slowest_per_second: float | None = None
    fastest_per_second: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    ours_to_it: float | None = None
    goal: str = ""
    note: str = ""

    HEADINGS = (
        "workload", "server", "version", "durability", "messages/s", "of rounds", "p50 ms", "p99 ms",
        "sqsqlite to it", "goal", "note",
    )  # fmt: skip

    def record(self) -> dict[str, object]:
        return dataclasses.asdict(self)

    def cells(self) -> list[str]:
        spread = (
            ""
            if self.slowest_per_second is None
            else f"{self.slowest_per_second:,.0f} to {self.fastest_per_second:,.0f}"
        )
        return [
            self.workload,
            self.server,
            self.version,
            self.durability,
            _number(self.messages_per_second, ",.0f"),
            spread,
            _number(self.p50_ms, ".2f"),
            _number(self.p99_ms, ".2f"),
            _number(self.ours_to_it, ".2f"),
            self.goal,
            self.note,
        ]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def row(
    workload: str,
    server: str,
    version: str,
    durability: str,
    loads: Sequence[Load],
    ours: Sequence[Load],
    goal: str,
    notes: Sequence[str],
) -> ServerRow:
    """The row of a server's rounds. `ours` are the same rounds of the server that it is compared with, if that ran."""
    rates = [load.messages_per_second for load in loads]
    failed = sum(load.failed for load in loads)
    ratios = [
        mine.messages_per_second / its.messages_per_second
        for mine, its in zip(ours, loads, strict=False)
        if its.messages_per_second
    ]
    return ServerRow(
        workload,
        server,
        version,
        durability,
        len(loads),
        median(rates),
        min(rates),
        max(rates),
        median([load.p50_ms for load in loads]),
        median([load.p99_ms for load in loads]),
        median(ratios) if ratios else None,
        goal,
        "; ".join([*notes, f"{failed:,} requests failed"] if failed else notes),
    )
