# SPDX-License-Identifier: Apache-2.0
"""`receive`, which prints, deletes or hands messages to a command; `peek` and `tail`, which only look."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sqsqlite.cli.arguments import queue_argument
from sqsqlite.cli.aws_output import check_query, prints
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import EMPTY, PARTIAL, Failure, code_of
from sqsqlite.cli.message_rows import peeked_row, received_row
from sqsqlite.cli.options import span
from sqsqlite.cli.receiving import AT_ONCE, Receiving
from sqsqlite.cli.table import Column, instant, with_group
from sqsqlite.contract import limits
from sqsqlite.contract.limits import LOOKED_AT

_ID, _BODY = Column("message_id"), Column("body", cut=True)
_SENT_AT = Column("sent_at", "sent (UTC)", leave=1, shown=instant)
_PEEKED = (_ID, Column("state", leave=3, width=9), Column("receive_count", "count", leave=2), _SENT_AT, _BODY)
# The rows are in order of sending, so the instant leaves a narrow screen last.
_TAILED = (
    _ID,
    Column("state", leave=2, width=9),
    Column("receive_count", "count", leave=1),
    _SENT_AT._replace(leave=3),
    _BODY,
)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def how_many(*more: str) -> Callable[[_Command], _Command]:
    """The option -n, --number, as `number`; `more` are its other names."""
    return click.option(
        "-n",
        "--number",
        *more,
        "number",
        type=click.IntRange(LOOKED_AT.low, LOOKED_AT.high),
        default=10,
        show_default=True,
        help="The number of messages.",
    )


@click.command("peek")
@queue_argument
@how_many()
@click.option(
    "--hidden", is_flag=True, help="Show delayed and in-flight messages, the next to become visible first."
)
@click.pass_obj
def peek(line: CommandLine, queue: str, number: int, hidden: bool) -> None:
    r"""Look at messages without receiving them.

    \b
      sqsqlite peek orders -n 3
      sqsqlite peek orders --hidden --query '[].{id: message_id, until: visible_at}'

    Shows the visible messages that a receive would return next. It counts as no receive and hides nothing. On a FIFO
    queue, it also shows messages that wait for an earlier one of their group.
    """
    found = line.queue(queue)
    rows = [peeked_row(message) for message in found.peek(number, hidden=hidden)]
    if not rows:
        line.say("no hidden messages" if hidden else "no visible messages")
    line.output.rows(rows, with_group(_PEEKED, found.name, rows))


@click.command("tail")
@queue_argument
@how_many()
@click.option("-f", "--follow", is_flag=True, help="Keep showing new messages until interrupted.")
@click.pass_obj
def tail(line: CommandLine, queue: str, number: int, follow: bool) -> None:
    r"""Show the latest messages; -f waits for new ones.

    \b
      sqsqlite tail orders
      sqsqlite tail orders -f

    Shows messages in any state, in order of sending. -f may miss a message that is sent and deleted within a quarter
    of a second. A message that moves to a dead-letter queue keeps its send time, so -f does not show it there.
    """
    found = line.queue(queue)
    if not follow:
        rows = [peeked_row(message) for message in found.tail(number)]
        line.output.rows(rows, with_group(_TAILED, found.name, rows))
        return
    line.output.rows(map(peeked_row, found.follow(number)), with_group(_TAILED, found.name), endless=True)


_COLUMNS = (_ID, Column("receive_count", "count", leave=2), _SENT_AT, _BODY)
_ATTRIBUTES = Column("attributes")
_WAIT = limits.SQS.receive_message_wait_time_seconds
_VISIBILITY_TIMEOUT = limits.SQS.visibility_timeout_seconds


@click.command("receive")
@queue_argument
@click.option(
    "-n",
    "--number",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many messages to receive at most.",
)
@click.option(
    "--wait", type=int, metavar="SECONDS", help=f"How long to wait for the first message, {span(_WAIT)}."
)
@click.option(
    "--visibility-timeout",
    type=int,
    metavar="SECONDS",
    help=f"How long messages stay hidden, {span(_VISIBILITY_TIMEOUT)}.",
)
@click.option("--delete", is_flag=True, help="Delete the messages after printing them.")
@click.option("--fail-empty", is_flag=True, help="Exit with 3 if no message came.")
@click.option("--loop", is_flag=True, help="Wait for more messages until interrupted.")
@click.option(
    "--exec",
    "command",
    metavar="COMMAND",
    help="Run COMMAND for each message, with the body on standard input.",
)
@click.option(
    "--retry-after",
    type=int,
    metavar="SECONDS",
    help="With --exec: show a failed message again after this time (0: at once), not at the end of its timeout.",
)
@click.pass_obj
def receive(
    line: CommandLine,
    queue: str,
    number: int,
    wait: int | None,
    visibility_timeout: int | None,
    delete: bool,
    fail_empty: bool,
    loop: bool,
    command: str | None,
    retry_after: int | None,
) -> None:
    r"""Receive messages, or run a command for each.

    \b
      sqsqlite receive orders -n 5 --delete
      sqsqlite receive orders --loop --exec './handle-order'

    A received message is hidden from other consumers until its visibility timeout ends or it is deleted. On a FIFO
    queue the rest of its group waits too: at most ten messages of a group come before these are deleted, which --exec
    and --loop --delete do as they go.

    With --delete, --query must give one result for each message ('[].body'; with --loop 'body'). If it gives nothing or
    null for a message, the message is not deleted: the exit code is 4, and the message comes back when its timeout
    ends.

    A visibility timeout of 0 hides nothing. Then the command makes one receive of at most ten messages, so that no
    message comes twice. Each receive counts, and may be the one that sends a message to the dead-letter queue.
    `sqsqlite peek` only looks.

    With --exec the shell runs COMMAND for each message. Exit code 0 deletes the message. After another code the message
    waits for its visibility timeout, or for --retry-after. A message that another consumer has received or deleted
    meanwhile counts as lost, and the exit code is 4. While COMMAND runs, the timeout is extended. COMMAND finds
    SQSQLITE_QUEUE, SQSQLITE_MESSAGE_ID, SQSQLITE_RECEIVE_COUNT, SQSQLITE_RECEIPT_HANDLE, SQSQLITE_SENT_AT,
    SQSQLITE_GROUP_ID, SQSQLITE_ATTRIBUTES (JSON) and SQSQLITE_DB (the file) in its environment. Attributes too large
    for an environment are left out, and SQSQLITE_LEFT_OUT names their variable.
    """
    if command is None and retry_after is not None:
        raise click.UsageError("--retry-after needs --exec")
    if command is not None and delete:
        raise click.UsageError(
            "--delete and --exec can't be combined: COMMAND deletes a message by exit code 0"
        )
    query = line.options.get("query")
    if delete and query is not None:
        check_query(query, each=loop)
    source = Receiving(line.sqs.client, line.queue(queue).name, wait, visibility_timeout)
    if retry_after is not None:
        _check_visibility_timeout(retry_after)
    with line.naming(source.name):  # another process may delete the queue meanwhile
        if loop and not source.visibility_timeout:
            raise click.UsageError(
                "--loop with a visibility timeout of 0 would receive the same messages again and again: "
                "--visibility-timeout sets another, `sqsqlite peek` and `sqsqlite tail -f` only read"
            )
        if command is not None:
            from sqsqlite.cli.work import Work

            work = Work(line, source, command, retry_after)
            count = work.run(None if loop else number)
        elif loop:
            count = _print_for_ever(line, source, delete=delete)
        else:
            count = _print(line, source, number, delete=delete)
    if not count:
        line.say(f"{source.name}: no message")
        if fail_empty:
            raise Failure("", EMPTY)


def _check_visibility_timeout(seconds: int) -> None:
    """Check the number of seconds before the first message is received.

    Raises:
        InvalidParameterValue: SQS does not allow this number of seconds.
    """
    from sqsqlite.contract import shapes
    from sqsqlite.contract.requests import ChangeMessageVisibility

    given = {"QueueUrl": "any", "ReceiptHandle": "any", "VisibilityTimeout": seconds}
    shapes.parse(ChangeMessageVisibility, given, limits.SQS)  # native allows no other numbers


def _print(line: CommandLine, source: Receiving, number: int, *, delete: bool) -> int:
    portions = list(source.up_to(number))
    messages = [message for portion in portions for message in portion]
    rows = [received_row(message) for message in messages]
    line.output.whole = delete
    line.output.rows(rows, _columns(source.name, rows, delete=delete))
    if delete:
        _delete_printed(line, source, messages, rows, each=False)
    return len(rows)


def _print_for_ever(line: CommandLine, source: Receiving, *, delete: bool) -> int:
    count = 0
    columns = _columns(source.name, delete=delete)
    line.output.whole = delete
    for portion in source.for_ever():
        rows = [received_row(message) for message in portion]
        line.output.rows(rows, columns, endless=True)
        count += len(portion)
        if delete:
            _delete_printed(line, source, portion, rows, each=True)
    return count


def _columns(queue: str, rows: list[dict[str, Any]] | None = None, *, delete: bool) -> list[Column]:
    """The columns of a table and of text. --delete adds the attributes, if `rows` have some or come later."""
    columns = with_group(_COLUMNS, queue, rows or ())
    if delete and (rows is None or any(row["attributes"] for row in rows)):
        columns.append(_ATTRIBUTES)
    return columns


def _delete_printed(
    line: CommandLine,
    source: Receiving,
    messages: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    *,
    each: bool,
) -> None:
    """Delete the messages of which --query printed something, once the output is flushed.

    Args:
        each: whether --query applies to one message at a time, or to the list of all.

    Raises:
        Failure: some messages were not printed, or could not be deleted.
    """
    line.output.sync()
    query = line.options.get("query")
    printed = [
        message
        for message, row in zip(messages, rows, strict=True)
        if query is None or prints(query, row, each=each)
    ]
    failed = [
        entry
        for start in range(0, len(printed), AT_ONCE)
        for entry in source.delete(printed[start : start + AT_ONCE])
    ]
    reasons = [f"{code_of(entry['Code'])}: {entry['Message']}" for entry in failed]
    if failed:
        reasons.append(f"{len(failed)} printed, but not deleted")
    if len(printed) < len(messages):
        reasons.append(
            f"{len(messages) - len(printed)} received, but not deleted: --query prints nothing for them"
        )
    if reasons:
        raise Failure("\n".join(reasons), PARTIAL)
