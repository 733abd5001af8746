# SPDX-License-Identifier: Apache-2.0
"""Queues: list, create, set, purge, delete."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.arguments import AttributeName, QueueName, queue_argument, with_fifo_hint
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import Failure, failure_of
from sqsqlite.cli.options import all_of, span
from sqsqlite.cli.table import Column, age
from sqsqlite.contract.limits import SQS, Range
from sqsqlite.errors import QueueNameExists

if TYPE_CHECKING:
    from sqsqlite import Queue, QueueStatistics


_RECEIVES = 3  # default number of receives before a message goes to the dead-letter queue


def _number(flag: str, limit: Range, meaning: str, unit: str = "SECONDS") -> Callable[..., Any]:
    return click.option(flag, type=int, metavar=unit, help=f"{meaning}, {span(limit)}.")


# The options of both `create` and `set`.
_settings = all_of(
    _number("--visibility-timeout", SQS.visibility_timeout_seconds, "How long a received message is hidden"),
    _number("--delay-seconds", SQS.delay_seconds, "Delay before a message becomes visible"),
    _number("--message-retention-period", SQS.message_retention_period_seconds, "How long a message is kept"),
    _number(
        "--receive-message-wait-time-seconds",
        SQS.receive_message_wait_time_seconds,
        "How long a receive waits by default",
    ),
    _number(
        "--maximum-message-size",
        SQS.maximum_message_size_bytes,
        "The largest body with its attributes",
        "BYTES",
    ),
    click.option(
        "--content-based-deduplication",
        type=click.Choice(("true", "false")),
        help="FIFO queues: whether a message without a deduplication id gets one from its body.",
    ),
    click.option(
        "--dead-letter-queue",
        metavar="QUEUE",
        type=QueueName(),
        help="The queue for messages that fail too often; it must exist.",
    ),
    click.option(
        "--max-receive-count",
        type=int,
        metavar="COUNT",
        help=f"Receives before a message goes to the dead-letter queue, {span(SQS.max_receive_count)}. "
        f"Default: {_RECEIVES}.",
    ),
    click.option(
        "-a",
        "--attribute",
        "attributes",
        type=AttributeName("settable", "="),
        multiple=True,
        metavar="NAME=VALUE",
        help="Any attribute, by SQS's name. Repeatable.",
    ),
    click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A tag. Repeatable."),
)


@click.command("create")
@queue_argument
@_settings
@click.pass_obj
def create(
    line: CommandLine,
    /,
    queue: str,
    dead_letter_queue: str | None,
    max_receive_count: int | None,
    **given: Any,
) -> None:
    r"""Make a queue, and the file if it does not exist.

    \b
      sqsqlite create orders-failed
      sqsqlite create orders --visibility-timeout 60 --dead-letter-queue orders-failed
      sqsqlite create invoices.fifo -a ContentBasedDeduplication=true

    A name that ends in .fifo makes a FIFO queue. If a queue with this name and these attributes exists already, the
    command succeeds; `sqsqlite set` changes a queue.
    """
    if max_receive_count is not None and dead_letter_queue is None:
        raise click.UsageError(
            "--max-receive-count needs --dead-letter-queue: it says when messages go there"
        )
    tags = _pairs(given.pop("tags"), "--tag")
    attributes = _attributes(**given)
    if queue.endswith(".fifo"):
        attributes.setdefault("FifoQueue", "true")
    sqs = line.open(create=True)
    if dead_letter_queue is not None:
        count = _RECEIVES if max_receive_count is None else max_receive_count
        attributes["RedrivePolicy"] = _policy(line.queue(dead_letter_queue).arn, count)
    request = {"QueueName": queue, "Attributes": attributes, **({"tags": tags} if tags else {})}
    try:
        with with_fifo_hint(request, "a name that ends in .fifo makes one"):
            sqs.client.create_queue(**request)
    except QueueNameExists as error:
        hint = f"hint: `sqsqlite set {queue}` changes a queue, with the same options"
        raise Failure(f"{failure_of(error).message}\n{hint}") from error
    line.say(f"{queue}: ready in {line.path}")


@click.command("set")
@queue_argument
@_settings
@click.pass_obj
def set_(
    line: CommandLine,
    /,
    queue: str,
    dead_letter_queue: str | None,
    max_receive_count: int | None,
    **given: Any,
) -> None:
    r"""Change a queue's attributes and tags.

    \b
      sqsqlite set orders --visibility-timeout 60 --tag team=sales
      sqsqlite set orders --dead-letter-queue orders-failed --max-receive-count 5
      sqsqlite set orders -a RedrivePolicy=

    Sets all given attributes or, if one is refused, none; other attributes stay. An empty RedrivePolicy removes the
    dead-letter queue. Tags are added, or their values replaced.
    """
    tags = _pairs(given.pop("tags"), "--tag")
    attributes = _attributes(**given)
    if not (tags or attributes) and dead_letter_queue is None and max_receive_count is None:
        raise click.UsageError("give at least one attribute or tag to set")
    found = line.queue(queue)
    with line.naming(found.name), line.sqs.transaction():
        if dead_letter_queue is not None or max_receive_count is not None:
            target = None if dead_letter_queue is None else line.queue(dead_letter_queue).arn
            attributes["RedrivePolicy"] = _changed_policy(found, target, max_receive_count)
        if attributes:
            found.set_attributes(attributes)
        if tags:
            found.tag(tags)
    line.say(f"{found.name}: set")


def _changed_policy(queue: "Queue", target: str | None, count: int | None) -> str:
    """The queue's RedrivePolicy with another target, another count, or both."""
    text = queue.attributes.get("RedrivePolicy")
    old = json.loads(text) if text else {}
    target = target or old.get("deadLetterTargetArn")
    if target is None:
        raise click.UsageError(
            f"--max-receive-count needs --dead-letter-queue: {queue.name} does not have one"
        )
    return _policy(target, old.get("maxReceiveCount", _RECEIVES) if count is None else count)


