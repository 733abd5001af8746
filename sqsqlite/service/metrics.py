"""CloudWatch's metrics of a queue: what Amazon counts, under its names, at one instant."""

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite import statements_metrics as measure
from sqsqlite import statements_queues as sql
from sqsqlite.service import lookup
from sqsqlite.service.queues import exact_counts

if TYPE_CHECKING:
    from sqsqlite.service.caller import Caller
    from sqsqlite.store.jumps import Jumps
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
        """The metrics by CloudWatch's names, `ApproximateNumberOfMessagesVisible` and so on, those that there are."""
        found = {_cloudwatch_name(field.name): getattr(self, field.name) for field in fields(self)[2:]}
        return {name: value for name, value in found.items() if value is not None}


def _cloudwatch_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


class _Measured(NamedTuple):
    """A queue's row: configuration, and the minute that is still open."""

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
    empty_receives: int
    deleted: int
    deduplicated: int
    sent_bytes: int


class _Counts(NamedTuple):
    """Messages by state, and the instant from which the oldest one's age is counted."""

    visible: int
    in_flight: int
    delayed: int
    oldest_at: int | None

    def age(self, now_ms: int) -> float:
        """Seconds; 0 where there is no message, or one that another process has sent since `now_ms` was asked."""
        return 0.0 if self.oldest_at is None else max(0, now_ms - self.oldest_at) / 1000


def metrics(store: "Store", caller: "Caller", prefix: str = "") -> list[QueueMetrics]:
    """All queues of the account whose names begin with `prefix`, at one instant."""
    with store.reading() as connection:
        return _measure(connection, caller.account_id, prefix, prefix + "\U0010ffff", store)


def accounts(store: "Store") -> list[str]:
    """Ids of the accounts that have queues."""
    with store.reading() as connection:
        return [row[0] for row in connection.execute(measure.LIST_ACCOUNTS)]


def metrics_of(store: "Store", queue_url: str, caller: "Caller") -> QueueMetrics:
    """One queue.

    Raises:
        QueueDoesNotExist: as said.
    """
    with store.reading() as connection:
        queue = lookup.find(connection.execute, queue_url, caller)
        [found] = _measure(connection, queue.account_id, queue.name, queue.name, store)
        return found


def _measure(connection: Any, account_id: str, first: str, last: str, store: "Store") -> list[QueueMetrics]:
    now_ms = store.clock.now_ms()
    bounds = {"account_id": account_id, "first_name": first, "last_name": last}
    rows = connection.execute(measure.LIST_QUEUES_TO_MEASURE, bounds).fetchall()
    return [_metrics(connection, _Measured._make(row), now_ms, store.settings.jumps) for row in rows]


def _metrics(connection: Any, queue: _Measured, now_ms: int, jumps: "Jumps") -> QueueMetrics:
    bounds = {
        "epoch_id": queue.epoch_id,
        "now_ms": now_ms,
        "expired_at": jumps.expired_at(queue.message_retention_period_seconds, now_ms),
    }
    counts = _Counts(
        *exact_counts(connection, queue._asdict(), now_ms, jumps), _oldest(connection, queue, bounds)
    )
    since = now_ms - now_ms % _MINUTE_MS - _MINUTE_MS
    sent, received, empty, deleted, deduplicated, size_bytes = _activity(connection, queue, since)
    noisy, visible, in_flight, delayed, age = _noisy_and_quiet(connection, queue, counts, bounds)
    groups_in_flight = None
    if queue.fifo:
        groups_in_flight = connection.execute(measure.COUNT_GROUPS_IN_FLIGHT, bounds).fetchone()[0]
    return QueueMetrics(
        queue.name,
        since,
        counts.visible,
        counts.in_flight,
        counts.delayed,
        counts.age(now_ms),
        groups_in_flight,
        noisy,
        visible,
        in_flight,
        delayed,
        age,
        sent,
        received,
        empty,
        deleted,
        deduplicated if queue.fifo else None,
        size_bytes,
    )


def _oldest(connection: Any, queue: _Measured, bounds: dict[str, int]) -> int | None:
    """The instant from which the age counts: of the oldest send, or in a dead-letter queue of the oldest move."""
    moved_at: int | None = None
    if queue.holds_dead_letters:
        row = connection.execute(measure.FIND_OLDEST_MOVE, bounds).fetchone()
        moved_at = None if row is None else row[0]
    if moved_at is None:
        oldest: int | None = connection.execute(sql.SELECT_OLDEST, bounds).fetchone()[0]
        return oldest
    row = connection.execute(measure.FIND_OLDEST_UNMOVED, {**bounds, "oldest_move_at": moved_at}).fetchone()
    return moved_at if row is None else int(row[0])


def _noisy_and_quiet(
    connection: Any, queue: _Measured, counts: _Counts, bounds: dict[str, Any]
) -> tuple[Any, ...]:
    """How many groups are noisy, and visible, in flight, delayed and age without them; five times None if FIFO."""
    if queue.fifo:
        return (None,) * 5
    noisy: list[str] = []
    if queue.has_tenants and counts.in_flight >= NOISY_FROM:
        # Where none can be noisy nothing is counted.
        asked = {**bounds, "in_flight": counts.in_flight}
        noisy = [row[0] for row in connection.execute(measure.LIST_NOISY_GROUPS, asked)]
    if noisy:
        asked = {**bounds, "noisy_groups": json.dumps(noisy)}
        row = connection.execute(measure.MEASURE_QUIET_GROUPS, asked).fetchone()
        in_flight, delayed, messages, oldest_at = row
        counts = _Counts(messages - in_flight - delayed, in_flight, delayed, oldest_at)
    return len(noisy), counts.visible, counts.in_flight, counts.delayed, counts.age(bounds["now_ms"])


def _activity(connection: Any, queue: _Measured, since: int) -> tuple[int, ...]:
    """Sent, received, empty receives, deleted, deduplicated, bytes sent: closed minutes, and the open one."""
    bounds = {"queue_id": queue.id, "since_at": since}
    closed: tuple[int, ...] = connection.execute(measure.SUM_ACTIVITY, bounds).fetchone()
    if queue.minute_at < since:
        return closed
    return tuple(before + now for before, now in zip(closed, queue[8:], strict=True))
