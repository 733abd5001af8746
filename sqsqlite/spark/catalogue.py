# SPDX-License-Identifier: Apache-2.0
"""The catalogue: what each report reads, which options it has, and how its frame and its rows are made.

A report is a function in reports.py. The decorator `report` enters it here.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID
from sqsqlite.spark.expressions import F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_Function = TypeVar("_Function", bound=Callable[..., Any])

Reads = Mapping[str, tuple[str, ...]]
"""Tables, and the columns of each that a report reads."""

EVERY_MS: Mapping[str, int] = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
FOR_EVER = 0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Report:
    """One report.

    Attributes:
        function: takes the tables by their names.
        reads: the tables and columns that it reads.
        summary: one sentence.
        window_ms: how far back it looks by default, in milliseconds; None if it has no `since`.
        takes: its other options, of `top` and `every_ms`.
        details: the reports that follow it on a terminal and on a page.
        passes: how often it reads the messages.
    """

    function: "Callable[..., DataFrame]"
    reads: Reads
    summary: str
    window_ms: int | None
    takes: frozenset[str]
    details: tuple[str, ...]
    passes: int


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a report. A report ignores the options that it does not have.

    Attributes:
        since_ms: the instant to begin at, in milliseconds since 1970 UTC.
        window_ms: the same as a length of time before now, in milliseconds. Without either, the report's own.
        queues: names of queues; every queue by default.
        top: the number of rows of a list.
        every: the periods of throughput: `minute`, `hour` or `day`.
    """

    since_ms: int | None = None
    window_ms: int | None = None
    queues: tuple[str, ...] = ()
    top: int = 20
    every: str = "hour"


REPORTS: dict[str, Report] = {}
"""The reports by name, in the order of the page."""

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
"""The columns that are metrics of CloudWatch too. SentMessageSize is the size of one message; the column is a sum."""


def report(
    reads: Reads, *, window_ms: int | None = None, details: tuple[str, ...] = (), passes: int = 1
) -> Callable[[_Function], _Function]:
    """Enter a function as a report, by its name with dashes. Its summary is the first line of its docstring."""

    def enter(function: _Function) -> _Function:
        takes = frozenset(inspect.signature(function).parameters) & {"top", "every_ms"}
        summary = (function.__doc__ or "").partition("\n")[0]
        name = function.__name__.replace("_", "-")
        REPORTS[name] = Report(function, reads, summary, window_ms, takes, details, passes)
        return function

    return enter


def reads_of(*names: str) -> Reads:
    """The tables and columns that these reports read together."""
    wanted: dict[str, dict[str, None]] = {}
    for name in names:
        for table, columns in REPORTS[name].reads.items():
            wanted.setdefault(table, {}).update(dict.fromkeys(columns))
    return {table: tuple(columns) for table, columns in wanted.items()}


def passes(*names: str) -> int:
    """How often these reports together read the messages."""
    return sum(REPORTS[name].passes for name in names if "messages" in REPORTS[name].reads)


def make_report(name: str, tables: "Mapping[str, DataFrame]", options: Options = Options()) -> "DataFrame":
    """The frame of a report. Spark computes nothing yet.

    Args:
        name: one of REPORTS, such as `backlog`.
        tables: those of `tables_of`, or any with the same columns.
        options: see `Options`.
    """
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
    if options.since_ms is not None:
        return F.lit(options.since_ms)
    window_ms = own_window_ms if options.window_ms is None else options.window_ms
    return F.lit(0) if window_ms == FOR_EVER else F.col("now_ms") - window_ms


def rows_of(frame: "DataFrame") -> list[dict[str, Any]]:
    """The rows of a report, with values that JSON knows: instants are texts in ISO 8601, UTC.

    Instants leave Spark as milliseconds. A timestamp would come in the time zone of this process, without saying so.
    """
    instants = {name for name, kind in frame.dtypes if kind == "timestamp"}
    columns = [F.unix_millis(name).alias(name) if name in instants else F.col(name) for name in frame.columns]
    return [
        {name: iso(value) if name in instants else value for name, value in row.asDict().items()}
        for row in frame.select(*columns).collect()
    ]


def iso(milliseconds: int | None) -> str | None:
    """An instant in ISO 8601, UTC, to the millisecond."""
    if milliseconds is None:
        return None
    instant = _EPOCH + timedelta(milliseconds=milliseconds)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def without_constants(rows: list[dict[str, Any]], *, one_file: bool) -> list[dict[str, Any]]:
    """Rows without `file` if there is only one, and without `account_id` if every queue has the default account."""
    names = names_without_constants(list(rows[0]) if rows else [], rows, one_file=one_file)
    return [{name: row[name] for name in names} for row in rows]


def names_without_constants(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], *, one_file: bool
) -> list[str]:
    """The columns that `without_constants` keeps, also if there are no rows."""
    dropped = set()
    if one_file and "queue" in names:
        dropped.add("file")
    if all(row.get("account_id") == DEFAULT_ACCOUNT_ID for row in rows):
        dropped.add("account_id")
    return [name for name in names if name not in dropped]
