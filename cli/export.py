"""`sqsqlite export`: messages as Parquet files, snapshot by snapshot."""

import re
from pathlib import Path
from typing import Any

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, Failure
from sqsqlite.cli.names import QueueName
from sqsqlite.cli.spark_options import Watch, check_queues, spark, spark_options


def _folder(context: click.Context, parameter: click.Parameter, given: str) -> Path:
    if re.match("[A-Za-z][A-Za-z0-9+.-]+:/", given):  # a drive of Windows has one letter
        raise click.BadParameter(
            f"{given}: a folder of this machine or of a shared file system is wanted, not a URL.",
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
    help="The folder to add to; made if it is not there.",
)
@click.option(
    "--queue", "queues", multiple=True, type=QueueName(), metavar="QUEUE", help="This one; may be repeated."
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

    A row a message, without its body, in folders by queue and by day of sending (UTC). Each run adds a snapshot, told
    apart by the column taken_at, and leaves those before as they are. Spark, DuckDB and pandas read it without help.
    """
    from sqsqlite.cli.targets import check_folder
    from sqsqlite.contract.names import queue_name
    from sqsqlite.spark import running
    from sqsqlite.spark.export import READS, message_rows, write_parquet
    from sqsqlite.spark.tables import read_facts

    line.say_path()
    paths = running.find_files(files) if files else [line.path]
    if not files and not line.exists:
        raise line.missing()
    if not paths:
        raise Failure(f"NoSuchFile: {' '.join(files)}: no file is named so", FAILED)
    check_folder("--parquet", folder)
    line.check_out(paths)
    names = tuple(queue_name(queue)[1] for queue in queues)
    watch = Watch(line)
    partitions, snapshot_dir = settings.pop("partitions"), settings.pop("snapshot_dir")
    with spark(watch, **settings) as session:
        watch.at("Taking the snapshot")
        with running.facts_of(paths, all_message_ids=True, folder=snapshot_dir, progress=watch.took) as facts:
            watch.at("Writing")
            tables = read_facts(session, facts, READS, partitions=partitions)
            check_queues(names, tables["queues"], paths)
            rows = message_rows(tables["messages"], tables["queues"], names)
            count = write_parquet(rows, folder, expected=rows.count() if names else facts.messages)
    line.say_problems(facts.problems.values())
    line.print_rows(
        [
            {
                "parquet": str(folder),
                "messages": count,
                "files": facts.files - len(facts.problems),
                "taken_at": running.iso(facts.taken_at),
            }
        ]
    )
