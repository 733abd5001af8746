"""Switches the engine's rules off, one at a time, and looks for a history that tells: `python -m tests.model.mutants`.

Most are rules of docs/contract.md, switched off as tests/contract does it; the others are what the engine promises
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


def _own(number: int, rule: str, file: str, old: str, new: str, off: str) -> Rule:
    return Rule(
        id=f"engine.{number}", rule=rule, source="", file=f"sqsqlite/{file}", old=old, new=new, off=off
    )


UNTOUCHED = _own(0, "Nothing is switched off.", "limits.py", "SQS = Limits()", "SQS = Limits()", "nothing")
OF_THE_ENGINE = (
    _own(
        1,
        "A receive that moves messages to the dead-letter queue fills up with others.",
        "engine/receive.py",
        "if len(live) == len(claims) or len(kept) == asked:",
        "if True:",
        "it brings fewer",
    ),
    _own(
        2,
        "Sweeping takes what is beyond its retention, and no more.",
        "engine/sweep.py",
        "tx.now_ms - retention_seconds * 1000, CHUNK_ROWS",
        "tx.now_ms - retention_seconds * 999, CHUNK_ROWS",
        "a little more",
    ),
    _own(
        3,
        "A change to 0 takes the message out of the count of those in flight.",
        "engine/settle.py",
        """    if not visible_at:
        tx.delta(queue.epoch_id).in_flight -= 1
""",
        """    if not visible_at:
""",
        "it stays counted",
    ),
    _own(
        4,
        "A dead letter is counted in its new queue.",
        "engine/dead_letters.py",
        "tx.delta(target.epoch_id).messages += count",
        "tx.delta(target.epoch_id).messages += 0",
        "it is not",
    ),
    _own(
        5,
        "A FIFO group waits until its first message's timeout ends.",
        "engine/fifo_receive.py",
        "tx.execute(sql.SET_GROUP_HEAD, (visible_at or tx.now_ms, group_key))",
        "tx.execute(sql.SET_GROUP_HEAD, (tx.now_ms, group_key))",
        "it is asked at each receive, and goes back in the line",
    ),
    _own(
        6,
        "A message of a group takes one turn after the other.",
        "statements_fifo.py",
        "THEN ?3 ELSE max(last_turn + 1, ?3) END",
        "THEN ?3 ELSE max(last_turn, ?3) END",
        "all its messages have one",
    ),
    _own(
        7,
        "The clock of turns follows what is received.",
        "engine/receive.py",
        "delta.turn = max(delta.turn, claims[-1].turn)",
        "pass",
        "it stands still",
    ),
    _own(
        8,
        "What a task moves is counted in its destination.",
        "engine/transfer.py",
        "arrived.messages += count",
        "arrived.messages += 0",
        "it is not",
    ),
)


def chosen() -> list[Rule]:
    """The rules whose mutants a walk must find."""
    return [rule for rule in rules() if rule.id in OF_THE_CONTRACT] + list(OF_THE_ENGINE)


def hunted(mutants: Iterable[Rule]) -> Iterator[tuple[Rule, int, str | None]]:
    """Each with the histories that were walked, and how the last one ended: "difference", another error, or None."""
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
