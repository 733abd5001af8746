# SPDX-License-Identifier: Apache-2.0
"""Switches the engine's rules off, one at a time, and looks for a history that tells: `python -m tests.model.mutants`.

Most are rules of SQS's contract, switched off as tests/contract does it; the others are what the engine promises
beyond them, to itself as much as to its users.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from tests.contract.contract import Rule, rules
from tests.contract.mutants import Tree, trees
from tests.contract.operators import Switch

SECONDS = 300

OF_THE_CONTRACT = (
    "visibility.1",
    "visibility.4",
    "visibility.7",
    "visibility.8",
    "visibility.12",
    "handle.4",
    "handle.5",
    "handle.8",
    "handle.12",
    "handle.13",
    "handle.16",
    "handle.17",
    "handle.18",
    "retention.1",
    "retention.2",
    "redrive.10",
    "redrive.13",
    "redrive.14",
    "redrive.15",
    "redrive.16",
    "deduplication.1",
    "deduplication.7",
    "deduplication.8",
    "deduplication.10",
    "deduplication.12",
    "deduplication.13",
    "fifo-order.5",
    "fifo-order.6",
    "fifo-order.9",
    "fifo-visibility.1",
    "fifo-visibility.3",
    "fifo-visibility.10",
    "fifo-redrive.4",
    "fifo-redrive.6",
    "fair.4",
    "fair.9",
    "attempt.1",
    "move.1",
    "move.4",
    "move.8",
    "permission.5",
    "queue.8",
    "queue.25",
    "tag.2",
)


def _own(number: int, rule: str, off: str, **switch: str) -> Rule:
    return Rule(id=f"engine.{number}", rule=rule, source="", off=off, switch=Switch.read(switch))


UNTOUCHED = Rule(id="engine.0", rule="Nothing is switched off.", source="", off="nothing")
OF_THE_ENGINE = (
    _own(
        1,
        "A receive that moves messages to the dead-letter queue fills up with others.",
        "it brings fewer",
        **{"in": "_fix", "always": "len(live) == len(claims) or len(kept) == asked"},
    ),
    _own(
        2,
        "Sweeping deletes only messages beyond their retention.",
        "a little more",
        **{"in": "_sweep_expired", "replace": "tx.expired_at(retention_seconds)", "by": "... + 4_000"},
    ),
    _own(
        3,
        "A change to 0 takes the message out of the count of those in flight.",
        "it stays counted",
        **{"in": "change_visibility", "drop": "in_flight"},
    ),
    _own(
        4,
        "A dead letter is counted in its new queue.",
        "it is not counted",
        **{"in": "_count", "drop": "tx.delta(target.epoch_id).messages += count"},
    ),
    _own(
        5,
        "A FIFO group waits until its first message's timeout ends.",
        "each receive asks it, and it goes back in the line",
        **{"in": "_claim_group", "replace": "visible_at or tx.now_ms", "by": "tx.now_ms"},
    ),
    _own(
        6,
        "Each message of a tenant gets a place in line of its own.",
        "all its messages share one",
        **{"in": "DRAW_TURN", "text": "last_turn + 1", "by": "last_turn"},
    ),
    _own(
        7,
        "The clock of fair queues follows what is received.",
        "it stands still",
        **{"in": "_settle_claims", "drop": "delta.turn = max(delta.turn, ...)"},
    ),
    _own(
        8,
        "Messages that a task moves are counted in their destination.",
        "they are not counted",
        **{"in": "_count", "drop": "arrived.messages += count"},
    ),
    _own(
        9,
        "In a transaction of the caller, a settle succeeds only if it settles.",
        "it is as lenient as outside",
        **{"in": "Application.begin", "drop": "tx.is_callers = True"},
    ),
)


def chosen() -> list[Rule]:
    """The rules whose mutants a walk must find."""
    return [rule for rule in rules() if rule.id in OF_THE_CONTRACT] + list(OF_THE_ENGINE)


def hunted(mutants: Iterable[Rule]) -> Iterator[tuple[Rule, int, str | None]]:
    """Each rule, its number of walked histories, and how the last one ended: "difference", another error, or None."""
    free: SimpleQueue[Tree] = SimpleQueue()

    def hunt(rule: Rule) -> tuple[Rule, int, str | None]:
        tree = free.get()
        try:
            with tree.mutated(rule):
                return rule, *_seek(tree, "aws" if 'compat="aws"' in rule.rule else "docs")
        finally:
            free.put(tree)

    with trees() as some, ThreadPoolExecutor(len(some)) as pool:
        for tree in some:
            free.put(tree)
        yield from pool.map(hunt, mutants)


def _seek(tree: Tree, compat: str) -> tuple[int, str | None]:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.model.seek", compat],
        cwd=tree.path,
        env={**os.environ, "PYTHONPATH": str(tree.path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    count, how = json.loads(ended.stdout)
    return count, how


def main(names: list[str]) -> int:
    survived = 0
    for rule, count, how in hunted(rule for rule in (UNTOUCHED, *chosen()) if not names or rule.id in names):
        survived += how != (None if rule is UNTOUCHED else "difference")
        print(f"| {rule.id} | {rule.rule} | {rule.off} | {count if how else 'not found'} |", flush=True)
        if how not in (None, "difference"):
            print(how, file=sys.stderr)
    return bool(survived)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
