"""What the demo prints when it is over."""

from sqsqlite.demo.performance import Outcome
from sqsqlite.demo.worker import DEAD_LETTER_QUEUE, QUEUE


def totals(outcome: Outcome) -> list[tuple[str, str, str]]:
    """(what, how many, a remark): the sum, one line each."""
    evidence, journal = outcome.evidence, outcome.journal
    held = 0 if evidence.kill is None else len(evidence.kill.held)
    rows = evidence.parsed
    return [
        ("sent", f"{len(evidence.sent):,}", "one message a source file"),
        (
            "processed once",
            f"{len({row.message_id for row in rows}):,}",
            f"{sum(row.functions for row in rows):,} functions, {sum(row.classes for row in rows):,} classes, "
            f"{sum(row.lines for row in rows):,} lines",
        ),
        ("dead letters", f"{len(evidence.dead_letters):,}", "unparsable, received until maxReceiveCount"),
        (
            "redelivered",
            f"{len(journal.received_again):,}",
            f"{held} held by the worker that was killed, the others unparsable or late",
        ),
        (
            "late",
            f"{journal.totals['late']:,}",
            "visibility timeout ended at work: rolled back, received again",
        ),
        (
            "rate",
            f"{rate(outcome):,.0f}",
            f"messages/s by {outcome.worker_count} workers, until no first receive was left",
        ),
        ("seconds", f"{outcome.seconds:.1f}", "in all, with the waits for visibility timeouts"),
    ]


def rate(outcome: Outcome) -> float:
    """Messages a second that were processed at their first receive, from the first of them to the last."""
    first = [row for row in outcome.evidence.parsed if row.receive_count == 1]
    if not first:
        return 0.0
    elapsed_ms = max(row.parsed_at for row in first) - min(row.received_at for row in first)
    return 1000 * len(first) / max(elapsed_ms, 1)


def returns(outcome: Outcome) -> list[tuple[str, str, str, str]]:
    """(message id, path, receive count, worker) of what the killed worker held, as the others received it."""
    sent = outcome.evidence.sent
    return [
        (receive.message_id, sent[receive.message_id], str(receive.receive_count), receive.worker)
        for receive in outcome.evidence.returns
    ]


def try_next(outcome: Outcome) -> list[str]:
    """Commands to explore the file with."""
    command = f"sqsqlite --db {outcome.path}"
    return [
        f"{command} queues",
        f"{command} stats",
        f"{command} peek {DEAD_LETTER_QUEUE}",
        f"{command} get-queue-attributes --queue-url {QUEUE} --attribute-names All",
        f"{command} tail {DEAD_LETTER_QUEUE}",
        f"{command} check",
    ]
