# SPDX-License-Identifier: Apache-2.0
"""`backup`, `restore`, `check`, `dump`, `load` and `db`: commands on the whole file."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from sqsqlite.cli.arguments import QueueName
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, PARTIAL, Failure
from sqsqlite.cli.options import given
from sqsqlite.cli.table import on_screen

if TYPE_CHECKING:
    from sqsqlite import Finding, Loaded

_PATH = click.Path(path_type=Path)


@click.command("backup")
@click.argument("target", metavar="TARGET", type=_PATH)
@click.option("--force", is_flag=True, help="Replace an existing backup.")
@click.pass_obj
def backup(line: CommandLine, target: Path, force: bool) -> None:
    r"""Copy the file while it is in use.

    \b
      sqsqlite backup orders.backup
      sqsqlite backup /mnt/nightly.backup --force

    The copy is one file and shows one instant, including messages in flight. It gets its name when it is complete and
    synced, so an interrupted backup keeps the earlier one. `sqsqlite restore` makes a file of queues from it.
    """
    size_bytes = line.sqs.backup(target, replace=force)
    line.output.rows([{"backup": str(target), "bytes": size_bytes}])


@click.command("restore")
@click.argument("source", metavar="BACKUP", type=_PATH)
@click.argument("target", metavar="[FILE]", type=_PATH, required=False)
@click.pass_obj
def restore(line: CommandLine, source: Path, target: Path | None) -> None:
    r"""Make a file from a backup.

    \b
      sqsqlite restore orders.backup orders-restored.db

    FILE (default: the file of --db) must not exist. The backup's integrity is checked first. Receipt handles from
    before the backup are not valid in the new file, and messages that were in flight are visible in it at once.
    """
    line.say_path()
    import sqsqlite

    target = target or line.path
    size_bytes = sqsqlite.restore(source, target)
    line.output.rows([{"file": str(target), "bytes": size_bytes}])


@click.command("check")
@click.option("--quick", is_flag=True, help="Do not compare the indexes with their tables.")
@click.option("--bodies", is_flag=True, help="Also compute each body's MD5.")
@click.option(
    "--set-aside", metavar="FILE", type=_PATH, help="Write damaged messages to FILE, then delete them."
)
@click.option("--yes", is_flag=True, help="Do not ask before --set-aside.")
@click.pass_obj
def check(line: CommandLine, quick: bool, bodies: bool, set_aside: Path | None, yes: bool) -> None:
    r"""Check the file for damage.

    \b
      sqsqlite check
      sqsqlite check --bodies
      sqsqlite check --set-aside damaged.jsonl

    Runs SQLite's own checks, then checks queues, messages, leases and counts against each other. The file may be in
    use, and is only read. Prints a line for each finding, with what to do about it, and exits with 1 if there is one.

    --set-aside writes the readable parts of each damaged message to FILE, as JSON lines with bytes in Base64. It syncs
    FILE, then deletes the messages. If pages of the file are damaged, it changes nothing.
    """
    found = _check(line, quick=quick, bodies=bodies)
    if set_aside is not None and found and _set_aside(line, set_aside, yes=yes):
        found = _check(line, quick=quick, bodies=bodies)
    line.output.rows(({"finding": one.what, "what_to_do": one.advice} for one in found), endless=True)
    if found:
        raise Failure(f"{line.path}: {len(found)} {'finding' if len(found) == 1 else 'findings'}", FAILED)
    line.say(f"{line.path}: sound")


def _check(line: CommandLine, *, quick: bool, bodies: bool) -> "list[Finding]":
    path = _existing(line)
    from sqsqlite import check as check_file  # only reads: a backup stays as it is

    progress = line.progress()
    try:
        return check_file(
            path, quick=quick, bodies=bodies, progress=lambda step: progress.draw(f"checking: {step}")
        )
    finally:
        progress.clear()


def _set_aside(line: CommandLine, target: Path, *, yes: bool) -> bool:
    """Set the damaged messages aside. False: no message is damaged."""
    damaged = line.sqs.damaged_messages()
    if not damaged:
        line.say("no damaged messages: nothing to set aside")
        return False
    for message in damaged:
        line.say(f"damaged: {message}")
    count = f"{len(damaged):,} damaged {'message' if len(damaged) == 1 else 'messages'}"
    line.confirm(f"Write {count} to {target} and delete them from {line.path}", yes=yes)
    line.sqs.set_aside(damaged, target)
    line.say(f"{count} set aside in {target}")
    return True


@click.command("dump")
@click.argument("queues", metavar="[QUEUE]...", nargs=-1, type=QueueName())
@click.pass_context
def dump(context: click.Context, queues: tuple[str, ...]) -> None:
    r"""Write messages as JSON lines.

    \b
      sqsqlite dump orders --out orders.jsonl
      sqsqlite dump | gzip > all.jsonl.gz

    Writes all queues, or the named ones, as they are at one instant: settings, tags, messages with everything
    that `sqsqlite load` needs, and the deduplication ids that FIFO queues remember. Changes nothing: messages in flight
    are written too, and stay in flight.

    If the file is damaged, the command writes the readable rows, names the others on standard error, and exits with 4.
    """
    line: CommandLine = context.obj
    given(context).setdefault("output", "jsonl")  # also on a terminal: it is not a table
    for queue in queues:
        line.queue(queue)  # the error for a missing queue names the queues that exist
    progress = line.progress("dumped")
    damaged: list[str] = []

    def rows() -> Iterator[dict[str, Any]]:
        for row in line.sqs.dump(*queues, on_damage=damaged.append):
            progress.advance(row["kind"] == "message")
            yield row

    try:
        line.output.rows(rows())
    finally:
        progress.clear()
        for damage in damaged:
            click.echo(on_screen(f"damaged: {damage}"), err=True)
    line.say(progress.summary)
    if damaged:
        raise Failure(f"{line.path}: damaged: the dump lacks the unreadable rows", PARTIAL)


@click.command("load")
@click.argument("source", metavar="FILE", type=click.File("rb"))
@click.option(
    "--renew", is_flag=True, help="Load the messages as new ones: with new ids, sent now, never received."
)
@click.option(
    "--again", is_flag=True, help="Load from the beginning, even if parts of this dump were loaded before."
)
@click.option("--dry-run", is_flag=True, help="Check each line and load nothing.")
@click.pass_obj
def load(line: CommandLine, source: IO[bytes], renew: bool, again: bool, dry_run: bool) -> None:
    r"""Load the messages of a dump.

    \b
      sqsqlite load orders.jsonl
      zcat all.jsonl.gz | sqsqlite --db new.db load -

    Creates the file and the queues if they are missing; existing queues keep their settings. Messages keep their ids,
    send times, receive counts and delays, and FIFO queues recognize repeated sends as before. Each commit holds
    hundreds of messages: after an error or a kill, the same command continues after the last commit. If the whole dump
    is loaded already, the command loads nothing.
    """
    import sqsqlite

    progress = line.progress("checked" if dry_run else "loaded", source)
    done = sqsqlite.Loaded()

    def count(so_far: "Loaded") -> None:
        nonlocal done
        done = so_far
        progress.advance(so_far.messages - progress.count)

    try:
        if dry_run:
            done = sqsqlite.check_dump(source, limits=line.options.get("limits") or "sqs")
            progress.advance(done.messages)
        else:
            done = line.open(create=True).load(source, renew=renew, again=again, progress=count)
    finally:
        progress.clear()
        _summarize(line, done, progress.summary)


def _summarize(line: CommandLine, done: "Loaded", summary: str) -> None:
    line.say(summary)
    if done.before:
        line.say(f"{done.before:,} messages of this dump were loaded before (--again loads them once more)")
    if done.expired:
        line.say(
            f"{done.expired:,} messages were left out: their retention period has ended "
            "(--renew sends them as new messages)"
        )
    for warning in done.warnings:
        line.say(f"warning: {warning}")


@click.group("db")
def db() -> None:
    r"""Upgrade the file's schema, or show its version.

    \b
      sqsqlite db current
      sqsqlite db upgrade --dry-run
      sqsqlite db upgrade
    """


@db.command("current")
@click.pass_obj
def current(line: CommandLine) -> None:
    r"""Print the file's schema version and the needed one.

    \b
      sqsqlite db current
    """
    path = _existing(line)
    from sqsqlite import schema_state

    state = schema_state(path)
    line.output.rows([{"file": str(path), "version": state.version, "needed": state.needed}])


@db.command("check")
@click.pass_obj
def check_schema(line: CommandLine) -> None:
    r"""Compare the file's schema with the needed one.

    \b
      sqsqlite db check

    Prints each difference and exits with 1 if it finds one. `sqsqlite check` checks the rows.
    """
    path = _existing(line)
    from sqsqlite import schema_state

    found = schema_state(path).differences
    line.output.rows(({"difference": difference} for difference in found), endless=True)
    if found:
        raise Failure(f"{path}: the schema differs from the needed one", FAILED)
    line.say(f"{path}: the schema matches the needed one")


@db.command("upgrade")
@click.option("--dry-run", is_flag=True, help="Print the steps and change nothing.")
@click.option("--no-backup", is_flag=True, help="Do not copy the file before the first step.")
@click.pass_obj
def upgrade(line: CommandLine, dry_run: bool, no_backup: bool) -> None:
    r"""Upgrade an older file to the needed schema version.

    \b
      sqsqlite db upgrade --dry-run
      sqsqlite db upgrade

    Copies the file first and prints the path of the copy. Each step is one transaction: a step that fails, or is
    killed, changes nothing. No other process may have the file open meanwhile. Prints the steps.
    """
    path = _existing(line)
    import sqsqlite

    done = sqsqlite.upgrade(
        path,
        dry_run=dry_run,
        backup=not no_backup,
        busy_timeout=line.connect_options.get("busy_timeout", 30.0),
    )
    if done.backup is not None:
        line.say(f"backup: {done.backup}")
    line.output.rows(
        {"revision": step.revision, "version": step.version, "description": step.description}
        for step in done.migrations
    )
    if not done.migrations:
        line.say(f"{path}: version {done.version} is the newest; nothing to do")
    elif dry_run:
        line.say(f"{path}: version {done.version}; nothing was changed")
    else:
        line.say(f"{path}: upgraded from version {done.version} to {done.migrations[-1].version}")


def _existing(line: CommandLine) -> Path:
    line.say_path()
    if not line.exists:
        raise line.missing()
    return line.path
