# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite send` sends one message, or standard input as messages."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqsqlite.cli.arguments import queue_argument
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import Failure
from sqsqlite.cli.options import span
from sqsqlite.cli.table import Column
from sqsqlite.contract import limits

if TYPE_CHECKING:
    from sqsqlite.cli.feed import Feed

_DELAY = limits.SQS.delay_seconds


@click.command("send")
@queue_argument
@click.argument("body")
@click.option(
    "--delay", type=int, metavar="SECONDS", help=f"Delay before the message becomes visible, {span(_DELAY)}."
)
@click.option(
    "-a",
    "--attribute",
    "attributes",
    multiple=True,
    metavar="NAME[:TYPE]=VALUE",
    help="An attribute. TYPE: String (default) or Number. Repeatable.",
)
@click.option("--group", "group_id", metavar="ID", help="The message group; on a standard queue, the tenant.")
@click.option("--deduplication-id", metavar="ID", help="The deduplication id. FIFO queues only.")
@click.option(
    "--jsonl", is_flag=True, help="Read JSON objects from the lines: body, attributes, delay, group_id, ..."
)
@click.option("--nul", is_flag=True, help="Separate messages at NUL characters instead of line ends.")
@click.option("--raw", is_flag=True, help="Send the whole input as one message.")
@click.option("--create", is_flag=True, help="Make the queue and the file if they do not exist.")
@click.option(
    "--continue-on-error", is_flag=True, help="Write refused messages to a file and go on; exit code 4."
)
@click.option(
    "--refused",
    "refused_path",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The file for refused messages, as lines for --jsonl. Default: QUEUE-refused.jsonl.",
)
@click.pass_obj
def send(
    line: CommandLine,
    /,
    queue: str,
    body: str,
    attributes: tuple[str, ...],
    jsonl: bool,
    nul: bool,
    raw: bool,
    create: bool,
    continue_on_error: bool,
    refused_path: Path | None,
    **common: Any,
) -> None:
    r"""Send a message, or one for each line of standard input.

    \b
      sqsqlite send orders "paint the fence" -a kind=chore -a price:Number=12
      seq 1000 | sqsqlite send orders -
      sqsqlite send orders - --jsonl < messages.jsonl

    BODY is the text; - reads standard input, and commits several hundred messages at once. Empty lines are skipped. If
    a line is refused, the command sends the lines before it and stops, unless --continue-on-error is given. After any
    other error, Ctrl-C or SIGTERM it says how many lines were sent, and how to send the others. It prints the id of the
    message; with - only if --output is given.
    """
    if jsonl + nul + raw > 1:
        raise click.UsageError("--jsonl, --nul and --raw can't be combined")
    if refused_path is not None and not continue_on_error:
        raise click.UsageError("--refused needs --continue-on-error")
    if body == "-" and common["deduplication_id"] is not None and not raw:
        raise click.UsageError("--deduplication-id with - would make all lines duplicates of the first one")
    common["attributes"] = _typed(attributes)
    common = {name: value for name, value in common.items() if value is not None}
    if create:
        line.open(create=True).create_queue(queue, fifo=queue.endswith(".fifo"))
    if body != "-":
        with line.naming(queue):
            sent = line.sqs.send(queue, body, **common)
        line.output.rows([_row(sent)], [Column("message_id")])
        return
    sqs, found = line.sqs, line.queue(queue)
    from sqsqlite.cli.feed import Aside, Feed

    aside = Aside(refused_path or Path(f"{found.name}-refused.jsonl")) if continue_on_error else None
    read = _json_line if jsonl else _text if nul or raw else _text_line
    # A line's own members win over the options.
    feed = Feed(sqs, found, lambda record: {**common, **read(record)}, aside)
    _send_input(line, feed, b"" if raw else b"\0" if nul else b"\n")


def _send_input(line: CommandLine, feed: "Feed", separator: bytes) -> None:
    from sqsqlite.cli.feed import records

    stream = sys.stdin.buffer
    progress = line.progress("sent", stream)

    def sent_rows() -> Iterator[dict[str, Any]]:
        for portion in records(stream, separator):
            wanted = [record for record in portion if record[1].strip(b"\r") or not separator]
            sent = feed.send(wanted) if wanted else []
            progress.advance(len(sent))
            yield from (_row(message) for message in sent)

    rows = sent_rows()
    try:
        if "output" in line.options:
            line.output.rows(rows, [Column("message_id")])
        else:
            for _ in rows:
                pass
    except BaseException as error:
        progress.clear()
        if not isinstance(error, Failure):
            click.echo(feed.progress_after(error, separator), err=True)
        if feed.aside and (failure := feed.aside.close()):
            line.say(failure.message)
        raise
    progress.clear()
    line.say(progress.summary)
    if feed.aside and (failure := feed.aside.close()):
        raise failure


def _row(sent: Any) -> dict[str, Any]:
    return {
        "message_id": sent.message_id,
        "md5_of_body": sent.md5_of_body,
        "sequence_number": sent.sequence_number,
    }


def _text(record: bytes) -> dict[str, Any]:
    try:
        return {"body": record.decode()}
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte {error.start + 1} does not belong to a character") from error


def _text_line(record: bytes) -> dict[str, Any]:
    return _text(record.removesuffix(b"\r"))


def _json_line(record: bytes) -> dict[str, Any]:
    from decimal import Decimal

    from sqsqlite.cli.message_rows import BadMessage, message_of

    try:
        row = json.loads(_text(record)["body"], parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise BadMessage(f"not JSON, from character {error.pos + 1} on") from error
    except RecursionError as error:
        raise BadMessage("nested too deeply for a message") from error
    try:
        return message_of(row)
    except BadMessage as error:
        error.row = row if isinstance(row, dict) else None
        raise


def _typed(words: tuple[str, ...]) -> dict[str, Any] | None:
    """Parse attributes: `name=value` is a String, `name:Number=5` and `name:String.label=x` name their type."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        name, _, data_type = name.partition(":")
        if not (name and equals) or data_type.startswith("Binary"):
            raise click.BadParameter(
                f"{word!r}: expected NAME=VALUE or NAME:Number=VALUE; --jsonl takes binary values",
                param_hint="--attribute",
            )
        found[name] = {"DataType": data_type or "String", "StringValue": value}
    return found or None
