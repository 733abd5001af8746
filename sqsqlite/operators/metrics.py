# SPDX-License-Identifier: Apache-2.0
"""CloudWatch's metrics of a queue: what Amazon counts, under its names, at one instant."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.actions import queue_rows
from sqsqlite.operators import statistics
from sqsqlite.sql import metrics as statements
from sqsqlite.store.transaction import Snapshot

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.store.store import Store

# Fewer messages in flight make no group noisy.
NOISY_FROM = 30
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """One queue's metrics, each named as CloudWatch names it. Counts are exact, ages are seconds.

    Attributes:
        name: of the queue.
        activity_since: milliseconds since 1970 UTC: the minute before the running one, from where on `number_of_...`
            and `sent_message_size` are counted.
        approximate_number_of_messages_visible, approximate_number_of_messages_not_visible,
        approximate_number_of_messages_delayed: visible, in flight, delayed.
        approximate_age_of_oldest_message: of the message that was sent first, or moved first to a dead-letter queue;
            0 in an empty queue.
        approximate_number_of_groups_with_inflight_messages: FIFO queues; None on others.
        approximate_number_of_noisy_groups: standard queues, as all that follow with "groups"; None on FIFO queues. A
            message group is noisy that has at least 30 messages in flight, which are more than a tenth of the
            queue's. A message without a group is quiet.
        approximate_number_of_messages_visible_in_quiet_groups,
        approximate_number_of_messages_not_visible_in_quiet_groups,
        approximate_number_of_messages_delayed_in_quiet_groups,
        approximate_age_of_oldest_message_in_quiet_groups: the same without the noisy groups' messages.
        number_of_messages_sent: accepted; neither duplicates nor moves to a dead-letter queue.
        number_of_messages_received: handed out by receives.
        number_of_empty_receives: receives that brought none. A process counts its own in memory until it next writes.
        number_of_messages_deleted: by their receivers.
        number_of_deduplicated_sent_messages: FIFO queues: duplicates that were not stored; None on others.
        sent_message_size: bytes of the messages sent, all together.
    Source: developer guide, "Available CloudWatch metrics for Amazon SQS".
    """

    name: str
    activity_since: int
    approximate_number_of_messages_visible: int
    approximate_number_of_messages_not_visible: int
    approximate_number_of_messages_delayed: int
    approximate_age_of_oldest_message: float
    approximate_number_of_groups_with_inflight_messages: int | None
    approximate_number_of_noisy_groups: int | None
    approximate_number_of_messages_visible_in_quiet_groups: int | None
    approximate_number_of_messages_not_visible_in_quiet_groups: int | None
    approximate_number_of_messages_delayed_in_quiet_groups: int | None
    approximate_age_of_oldest_message_in_quiet_groups: float | None
    number_of_messages_sent: int
    number_of_messages_received: int
    number_of_empty_receives: int
    number_of_messages_deleted: int
    number_of_deduplicated_sent_messages: int | None
    sent_message_size: int

    def cloudwatch(self) -> dict[str, int | float]:
        """The metrics by CloudWatch's names (`ApproximateNumberOfMessagesVisible`, ...), without None."""
        found = {_cloudwatch_name(field.name): getattr(self, field.name) for field in fields(self)[2:]}
        return {name: value for name, value in found.items() if value is not None}


def _cloudwatch_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


class _QueueFacts(NamedTuple):
    """A queue's row: configuration, and the minute that is still open."""

    account_id: str
    name: str
    id: int
    epoch_id: int
    fifo: int
    message_retention_period_seconds: int
    holds_dead_letters: int
    has_tenants: int
    minute_at: int
    sent: int
    received: int
    deleted: int
    dead_lettered: int
    empty_receives: int
    deduplicated: int
    sent_bytes: int


