"""Messages looked at: no lease, no receive count, nothing written."""

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.message_rows import peeked_row
from sqsqlite.cli.queue_names import queue_argument
from sqsqlite.cli.table import Column, instant, with_group
from sqsqlite.contract.limits import LOOKED_AT

_ID, _BODY = Column("message_id"), Column("body", cut=True)
_SENT_AT = Column("sent_at", "sent (UTC)", leave=1, shown=instant)
_PEEKED = (_ID, Column("state", leave=3, width=9), Column("receive_count", "count", leave=2), _SENT_AT, _BODY)
# In order of sending, so the instant stays as long as anything does.
_TAILED = (
    _ID,
    Column("state", leave=2, width=9),
    Column("receive_count", "count", leave=1),
    _SENT_AT._replace(leave=3),
    _BODY,
)
_FOLLOW_SECONDS = 0.25
_Command = TypeVar("_Command", bound=Callable[..., Any])


def how_many(*more: str) -> Callable[[_Command], _Command]:
    """The option -n, --number, as `number`; `more` are other names of it."""
    return click.option(
        "-n",
        "--number",
        *more,
        "number",
        type=click.IntRange(LOOKED_AT.low, LOOKED_AT.high),
        default=10,
        show_default=True,
        help="How many messages.",
    )


@click.command("peek")
@queue_argument
@how_many()
@click.option("--hidden", is_flag=True, help="Those delayed or in flight, the next to return first.")
@click.pass_obj
def peek(line: CommandLine, queue: str, number: int, hidden: bool) -> None:
    r"""Look at messages without receiving them.

    \b
      sqsqlite peek orders -n 3
      sqsqlite peek orders --hidden --query '[].{id: message_id, until: visible_at}'

    Shows the visible ones that would be received next. Counts no receive and hides nothing. On a FIFO queue those
    that wait for another of their group to be settled are visible too.
    """
    found = line.queue(queue)
    rows = [peeked_row(message) for message in found.peek(number, hidden=hidden)]
    if not rows:
        line.say("no message hidden" if hidden else "no message visible")
    line.print_rows(rows, with_group(_PEEKED, found.name, rows))


@click.command("tail")
@queue_argument
@how_many()
@click.option(
    "-f", "--follow", is_flag=True, help="Go on with new messages as they are sent, until interrupted."
)
@click.pass_obj
def tail(line: CommandLine, queue: str, number: int, follow: bool) -> None:
    r"""Show the messages sent last; -f goes on with new ones.

    \b
      sqsqlite tail orders
      sqsqlite tail orders -f

    In order of sending, whatever their state. A message that is sent and deleted within a quarter of a second may be
    missed, and one that moves to a dead-letter queue keeps its time of sending, so -f does not show it there.
    """
    name = line.queue(queue).name
    if not follow:
        from sqsqlite.actions.caller import LOCAL
        from sqsqlite.operators.inspect import last_messages

        rows = [peeked_row(message) for message in last_messages(line.open(), name, LOCAL, number)]
        line.print_rows(rows, with_group(_TAILED, name, rows))
        return
    line.print_rows(_followed(line, name, number), with_group(_TAILED, name), endless=True)


def _followed(line: CommandLine, name: str, number: int) -> Iterator[dict[str, Any]]:
    from sqsqlite.actions.caller import LOCAL
    from sqsqlite.operators.inspect import last_messages, messages

    store = line.open()
    after = (store.clock.now_ms(), 0)
    for message in last_messages(store, name, LOCAL, number):
        after = (message.sent_at, message.row_id)
        yield peeked_row(message)
    while True:
        for message in messages(store, name, LOCAL, after):
            after = (message.sent_at, message.row_id)
            yield peeked_row(message)
        time.sleep(_FOLLOW_SECONDS)
