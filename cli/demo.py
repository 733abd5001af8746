"""`sqsqlite demo`: the main job on real input, and its sum."""

import os
import shutil
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import click
from click.core import ParameterSource

from sqsqlite.cli.command_line import CommandLine, pass_line
from sqsqlite.cli.failures import FAILED, Failure
from sqsqlite.cli.output import Output
from sqsqlite.cli.table import Column

_TOTALS = (Column("what"), Column("count"), Column("remark", cut=True))
_RETURNS = (
    Column("message_id"),
    Column("path", cut=True, shown=lambda path: "/".join(Path(path).parts[-2:])),
    Column("receive_count", "count", leave=2),
    Column("received_by", "by", leave=3),
    Column("seconds_after_kill", "s after kill", leave=1),
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

    Sends a message for each source file of Python's own standard library. Worker processes receive, parse and count;
    results are written to a table of the application's in the transaction that deletes their messages, so a worker
    whose visibility timeout ended meanwhile (on a slow machine many do) leaves none. One worker is killed (SIGKILL)
    while it holds messages, and the others receive those again. Files that do not parse end in the dead-letter queue.
    In the end everything is counted: exit code 1 if anything was lost or done twice. Where Spark and Java are there,
    the last word is Spark's report of the file, and a page of it beside the file.

    The file stays. It is ./demo-output/demo.db, or demo-2.db and so on, unless --db names another new one.

    \b
      sqsqlite demo
      sqsqlite demo --workers 8 --limit 500 --db /tmp/demo.db
    """
    from sqsqlite.demo.crew import CrewFailed
    from sqsqlite.demo.performance import perform

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
    """The file that --db names, else one that is not there yet. SQSQLITE_DB is the user's own file: not for demos."""
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


def _print(context: click.Context, line: CommandLine, outcome: Any, *, report: bool) -> None:
    """Tables for a human unless a format is asked for: this is a show, even when its output goes into a log."""
    from sqsqlite.demo import report as told

    if line.options.get("output") not in (None, "table") or line.options.get("query") is not None:
        line.output.document(
            {
                "path": str(outcome.path),
                "totals": {row["what"]: row["count"] for row in told.totals(outcome)},
                "received_again": told.returns(outcome),
                "faults": outcome.faults,
            }
        )
        return
    output = Output("table", path=line.options.get("out"), inputs=(outcome.path,))
    try:
        output.rows(told.totals(outcome), _TOTALS)
        if returns := told.returns(outcome):
            line.say("\nWhat the killed worker held, received again:")
            output.rows(returns, _RETURNS)
        line.say("\nsqsqlite queues:")
        root = context.find_root().command
        root.main(
            ["--db", str(outcome.path), "--output", "table", "queues"], "sqsqlite", standalone_mode=False
        )
        if not outcome.faults:
            line.say("\nIt adds up: sent = processed once + dead letters. To look around:")
            for command in told.next_commands(outcome, program()):
                line.say(f"  {command}")
        if report:
            from sqsqlite.cli.demo_report import show_report

            show_report(line, output, outcome.path, outcome.path.with_suffix(".html"))
    finally:
        output.close()


def program() -> str:
    """What this command can be run by again: its name if the shell finds it, else where it is."""
    if shutil.which("sqsqlite"):
        return "sqsqlite"
    script = Path(sys.argv[0])
    if script.name == "sqsqlite" and os.access(script, os.X_OK):
        return quote(str(script))
    return f"{quote(sys.executable)} -m sqsqlite.cli"
