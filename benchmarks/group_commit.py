# SPDX-License-Identifier: Apache-2.0
"""Group commit at FULL: the gain of 8 threads, and its cost for one thread."""

from contextlib import ExitStack
from pathlib import Path

from rows import Figure, median, milliseconds
from team import Outcome, Team

THREADS = 8
ROUNDS = 7


def figures(folder: Path, *, quick: bool) -> list[Figure]:
    messages = 80 if quick else 2400
    kinds = {
        "one": ("client", 1),
        "many": ("client", THREADS),
        "ungrouped": ("client without group commit", 1),
    }
    outcomes: dict[str, list[Outcome]] = {kind: [] for kind in kinds}
    with ExitStack() as stack:
        teams = {
            kind: stack.enter_context(Team(name, folder / f"{kind}.db", "FULL", threads=threads))
            for kind, (name, threads) in kinds.items()
        }
        for turn in range(1 if quick else ROUNDS):
            for kind, team in teams.items():
                first = turn * messages
                sent = team.work(sends=True, batch=1, first=first, messages=messages, body_bytes=200)
                outcomes[kind].append(sent)
                received = team.work(sends=False, batch=1, first=first, messages=messages, body_bytes=200)
                if sorted(received.received) != list(range(first, first + messages)):
                    raise AssertionError(f"{kind}: not every message was received exactly once")
        version = teams["one"].sqlite_version
    rate = {
        kind: median([messages / outcome.seconds for outcome in found]) for kind, found in outcomes.items()
    }
    gains = [one.seconds / many.seconds for one, many in zip(outcomes["one"], outcomes["many"], strict=True)]
    grouped, alone = (
        milliseconds(median([latency for outcome in outcomes[kind] for latency in outcome.latencies]))
        for kind in ("one", "ungrouped")
    )
    return [
        Figure(
            f"sends/s of {THREADS} threads to those of one",
            median(gains),
            "times",
            "FULL",
            version,
            goal="at least 2",
            beside=f"{rate['many']:,.0f}/s to {rate['one']:,.0f}/s",
        ),
        Figure(
            "one thread's median send, with group commit to without",
            grouped / alone,
            "times",
            "FULL",
            version,
            goal="at most 1.1",
            beside=f"{grouped:.3f} ms to {alone:.3f} ms",
        ),
    ]
