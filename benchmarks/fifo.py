# SPDX-License-Identifier: Apache-2.0
"""FIFO queues: sends and receives compared with a standard queue's, and work that must not grow with the groups."""

from contextlib import ExitStack
from pathlib import Path

from grouped_file import make_fifo
from receives import Compared, compare, lock_groups
from rows import Figure, median
from team import Outcome, Team

from sqsqlite.store.driver import dbapi

LEVELS = ("NORMAL", "FULL")
ROUNDS = 7
# messages in a round, by messages a call
MESSAGES = {1: 1600, 10: 6400}
STANDARD, FIFO, SINGLES = "client", "FIFO", "FIFO, a group each"
# the name of each in a figure, and its goal
SHAPES = {FIFO: ("100 groups", "at least 0.6"), SINGLES: ("a group each", "")}
LEVEL = "NORMAL"  # the level of the single receives: the cheaper commit hides less
QUEUE = "orders.fifo"


def figures(folder: Path, *, quick: bool) -> list[Figure]:
    throughput = [
        figure for synchronous in LEVELS for figure in _throughput(folder, synchronous, quick=quick)
    ]
    scale = 500 if quick else 1
    blocks = 2 if quick else 20
    return [
        *throughput,
        *_groups(folder, 100_000 // scale, blocks),
        _single_group(folder, 1_000_000 // scale, blocks),
        _locked_groups(folder, 10_000 // scale, blocks),
    ]


def _throughput(folder: Path, synchronous: str, *, quick: bool) -> list[Figure]:
    names = (STANDARD, FIFO, SINGLES)
    found: dict[tuple[str, bool, int], list[Outcome]] = {}
    first = 0
    with ExitStack() as stack:
        teams = [
            stack.enter_context(Team(name, folder / f"{synchronous}-{name}.db", synchronous))
            for name in names
        ]
        for turn in range(1 + (1 if quick else ROUNDS)):
            for batch in (1, 10):
                messages = 40 if quick else MESSAGES[batch]
                for team in teams[turn % len(teams) :] + teams[: turn % len(teams)]:
                    sent, received = _send_and_receive(team, batch, first, messages)
                    if turn:  # the first round warms up
                        found.setdefault((team.name, True, batch), []).append(sent)
                        found.setdefault((team.name, False, batch), []).append(received)
                first += messages
    return [
        _ratio(found[STANDARD, sends, batch], found[name, sends, batch], name, sends, batch, synchronous)
        for name in (FIFO, SINGLES)
        for batch in (1, 10)
        for sends in (True, False)
    ]


def _send_and_receive(team: Team, batch: int, first: int, messages: int) -> tuple[Outcome, Outcome]:
    sent, received = (
        team.work(sends=sends, batch=batch, first=first, messages=messages, body_bytes=200)
        for sends in (True, False)
    )
    if sorted(received.received) != list(range(first, first + messages)):
        raise AssertionError(f"{team.name}: not every message was received exactly once")
    return sent, received


def _ratio(
    standard: list[Outcome], fifo: list[Outcome], name: str, sends: bool, batch: int, synchronous: str
) -> Figure:
    """How many times as fast as the standard queue. Each round is compared with its own."""
    groups, goal = SHAPES[name]
    workload = ("send" if sends else "receive+delete") + ("" if batch == 1 else ", batches of ten")
    ratios = [one.seconds / other.seconds for one, other in zip(standard, fifo, strict=True)]
    rates = [
        median([batch * len(outcome.latencies) / outcome.seconds for outcome in outcomes])
        for outcomes in (fifo, standard)
    ]
    return Figure(
        f"FIFO {workload}, {groups}, to a standard queue's",
        median(ratios),
        "times",
        synchronous,
        dbapi.sqlite_version,
        goal,
        f"{rates[0]:,.0f}/s to {rates[1]:,.0f}/s",
    )


def _groups(folder: Path, groups: int, blocks: int) -> list[Figure]:
    many, few = folder / "many-groups.db", folder / "few-groups.db"
    make_fifo(many, groups, 10)
    make_fifo(few, 10, 1000)
    return [
        _figure(
            f"FIFO receive{what}, {groups:,} groups x 10 messages to 10 groups",
            compare(many, few, queue=QUEUE, synchronous=LEVEL, max_messages=max_messages, blocks=blocks),
            "at most 1.5",
        )
        for what, max_messages in (("", 1), (" of ten", 10))
    ]


def _single_group(folder: Path, messages: int, blocks: int) -> Figure:
    long, short = folder / "long-group.db", folder / "short-group.db"
    make_fifo(long, 1, messages)
    make_fifo(short, 1, 1000)
    return _figure(
        f"FIFO receive, a single group of {messages:,} messages to one of 1,000",
        compare(long, short, queue=QUEUE, synchronous=LEVEL, blocks=blocks),
        "at most 1.1",
    )


def _locked_groups(folder: Path, locked: int, blocks: int) -> Figure:
    behind, free = folder / "behind-locked.db", folder / "free.db"
    make_fifo(free, 100, 100)
    make_fifo(behind, 100, 100, ahead=locked)
    lock_groups(behind, QUEUE, locked)
    return _figure(
        f"FIFO receive, {locked:,} locked groups at the head to none",
        compare(behind, free, queue=QUEUE, synchronous=LEVEL, blocks=blocks),
        "at most 1.1",
    )


def _figure(name: str, found: Compared, goal: str) -> Figure:
    return Figure(name, found.ratio, "times", LEVEL, dbapi.sqlite_version, goal, found.beside)
