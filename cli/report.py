# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite report`: reports on the queues, made by Spark."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sqsqlite.cli.arguments import Since, SinceType
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, Failure
from sqsqlite.cli.options import given
from sqsqlite.cli.spark_options import Watch, check_queues, queue_files, spark, spark_options
from sqsqlite.cli.table import Column, age, instant, on_screen

if TYPE_CHECKING:
    from sqsqlite.spark import Options, Taken

# The names in sqsqlite.spark.REPORTS, which `--help` does not load; a test compares them.
NAMES = (
    "backlog",
    "ages",
    "receives",
    "poison",
    "dead-letters",
    "throughput",
    "groups",
    "leases",
    "expiring",
    "fleet",
)
FORMATS = ("table", "json", "jsonl", "csv", "csv-safe", "parquet", "html")


# Narrow screens leave out the column with the lowest number first. Columns without a number stay.
_LEAVE = {
    "sent_bytes": 1,
    "deduplicated": 2,
    "source_arn": 3,
    "bytes": 4,
    "max_receive_count": 5,
    "first_moved_at": 6,
    "expires_at": 7,
    "highest_receive_count": 8,
    "age_p50_seconds": 9,
    "delayed": 10,
    "dead_lettered": 11,
    "deleted_per_minute": 12,
    "sent_per_minute": 13,
    "age_p95_seconds": 14,
    "turns_ahead": 15,
}
_HEADINGS = {
    "oldest_age_seconds": "oldest",
    "age_p50_seconds": "p50",
    "age_p95_seconds": "p95",
    "age_seconds": "age",
    "from_seconds": "from",
    "to_seconds": "to",
    "sent_per_minute": "sent/min",
    "deleted_per_minute": "deleted/min",
    "drain_seconds": "drains in",
    "poison_candidates": "poison?",
    "empty_receives": "empty",
    "dead_lettered": "dead",
    "held_mean_seconds": "held, mean",
    "held_longest_seconds": "longest",
    "next_expires_in_seconds": "next back in",
    "expires_in_seconds": "back in",
    "held_seconds": "held",
    "blocked_seconds": "blocked for",
    "expiring_within_minute": "within 1m",
    "highest_receive_count": "max receives",
}
_CUT = ("file", "queue", "problem", "group_id", "source", "source_arn")


@click.command("report")
@click.argument("name", metavar="NAME", type=click.Choice((*NAMES, "all")))
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option(
    "--since", type=SinceType(), metavar="15m|2h|7d|INSTANT", help="How far back the report looks; see above."
)
@click.option(
    "--every", type=click.Choice(("minute", "hour", "day")), default="hour", help="The periods of throughput."
)
@click.option(
    "--top",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    help="The number of rows in a list.",
)
@click.option(
    "--live", is_flag=True, help="Read the file itself, not a snapshot: one connection, one transaction."
)
@click.option("--output", type=click.Choice(FORMATS), help="Default: a table on a terminal, else jsonl.")
@spark_options
@click.pass_context
def report(
    context: click.Context,
    /,
    name: str,
    files: tuple[str, ...],
    since: Since | None,
    queues: tuple[str, ...],
    every: str,
    top: int,
    live: bool,
    output: str | None,
    **settings: Any,
) -> None:
    r"""Report on the queues with Spark, over JDBC.

    \b
      sqsqlite report backlog
      sqsqlite report all --output html --out report.html
      sqsqlite report throughput --since 7d --every day --queue orders
      sqsqlite report fleet '/srv/*/queues.db' --output json

    NAME is backlog, ages, receives, poison, dead-letters, throughput, groups, leases, expiring or fleet; `all` is one
    page with all of them. FILE is a path or a glob; one report covers all files, by default the file of --db. The
    report first takes a snapshot, in one short read transaction of each file, so no writer waits for it.

    --since is the start of the rates of backlog (default 15m) and of the periods of throughput (default 1d). It selects
    the messages sent since then for receives and poison, moved since then for dead-letters, and received since then
    for leases and expiring (default all).
    """
    line: CommandLine = context.obj
    form = output or line.options.get("output")
    _check(name, form, line.options.get("out"))
    from sqsqlite.contract.names import queue_name
    from sqsqlite.spark import REPORTS, Options, tables_of

    paths = queue_files(line, files)
    if live and len(paths) > 1:
        raise click.UsageError("--live reads one file. Leave it out to report on several files.")
    _check_options(context, name, form, live=live)
    _check_target(line, form, paths)
    options = Options(
        since_ms=since.instant_ms if since else None,
        window_ms=since.window_ms if since else None,
        queues=tuple(queue_name(queue)[1] for queue in queues),
        top=top,
        every=every,
    )
    names = NAMES if name == "all" else (name, *REPORTS[name].details)
    watch = Watch(line)
    partitions, folder = settings.pop("partitions"), settings.pop("snapshot_dir")
    with spark(watch, **settings) as session:
        watch.at("Taking the snapshot")
        with tables_of(
            session, paths, names, live=live, partitions=partitions, folder=folder, progress=watch.took
        ) as taken:
            watch.at("Counting")
            check_queues(options.queues, taken.tables["queues"], paths)
            _print(context, form, names, taken, options, paths, watch)
    _summarize(line, taken, watch)


