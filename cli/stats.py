# SPDX-License-Identifier: Apache-2.0
"""`stats`, `top` and `metrics`: counts, ages and rates of queues, and CloudWatch's metrics."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.arguments import optional_queue_argument
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.message_rows import instant
from sqsqlite.cli.queues import counts_columns, counts_row, target_name
from sqsqlite.cli.table import Column

if TYPE_CHECKING:
    from sqsqlite import QueueMetrics, QueueStatistics

Wait = Callable[[float], bool]

_SORTS = {"name": "queue", "visible": "visible", "age": "oldest_seconds", "in-flight": "in_flight"}
_ACTIVITY = (
    Column("sent", leave=7),
    Column("received", "recv", leave=6),
    Column("deleted", "del", leave=5),
    Column("dead_lettered", "dead", leave=3),
    Column("empty_receives", "empty", leave=2),
    Column("dead_letter_queue", "dead letters to", leave=1),
)
_RATES = (
    # The count of delayed messages leaves before the rates, which are the purpose of `top`.
    Column("sent_per_s", "sent/s", leave=13),
    Column("received_per_s", "recv/s", leave=12),
    Column("deleted_per_s", "del/s", leave=11),
    Column("dead_lettered_per_s", "dead/s", leave=1),
)


@click.command("stats")
@optional_queue_argument
@click.pass_obj
def stats(line: CommandLine, queue: str | None) -> None:
    r"""Show counts, ages, and the activity of the last minute or two.

    \b
      sqsqlite stats
      sqsqlite stats orders --query '[0].visible'

    visible, in_flight and delayed are exact. sent, received, deleted, dead_lettered and empty_receives count the
    running minute and the one before it, that is, since activity_since.
    """
    found = _statistics(line, queue)
    line.output.rows((_stats_row(one) for one in found), [*counts_columns(), *_ACTIVITY])
    if found and line.output.shows_tables:
        since = (instant(found[0].activity_since) or "")[11:16]
        line.say(f"the columns from sent to empty count since {since} UTC, the last minute or two")


def _statistics(line: CommandLine, queue: str | None) -> "list[QueueStatistics]":
    if queue is None:
        return line.sqs.stats()
    name = line.queue(queue).name
    return [found for found in line.sqs.stats(name) if found.name == name]


def _stats_row(found: "QueueStatistics") -> dict[str, Any]:
    return {
        **counts_row(found),
        "sent": found.sent,
        "received": found.received,
        "deleted": found.deleted,
        "dead_lettered": found.dead_lettered,
        "empty_receives": found.empty_receives,
        "activity_since": instant(found.activity_since),
        "dead_letter_queue": target_name(found),
    }


_TOP = (*counts_columns(), *_RATES)


@click.command("top")
@click.option("--once", is_flag=True, help="Show one table, with the rates of one interval, and end.")
@click.option("--sort", type=click.Choice(list(_SORTS)), default="visible", show_default=True)
@click.option("--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True, metavar="SECONDS")
@click.pass_obj
def top(line: CommandLine, once: bool, sort: str, interval: float) -> None:
    r"""Watch the queues, refreshed every second.

    \b
      sqsqlite top
      sqsqlite top --once --output json

    Rates are messages a second since the last refresh. Without a terminal, each refresh prints another table below the
    last one. Press q or Ctrl-C to quit.
    """
    whole_screen = line.output.has_screen and not once and "output" not in line.options
    with quit_key() as wait:
        for rows in _refreshed(line, interval, wait):
            rows.sort(key=lambda row: row[_SORTS[sort]], reverse=sort != "name")
            if whole_screen:
                title = f"{line.path}  {time.strftime('%H:%M:%S')}  queues: {len(rows)}  (q quits)"
                line.output.fill_screen(title, rows, _TOP)
                continue
            line.output.rows(rows, _TOP, default="table")
            line.output.flush()
            if once:
                return


def _refreshed(line: CommandLine, interval: float, wait: Wait) -> Iterator[list[dict[str, Any]]]:
    """Yield rows after each interval, until `wait` returns True."""
    sqs = line.sqs
    looked_ms = begun_ms = sqs.now_ms()

    def look() -> "dict[str, QueueStatistics]":
        # All looks count from the same minute on, so the difference between two of them is exact.
        return {found.name: found for found in sqs.stats(since=begun_ms)}

    before = look()
    while not wait(interval):
        now, now_ms = look(), sqs.now_ms()
        seconds = (now_ms - looked_ms) / 1000
        yield [_top_row(found, before.get(name), seconds) for name, found in now.items()]
        before, looked_ms = now, now_ms


def _top_row(now: "QueueStatistics", before: "QueueStatistics | None", seconds: float) -> dict[str, Any]:
    def rate(name: str) -> float:
        earlier: int = 0 if before is None else getattr(before, name)
        # A smaller count means that a new queue has the same name.
        count: int = getattr(now, name) - earlier
        return round(max(count, 0) / seconds, 1)

    return {
        **counts_row(now),
        "sent_per_s": rate("sent"),
        "received_per_s": rate("received"),
        "deleted_per_s": rate("deleted"),
        "dead_lettered_per_s": rate("dead_lettered"),
    }


@contextmanager
def quit_key() -> Iterator[Wait]:
    """Yield a function that waits for a number of seconds, and returns True at once when q is pressed.

    If standard input is not a terminal, or on Windows, it only waits.
    """
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield _sleep
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)  # Ctrl-C still interrupts
    try:
        yield lambda seconds: _waited_for_q(terminal, seconds)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _waited_for_q(terminal: int, seconds: float) -> bool:
    import select

    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            keys = os.read(terminal, 64)
            if not keys:
                return True  # the terminal is gone
            if keys.lower().startswith(b"q"):
                return True
    return False


_METRICS = (Column("QueueName", "queue"), Column("metric"), Column("value"))


@click.command("metrics")
@optional_queue_argument
@click.pass_obj
def metrics(line: CommandLine, queue: str | None) -> None:
    r"""Show CloudWatch's metrics of the queues.

    \b
      sqsqlite metrics
      sqsqlite metrics orders --query '[0].ApproximateAgeOfOldestMessage'

    Shows all queues, or QUEUE, at one instant. Counts are exact, and ages are in seconds. NumberOf... and
    SentMessageSize count the running minute and the one before it. Some metrics exist only for FIFO queues, others only
    for standard queues. A table has a line for each metric; the other formats have an object for each queue.
    """
    found = line.sqs.metrics() if queue is None else [line.queue(queue).metrics()]
    if line.output.makes_tables:
        line.output.rows((cell for one in found for cell in _metrics_cells(one)), _METRICS)
    else:
        line.output.rows(_metrics_rows(found))


def _metrics_rows(found: "list[QueueMetrics]") -> Iterator[dict[str, Any]]:
    """Yield the same names for each queue, with null for a metric that its kind does not have."""
    measured = [(one.name, one.cloudwatch()) for one in found]
    names = dict.fromkeys(name for _, values in measured for name in values)
    for queue, values in measured:
        yield {"QueueName": queue, **{name: values.get(name) for name in names}}


def _metrics_cells(found: "QueueMetrics") -> Iterator[dict[str, Any]]:
    for name, value in found.cloudwatch().items():
        yield {"QueueName": found.name, "metric": name, "value": value}
