# SPDX-License-Identifier: Apache-2.0
"""Queues: list, empty, delete."""

from typing import TYPE_CHECKING

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.names import queue_argument
from sqsqlite.cli.table import Column, age

if TYPE_CHECKING:
    from sqsqlite import QueueStatistics

_SOURCES_SHOWN = 5


@click.command("queues")
@click.argument("prefix", default="")
@click.pass_obj
def queues(line: CommandLine, prefix: str) -> None:
    r"""List the queues with their counts.

    \b
      sqsqlite queues
      sqsqlite queues ord --output csv

    With PREFIX, only the queues whose names begin with it.
    """
    rows = [
        {
            "queue": found.name,
            "visible": found.visible,
            "in_flight": found.in_flight,
            "delayed": found.delayed,
            "oldest_seconds": round(found.age_of_oldest_seconds),
            "dead_letter_queue": target_name(found),
        }
        for found in line.sqs.stats(prefix)
    ]
    if not rows:
        line.say(f"no queue's name begins with {prefix!r}" if prefix else "no queues")
    line.print_rows(rows, [*counts_columns(), Column("dead_letter_queue", "dead letters to", leave=1)])


def counts_columns() -> list[Column]:
    """Columns of a queue's counts and age, as `queues`, `stats` and `top` show them."""
    return [
        Column("queue"),
        Column("visible"),
        Column("in_flight", "flight"),
        Column("delayed", leave=10),
        Column("oldest_seconds", "age", shown=age),
    ]


def target_name(found: "QueueStatistics") -> str | None:
    """The dead-letter queue by name."""
    arn = found.dead_letter_target_arn
    return None if arn is None else arn.rpartition(":")[2]


yes_option = click.option("--yes", is_flag=True, help="Do not ask first.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")


@click.command("purge")
@queue_argument
@yes_option
@dry_run_option
@click.pass_obj
def purge(line: CommandLine, queue: str, yes: bool, dry_run: bool) -> None:
    r"""Delete every message in a queue, in flight ones too.

    \b
      sqsqlite purge orders --dry-run
      sqsqlite purge orders

    This cannot be undone. A queue can be purged once in 60 seconds.
    """
    found = line.queue(queue)
    count = len(found)
    if dry_run:
        line.say(f"would purge {messages(count)} from {found.name}")
        return
    line.confirm(f"purge {messages(count)} from {found.name}", yes=yes)
    found.purge()
    line.say(f"{found.name}: purged")


@click.command("delete")
@queue_argument
@yes_option
@dry_run_option
@click.pass_obj
def delete(line: CommandLine, queue: str, yes: bool, dry_run: bool) -> None:
    r"""Delete a queue with its messages.

    \b
      sqsqlite delete orders

    This cannot be undone. For 60 seconds no queue of this name can be made.
    """
    found = line.queue(queue)
    count = len(found)
    if dry_run:
        line.say(f"would delete {found.name} with {messages(count)}{_sources(line, found.name)}")
        return
    line.confirm(lambda: f"delete {found.name} with {messages(count)}{_sources(line, found.name)}", yes=yes)
    found.delete()
    line.say(f"{found.name}: deleted")


def _sources(line: CommandLine, name: str) -> str:
    """A warning of the queues whose dead letters go to this one: once it is gone, what fails there stays there."""
    targets = {found.name: target_name(found) for found in line.sqs.stats()}
    sources = [source for source, target in targets.items() if target == name]
    if not sources:
        return ""
    shown = ", ".join(sources[:_SOURCES_SHOWN]) + (", ..." if len(sources) > _SOURCES_SHOWN else "")
    return f", the dead-letter queue of {shown}"


def messages(count: int) -> str:
    """A count with its noun: 1 message, 12,340 messages."""
    return f"{count:,} message{'' if count == 1 else 's'}"
