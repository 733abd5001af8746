# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite dlq` shows dead letters, and `redrive` sends them back."""

from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.arguments import QueueName, optional_queue_argument, queue_argument
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, PARTIAL, Failure
from sqsqlite.cli.message_rows import instant, peeked_row
from sqsqlite.cli.options import span
from sqsqlite.cli.queues import dry_run_option, messages, target_name, yes_option
from sqsqlite.cli.receive import how_many
from sqsqlite.cli.table import Column, age, with_group
from sqsqlite.cli.table import instant as short_instant
from sqsqlite.contract.limits import SQS as LIMITS
from sqsqlite.errors import InvalidParameterValue, ResourceNotFoundException, StoreError

if TYPE_CHECKING:
    from sqsqlite import DeadLetter, DeadLetterCount, MoveFilter, MoveTask, PlannedMove, Queue

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
_PLAN = (
    Column("source"),
    Column("destination"),
    Column("messages"),
    Column("stays_because", "stays because"),
)
_RESULT = (Column("queue"), Column("status"), Column("moved"), Column("failure_reason", "because"))
_source_option = click.option(
    "--source", metavar="QUEUE", type=QueueName(), help="Only messages that came from this queue."
)
_RATE = LIMITS.move_task_messages_per_second


@click.command("dlq")
@optional_queue_argument
@how_many("--limit")
@_source_option
@click.pass_obj
def dlq(line: CommandLine, queue: str | None, number: int, source: str | None) -> None:
    r"""Show dead letters, their sources and receive counts.

    \b
      sqsqlite dlq
      sqsqlite dlq orders-failed
      sqsqlite dlq orders-failed --source orders --limit 100 --query '[].body'

    Without QUEUE, it lists the dead-letter queues, and the number of messages from each source queue. With QUEUE, it
    shows the dead letters of that queue, the latest first; their age counts from the send. It receives nothing.
    `sqsqlite redrive` sends dead letters back.
    """
    if queue is None:
        if source is not None:
            raise click.UsageError("--source needs QUEUE: it chooses among that queue's dead letters")
        _print_queues(line)
        return
    _print_messages(line, line.queue(queue), number, source)


def _print_queues(line: CommandLine) -> None:
    found = line.sqs.dead_letters()
    if not found:
        line.say("no dead-letter queues")
    line.output.rows((_queue_row(one) for one in found), _QUEUES)
    for missing in (one for one in found if not one.exists):
        line.say(
            f"{missing.source}: its dead-letter queue {missing.queue} does not exist; failing messages stay in "
            f"{missing.source}"
        )


def _queue_row(found: "DeadLetterCount") -> dict[str, Any]:
    return {
        "queue": found.queue,
        "source": found.source,
        "messages": found.messages,
        "oldest_moved_at": instant(found.oldest_moved_at),
        "newest_moved_at": instant(found.newest_moved_at),
    }


def _print_messages(line: CommandLine, queue: "Queue", number: int, source: str | None) -> None:
    with line.naming(source):  # the name of --source may be wrong
        found = queue.dead_letters(number + 1, source=source)
    now_ms = line.sqs.now_ms()
    rows = [_message_row(one, now_ms) for one in found[:number]]
    if not rows:
        line.say(f"{queue.name}: {_why_none(line, queue.name)}")
    line.output.rows(rows, with_group(_MESSAGES, queue.name, rows))
    if len(found) > number:
        line.say(f"there are more than {number:,} messages: --limit shows more")


def _why_none(line: CommandLine, name: str) -> str:
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


