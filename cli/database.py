"""`sqsqlite db`: the schema of the file, and bringing an older one up to date."""

from pathlib import Path

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, Failure


@click.group("db")
def db() -> None:
    r"""Upgrade the file's schema, or look at its version.

    \b
      sqsqlite db current
      sqsqlite db upgrade --dry-run
      sqsqlite db upgrade
    """


@db.command("current")
@click.pass_obj
def current(line: CommandLine) -> None:
    r"""Print the file's schema version and the one that is needed.

    \b
      sqsqlite db current
    """
    path = _existing(line)
    from sqsqlite.sql import schema
    from sqsqlite.store import migrate

    version = migrate.current(path)
    line.print_rows([{"file": str(path), "version": version, "needed": schema.SCHEMA_VERSION}])


@db.command("check")
@click.pass_obj
def check(line: CommandLine) -> None:
    r"""Compare the file's schema with the one that is needed.

    \b
      sqsqlite db check

    Prints each difference and exits with 1 if there is one. `sqsqlite check` looks at the rows.
    """
    path = _existing(line)
    from sqsqlite.store import migrate

    found = migrate.check(path)
    line.print_rows(({"difference": difference} for difference in found), endless=True)
    if found:
        raise Failure(f"{path}: the schema is not as needed", FAILED)
    line.say(f"{path}: the schema is as needed")


@db.command("upgrade")
@click.option("--dry-run", is_flag=True, help="Print the steps and change nothing.")
@click.option("--no-backup", is_flag=True, help="Make no copy of the file before the first step.")
@click.pass_obj
def upgrade(line: CommandLine, dry_run: bool, no_backup: bool) -> None:
    r"""Bring an older file to the schema version that is needed.

    \b
      sqsqlite db upgrade --dry-run
      sqsqlite db upgrade

    Copies the file first and says where the copy stands. Each step is one transaction: a step that fails, or is
    killed, leaves the file as it was before that step. Nobody else may have the file open meanwhile. Prints the steps.
    """
    path = _existing(line)
    from sqsqlite.store import migrate

    done = migrate.upgrade(
        path,
        dry_run=dry_run,
        backup=not no_backup,
        busy_timeout=line.connect_options.get("busy_timeout", 30.0),
    )
    if done.backup is not None:
        line.say(f"backup: {done.backup}")
    line.print_rows(
        {"revision": step.revision, "version": step.version, "description": step.description}
        for step in done.migrations
    )
    if not done.migrations:
        line.say(f"{path}: version {done.version} is the newest, there is nothing to do")
    elif dry_run:
        line.say(f"{path}: version {done.version}; nothing was changed")
    else:
        line.say(f"{path}: upgraded from version {done.version} to {done.migrations[-1].version}")


def _existing(line: CommandLine) -> Path:
    line.say_path()
    if not line.exists:
        raise line.missing()
    return line.path