class _Measured(NamedTuple):
    """What the file tells of all queues, by epoch id. Instants are milliseconds since 1970 UTC.

    Attributes:
        activity: by queue id.
        oldest_at: from when the age counts, None in an empty queue.
        groups_in_flight: of FIFO queues.
        noisy: the noisy groups, where there are any.
        quiet: the counts without them, there.
    """

    now_ms: int
    since_at: int
    counts: dict[int, statistics.Counts]
    activity: dict[int, statistics.Activity]
    oldest_at: dict[int, int | None]
    groups_in_flight: dict[int, int]
    noisy: dict[int, list[str]]
    quiet: dict[int, statistics.Counts]

    def age(self, oldest_at: int | None) -> float:
        """Seconds; 0 for an empty queue, or for a message sent after `now_ms` was read."""
        return 0.0 if oldest_at is None else max(0, self.now_ms - oldest_at) / 1000


def metrics(store: "Store", caller: "Caller", prefix: str = "") -> list[QueueMetrics]:
    """All queues of the account whose names begin with `prefix`, at one instant."""
    with store.reading() as snapshot:
        found = _measure(snapshot, [caller.account_id], prefix, prefix + "\U0010ffff")
        return [queue for _, queue in found]


def metrics_of_all(store: "Store") -> list[tuple[str, QueueMetrics]]:
    """All queues of all accounts at one instant, each behind its account's id."""
    with store.reading() as snapshot:
        accounts = [row[0] for row in snapshot.execute(statements.LIST_ACCOUNTS)]
        return _measure(snapshot, accounts, "", "\U0010ffff")


def metrics_of(store: "Store", queue_url: str, caller: "Caller") -> QueueMetrics:
    """One queue.

    Raises:
        QueueDoesNotExist: no queue has this name or URL.
    """
    with store.reading() as snapshot:
        queue = queue_rows.find(snapshot, queue_url, caller)
        [(_, found)] = _measure(snapshot, [queue.account_id], queue.name, queue.name)
        return found


def _measure(
    snapshot: Snapshot, account_ids: list[str], first: str, last: str
) -> list[tuple[str, QueueMetrics]]:
    now_ms = snapshot.now_ms
    bounds = {"account_ids": json.dumps(account_ids), "first_name": first, "last_name": last}
    rows = snapshot.execute(statements.LIST_QUEUES_TO_MEASURE, bounds).fetchall()
    queues = [_QueueFacts._make(row) for row in rows]
    expired_at = {
        queue.epoch_id: snapshot.expired_at(queue.message_retention_period_seconds) for queue in queues
    }
    since_at = now_ms - now_ms % _MINUTE_MS - _MINUTE_MS
    minutes = [(queue.id, queue.minute_at, statistics.Activity(*queue[9:])) for queue in queues]
    counts = statistics.counts(snapshot, expired_at.items(), now_ms)
    oldest_at = _oldest(snapshot, queues, expired_at, counts)
    noisy = _noisy(snapshot, queues, expired_at, counts, now_ms)
    measured = _Measured(
        now_ms,
        since_at,
        counts,
        statistics.activity(snapshot, minutes, since_at),
        oldest_at,
        _groups_in_flight(snapshot, queues, expired_at, counts, now_ms),
        noisy,
        {epoch_id: _quiet(snapshot, epoch_id, expired_at, noisy, now_ms) for epoch_id in noisy},
    )
    return [(queue.account_id, _metrics(queue, measured)) for queue in queues]


def _metrics(queue: _QueueFacts, measured: _Measured) -> QueueMetrics:
    epoch_id, fifo = queue.epoch_id, bool(queue.fifo)
    counts, activity = measured.counts[epoch_id], measured.activity[queue.id]
    age = measured.age(measured.oldest_at[epoch_id])
    quiet = measured.quiet.get(epoch_id)
    quiet_counts = quiet or counts
    quiet_age = age if quiet is None else measured.age(quiet.oldest_sent_at)
    return QueueMetrics(
        queue.name,
        measured.since_at,
        counts.visible,
        counts.in_flight,
        counts.delayed,
        age,
        measured.groups_in_flight.get(epoch_id, 0) if fifo else None,
        None if fifo else len(measured.noisy.get(epoch_id, ())),
        None if fifo else quiet_counts.visible,
        None if fifo else quiet_counts.in_flight,
        None if fifo else quiet_counts.delayed,
        None if fifo else quiet_age,
        activity.sent,
        activity.received,
        activity.empty_receives,
        activity.deleted,
        activity.deduplicated if fifo else None,
        activity.sent_bytes,
    )