@click.command("redrive")
@queue_argument
@click.option("--to", metavar="QUEUE", type=QueueName(), help="Send all messages to this queue.")
@click.option(
    "--rate",
    type=click.IntRange(_RATE.low, _RATE.high),
    metavar="N",
    help=f"Messages a second, {span(_RATE)}. Default: as fast as possible.",
)
@_source_option
@click.option("--body-contains", "body", metavar="TEXT", help="Only messages with this text in their body.")
@click.option(
    "--min-receives",
    "minimum_receive_count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only messages received at least N times before they died.",
)
@dry_run_option
@yes_option
@click.option(
    "--background",
    is_flag=True,
    help="Start the move and return. Any process that has the file open continues it.",
)
@click.pass_obj
def redrive(
    line: CommandLine,
    /,
    queue: str,
    to: str | None,
    rate: int | None,
    dry_run: bool,
    yes: bool,
    background: bool,
    source: str | None,
    **conditions: Any,
) -> None:
    r"""Send dead letters back to their source queues.

    \b
      sqsqlite redrive orders-failed --dry-run
      sqsqlite redrive orders-failed --source orders --body-contains Oslo
      sqsqlite redrive orders-failed --to orders-by-hand --rate 50 --yes

    Moves each visible message of the dead-letter queue QUEUE to its source queue, or to --to. There it is a new
    message: it has a new id, is sent now and was never received. The command starts a move task, as
    start-message-move-task does. Ctrl-C cancels the task; moved messages stay moved. If the command is killed, the next
    process that opens the file continues the task.

    A message that died in several queues goes back one step with each redrive.
    """
    from sqsqlite import MoveFilter

    found = line.queue(queue)
    target = None if to is None else line.queue(to)
    only = MoveFilter(source_arn=source, **conditions)
    parts = _planned(line, found, target, only)
    going = [part for part in parts if part.kept_by is None]
    count = sum(part.messages for part in going)
    if dry_run:
        line.output.rows((_plan_row(part) for part in parts), _PLAN)
        line.say(f"would move {messages(count)} from {found.name}")
        return
    staying = sum(part.messages for part in parts) - count
    if not count:
        line.say(f"{found.name}: nothing to move{_advice(parts, to)}")
        return
    stays = f"; {staying:,} {'stays' if staying == 1 else 'stay'}" if staying else ""
    line.confirm(f"move {messages(count)} from {found.name} to {_where_to(going)}{stays}", yes=yes)
    task = found.start_move_task(target, max_messages_per_second=rate, only=only)
    if background:
        line.say(f"{found.name}: started; any process that has the file open continues the move")
        line.output.rows([_result_row(found, task)], _RESULT)
        return
    task = _follow(line, found, task, count)
    line.output.rows([_result_row(found, task)], _RESULT)
    _refuse_less(task)


def _planned(
    line: CommandLine, queue: "Queue", target: "Queue | None", only: "MoveFilter"
) -> "list[PlannedMove]":
    """Plan the task. If another task of the queue is running, say how far it is."""
    try:
        with line.naming(only.source_arn if isinstance(only.source_arn, str) else None):
            return queue.plan_redrive(target, only=only)
    except InvalidParameterValue:
        for task in queue.move_tasks(1):
            if task.status == "RUNNING":
                line.say(
                    f"a task is running: {task.moved_count:,} of {task.to_move_count:,} moved. To stop it: "
                    f"sqsqlite cancel-message-move-task --task-handle {task.task_handle}"
                )
        raise


def _follow(line: CommandLine, queue: "Queue", task: "MoveTask", count: int) -> "MoveTask":
    """Show the progress of the task until it ends. Ctrl-C and SIGTERM cancel it."""
    progress = line.progress("moved", total=count)
    try:
        return task.follow(lambda now: progress.advance(now.moved_count - progress.count))
    except KeyboardInterrupt:
        progress.clear()
        try:
            line.say(f"{queue.name}: cancelled; {task.cancel():,} of {count:,} moved, the others stay")
        except ResourceNotFoundException:
            line.say(f"{queue.name}: the task had ended already")
        raise
    except StoreError:
        progress.clear()
        line.say(f"{queue.name}: the task is kept, and continues as soon as possible")
        raise
    finally:
        progress.clear()


def _advice(staying: "list[PlannedMove]", to: str | None) -> str:
    """Say which messages stay and why, and how to move the ones without a destination."""
    if not staying:
        return ""
    counts: dict[str | None, int] = {}
    for part in staying:
        counts[part.kept_by] = counts.get(part.kept_by, 0) + part.messages
    reasons = ", ".join(f"{count:,} ({kept_by})" for kept_by, count in counts.items())
    lost = to is None and any(part.lacks_destination for part in staying)
    return f"; staying: {reasons}{'. --to QUEUE moves messages without a destination' if lost else ''}"


def _where_to(going: "list[PlannedMove]") -> str:
    """`orders`, or `mails (3), orders (12)`."""
    counts: dict[str | None, int] = {}
    for part in going:
        counts[part.destination] = counts.get(part.destination, 0) + part.messages
    if len(counts) == 1:
        return str(next(iter(counts)))
    return ", ".join(f"{name} ({count:,})" for name, count in counts.items())


def _plan_row(part: "PlannedMove") -> dict[str, Any]:
    return {
        "source": part.source,
        "destination": part.destination,
        "messages": part.messages,
        "stays_because": part.kept_by,
    }


def _result_row(source: "Queue", task: "MoveTask") -> dict[str, Any]:
    return {
        "queue": source.name,
        "status": task.status,
        "moved": task.moved_count,
        "failure_reason": task.failure_reason,
        "task_handle": task.task_handle if task.status == "RUNNING" else None,
    }


def _refuse_less(task: "MoveTask") -> None:
    """Raises Failure: the task ended without completing."""
    if task.status == "CANCELLED":
        raise Failure("another process cancelled the task", FAILED)
    if task.status != "COMPLETED":
        raise Failure(f"some messages stay where they are: {task.failure_reason}", PARTIAL)
