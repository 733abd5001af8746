"""`sqsqlite redrive`: dead letters back to where they came from."""

from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, PARTIAL, Failure
from sqsqlite.cli.options import span
from sqsqlite.cli.queue_names import QueueName, queue_argument
from sqsqlite.cli.queues import dry_run_option, messages, yes_option
from sqsqlite.cli.table import Column
from sqsqlite.contract import limits
from sqsqlite.errors import InvalidParameterValue

if TYPE_CHECKING:
    from sqsqlite import Queue
    from sqsqlite.cli.move_task import MoveTask
    from sqsqlite.contract.move_filter import MoveFilter
    from sqsqlite.contract.responses import ListMessageMoveTasksResultEntry
    from sqsqlite.operators.redrive import Part

_PLAN = (
    Column("source"),
    Column("destination"),
    Column("messages"),
    Column("stays_because", "stays because"),
)
_RESULT = (Column("queue"), Column("status"), Column("moved"), Column("failure_reason", "because"))
_RATE = limits.SQS.move_task_messages_per_second


@click.command("redrive")
@queue_argument
@click.option("--to", metavar="QUEUE", type=QueueName(), help="All to this queue.")
@click.option(
    "--rate",
    type=click.IntRange(_RATE.low, _RATE.high),
    metavar="N",
    help=f"Messages a second, {span(_RATE)}. Unless said, as fast as it can.",
)
@click.option("--source", metavar="QUEUE", type=QueueName(), help="Only what came from this queue.")
@click.option("--body-contains", metavar="TEXT", help="Only what has this text in its body.")
@click.option(
    "--min-receives",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only what was received so often, or more, before it died.",
)
@dry_run_option
@yes_option
@click.option("--background", is_flag=True, help="Begin it, and leave it to whoever has the file open.")
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
    **conditions: Any,
) -> None:
    r"""Send dead letters back to where they came from.

    \b
      sqsqlite redrive orders-failed --dry-run
      sqsqlite redrive orders-failed --source orders --body-contains Oslo
      sqsqlite redrive orders-failed --to orders-by-hand --rate 50 --yes

    Each visible message of the dead-letter queue QUEUE becomes a new one of the queue it came from, or of --to: new
    id, sent now, never received. It is one move task, as of start-message-move-task. Ctrl-C cancels it, and what was
    moved stays moved. If the command is killed, the next process that opens the file goes on with it.

    A message that died in several queues one after another goes back one step, and with the next redrive the next.
    """
    from sqsqlite.cli.move_task import MoveTask

    found = line.queue(queue)
    target = None if to is None else line.queue(to)
    task = MoveTask(line, found, target, rate, _filter(line, **conditions))
    parts = _planned(line, task)
    going = [part for part in parts if part.kept_by is None]
    count = sum(part.messages for part in going)
    if dry_run:
        line.print_rows((_plan_row(part) for part in parts), _PLAN)
        line.say(f"would move {messages(count)} from {found.name}")
        return
    staying = sum(part.messages for part in parts) - count
    if not count:
        line.say(f"{found.name}: nothing to move{_advice(parts, to)}")
        return
    stays = f"; {staying:,} {'stays' if staying == 1 else 'stay'}" if staying else ""
    line.confirm(f"move {messages(count)} from {found.name} to {_where_to(going)}{stays}", yes=yes)
    task.start()
    if background:
        line.say(f"{found.name}: begun; whoever has the file open goes on with it")
        line.print_rows([_result_row(found, task.state())], _RESULT)
        return
    state = task.watch(count)
    line.print_rows([_result_row(found, state)], _RESULT)
    _refuse_less(state)


def _planned(line: CommandLine, task: "MoveTask") -> "list[Part]":
    """What the task would do. Where another task of the queue is in the way, how far that is."""
    try:
        return task.plan()
    except InvalidParameterValue:
        state = task.latest()
        if state is not None and state.task_handle is not None:
            line.say(
                f"a task is running: {state.approximate_number_of_messages_moved:,} of "
                f"{state.approximate_number_of_messages_to_move:,} moved. To stop it: "
                f"sqsqlite cancel-message-move-task --task-handle {state.task_handle}"
            )
        raise


def _filter(
    line: CommandLine, *, source: str | None, body_contains: str | None, min_receives: int | None
) -> "MoveFilter":
    """The conditions. A source may be gone; its dead letters are still from it."""
    from sqsqlite.actions.caller import LOCAL
    from sqsqlite.contract.move_filter import MoveFilter
    from sqsqlite.contract.names import queue_arn, queue_name

    arn = None
    if source is not None:
        with line.naming(source):
            account_id, name = queue_name(source)
        arn = queue_arn(line.open().settings.region, account_id or LOCAL.account_id, name)
    return MoveFilter(source_arn=arn, body=body_contains, minimum_receive_count=min_receives)


def _advice(staying: "list[Part]", to: str | None) -> str:
    """What stays and why, where nothing else is there; and how what has nowhere to go could go."""
    from sqsqlite.operators.redrive import NOWHERE

    if not staying:
        return ""
    counts: dict[str | None, int] = {}
    for part in staying:
        counts[part.kept_by] = counts.get(part.kept_by, 0) + part.messages
    reasons = ", ".join(f"{count:,} ({kept_by})" for kept_by, count in counts.items())
    remedy = ". --to QUEUE moves what has nowhere to go" if to is None and counts.keys() & NOWHERE else ""
    return f"; there stay {reasons}{remedy}"


def _where_to(going: "list[Part]") -> str:
    """`orders`, or `mails (3), orders (12)`."""
    counts: dict[str | None, int] = {}
    for part in going:
        counts[part.destination] = counts.get(part.destination, 0) + part.messages
    if len(counts) == 1:
        return str(next(iter(counts)))
    return ", ".join(f"{name} ({count:,})" for name, count in counts.items())


def _plan_row(part: "Part") -> dict[str, Any]:
    return {
        "source": part.source,
        "destination": part.destination,
        "messages": part.messages,
        "stays_because": part.kept_by,
    }


def _result_row(source: "Queue", state: "ListMessageMoveTasksResultEntry") -> dict[str, Any]:
    return {
        "queue": source.name,
        "status": state.status,
        "moved": state.approximate_number_of_messages_moved,
        "failure_reason": state.failure_reason,
        "task_handle": state.task_handle,
    }


def _refuse_less(state: "ListMessageMoveTasksResultEntry") -> None:
    """Raises Failure: the task is over and not completed."""
    from sqsqlite.cli.move_task import CANCELLED, COMPLETED

    if state.status == CANCELLED:
        raise Failure("somebody cancelled the task", FAILED)
    if state.status != COMPLETED:
        raise Failure(f"some messages stay where they are: {state.failure_reason}", PARTIAL)