def _oldest(
    snapshot: Snapshot,
    queues: list[_QueueFacts],
    expired_at: dict[int, int],
    counts: dict[int, statistics.Counts],
) -> dict[int, int | None]:
    """The instant from which the age counts: of the oldest send, or in a dead-letter queue of the oldest move."""
    found = {epoch_id: count.oldest_sent_at for epoch_id, count in counts.items()}
    holding = [(queue.epoch_id, expired_at[queue.epoch_id]) for queue in queues if queue.holds_dead_letters]
    moves = _of_each(snapshot, statements.LIST_OLDEST_MOVES, holding)
    moved = {epoch_id: moved_at for epoch_id, moved_at in moves if moved_at is not None}
    asked = [(epoch_id, expired_at[epoch_id], moved_at) for epoch_id, moved_at in moved.items()]
    for epoch_id, unmoved_at in _of_each(snapshot, statements.LIST_OLDEST_UNMOVED, asked):
        found[epoch_id] = moved[epoch_id] if unmoved_at is None else unmoved_at
    return found


def _groups_in_flight(
    snapshot: Snapshot,
    queues: list[_QueueFacts],
    expired_at: dict[int, int],
    counts: dict[int, statistics.Counts],
    now_ms: int,
) -> dict[int, int]:
    """Of the FIFO queues that have messages in flight."""
    asked = [
        (queue.epoch_id, expired_at[queue.epoch_id])
        for queue in queues
        if queue.fifo and counts[queue.epoch_id].in_flight
    ]
    return dict(_of_each(snapshot, statements.COUNT_GROUPS_IN_FLIGHT, asked, now_ms=now_ms))


def _noisy(
    snapshot: Snapshot,
    queues: list[_QueueFacts],
    expired_at: dict[int, int],
    counts: dict[int, statistics.Counts],
    now_ms: int,
) -> dict[int, list[str]]:
    """The noisy groups of standard queues. Where none can be noisy nothing is counted."""
    asked = [
        (queue.epoch_id, expired_at[queue.epoch_id], counts[queue.epoch_id].in_flight)
        for queue in queues
        if not queue.fifo and queue.has_tenants and counts[queue.epoch_id].in_flight >= NOISY_FROM
    ]
    found: dict[int, list[str]] = {}
    for epoch_id, group_id in _of_each(snapshot, statements.LIST_NOISY_GROUPS, asked, now_ms=now_ms):
        found.setdefault(epoch_id, []).append(group_id)
    return found


def _quiet(
    snapshot: Snapshot, epoch_id: int, expired_at: dict[int, int], noisy: dict[int, list[str]], now_ms: int
) -> statistics.Counts:
    """The counts of a queue without its noisy groups, and from when the age of what is left counts."""
    bounds = {
        "epoch_id": epoch_id,
        "expired_at": expired_at[epoch_id],
        "noisy_groups": json.dumps(noisy[epoch_id]),
        "now_ms": now_ms,
    }
    row = snapshot.execute(statements.MEASURE_QUIET_GROUPS, bounds).fetchone()
    in_flight, delayed, messages, oldest_at = row
    return statistics.Counts(messages - in_flight - delayed, in_flight, delayed, oldest_at)


def _of_each(
    snapshot: Snapshot, statement: str, asked: Sequence[tuple[int, ...]], **bounds: int
) -> list[tuple[int, Any]]:
    """What a statement finds of some queues, each by its epoch id; it is not run for none."""
    if not asked:
        return []
    rows: list[tuple[int, Any]] = snapshot.execute(
        statement, {"queues": json.dumps(asked), **bounds}
    ).fetchall()
    return rows
