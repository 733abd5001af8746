"""The QUEUE of a command line, and the names that the shell completes it with."""

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import Failure
from sqsqlite.cli.options import given
from sqsqlite.errors import SQSQLiteError


class QueueName(click.types.StringParamType):
    """A queue by name, URL or ARN."""

    name = "queue"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - Click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """The names in the file that the line speaks of, as far as it is typed. Makes no file."""
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
