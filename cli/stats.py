"""Counts, ages and rates: once, or refreshed."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.queue_names import QueueName
from sqsqlite.cli.queues import target_name

if TYPE_CHECKING:
    from sqsqlite.service.inspect import QueueStatistics

_SORTS = {"name": "queue", "visible": "visible", "age": "oldest_seconds", "in-flight": "in_flight"}


@click.command("stats")
@click.argument("queue", metavar="[QUEUE]", required=False, type=QueueName())
@click.pass_obj
def stats(line: CommandLine, queue: str | None) -> None:
    r"""Show counts, ages and the running minute's activity.

    \b
      sqsqlite stats
      sqsqlite stats orders --query '[0].visible'

    visible, in_flight and delayed are exact; sent, received, deleted, dead_lettered and empty_receives count from the
    beginning of the running minute.
    """
    line.print_rows(_stats_row(found) for found in _statistics(line, queue))


def _statistics(line: CommandLine, queue: str | None) -> "list[QueueStatistics]":
    if queue is None:
        return line.sqs.stats()
    name = line.queue(queue).name
    return [found for found in line.sqs.stats(name) if found.name == name]


def _stats_row(found: "QueueStatistics") -> dict[str, Any]:
    return {
        "queue": found.name,
        "visible": found.visible,
        "in_flight": found.in_flight,
        "delayed": found.delayed,
        "oldest_seconds": round(found.age_of_oldest_seconds),
        "sent": found.sent,
        "received": found.received,
        "deleted": found.deleted,
        "dead_lettered": found.dead_lettered,
        "empty_receives": found.empty_receives,
        "dead_letter_queue": target_name(found),
    }


@click.command("top")
@click.option("--once", is_flag=True, help="Show it once, with the rates of one interval, and end.")
@click.option("--sort", type=click.Choice(list(_SORTS)), default="visible", show_default=True)
@click.option("--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True, metavar="SECONDS")
@click.pass_obj
def top(line: CommandLine, once: bool, sort: str, interval: float) -> None:
    r"""Watch the queues, refreshed every second.

    \b
      sqsqlite top
      sqsqlite top --once --output json

    Rates are messages a second since the last refresh. Where there is no terminal, plain text one below the other.
    Ctrl-C ends it.
    """
    screen = line.output.is_terminal and not once and "output" not in line.options
    for rows in _refreshed(line, interval):
        rows.sort(key=lambda row: row[_SORTS[sort]], reverse=sort != "name")
        if screen:
            click.clear()
            click.echo(f"{line.path}  {time.strftime('%H:%M:%S')}  queues: {len(rows)}\n")
        line.output.rows(rows, default="table")
        line.output.flush()
        if once:
            return


def _refreshed(line: CommandLine, interval: float) -> Iterator[list[dict[str, Any]]]:
    before = {found.name: found for found in line.sqs.stats()}
    while True:
        started = time.monotonic()
        time.sleep(interval)
        now = {found.name: found for found in line.sqs.stats()}
        seconds = time.monotonic() - started
        yield [_top_row(found, before.get(name), seconds) for name, found in now.items()]
        before = now


def _top_row(now: "QueueStatistics", before: "QueueStatistics | None", seconds: float) -> dict[str, Any]:
    def rate(name: str) -> float:
        count: int = getattr(now, name)
        earlier: int = 0 if before is None else getattr(before, name)
        # Below the earlier count a new minute has begun: what came before it in this interval is not seen.
        return round((count - earlier if count >= earlier else count) / seconds, 1)

    return {
        "queue": now.name,
        "visible": now.visible,
        "in_flight": now.in_flight,
        "delayed": now.delayed,
        "oldest_seconds": round(now.age_of_oldest_seconds),
        "sent_per_s": rate("sent"),
        "received_per_s": rate("received"),
        "deleted_per_s": rate("deleted"),
        "dead_lettered_per_s": rate("dead_lettered"),
    }
