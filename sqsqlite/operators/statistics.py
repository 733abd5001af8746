# SPDX-License-Identifier: Apache-2.0
"""Counts and recent activity of many queues, by a few statements."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sqsqlite.sql import queues as sql
from sqsqlite.store.transaction import Snapshot

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.store.store import Store

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """One queue at one instant.

    Attributes:
        visible, in_flight, delayed: exact counts.
        oldest_sent_at: milliseconds since 1970 UTC of the oldest message there is, None in an empty queue.
        age_of_oldest_seconds: the same as an age; 0 in an empty queue.
        sent, received, deleted, dead_lettered, empty_receives: since `activity_since`.
        dead_letter_target_arn: of the RedrivePolicy, if there is one.
        activity_since: milliseconds since 1970 UTC: the beginning of a minute.
    """

    name: str
    fifo: bool
    visible: int
    in_flight: int
    delayed: int
    oldest_sent_at: int | None
    age_of_oldest_seconds: float
    sent: int
    received: int
    deleted: int
    dead_lettered: int
    empty_receives: int
    dead_letter_target_arn: str | None
    activity_since: int


class Counts(NamedTuple):
    """A queue's messages by state, and when the oldest was sent: milliseconds since 1970 UTC, None in an empty one."""

    visible: int
    in_flight: int
    delayed: int
    oldest_sent_at: int | None


class Activity(NamedTuple):
    """What a queue did in some minutes."""

    sent: int = 0
    received: int = 0
    deleted: int = 0
    dead_lettered: int = 0
    empty_receives: int = 0
    deduplicated: int = 0
    sent_bytes: int = 0


def counts(snapshot: Snapshot, queues: Iterable[tuple[int, int]], now_ms: int) -> dict[int, Counts]:
    """The exact counts of queues at this instant, by epoch id.

    The kept counts, corrected by what has become due and not been promoted, and by what has expired and not been
    swept: both are usually nothing.

    Args:
        queues: of each queue the epoch id, and the instant at or before which what was sent is beyond its retention.
    """
    expired_at = dict(queues)
    found = {}
    rows = snapshot.execute(
        sql.MEASURE_QUEUES, {"queues": json.dumps([*expired_at.items()]), "now_ms": now_ms}
    ).fetchall()
    for epoch_id, messages, in_flight, delayed, due, due_in_flight, oldest_at, oldest_kept_at in rows:
        gone = gone_in_flight = gone_delayed = 0
        if oldest_at is not None and oldest_at <= expired_at[epoch_id]:
            bounds = {"epoch_id": epoch_id, "expired_at": expired_at[epoch_id], "now_ms": now_ms}
            gone, gone_in_flight, gone_delayed = snapshot.execute(sql.COUNT_EXPIRED, bounds).fetchone()
        held = in_flight - due_in_flight - gone_in_flight
        waiting = delayed - (due - due_in_flight) - gone_delayed
        found[epoch_id] = Counts(messages - gone - held - waiting, held, waiting, oldest_kept_at)
    return found


def activity(
    snapshot: Snapshot, open_minutes: Sequence[tuple[int, int, Activity]], since_at: int
) -> dict[int, Activity]:
    """What queues did from an instant on, by queue id: in closed minutes, and in the one that is still open.

    Args:
        open_minutes: of each queue the id, where its open minute begins, and what it did in it.
        since_at: the beginning of a minute. This and `open_minutes`: milliseconds since 1970 UTC.
    """
    found = {id_: now if minute_at >= since_at else Activity() for id_, minute_at, now in open_minutes}
    asked = {"queue_ids": json.dumps([*found]), "since_at": since_at}
    for id_, *minute in snapshot.execute(sql.LIST_ACTIVITY, asked).fetchall():
        found[id_] = Activity(*(before + more for before, more in zip(found[id_], minute, strict=True)))
    return found


def statistics(
    store: "Store", caller: "Caller", prefix: str = "", *, since_ms: int | None = None
) -> list[QueueStatistics]:
    """All queues of the account whose names begin with `prefix`, at one instant.

    Args:
        since_ms: milliseconds since 1970 UTC: activity is counted from the beginning of this instant's minute on.
            Default: the minute before the running one. A minute that has just begun is empty, and these two are never
            less than a whole minute.
    """
    bounds = {"account_id": caller.account_id, "prefix": prefix, "upper_name": prefix + "\U0010ffff"}
    with store.reading() as snapshot:
        now_ms = snapshot.now_ms
        since = now_ms - _MINUTE_MS if since_ms is None else since_ms
        since -= since % _MINUTE_MS
        rows = [_QueueCounts._make(row) for row in snapshot.execute(sql.STATS, bounds).fetchall()]
        measured = counts(
            snapshot,
            ((row.epoch_id, snapshot.expired_at(row.retention_seconds)) for row in rows),
            now_ms,
        )
        minutes = [(row.id, row.minute_at, Activity(*row[7:])) for row in rows]
        done = activity(snapshot, minutes, since)
    return [_statistics(row, measured[row.epoch_id], done[row.id], now_ms, since) for row in rows]


class _QueueCounts(NamedTuple):
    """A row of STATS: a queue's configuration, and the minute that is still open."""

    name: str
    id: int
    epoch_id: int
    fifo: int
    retention_seconds: int
    dead_letter_target_arn: str | None
    minute_at: int
    sent: int
    received: int
    deleted: int
    dead_lettered: int
    empty_receives: int
    deduplicated: int
    sent_bytes: int


def _statistics(
    queue: _QueueCounts, counts: Counts, activity: Activity, now_ms: int, since: int
) -> QueueStatistics:
    oldest = counts.oldest_sent_at
    return QueueStatistics(
        queue.name,
        bool(queue.fifo),
        counts.visible,
        counts.in_flight,
        counts.delayed,
        oldest,
        0.0 if oldest is None else (now_ms - oldest) / 1000,
        activity.sent,
        activity.received,
        activity.deleted,
        activity.dead_lettered,
        activity.empty_receives,
        queue.dead_letter_target_arn,
        since,
    )
