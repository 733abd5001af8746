"""What a move task would do, before it does anything."""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqsqlite.actions import queue_rows
from sqsqlite.actions.move_tasks import check_start
from sqsqlite.contract.move_filter import MoveFilter
from sqsqlite.contract.names import queue_name
from sqsqlite.errors import QueueDoesNotExist
from sqsqlite.sql import metrics as sql
from sqsqlite.store.transaction import Snapshot, Transaction

if TYPE_CHECKING:
    from sqsqlite.actions.caller import Caller
    from sqsqlite.contract import requests
    from sqsqlite.store.store import Store

UNKNOWN_ORIGIN = "of unknown origin"
QUEUE_GONE = "the queue is gone"
NOWHERE = frozenset({UNKNOWN_ORIGIN, QUEUE_GONE})


@dataclass(frozen=True, slots=True)
class Part:
    """Messages of a dead-letter queue that have one origin and one fate.

    Attributes:
        source: the name of the queue they came from; None: they were sent to the dead-letter queue itself.
        destination: where they would go; None where nothing says it.
        messages: how many.
        kept_by: why they would stay; None: they would go.
    """

    source: str | None
    destination: str | None
    messages: int
    kept_by: str | None


def plan(
    store: "Store",
    request: "requests.StartMessageMoveTask",
    caller: "Caller",
    move_filter: MoveFilter | None = None,
) -> list[Part]:
    """How many messages the task would move from which queue to which, and which stay; nothing is written.

    What is received, sent or expires until it starts, or while it runs, makes a difference.

    Raises:
        as `start_message_move_task`: what could not start has no plan.
    """
    with store.reading() as snapshot:
        source = check_start(snapshot, request, caller)
        bounds = {
            "epoch_id": source["epoch_id"],
            "now_ms": snapshot.now_ms,
            "expired_at": snapshot.expired_at(source["message_retention_period_seconds"]),
            **dataclasses.asdict(move_filter or MoveFilter()),
        }
        rows = snapshot.execute(sql.COUNT_REDRIVABLE, bounds).fetchall()
        return [_part(snapshot, caller, request.destination_arn, *row) for row in rows]


def require_room(tx: Transaction) -> None:
    """Raises DiskFull: not even one message could be moved now."""
    tx.require_room(1)


def _part(
    snapshot: Snapshot,
    caller: "Caller",
    destination_arn: str | None,
    source_arn: str | None,
    kept_by: str | None,
    count: int,
) -> Part:
    destination = destination_arn or source_arn
    if kept_by is None and destination is None:
        kept_by = UNKNOWN_ORIGIN
    if kept_by is None and destination is not None and not _exists(snapshot, destination, caller):
        kept_by = QUEUE_GONE
    return Part(_name(source_arn), _name(destination), count, kept_by)


def _exists(snapshot: Snapshot, arn: str, caller: "Caller") -> bool:
    try:
        queue_rows.find(snapshot, arn, caller)
    except QueueDoesNotExist:
        return False
    return True


def _name(arn: str | None) -> str | None:
    return None if arn is None else queue_name(arn)[1]
