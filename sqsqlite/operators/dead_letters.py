"""Looking at what died: which queues hold dead letters, from where, and each of them. Nothing is written."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import queue_rows
from sqsqlite.actions.queues import exact_counts
from sqsqlite.contract.names import queue_name
from sqsqlite.operators.inspect import Peeked, fetch_readable, peeked
from sqsqlite.sql import metrics as metrics_sql
from sqsqlite.sql import operators as sql
from sqsqlite.store.transaction import Snapshot

if TYPE_CHECKING:
    from sqsqlite.actions.caller import Caller
    from sqsqlite.store.store import Store


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """What is in one dead-letter queue from one other queue.

    Attributes:
        queue: the dead-letter queue's name.
        exists: False: a RedrivePolicy names it, and there is no such queue.
        source: the other queue's name; None: these were sent to the dead-letter queue itself.
        messages: how many; 0 where the source's RedrivePolicy names the queue and nothing of it died.
        oldest_moved_at, newest_moved_at: milliseconds since 1970 UTC; None where nothing was moved.
    """

    queue: str
    exists: bool
    source: str | None
    messages: int
    oldest_moved_at: int | None
    newest_moved_at: int | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was moved to a dead-letter queue.

    Attributes:
        source: the name of the queue it came from.
        receives: how often it had been received when it was moved.
        moved_at: milliseconds since 1970 UTC.
    """

    message: Peeked
    source: str
    receives: int
    moved_at: int


def dead_letter_queues(store: "Store", caller: "Caller") -> list[DeadLetters]:
    """All queues of the account that a RedrivePolicy names or that hold dead letters, by name and source."""
    with store.reading() as snapshot:
        now_ms = snapshot.now_ms
        account = {"account_id": caller.account_id}
        policies = snapshot.execute(metrics_sql.LIST_REDRIVE_POLICIES, account).fetchall()
        steps = json.dumps(store.settings.jumps.steps(now_ms))
        counted = snapshot.execute(
            metrics_sql.COUNT_DEAD_LETTERS, {**account, "now_ms": now_ms, "jumps": steps}
        ).fetchall()
        found: dict[str, dict[str, tuple[Any, ...]]] = {}
        for source, target_arn in policies:
            found.setdefault(_name(target_arn), {})[source] = (0, None, None)
        for queue, source_arn, *counts in counted:
            found.setdefault(queue, {})[_name(source_arn)] = tuple(counts)
        existing = {row[0] for row in snapshot.execute(sql.LIST_EVERY_NAME, account)}
        rows = []
        for queue in sorted(found):
            exists = queue in existing
            moved = sorted(found[queue].items())
            rows += [DeadLetters(queue, exists, source, *counts) for source, counts in moved]
            direct = _messages(snapshot, queue, caller) if exists else 0
            direct -= sum(counts[0] for _, counts in moved)
            if direct:
                rows.append(DeadLetters(queue, exists, None, direct, None, None))
        return rows


def _messages(snapshot: Snapshot, queue: str, caller: "Caller") -> int:
    return sum(exact_counts(snapshot, queue_rows.find_row(snapshot, queue, caller)))


def dead_letters(
    store: "Store", queue_url: str, caller: "Caller", max_messages: int, *, source: str | None = None
) -> list[DeadLetter]:
    """The messages that were moved to a queue, those moved last first, whatever their state.

    Args:
        source: only those from the queue of this name, URL or ARN, which may be gone.

    Raises:
        QueueDoesNotExist: there is no queue `queue_url`; or `source` is not the name of any.
    """
    with store.reading() as snapshot:
        queue = queue_rows.find(snapshot, queue_url, caller)
        bounds = {
            "epoch_id": queue.epoch_id,
            "expired_at": queue.expired_at(snapshot),
            "source_end": "" if source is None else ":".join(queue_rows.place(source, caller)),
            "max_messages": max_messages,
        }
        rows, _ = fetch_readable(store, snapshot, metrics_sql.LIST_DEAD_LETTERS, bounds, queue.name)
        return [DeadLetter(peeked(snapshot, row[:-3]), _name(row[-3]), row[-2], row[-1]) for row in rows]


def _name(arn: str) -> str:
    return queue_name(arn)[1]
