"""What is to be said when the demo is over: numbers and rows, printed by whoever ran it."""

from shlex import quote
from typing import Any

from sqsqlite.demo.performance import Outcome
from sqsqlite.demo.worker import DEAD_LETTER_QUEUE, QUEUE


def totals(outcome: Outcome) -> list[dict[str, Any]]:
    """The sum, a row each: `what`, `count` and a `remark`."""
    evidence, journal = outcome.evidence, outcome.journal
    held = 0 if evidence.kill is None else len(evidence.kill.held)
    rows = evidence.parsed
    functions, classes = sum(row.functions for row in rows), sum(row.classes for row in rows)
    found = f"{functions:,} functions, {classes:,} classes, {sum(row.lines for row in rows):,} lines"
    workers = f"by {outcome.worker_count} worker processes"
    lines_of_sum = (
        ("sent", len(evidence.sent), "one message for each source file"),
        ("processed once", len({row.message_id for row in rows}), found),
        ("dead letters", len(evidence.dead_letters), "unparsable, received maxReceiveCount times"),
        (
            "redelivered",
            len(journal.received_again),
            f"{held} held by the killed worker, the others unparsable or late",
        ),
        ("late", journal.totals["late"], "timeout ended at work: rolled back, received again"),
        ("messages/s", round(rate(outcome)), f"{workers}, first receives only"),
        ("seconds", round(outcome.seconds, 1), "in all, with the waits for visibility timeouts to end"),
    )
    return [{"what": what, "count": count, "remark": remark} for what, count, remark in lines_of_sum]


def rate(outcome: Outcome) -> float:
    """Messages a second that were processed at their first receive, from the first of them to the last."""
    first = [row for row in outcome.evidence.parsed if row.receive_count == 1]
    if not first:
        return 0.0
    elapsed_ms = max(row.parsed_at for row in first) - min(row.received_at for row in first)
    return 1000 * len(first) / max(elapsed_ms, 1)


def returns(outcome: Outcome) -> list[dict[str, Any]]:
    """What the killed worker held, a row each, as the others received it."""
    kill = outcome.evidence.kill
    return [
        {
            "message_id": receive.message_id,
            "path": outcome.evidence.sent[receive.message_id],
            "receive_count": receive.receive_count,
            "received_by": receive.worker,
            "seconds_after_kill": round((receive.at - kill.at) / 1000, 1),
        }
        for receive in outcome.evidence.returns
        if kill is not None
    ]


def next_commands(outcome: Outcome, program: str) -> list[str]:
    """Commands to explore the file with.

    Args:
        program: what the shell finds the command `sqsqlite` by.
    """
    verbs = (
        "queues",
        "stats",
        f"peek {DEAD_LETTER_QUEUE}",
        f"tail {DEAD_LETTER_QUEUE}",
        f"send {QUEUE} hello",
        "check",
    )
    return [f"{program} --db {quote(str(outcome.path))} {verb}" for verb in verbs]
