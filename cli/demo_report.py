"""The end of the demo: Spark's report of the file that it made, on the terminal and as a page."""

from pathlib import Path

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.output import Output
from sqsqlite.cli.report import NAMES
from sqsqlite.cli.report_columns import columns_of
from sqsqlite.cli.spark_options import Watch, spark


def show_report(line: CommandLine, output: Output, path: Path, page_path: Path) -> None:
    """Print the backlog, and write the page of all reports.

    Where Spark, Java or the driver is missing the demo goes without: it says what is, and what to do about it.
    """
    from sqsqlite.spark import (
        AnalyticsError,
        Options,
        html_page,
        make_report,
        rows_of,
        tables_of,
        without_constants,
    )

    line.say("\nsqsqlite report backlog (Spark, over JDBC; its start takes a while):")
    watch = Watch(line)
    options = Options(window_ms=3_600_000, every="minute")
    try:
        with (
            spark(watch, master=None, conf={}, jdbc_jar=None) as session,
            tables_of(session, [path], NAMES) as taken,
        ):
            watch.at("Counting")
            sections = {
                name: without_constants(rows_of(make_report(name, taken.tables, options)), one_file=True)
                for name in NAMES
            }
            page_path.write_text(html_page(sections, [path], taken.facts), encoding="utf-8")
    except AnalyticsError as error:
        line.say(f"left out: {error}")
        return
    output.rows(sections["backlog"], columns_of("backlog", sections["backlog"]))
    line.say(f"All of Spark's reports, as a page: {page_path}")
