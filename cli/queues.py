"""Queues: list, make, empty, delete."""

from typing import TYPE_CHECKING, Any

import click

from sqsqlite import limits
from sqsqlite.cli.attribute_names import AttributeName
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.options import span
from sqsqlite.cli.queue_names import QueueName, queue_argument, told_of_fifo
from sqsqlite.cli.table import Column, age

if TYPE_CHECKING:
    from sqsqlite.service.inspect import QueueStatistics

_SOURCES_SHOWN = 5
_RECEIVES = 3  # until a message goes to the dead-letter queue, unless said


@click.command("queues")
@click.argument("prefix", default="")
@click.pass_obj
def queues(line: CommandLine, prefix: str) -> None:
    r"""List the queues with their counts.

    \b
      sqsqlite queues
      sqsqlite queues ord --output csv

    With PREFIX those whose names begin so.
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


@click.command("create")
@queue_argument
@click.option(
    "-a",
    "--attribute",
    "attributes",
    type=AttributeName("settable", "="),
    multiple=True,
    metavar="NAME=VALUE",
    help="SQS's names. Repeatable.",
)
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="Repeatable.")
@click.option(
    "--dead-letter-queue",
    metavar="QUEUE",
    type=QueueName(),
    help="Where messages go that fail too often; it exists.",
)
@click.option(
    "--max-receive-count",
    type=int,
    metavar="COUNT",
    help=f"How often a message is received before it goes there, {span(limits.SQS.max_receive_count)}. "
    f"Default: {_RECEIVES}.",
)
@click.pass_obj
def create(
    line: CommandLine,
    queue: str,
    attributes: tuple[str, ...],
    tags: tuple[str, ...],
    dead_letter_queue: str | None,
    max_receive_count: int | None,
) -> None:
    r"""Make a queue, and the file if there is none.

    \b
      sqsqlite create orders-failed
      sqsqlite create orders -a VisibilityTimeout=60 --dead-letter-queue orders-failed
      sqsqlite create invoices.fifo -a ContentBasedDeduplication=true

    A queue of this name and these attributes that exists already is no error. One whose name ends in .fifo is a FIFO
    queue.
    """
    if max_receive_count is not None and dead_letter_queue is None:
        raise click.UsageError(
            "--max-receive-count belongs to --dead-letter-queue: it says when messages go there"
        )
    given: dict[str, Any] = {"QueueName": queue, "Attributes": _pairs(attributes, "--attribute")}
    if queue.endswith(".fifo"):
        given["Attributes"].setdefault("FifoQueue", "true")
    if tags:
        given["tags"] = _pairs(tags, "--tag")
    sqs = line.sqs_or_new
    if dead_letter_queue is not None:
        import json

        policy = {
            "deadLetterTargetArn": line.queue(dead_letter_queue).arn,
            "maxReceiveCount": _RECEIVES if max_receive_count is None else max_receive_count,
        }
        given["Attributes"]["RedrivePolicy"] = json.dumps(policy)
    with told_of_fifo(given, "the name says which it is"):
        sqs.client.create_queue(**given)
    line.say(f"{queue}: ready in {line.path}")


def _pairs(words: tuple[str, ...], flag: str) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{word!r}: a name, = and a value are wanted", param_hint=flag)
        pairs[name] = value
    return pairs


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
