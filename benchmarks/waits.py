# SPDX-License-Identifier: Apache-2.0
"""The longest wait of one of 8 processes for its turn to write: our turns compared with SQLite's own busy handler."""

from contextlib import ExitStack
from pathlib import Path

from rows import Figure, median, milliseconds, percentile
from team import Outcome, Team

PROCESSES = 8
ROUNDS = 5
NAMES = ("client", "bare")


def figures(folder: Path, *, quick: bool) -> list[Figure]:
    return [
        figure for synchronous in ("FULL", "NORMAL") for figure in _level(folder, synchronous, quick=quick)
    ]


def _level(folder: Path, synchronous: str, *, quick: bool) -> list[Figure]:
    processes = 2 if quick else PROCESSES
    messages = processes * (20 if quick else 1000 if synchronous == "FULL" else 2500)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in NAMES}
    with ExitStack() as stack:
        teams = [
            stack.enter_context(
                Team(name, folder / f"{synchronous}-{name}.db", synchronous, processes=processes)
            )
            for name in NAMES
        ]
        for turn in range(1 if quick else ROUNDS):
            for team in teams:
                outcomes[team.name].append(
                    team.work(sends=True, batch=1, first=turn * messages, messages=messages, body_bytes=200)
                )
        version = teams[0].sqlite_version
    ours, bare = ([latency for outcome in outcomes[name] for latency in outcome.latencies] for name in NAMES)
    rates = {name: median([messages / outcome.seconds for outcome in outcomes[name]]) for name in NAMES}
    return [
        Figure(
            f"longest send among {processes} processes",
            milliseconds(max(ours)),
            "ms",
            synchronous,
            version,
            goal="under 30 ms" if synchronous == "FULL" else "",
            beside=f"busy handler: {milliseconds(max(bare)):,.0f} ms",
        ),
        Figure(
            f"p99.9 send among {processes} processes",
            milliseconds(percentile(ours, 0.999)),
            "ms",
            synchronous,
            version,
            beside=f"busy handler: {milliseconds(percentile(bare, 0.999)):,.1f} ms",
        ),
        Figure(
            f"sends/s of {processes} processes taking turns",
            rates["client"],
            "/s",
            synchronous,
            version,
            beside=f"busy handler, bare SQL: {rates['bare']:,.0f}/s",
        ),
    ]
