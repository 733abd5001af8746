"""The QUEUE of a command line, and the names that the shell completes it with."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import Failure, failure_of
from sqsqlite.cli.options import given
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
        """The names in the file that the line speaks of, as far as it is typed. Makes no file."""
        from click.shell_completion import CompletionItem

        line = CommandLine({**_from_environment(), **given(ctx)})
        try:
            return [CompletionItem(queue.name) for queue in line.sqs.queues(incomplete)]
        except (Failure, SQSQLiteError):
            return []  # half a line is typed: there is nowhere to say it, and the finished command will
        finally:
            line.close()


def _from_environment() -> dict[str, Any]:
    import os

    from sqsqlite.cli.options import ENVIRONMENT

    return {"db": os.environ[ENVIRONMENT]} if os.environ.get(ENVIRONMENT) else {}


def queue_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """The argument QUEUE, as `queue`."""
    return click.argument("queue", metavar="QUEUE", type=QueueName())(function)


@contextmanager
def told_of_fifo(parameters: Mapping[str, Any], remedy: str) -> Iterator[None]:
    """Add to a refused CreateQueue that a FIFO queue is what it asks for, if it is.

    Args:
        parameters: by SQS's names; without QueueName nothing is added.
        remedy: what makes such a queue, on this command line.
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
