"""The reports by name: what each reads, which of its options matter, and where it begins unless told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqsqlite.spark import reports
from sqsqlite.spark.tables import Reads

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
EVERY_MS: Mapping[str, int] = {"minute": _MINUTE, "hour": _HOUR, "day": _DAY}
FOR_EVER = 0

_MESSAGE = ("sent_at", "visible_at", "received")
_ACTIVITY = (
    "minute_at",
    "sent",
    "received",
    "deleted",
    "empty_receives",
    "dead_lettered",
    "deduplicated",
    "sent_bytes",
)


@dataclass(frozen=True, slots=True)
class Report:
    """One report.

    Attributes:
        function: of `reports.py`; takes the tables by their names.
        reads: tables and columns.
        summary: one sentence.
        window_ms: how far back it looks unless told, in milliseconds; None: it has no `since`.
        takes: which other options it has, of `top` and `every_ms`.
        details: the reports that go with it on a terminal and on a page.
        passes: how often it reads the messages, if it does.
    """

    function: "Callable[..., DataFrame]"
    reads: Reads
    summary: str
    window_ms: int | None = None
    takes: frozenset[str] = frozenset()
    details: tuple[str, ...] = ()
    passes: int = 1


@dataclass(frozen=True, slots=True)
class Options:
    """What a report can be told.

    Attributes:
        since_ms: an instant in milliseconds since 1970 UTC to begin at.
        window_ms: the same as a length of time before now; the report's own unless one of both is given.
        queues: names; all unless said.
        top: of a list, how many rows.
        every: minute, hour or day: the periods of throughput.
    """

    since_ms: int | None = None
    window_ms: int | None = None
    queues: tuple[str, ...] = ()
    top: int = 20
    every: str = "hour"


REPORTS: Mapping[str, Report] = {
    "backlog": Report(
        reports.backlog,
        {"messages": (*_MESSAGE, "size_bytes"), "queues": (), "activity": ("minute_at", "sent", "deleted")},
        "What waits in each queue, how old it is, and how long until it is gone.",
        window_ms=15 * _MINUTE,
        details=("ages",),
        passes=2,
    ),
    "ages": Report(
        reports.ages, {"messages": _MESSAGE, "queues": ()}, "How many messages are how old: a histogram."
    ),
    "receives": Report(
        reports.receives,
        {
            "messages": (*_MESSAGE, "receive_count", "queue_receive_count"),
            "queues": ("max_receive_count",),
        },
        "How often messages were received, and which of them may be poison.",
        window_ms=FOR_EVER,
        details=("poison",),
    ),
    "poison": Report(
        reports.poison,
        {
            "messages": (*_MESSAGE, "receive_count", "queue_receive_count", "group_id", "message_id"),
            "queues": ("max_receive_count",),
        },
        "The messages that were received again and again.",
        window_ms=FOR_EVER,
        takes=frozenset({"top"}),
    ),
    "dead-letters": Report(
        reports.dead_letters,
        {
            "dead_letters": ("source_arn", "receive_count", "moved_at", "sent_at", "size_bytes"),
            "queues": (),
        },
        "What died: where it came from, when, and after how many receives.",
        window_ms=FOR_EVER,
    ),
    "throughput": Report(
        reports.throughput,
        {"activity": _ACTIVITY, "queues": ()},
        "What was sent, received and deleted in each minute, hour or day.",
        window_ms=_DAY,
        takes=frozenset({"every_ms"}),
    ),
    "groups": Report(
        reports.groups,
        {
            "messages": (*_MESSAGE, "size_bytes", "group_id"),
            "queues": ("fifo",),
            "groups": ("group_id", "head_visible_at"),
            "tenants": ("group_id", "last_turn", "queue_turn"),
        },
        "The FIFO groups and tenants that hold things up.",
        takes=frozenset({"top"}),
    ),
    "leases": Report(
        reports.leases,
        {"messages": (*_MESSAGE, "received_at", "receive_count"), "queues": ()},
        "What is held, for how long, and when it comes back.",
        window_ms=FOR_EVER,
        details=("expiring",),
    ),
    "expiring": Report(
        reports.expiring,
        {
            "messages": (*_MESSAGE, "received_at", "receive_count", "group_id", "message_id"),
            "queues": (),
        },
        "The held messages that come back next.",
        window_ms=FOR_EVER,
        takes=frozenset({"top"}),
    ),
    "fleet": Report(
        reports.fleet,
        {"files": (), "queues": (), "messages": (*_MESSAGE, "size_bytes")},
        "Every file with what waits in it, and what is wrong with it.",
    ),
}

CLOUDWATCH: Mapping[str, str] = {
    "visible": "ApproximateNumberOfMessagesVisible",
    "in_flight": "ApproximateNumberOfMessagesNotVisible",
    "delayed": "ApproximateNumberOfMessagesDelayed",
    "oldest_age_seconds": "ApproximateAgeOfOldestMessage",
    "sent": "NumberOfMessagesSent",
    "received": "NumberOfMessagesReceived",
    "deleted": "NumberOfMessagesDeleted",
    "empty_receives": "NumberOfEmptyReceives",
    "deduplicated": "NumberOfDeduplicatedSentMessages",
    "sent_bytes": "SentMessageSize",
}
"""CloudWatch's metric for a column of ours, where there is one. SentMessageSize is one message's, ours a sum."""


def reads_of(*names: str) -> Reads:
    """What these reports read together."""
    wanted: dict[str, dict[str, None]] = {}
    for name in names:
        for table, columns in REPORTS[name].reads.items():
            wanted.setdefault(table, {}).update(dict.fromkeys(columns))
    return {table: tuple(columns) for table, columns in wanted.items()}


def passes(*names: str) -> int:
    """How often these reports together read the messages."""
    return sum(REPORTS[name].passes for name in names if "messages" in REPORTS[name].reads)


def make(name: str, tables: "Mapping[str, DataFrame]", options: Options) -> "DataFrame":
    """A report's frame, of tables with what `reads_of` names. Nothing is computed yet."""
    report = REPORTS[name]
    frames = {table: tables[table] for table in report.reads}
    if options.queues:
        frames["queues"] = frames["queues"].where(frames["queues"].queue.isin(*options.queues))
    arguments: dict[str, Any] = {}
    if report.window_ms is not None:
        arguments["since"] = _since(report.window_ms, options)
    if "top" in report.takes:
        arguments["top"] = options.top
    if "every_ms" in report.takes:
        arguments["every_ms"] = EVERY_MS[options.every]
    return report.function(**frames, **arguments)


def _since(own_window_ms: int, options: Options) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    if options.since_ms is not None:
        return F.lit(options.since_ms)
    window_ms = own_window_ms if options.window_ms is None else options.window_ms
    return F.lit(0) if window_ms == FOR_EVER else F.col("now_ms") - window_ms
