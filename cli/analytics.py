# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite export` writes Parquet files; `sqsqlite analytics` fetches the JDBC driver and prints types for readers."""

import re
from pathlib import Path
from typing import Any

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.spark_options import Watch, check_queues, queue_files, spark, spark_options


def _folder(context: click.Context, parameter: click.Parameter, given: str) -> Path:
    if re.match("[A-Za-z][A-Za-z0-9+.-]+:/", given):  # a drive of Windows has one letter
        raise click.BadParameter(
            f"{given}: name a folder of this machine or of a shared file system, not a URL.",
            context,
            parameter,
        )
    return Path(given)


@click.command("export")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option(
    "--parquet",
    "folder",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False),
    callback=_folder,
    help="The folder to add to; it is made if it does not exist.",
)
@spark_options
@click.pass_obj
def export(
    line: CommandLine, /, files: tuple[str, ...], folder: Path, queues: tuple[str, ...], **settings: Any
) -> None:
    r"""Export queues to Parquet, for analysis elsewhere.

    \b
      sqsqlite export --parquet lake
      sqsqlite export --parquet lake --queue orders '/srv/*/queues.db'

    Writes one row for each message, without its body, in folders by queue and by day of sending (UTC). Each run adds
    a snapshot and keeps the earlier ones; the column taken_at tells them apart. Spark, DuckDB and pandas read the
    folder as it is.
    """
    from sqsqlite.cli.out_file import check_folder
    from sqsqlite.contract.names import queue_name
    from sqsqlite.spark import facts_of, iso, message_rows, read_facts, write_parquet

    paths = queue_files(line, files)
    check_folder("--parquet", folder)
    line.check_out(paths)
    names = tuple(queue_name(queue)[1] for queue in queues)
    watch = Watch(line)
    partitions, snapshot_dir = settings.pop("partitions"), settings.pop("snapshot_dir")
    with spark(watch, **settings) as session:
        watch.at("Taking the snapshot")
        with facts_of(paths, all_message_ids=True, folder=snapshot_dir, progress=watch.took) as facts:
            watch.at("Writing")
            tables = read_facts(session, facts, ("messages",), partitions=partitions)
            check_queues(names, tables["queues"], paths)
            rows = message_rows(tables["messages"], tables["queues"], names)
            count = write_parquet(rows, folder, expected=rows.count() if names else facts.messages)
    line.say_problems(facts.problems.values())
    line.output.rows(
        [
            {
                "parquet": str(folder),
                "messages": count,
                "files": facts.files - len(facts.problems),
                "taken_at": iso(facts.taken_at),
            }
        ]
    )


@click.group("analytics")
def analytics() -> None:
    r"""Fetch the JDBC driver, or print the types of the reporting views.

    \b
      sqsqlite analytics fetch-driver
      sqsqlite analytics schema
    """


@analytics.command("fetch-driver")
@click.pass_obj
def fetch_driver(line: CommandLine) -> None:
    r"""Fetch SQLite's JDBC driver, once.

    \b
      sqsqlite analytics fetch-driver

    `report` fetches the driver itself when it needs one. Use this command on a machine that will have no network
    later. The version and its SHA-256 are fixed. Prints the path of the driver.
    """
    from sqsqlite.spark import DRIVER_VERSION, driver_jar

    jar = driver_jar()
    line.output.rows([{"driver": str(jar), "version": DRIVER_VERSION}])


@analytics.command("schema")
@click.argument("view", metavar="[VIEW]", required=False)
@click.pass_obj
def schema(line: CommandLine, view: str | None) -> None:
    r"""Print the customSchema of each reporting view.

    \b
      sqsqlite analytics schema
      sqsqlite analytics schema sqs_report_messages --output text

    Without the option customSchema, Spark's JDBC reader cuts SQLite's integers to 32 bits and reads computed numbers as
    decimals. Other readers that need types can use the same list.
    """
    from sqsqlite.spark import VIEWS, custom_schema

    if view is not None and view not in VIEWS:
        raise click.UsageError(f"there is no reporting view {view}: the views are {', '.join(VIEWS)}")
    names = VIEWS if view is None else (view,)
    line.output.rows({"view": name, "custom_schema": custom_schema(VIEWS[name])} for name in names)
