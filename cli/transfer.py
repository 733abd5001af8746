# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite forward` and `fetch`: a queue's messages to another endpoint, and from there."""

import signal
from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.arguments import queue_argument
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, PARTIAL, Failure, handled_by
from sqsqlite.cli.options import all_of
from sqsqlite.cli.queues import messages
from sqsqlite.cli.table import Column
from sqsqlite.contract.limits import SQS as LIMITS

if TYPE_CHECKING:
    from types import FrameType

    from sqsqlite.transfer import Refused, Transfer, TransferResult

_RESULT = (
    Column("queue"),
    Column("moved"),
    Column("refused"),
    Column("retried", leave=2),
    Column("throttled", leave=3),
    Column("in_doubt", leave=1),
    Column("renamed", leave=4),
    Column("visible"),
    Column("in_flight"),
    Column("delayed"),
)
_options = all_of(
    click.option("--profile", metavar="NAME", help="A profile of the AWS configuration, for credentials."),
    click.option(
        "--follow", "-f", is_flag=True, help="Go on when the queue is empty, until Ctrl-C or SIGTERM."
    ),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Move at most N messages."),
    click.option(
        "--give-up-after",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="End when the other side has refused for this long. Default: try again without end.",
    ),
    click.option(
        "--visibility-timeout",
        type=click.IntRange(1, LIMITS.visibility_timeout_seconds.high),
        metavar="SECONDS",
        default=60,
        show_default=True,
        help="How long messages under way stay hidden. After a kill they come back then.",
    ),
)


@click.command("forward")
@queue_argument
@click.option("--to", "url", metavar="URL", required=True, help="The URL of the other queue.")
@click.option(
    "--create", is_flag=True, help="Make the other queue with this one's settings if it is missing."
)
@_options
@click.pass_obj
def forward(line: CommandLine, /, queue: str, url: str, create: bool, **options: Any) -> None:
    r"""Move a queue's messages to Amazon SQS or another endpoint.

    \b
      sqsqlite forward orders --to https://sqs.eu-central-1.amazonaws.com/123456789012/orders
      sqsqlite forward orders --to http://other:9324/000000000000/orders --create --follow

    A message is deleted here once the other side has it. So if anything is killed, nothing is lost and the next run
    goes on; a message may then arrive twice. Bodies, attributes, groups and deduplication ids stay as they are. Message
    ids, times and receive counts are new there. Needs boto3, and credentials where boto3 finds them.
    """
    from sqsqlite.transfer import End, Transfer, create_like

    found = line.queue(queue)
    source = End(line.sqs.client, found.name, "the queue")
    target = End(_client(line, url, options.pop("profile")), url, "the target")
    if create:
        source.look()
        target.url = create_like(source, target)
    _run(line, found.name, Transfer(source, target, is_local=True, progress=_Progress(line), **options))


@click.command("fetch")
@queue_argument
@click.option("--from", "url", metavar="URL", required=True, help="The URL of the other queue.")
@_options
@click.pass_obj
def fetch(line: CommandLine, /, queue: str, url: str, **options: Any) -> None:
    r"""Move messages from Amazon SQS or another endpoint to a queue.

    \b
      sqsqlite fetch orders --from https://sqs.eu-central-1.amazonaws.com/123456789012/orders
      sqsqlite fetch orders --from http://other:9324/000000000000/orders --follow

    The mirror of forward: a message is deleted there once it is stored here.
    """
    from sqsqlite.transfer import End, Transfer

    found = line.queue(queue)
    source = End(_client(line, url, options.pop("profile")), url, "the source")
    target = End(line.sqs.client, found.name, "the queue")
    _run(line, found.name, Transfer(source, target, progress=_Progress(line), **options))


def _client(line: CommandLine, url: str, profile: str | None) -> Any:
    from sqsqlite.transfer import client_for

    try:
        return client_for(url, region=line.options.get("region"), profile=profile)
    except ModuleNotFoundError as error:
        raise Failure(str(error), FAILED) from error


class _Progress:
    """Draws the count, and says which messages are refused."""

    def __init__(self, line: CommandLine) -> None:
        self._line = line
        self._shown = line.progress("moved")

    def __call__(self, count: int, refused: "Refused | None") -> None:
        if refused is not None:
            self._line.say(f"{refused.message_id}: refused, it stays in its queue: {refused.reason}")
        self._shown.advance(count)


def _run(line: CommandLine, queue: str, transfer: "Transfer") -> None:
    """Run until the end or a signal, and print the result.

    Raises:
        Failure: the other side refused messages.
        TransferError: the transfer could not go on.
    """

    def stop(_number: int, _frame: "FrameType | None") -> None:
        transfer.stop()

    try:
        with handled_by(stop, signal.SIGINT, signal.SIGTERM):
            result = transfer.run()
    except BaseException:
        line.say(f"{queue}: {messages(transfer.result.moved)} moved before this")
        raise
    line.output.rows([_row(queue, result)], _RESULT)
    _say_rest(line, result)
    if result.refused:
        raise Failure("", PARTIAL)


def _row(queue: str, result: "TransferResult") -> dict[str, Any]:
    names = [column.name for column in _RESULT if column.name not in ("queue", "refused")]
    return {
        "queue": queue,
        "refused": len(result.refused),
        **{name: getattr(result, name) for name in names},
    }


def _say_rest(line: CommandLine, result: "TransferResult") -> None:
    """Say what stays, and why."""
    if result.in_flight or result.delayed:
        line.say(
            f"{result.in_flight:,} in flight with consumers and {result.delayed:,} delayed stay; they can be moved "
            "when they are visible"
        )
    if result.in_doubt:
        line.say(f"{messages(result.in_doubt)} may have arrived twice")
    if result.renamed:
        line.say(
            f"{messages(result.renamed)} got a new deduplication id: another one with the same id went before it "
            "within five minutes"
        )
