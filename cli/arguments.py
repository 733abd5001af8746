# SPDX-License-Identifier: Apache-2.0
"""Types of arguments: names and how the shell completes them, `--since` and `--duration`."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import Failure, failure_of
from sqsqlite.cli.options import ENVIRONMENT, given
from sqsqlite.errors import InvalidAttributeName, InvalidParameterValue, SQSQLiteError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class QueueName(click.types.StringParamType):
    """A queue by name, URL or ARN."""

    name = "queue"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - Click's signature
        incomplete: str,
    ) -> "list[CompletionItem]":
        """The names of queues in the file that the half-typed line names. Makes no file."""
        from click.shell_completion import CompletionItem

        line = CommandLine({"db": os.environ.get(ENVIRONMENT), **given(ctx)})
        try:
            return [CompletionItem(queue.name) for queue in line.sqs.queues(incomplete)]
        except (Failure, SQSQLiteError):
            return []  # half a line has no place for errors; the finished command reports them
        finally:
            line.close()


queue_argument = click.argument("queue", metavar="QUEUE", type=QueueName())
optional_queue_argument = click.argument("queue", metavar="[QUEUE]", required=False, type=QueueName())


@contextmanager
def with_fifo_hint(parameters: Mapping[str, Any], remedy: str) -> Iterator[None]:
    """Add a hint to a refused CreateQueue that asks for a FIFO queue.

    Args:
        parameters: by SQS's names; without QueueName nothing is added.
        remedy: how this command makes such a queue.
    """
    try:
        yield
    except (InvalidAttributeName, InvalidParameterValue) as error:
        name, attributes = parameters.get("QueueName"), parameters.get("Attributes") or {}
        from sqsqlite.contract.fifo_only import asks_for_fifo

        why = asks_for_fifo(name, attributes) if isinstance(name, str) else None
        if why is None:
            raise
        raise Failure(f"{failure_of(error).message}\nhint: {why}: {remedy}") from error


class AttributeName(click.types.StringParamType):
    """Text that begins with the name of an attribute. It accepts any text; the request checks it.

    Args:
        attributes: "settable" and "readable" of a queue, or "message" for the system attributes of one.
        ending: what follows the name.
    """

    def __init__(self, attributes: str, ending: str = "") -> None:
        self._attributes = attributes
        self._ending = ending

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - Click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> "list[CompletionItem]":
        """The names that begin with the typed text."""
        from click.shell_completion import CompletionItem

        names = _names(self._attributes)
        return [CompletionItem(name + self._ending) for name in names if name.startswith(incomplete)]


def _names(attributes: str) -> Iterable[str]:
    """The names. The modules are loaded when a shell asks, since `--help` does not need them."""
    if attributes == "message":
        from sqsqlite.contract.requests import MESSAGE_SYSTEM_ATTRIBUTES

        return ["All", *sorted(MESSAGE_SYSTEM_ATTRIBUTES)]
    from sqsqlite.contract import queue_attributes

    if attributes == "settable":
        return queue_attributes.SETTABLE
    return ["All", *queue_attributes.SETTABLE, *queue_attributes.READ_ONLY]


_HOW = {
    "bash": ("~/.bashrc", 'eval "$(_SQSQLITE_COMPLETE=bash_source sqsqlite)"'),
    "zsh": ("~/.zshrc", 'eval "$(_SQSQLITE_COMPLETE=zsh_source sqsqlite)"'),
    "fish": ("~/.config/fish/completions/sqsqlite.fish", "_SQSQLITE_COMPLETE=fish_source sqsqlite | source"),
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_HOW)))
def completion(shell: str) -> None:
    r"""Print how to switch on shell completion.

    \b
      sqsqlite completion bash >> ~/.bashrc

    The shell then completes commands, flags, attributes and the names of the queues in the file (--db, else
    SQSQLITE_DB, else ./sqsqlite.db).
    """
    place, command = _HOW[shell]
    click.echo(f"# in {place}:\n{command}")


_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LENGTH = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)


class LengthType(click.ParamType):  # type: ignore[type-arg] # as below
    """`90s`, `15m`, `2h`, `7d`, `2w`, or a number of seconds. The value is in seconds."""

    name = "length"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Raises click.BadParameter: the text is not a length of time."""
        match = _LENGTH.fullmatch(f"{value}s" if str(value).isdecimal() else str(value))
        if match is None:
            self.fail(f"{value!r} is not a length of time such as 90s, 15m, 2h or 7d", param, ctx)
        return int(match[1]) * _UNITS_MS[match[2]] // 1_000


class Since(NamedTuple):
    """Either a length before now or an instant since 1970 UTC, in milliseconds; the other one is None."""

    window_ms: int | None
    instant_ms: int | None


class SinceType(click.ParamType):  # type: ignore[type-arg] # of late generic; Click 8.1 has no subscript
    """`90s`, `15m`, `2h`, `7d`, `2w`, or an instant in ISO 8601, in UTC unless it names a zone."""

    name = "since"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Since:
        """Raises click.BadParameter: the text is neither, the length is zero, or the instant is in the future."""
        if isinstance(value, Since):
            return value
        if match := _LENGTH.fullmatch(value):
            if not int(match[1]):
                self.fail(f"{value!r}: a length of time is at least 1s", param, ctx)
            return Since(int(match[1]) * _UNITS_MS[match[2]], None)
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is neither a length of time such as 90s, 15m, 2h or 7d nor an instant such as "
                "2026-11-21T06:30:00Z",
                param,
                ctx,
            )
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        if instant > datetime.now(UTC):
            self.fail(
                f"{value!r} is in the future: an instant is before now, and in UTC unless it names a zone",
                param,
                ctx,
            )
        return Since(None, round(instant.timestamp() * 1000))
