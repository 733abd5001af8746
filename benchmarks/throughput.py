# SPDX-License-Identifier: Apache-2.0
"""Messages a second: send, and receive with delete, through each door, compared with the baselines and the peers.

One cell is a body size, a level, a number of threads and processes, one message or ten a call. In a cell every
contestant does the same work on a file of its own: in each round all send an equal number of messages, then all
receive and delete them, and another contestant goes first. Each round must receive every message exactly once.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from peers.contestants import BASELINES, BY_NAME, OURS, PEERS
from rows import Row, median, milliseconds, percentile
from team import Outcome, Team

SEND, RECEIVE = "send", "receive+delete"
# Seconds between two contestants: background work of one must not run on the next one's time.
SETTLE = 0.05
SIZES = (200, 100_000)
LEVELS = ("NORMAL", "FULL")
ROUNDS = 5


@dataclass(frozen=True)
class Cell:
    """The conditions that all contestants of one comparison share."""

    names: tuple[str, ...]
    synchronous: str
    call: int
    body_bytes: int
    messages: int
    rounds: int
    threads: int = 1
    processes: int = 1


def rows(comparison: int, cell: Cell, folder: Path) -> list[Row]:
    """Run one cell, whose number is `comparison`. Each contestant gets a folder of its own in the empty `folder`."""
    sends: dict[str, list[Outcome]] = {name: [] for name in cell.names}
    receives: dict[str, list[Outcome]] = {name: [] for name in cell.names}
    with ExitStack() as stack:
        teams = []
        for name in cell.names:
            (folder / name).mkdir()
            path = folder / name / "queue.db"
            team = Team(name, path, cell.synchronous, processes=cell.processes, threads=cell.threads)
            teams.append(stack.enter_context(team))
        for turn in range(cell.rounds + 1):
            first = turn * cell.messages
            for team in teams[turn % len(teams) :] + teams[: turn % len(teams)]:
                time.sleep(SETTLE)
                sent = _work(team, cell, first, sends=True)
                time.sleep(SETTLE)
                received = _work(team, cell, first, sends=False)
                if sorted(received.received) != list(range(first, first + cell.messages)):
                    raise AssertionError(f"{team.name}: not every message was received exactly once")
                if turn:  # the first round warms up: pages, statements, branches
                    sends[team.name].append(sent)
                    receives[team.name].append(received)
        versions = {team.name: team.sqlite_version for team in teams}
    return [
        _row(comparison, cell, workload, name, outcomes, versions[name])
        for workload, outcomes in ((SEND, sends), (RECEIVE, receives))
        for name in cell.names
    ]


def _work(team: Team, cell: Cell, first: int, *, sends: bool) -> Outcome:
    return team.work(
        sends=sends, batch=cell.call, first=first, messages=cell.messages, body_bytes=cell.body_bytes
    )


def _row(
    comparison: int, cell: Cell, workload: str, name: str, outcomes: dict[str, list[Outcome]], version: str
) -> Row:
    latencies = [latency for outcome in outcomes[name] for latency in outcome.latencies]
    return Row(
        comparison=comparison,
        workload=workload,
        door=name,
        threads=cell.threads,
        processes=cell.processes,
        body_bytes=cell.body_bytes,
        call=cell.call,
        synchronous=cell.synchronous,
        sqlite_version=version,
        messages_per_second=median([cell.messages / outcome.seconds for outcome in outcomes[name]]),
        p50_ms=milliseconds(median(latencies)),
        p99_ms=milliseconds(percentile(latencies, 0.99)),
        longest_ms=milliseconds(max(latencies)),
        ratio_to_bare=_ratio(outcomes, name, "bare"),
        ratio_to_full=_ratio(outcomes, name, "full"),
        leaves_out=BY_NAME[name].leaves_out,
    )


def _ratio(outcomes: dict[str, list[Outcome]], name: str, baseline: str) -> float | None:
    """How many times as fast as the baseline. Each round is compared with its own."""
    if baseline not in outcomes:
        return None
    pairs = zip(outcomes[baseline], outcomes[name], strict=True)
    return median([base.seconds / own.seconds for base, own in pairs])


def _messages(synchronous: str, call: int, body_bytes: int) -> int:
    """About a quarter of a second's work for bare SQL. A multiple of 80: 8 members, ten a call."""
    if body_bytes > 10_000:
        return 400 if call == 1 else 800
    return {("NORMAL", 1): 4000, ("NORMAL", 10): 16_000, ("FULL", 1): 1600, ("FULL", 10): 8000}[
        synchronous, call
    ]


def cells(*, quick: bool) -> Iterator[Cell]:
    """All cells: our doors with the baselines in each combination, the peers with one thread."""
    doors = tuple(contestant.name for contestant in (*BASELINES, *OURS) if contestant.is_here())
    if quick:
        yield Cell(doors, "NORMAL", call=1, body_bytes=200, messages=80, rounds=1)
        yield Cell(doors, "FULL", call=10, body_bytes=200, messages=80, rounds=1, threads=2, processes=2)
        yield Cell(_with_peers("NORMAL"), "NORMAL", call=1, body_bytes=200, messages=40, rounds=1)
        return
    members = ((1, 1), (8, 1), (1, 4))
    for body_bytes, (threads, processes), synchronous, call in product(SIZES, members, LEVELS, (1, 10)):
        messages = _messages(synchronous, call, body_bytes)
        yield Cell(doors, synchronous, call, body_bytes, messages, ROUNDS, threads, processes)
    for body_bytes, synchronous, call in product(SIZES, LEVELS, (1, 10)):
        # Fewer messages, because some peers take a millisecond each.
        messages = 160 if body_bytes > 10_000 else 800
        yield Cell(_with_peers(synchronous), synchronous, call, body_bytes, messages, ROUNDS)


def _with_peers(synchronous: str) -> tuple[str, ...]:
    peers = [peer.name for peer in PEERS if synchronous in peer.levels and peer.is_here()]
    return ("bare", "full", "client", *peers)
