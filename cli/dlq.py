"""`sqsqlite dlq`: the dead-letter queues, and what died."""

from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.look import how_many
from sqsqlite.cli.message_rows import instant, peeked_row
from sqsqlite.cli.queue_names import QueueName
from sqsqlite.cli.table import Column, age, with_group
from sqsqlite.cli.table import instant as short_instant

if TYPE_CHECKING:
    from sqsqlite.operators.dead_letters import DeadLetter, DeadLetters

_QUEUES = (
    Column("queue"),
    Column("source"),
    Column("messages"),
    Column("oldest_moved_at", "oldest (UTC)", leave=1, shown=short_instant),
    Column("newest_moved_at", "newest (UTC)", leave=2, shown=short_instant),
)
_MESSAGES = (
    Column("message_id"),
    Column("source"),
    Column("receives"),
    Column("moved_at", "moved (UTC)", leave=3, shown=short_instant),
    Column("age_seconds", "age", leave=4, shown=age),
    Column("body", cut=True),
)


@click.command("dlq")
@click.argument("queue", metavar="[QUEUE]", required=False, type=QueueName())
@how_many("--limit")
@click.option("--source", metavar="QUEUE", type=QueueName(), help="Only what came from this queue.")
@click.pass_obj
def dlq(line: CommandLine, queue: str | None, number: int, source: str | None) -> None:
    r"""Show what died, from where, after how many receives.

    \b
      sqsqlite dlq
      sqsqlite dlq orders-failed
      sqsqlite dlq orders-failed --source orders --limit 100 --query '[].body'

    Without QUEUE the dead-letter queues, and how many messages each has from which queue. With QUEUE its dead letters,
    those moved last first; their age counts from the send. Nothing is received. `sqsqlite redrive` sends them back.
    """
    if queue is None:
        if source is not None:
            raise click.UsageError("--source belongs to QUEUE: it chooses among that queue's dead letters")
        _print_queues(line)
        return
    _print_messages(line, line.queue(queue).name, number, source)


def _print_queues(line: CommandLine) -> None:
    from sqsqlite.actions.caller import LOCAL
    from sqsqlite.operators.dead_letters import dead_letter_queues

    found = dead_letter_queues(line.open(), LOCAL)
    if not found:
        line.say("no dead-letter queues")
    line.print_rows((_queue_row(one) for one in found), _QUEUES)
    for missing in (one for one in found if not one.exists):
        line.say(
            f"{missing.source}: its dead-letter queue {missing.queue} does not exist; what fails stays where it is"
        )


def _queue_row(found: "DeadLetters") -> dict[str, Any]:
    return {
        "queue": found.queue,
        "source": found.source,
        "messages": found.messages,
        "oldest_moved_at": instant(found.oldest_moved_at),
        "newest_moved_at": instant(found.newest_moved_at),
    }


def _print_messages(line: CommandLine, name: str, number: int, source: str | None) -> None:
    from sqsqlite.actions.caller import LOCAL
    from sqsqlite.operators.dead_letters import dead_letters

    store = line.open()
    with line.naming(source):  # all that can be wrong here is the name of --source
        found = dead_letters(store, name, LOCAL, number + 1, source=source)
    now_ms = store.clock.now_ms()
    rows = [_message_row(one, now_ms) for one in found[:number]]
    if not rows:
        line.say(f"{name}: {_why_none(line, name)}")
    line.print_rows(rows, with_group(_MESSAGES, name, rows))
    if len(found) > number:
        line.say(f"there are more than {number:,}: --limit shows more")


def _why_none(line: CommandLine, name: str) -> str:
    from sqsqlite.cli.queues import target_name

    if any(target_name(found) == name for found in line.sqs.stats()):
        return "no dead letters"
    return "no queue sends its dead letters here (`sqsqlite queues` shows where they go)"


def _message_row(found: "DeadLetter", now_ms: int) -> dict[str, Any]:
    row = peeked_row(found.message)
    return {
        "message_id": row.pop("message_id"),
        "source": found.source,
        "receives": found.receives,
        "moved_at": instant(found.moved_at),
        "age_seconds": round((now_ms - found.message.sent_at) / 1000),
        **row,
    }
