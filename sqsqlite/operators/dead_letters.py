# SPDX-License-Identifier: Apache-2.0
"""Dead letters: which queues hold them, from where, each of them, and what a move task would do. Nothing is written."""

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import queue_rows
from sqsqlite.actions.move_tasks import check_start
from sqsqlite.actions.queues import exact_counts
from sqsqlite.contract.move_filter import MoveFilter
from sqsqlite.contract.names import queue_name
from sqsqlite.errors import QueueDoesNotExist
from sqsqlite.operators.inspect import Peeked, fetch_readable, peeked
from sqsqlite.sql import metrics as metrics_sql
from sqsqlite.sql import operators as sql
from sqsqlite.store.transaction import Snapshot

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract import requests
    from sqsqlite.store.store import Store


UNKNOWN_ORIGIN = "of unknown origin"
QUEUE_GONE = "the queue is gone"
_NOWHERE = frozenset({UNKNOWN_ORIGIN, QUEUE_GONE})


@dataclass(frozen=True, slots=True)
class DeadLetterCount:
    """How many messages one dead-letter queue has from one other queue.

    Attributes:
        queue: the dead-letter queue's name.
        exists: False: a RedrivePolicy names the queue, and it does not exist.
        source: the other queue's name; None: these messages were sent to the dead-letter queue itself.
        messages: 0 where the source's RedrivePolicy names the queue, and no message was moved yet.
        oldest_moved_at, newest_moved_at: milliseconds since 1970 UTC; None without a moved message.
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


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """What a move task would do with the messages of a dead-letter queue that have one origin.

    Attributes:
        source: the name of the queue they came from; None: they were sent to the dead-letter queue itself.
        destination: the name of the queue they would go to; None: unknown.
        messages: how many.
        kept_by: why they would stay; None: they would go.
    """

    source: str | None
    destination: str | None
    messages: int
    kept_by: str | None

    @property
    def lacks_destination(self) -> bool:
        """Whether they would go if the task had a destination."""
        return self.kept_by in _NOWHERE


def dead_letter_queues(store: "Store", caller: "Caller") -> list[DeadLetterCount]:
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
            rows += [DeadLetterCount(queue, exists, source, *counts) for source, counts in moved]
            direct = _messages(snapshot, queue, caller) if exists else 0
            direct -= sum(counts[0] for _, counts in moved)
            if direct:
                rows.append(DeadLetterCount(queue, exists, None, direct, None, None))
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


def plan(
    store: "Store",
    request: "requests.StartMessageMoveTask",
    caller: "Caller",
    move_filter: MoveFilter | None = None,
) -> list[PlannedMove]:
    """How many messages the task would move from which queue to which, and which stay; nothing is written.

    Messages that are received, sent or expire before the task ends change its result.

    Raises:
        as `start_message_move_task`: a task that could not start has no plan.
    """
    with store.reading() as snapshot:
        source = check_start(snapshot, request, caller)
        bounds = {
            "epoch_id": source["epoch_id"],
            "now_ms": snapshot.now_ms,
            "expired_at": snapshot.expired_at(source["message_retention_period_seconds"]),
            **dataclasses.asdict(move_filter or MoveFilter()),
        }
        rows = snapshot.execute(metrics_sql.COUNT_REDRIVABLE, bounds).fetchall()
        return [_part(snapshot, caller, request.destination_arn, *row) for row in rows]


def _part(
    snapshot: Snapshot,
    caller: "Caller",
    destination_arn: str | None,
    source_arn: str | None,
    kept_by: str | None,
    count: int,
) -> PlannedMove:
    destination = destination_arn or source_arn
    if kept_by is None and destination is None:
        kept_by = UNKNOWN_ORIGIN
    if kept_by is None and destination is not None and not _exists(snapshot, destination, caller):
        kept_by = QUEUE_GONE
    return PlannedMove(source_arn and _name(source_arn), destination and _name(destination), count, kept_by)


def _exists(snapshot: Snapshot, arn: str, caller: "Caller") -> bool:
    try:
        queue_rows.find(snapshot, arn, caller)
    except QueueDoesNotExist:
        return False
    return True


def _name(arn: str) -> str:
    return queue_name(arn)[1]