def _check(name: str, form: str | None, out: str | None) -> None:
    """Refuse a wrong --output before Spark starts."""
    if form == "parquet" and out in (None, "-"):
        raise click.UsageError("--output parquet writes a folder: add --out DIR.")
    if name == "all" and form != "html":
        raise click.UsageError("`report all` is a page: add --output html --out FILE.")
    if form not in (None, *FORMATS):
        raise click.UsageError(f"--output {form}: choose one of {', '.join(FORMATS)}.")


def _check_options(context: click.Context, name: str, form: str | None, *, live: bool) -> None:
    """Refuse options that would change nothing."""
    from sqsqlite.spark import REPORTS

    def given_here(option: str) -> bool:
        return context.get_parameter_source(option) is ParameterSource.COMMANDLINE

    having = {
        "since": [report for report in NAMES if REPORTS[report].window_ms is not None],
        "top": [report for report in NAMES if _takes(report, "top")],
        "every": [report for report in NAMES if _takes(report, "every_ms")],
    }
    for option, reports in having.items():
        if given_here(option) and name not in (*reports, "all"):
            raise click.UsageError(f"{name} has no --{option}. These have it: {', '.join(reports)}, all.")
    for option in ("partitions", "snapshot_dir"):
        if live and given_here(option):
            raise click.UsageError(
                f"--{option.replace('_', '-')} is about the snapshot, and --live takes no snapshot: leave one out."
            )
    if context.obj.options.get("query") is not None and form in ("html", "parquet"):
        raise click.UsageError(f"--query does not work with {form}, only with json, jsonl, table and CSV.")


def _takes(name: str, option: str) -> bool:
    """Whether the report has the option, or one of its details, which are printed below it."""
    from sqsqlite.spark import REPORTS

    return any(option in REPORTS[report].takes for report in (name, *REPORTS[name].details))


def _check_target(line: CommandLine, form: str | None, paths: Sequence[Path]) -> None:
    if form != "parquet":
        line.check_out(paths)
        return
    from sqsqlite.cli.out_file import check_folder

    folder = line.options["out"]
    if Path(folder).exists():
        raise Failure(f"TargetExists: {folder}: the folder exists already", FAILED)
    check_folder("--out", Path(folder))


def _print(
    context: click.Context,
    form: str | None,
    names: Sequence[str],
    taken: "Taken",
    options: "Options",
    paths: Sequence[Path],
    watch: Watch,
) -> None:
    from sqsqlite.spark import html_page, make_report, names_without_constants, rows_of, without_constants

    line: CommandLine = context.obj
    if form == "parquet":
        frame = make_report(names[0], taken.tables, options)
        frame.coalesce(1).write.parquet(
            str(Path(line.options["out"]).absolute())
        )  # one file: a report is small
        return

    def rows(name: str) -> list[dict[str, Any]]:
        return without_constants(rows_of(make_report(name, taken.tables, options)), one_file=len(paths) == 1)

    if form == "html":
        sections = {name: rows(name) for name in names}
        watch.clear()
        _write(html_page(sections, paths, taken.facts), line.options.get("out"))
        return
    if form is not None:
        given(context)["output"] = form
    found = rows(names[0])
    watch.clear()
    keys = make_report(names[0], taken.tables, options).columns
    line.output.rows(
        found,
        _columns_of(names[0], found),
        names=names_without_constants(keys, found, one_file=len(paths) == 1),
    )
    if line.output.shows_tables or form == "table":
        for name in names[1:]:
            if details := rows(name):
                watch.clear()
                line.output.rows([])
                line.say(f"\n{name}:")
                line.output.rows(details, _columns_of(name, details))


def _write(text: str, path: str | None) -> None:
    if path in (None, "-"):
        click.echo(on_screen(text) if sys.stdout.isatty() else text, nl=False)
        return
    try:
        Path(str(path)).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"--out {path}: {error.strerror}", FAILED) from error


def _summarize(line: CommandLine, taken: "Taken", watch: Watch) -> None:
    line.say_problems(taken.facts.problems.values() if taken.facts else ())
    what = "live"
    if taken.facts is not None:
        read = taken.facts.files - len(taken.facts.problems)
        files = "1 file" if read == 1 else f"{read:,} files"
        what = f"{taken.facts.messages:,} messages of {files}, snapshot {taken.seconds:.1f} s"
    line.say(f"{what}; {watch.seconds:.1f} s in all, without Spark's start ({watch.spark_seconds:.1f} s)")


def _columns_of(name: str, rows: Sequence[dict[str, Any]]) -> list[Column]:
    """The columns of a report's table, with ages in the unit that fits.

    Args:
        name: the name of the report. The fleet report keeps its column `file`, which names each row.
    """
    names = list(rows[0]) if rows else ()
    return [
        Column(
            column,
            _HEADINGS.get(column, ""),
            leave=0 if name == "fleet" and column == "file" else _LEAVE.get(column, 0),
            cut=column in _CUT,
            shown=age
            if column.endswith("_seconds")
            else instant
            if column.endswith("_at") or column == "at"
            else None,
        )
        for column in names
    ]