def _policy(target_arn: str, max_receive_count: int) -> str:
    return json.dumps({"deadLetterTargetArn": target_arn, "maxReceiveCount": max_receive_count})


def _attributes(attributes: tuple[str, ...], **options: int | str | None) -> dict[str, str]:
    """The attributes by SQS's names, from --attribute and the other options."""
    found = _pairs(attributes, "--attribute")
    for option, value in options.items():
        if value is None:
            continue
        name = "".join(word.capitalize() for word in option.split("_"))
        if name in found:
            raise click.UsageError(f"{name} is given twice: --{option.replace('_', '-')} and --attribute")
        found[name] = str(value)
    return found


def _pairs(words: tuple[str, ...], flag: str) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{word!r}: expected NAME=VALUE", param_hint=flag)
        pairs[name] = value
    return pairs


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
        {**counts_row(found), "dead_letter_queue": target_name(found)} for found in line.sqs.stats(prefix)
    ]
    if not rows:
        line.say(f"no queue's name begins with {prefix!r}" if prefix else "no queues")
    line.output.rows(rows, [*counts_columns(), Column("dead_letter_queue", "dead letters to", leave=1)])


def counts_columns() -> list[Column]:
    """The columns of a queue's counts and age in `queues`, `stats` and `top`."""
    return [
        Column("queue"),
        Column("visible"),
        Column("in_flight", "flight"),
        Column("delayed", leave=10),
        Column("oldest_seconds", "age", shown=age),
    ]


def counts_row(found: "QueueStatistics") -> dict[str, Any]:
    """The values of `counts_columns`."""
    return {
        "queue": found.name,
        "visible": found.visible,
        "in_flight": found.in_flight,
        "delayed": found.delayed,
        "oldest_seconds": round(found.age_of_oldest_seconds),
    }


def target_name(found: "QueueStatistics") -> str | None:
    """The name of the dead-letter queue."""
    arn = found.dead_letter_target_arn
    return None if arn is None else arn.rpartition(":")[2]


yes_option = click.option("--yes", is_flag=True, help="Do not ask first.")
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Say what the command would do, and do nothing."
)


@click.command("purge")
@queue_argument
@yes_option
@dry_run_option
@click.pass_obj
def purge(line: CommandLine, queue: str, yes: bool, dry_run: bool) -> None:
    r"""Delete all messages of a queue, including messages in flight.

    \b
      sqsqlite purge orders --dry-run
      sqsqlite purge orders

    You cannot undo this. A queue can be purged once every 60 seconds.
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

    You cannot undo this. For 60 seconds, a queue of this name can't be made again.
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
    """A warning that names the queues with this dead-letter queue. Without it, they keep their failing messages."""
    targets = {found.name: target_name(found) for found in line.sqs.stats()}
    sources = [source for source, target in targets.items() if target == name]
    if not sources:
        return ""
    shown = ", ".join(sources[:_SOURCES_SHOWN]) + (", ..." if len(sources) > _SOURCES_SHOWN else "")
    return f", the dead-letter queue of {shown}"


def messages(count: int) -> str:
    """A count with its noun: 1 message, 12,340 messages."""
    return f"{count:,} message{'' if count == 1 else 's'}"
