# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite demo`: workers on real input, one of them killed, and the sum."""

import os
import shutil
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sqsqlite.cli.command_line import CommandLine, pass_line
from sqsqlite.cli.failures import FAILED, Failure
from sqsqlite.cli.output import Output
from sqsqlite.cli.table import Column

if TYPE_CHECKING:
    from sqsqlite.demo.performance import Outcome

_TOTALS = (Column("what"), Column("count"), Column("remark", cut=True))
_RETURNS = (
    Column("message_id"),
    Column("path", cut=True, shown=lambda path: "/".join(Path(path).parts[-2:])),
    Column("receive_count", "count", leave=2),
    Column("received_by", "by", leave=3),
    Column("seconds_after_kill", "s after kill", leave=1),
)

_VERBS = (
    "queues",
    "stats",
    "peek source-files-dead",
    "tail source-files-dead",
    "send source-files hello",
    "check",
)
FOLDER = Path("demo-output")


@click.command("demo")
@click.option("--workers", type=click.IntRange(2, 64), default=4, show_default=True, help="Worker processes.")
@click.option(
    "--limit", type=click.IntRange(20), metavar="N", help="At most N files, spread over the library."
)
@click.option("--report/--no-report", default=True, help="End with Spark's report of the file. Default: yes.")
@pass_line
@click.pass_context
def demo(context: click.Context, line: CommandLine, workers: int, limit: int | None, report: bool) -> None:
    r"""Run workers on real input, kill one, and show that it adds up.

    The demo sends a message for each source file of Python's standard library. Worker processes receive the messages
    and parse the files. They write each result to a table of the application, in the transaction that deletes the
    message. If a worker's visibility timeout ends first (on a slow machine many do), the result is rolled back.
    The demo kills one worker (SIGKILL) while it holds messages, and the others receive those again. Files that do not
    parse end in the dead-letter queue. Finally the demo counts everything: the exit code is 1 if anything was lost or
    done twice. If Spark and Java are installed, Spark reports on the file, and writes a page next to it.

    The file stays. It is ./demo-output/demo.db, or demo-2.db and so on, unless --db names another new file.

    \b
      sqsqlite demo
      sqsqlite demo --workers 8 --limit 500 --db /tmp/demo.db
    """
    from sqsqlite.demo.performance import CrewFailed, perform

    path = _path(context, line)
    line.check_out((path,))
    line.say(f"The queues and the results will be in {path}.")
    try:
        outcome = perform(path, worker_count=workers, limit=limit, say=line.say)
    except FileExistsError as error:
        raise click.UsageError(f"{error}. --db names another.") from error
    except CrewFailed as error:
        raise Failure(f"CrewFailed: {error}", FAILED) from error
    _print(context, line, outcome, report=report)
    if outcome.faults:
        raise Failure("\n".join(("It does not add up:", *outcome.faults)), FAILED)


def _path(context: click.Context, line: CommandLine) -> Path:
    """The file that --db names, else a new one. SQSQLITE_DB names the user's own file, which is not for demos."""
    root = context.find_root()
    from_environment = (
        root.get_parameter_source("db") is ParameterSource.ENVIRONMENT
        and context.get_parameter_source("db") is not ParameterSource.COMMANDLINE
    )
    if line.options.get("db") and not from_environment:
        return line.path
    number = 1
    while (path := FOLDER / (f"demo-{number}.db" if number > 1 else "demo.db")).exists():
        number += 1
    return path


def _print(context: click.Context, line: CommandLine, outcome: "Outcome", *, report: bool) -> None:
    """Print tables, also into a pipe, unless the user chose a format."""
    if line.options.get("output") not in (None, "table") or line.options.get("query") is not None:
        document = {
            "path": str(outcome.path),
            "totals": {row["what"]: row["count"] for row in totals(outcome)},
            "received_again": returns(outcome),
            "faults": outcome.faults,
        }
        line.output.document(document)
        return

    def run(*words: str) -> None:
        line.say(f"\nsqsqlite {' '.join(words)}:")
        arguments = ["--db", str(outcome.path), "--output", "table", *words]
        context.find_root().command.main(arguments, "sqsqlite", standalone_mode=False)

    output = Output("table", path=line.options.get("out"), inputs=(outcome.path,), coloured=line.coloured)
    try:
        output.rows(totals(outcome), _TOTALS)
        if back := returns(outcome):
            line.say("\nThe other workers received the killed worker's messages again:")
            output.rows(back, _RETURNS)
        output.finish()
    finally:
        output.close()
    run("queues")
    if not outcome.faults:
        line.say("\nIt adds up: sent = processed once + dead letters. To look around:")
        for verb in _VERBS:
            line.say(f"  {program()} --db {quote(str(outcome.path))} {verb}")
    if report:
        page = str(outcome.path.with_suffix(".html"))
        try:
            run("report", "backlog")
            run("report", "all", "--output", "html", "--out", page)
        except Failure as failure:
            line.say(f"left out: {failure.message}")
        else:
            line.say(f"All of Spark's reports, as a page: {page}")


def totals(outcome: "Outcome") -> list[dict[str, Any]]:
    """The sum, a row each: `what`, `count` and a `remark`."""
    rows, kill = outcome.evidence.parsed, outcome.evidence.kill
    functions, classes = sum(row.functions for row in rows), sum(row.classes for row in rows)
    found = f"{functions:,} functions, {classes:,} classes, {sum(row.lines for row in rows):,} lines"
    again = {receive.message_id for receive in outcome.evidence.receives if receive.receive_count > 1}
    held = f"{len(kill.held) if kill else 0} held by the killed worker, the others unparsable or late"
    workers = f"by {outcome.worker_count} worker processes, first receives only"
    sum_ = (
        ("sent", len(outcome.evidence.sent), "one message for each source file"),
        ("processed once", len({row.message_id for row in rows}), found),
        ("dead letters", len(outcome.evidence.dead_letters), "unparsable, received maxReceiveCount times"),
        ("redelivered", len(again), held),
        ("late", outcome.evidence.late_count, "timeout ended at work: rolled back, received again"),
        ("messages/s", round(_rate(outcome)), workers),
        ("seconds", round(outcome.seconds, 1), "in all, with the waits for visibility timeouts to end"),
    )
    return [{"what": what, "count": count, "remark": remark} for what, count, remark in sum_]


def _rate(outcome: "Outcome") -> float:
    """Messages a second that were processed at their first receive, from the first receive to the last commit."""
    ends = [row.parsed_at for row in outcome.evidence.parsed if row.receive_count == 1]
    if not ends:
        return 0.0
    return 1000 * len(ends) / max(max(ends) - outcome.evidence.receives[0].received_at, 1)


def returns(outcome: "Outcome") -> list[dict[str, Any]]:
    """The messages of the killed worker, a row each, as the others received them."""
    from sqsqlite.demo.audit import find_returns

    kill = outcome.evidence.kill
    return [
        {
            "message_id": receive.message_id,
            "path": outcome.evidence.sent[receive.message_id],
            "receive_count": receive.receive_count,
            "received_by": receive.worker,
            "seconds_after_kill": round((receive.received_at - kill.at) / 1000, 1),
        }
        for receive in find_returns(kill, outcome.evidence.receives)
        if kill is not None
    ]


def program() -> str:
    """How to run this command again: by its name if the shell finds it, else by its path."""
    if shutil.which("sqsqlite"):
        return "sqsqlite"
    script = Path(sys.argv[0])
    if script.name == "sqsqlite" and os.access(script, os.X_OK):
        return quote(str(script))
    return f"{quote(sys.executable)} -m sqsqlite.cli"
