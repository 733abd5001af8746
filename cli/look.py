# SPDX-License-Identifier: Apache-2.0
"""Messages looked at: no lease, no receive count, nothing written."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.message_rows import peeked_row
from sqsqlite.cli.names import queue_argument
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
@click.option(
    "--hidden", is_flag=True, help="The delayed ones and those in flight, the next to return first."
)
@click.pass_obj
def peek(line: CommandLine, queue: str, number: int, hidden: bool) -> None:
    r"""Look at messages without receiving them.

    \b
      sqsqlite peek orders -n 3
      sqsqlite peek orders --hidden --query '[].{id: message_id, until: visible_at}'

    Shows the visible messages that would be received next. Counts no receive and hides nothing. On a FIFO queue,
    messages that wait for an earlier one of their group are visible too.
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

    Shows messages in any state, in order of sending. A message that is sent and deleted within a quarter of a second
    may be missed. A message that moves to a dead-letter queue keeps its send time, so -f does not show it there.
    """
    found = line.queue(queue)
    if not follow:
        rows = [peeked_row(message) for message in found.tail(number)]
        line.print_rows(rows, with_group(_TAILED, found.name, rows))
        return
    line.print_rows(map(peeked_row, found.follow(number)), with_group(_TAILED, found.name), endless=True)
