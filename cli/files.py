"""The file as a whole: backup, restore, check, and messages as JSON lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, PARTIAL, Failure
from sqsqlite.cli.options import given
from sqsqlite.cli.progress import Progress
from sqsqlite.cli.queue_names import QueueName
from sqsqlite.cli.screen import on_screen

if TYPE_CHECKING:
    from sqsqlite.operators.check import Finding
    from sqsqlite.operators.load import Loaded
    from sqsqlite.store.store import Store

_PATH = click.Path(path_type=Path)


@click.command("backup")
@click.argument("target", metavar="TARGET", type=_PATH)
@click.option("--force", is_flag=True, help="Take the place of an existing backup.")
@click.pass_obj
def backup(line: CommandLine, target: Path, force: bool) -> None:
    r"""Copy the file while it is in use.

    \b
      sqsqlite backup orders.backup
      sqsqlite backup /mnt/nightly.backup --force

    The copy is one file and one instant, messages in flight and all. It has its name only when it is whole and synced:
    an interrupted backup leaves the one before. `sqsqlite restore` makes a file of queues of it.
    """
    store = line.open()
    from sqsqlite.operators import backup as backups

    size_bytes = backups.backup(store, target, replace=force)
    line.print_rows([{"backup": str(target), "bytes": size_bytes}])


@click.command("restore")
@click.argument("source", metavar="BACKUP", type=_PATH)
@click.argument("target", metavar="[FILE]", type=_PATH, required=False)
@click.pass_obj
def restore(line: CommandLine, source: Path, target: Path | None) -> None:
    r"""Make a file from a backup.

    \b
      sqsqlite restore orders.backup orders-restored.db

    Only where there is no file yet: FILE, else the one of --db. The backup's integrity is checked first. Receipt
    handles from before the backup are not valid in the new file; what was in flight is visible in it at once.
    """
    line.say_path()
    from sqsqlite.operators import backup as backups

    target = target or line.path
    size_bytes = backups.restore(source, target)
    line.print_rows([{"file": str(target), "bytes": size_bytes}])


@click.command("check")
@click.option("--quick", is_flag=True, help="Do not compare the indexes with their tables.")
@click.option("--bodies", is_flag=True, help="Also compute each body's MD5.")
@click.option(
    "--set-aside", metavar="FILE", type=_PATH, help="Write damaged messages to FILE, then delete them."
)
@click.option("--yes", is_flag=True, help="Set aside without asking first.")
@click.pass_obj
def check(line: CommandLine, quick: bool, bodies: bool, set_aside: Path | None, yes: bool) -> None:
    r"""Check the file for damage.

    \b
      sqsqlite check
      sqsqlite check --bodies
      sqsqlite check --set-aside damaged.jsonl

    SQLite's own checks, then what must hold between queues, messages, leases and counts. May run while the file is in
    use. Prints what is wrong and what to do about it, a line each, and exits with 1 if there is something.

    --set-aside writes each damaged message to FILE, as JSON lines with what can be read of it, bytes in Base64. It
    syncs FILE, then deletes the messages. Where pages of the file are damaged it changes nothing.
    """
    store = line.open()
    found = _check(line, store, quick=quick, bodies=bodies)
    if set_aside is not None and found and _set_aside(line, store, set_aside, yes=yes):
        found = _check(line, store, quick=quick, bodies=bodies)
    line.print_rows(({"finding": one.what, "what_to_do": one.advice} for one in found), endless=True)
    if found:
        raise Failure(f"{line.path}: {len(found)} {'finding' if len(found) == 1 else 'findings'}", FAILED)
    line.say(f"{line.path}: sound")


def _check(line: CommandLine, store: "Store", *, quick: bool, bodies: bool) -> "list[Finding]":
    from sqsqlite.operators import check as checks

    progress = Progress(**line.progress_options)
    try:
        return checks.check(
            store, quick=quick, bodies=bodies, progress=lambda step: progress.draw(f"checking: {step}")
        )
    finally:
        progress.clear()


def _set_aside(line: CommandLine, store: "Store", target: Path, *, yes: bool) -> bool:
    """Set the damaged messages aside. False: there are none."""
    from sqsqlite.operators import set_aside

    damaged = set_aside.damaged_messages(store)
    if not damaged:
        line.say("no message is damaged: nothing to set aside")
        return False
    for message in damaged:
        line.say(f"damaged: {message}")
    count = f"{len(damaged):,} damaged {'message' if len(damaged) == 1 else 'messages'}"
    line.confirm(f"Write {count} to {target} and delete them from {line.path}", yes=yes)
    set_aside.set_aside(store, damaged, target)
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

    All queues, unless some are named, as they are at one instant: settings, tags, each message with all that
    `sqsqlite load` needs to make it again, and the deduplication ids that FIFO queues remember. Changes nothing:
    messages in flight are written too, and stay in flight.

    Of a damaged file it writes what can be read, names the rest on standard error, and exits with 4.
    """
    line: CommandLine = context.obj
    given(context).setdefault("output", "jsonl")  # also on a terminal: it is no table
    store = line.open()
    for queue in queues:
        line.queue(queue)  # one that is not there is told with those that are
    from sqsqlite.actions.caller import LOCAL
    from sqsqlite.operators import dump as dumps
    from sqsqlite.operators.dump_lines import DumpedMessage, to_row

    progress = Progress("dumped", **line.progress_options)

    damaged: list[str] = []

    def rows() -> Iterator[dict[str, Any]]:
        for found in dumps.dump(store, queues, LOCAL, passed_by=damaged.append):
            progress.advance(isinstance(found, DumpedMessage))
            yield to_row(found)

    try:
        line.print_rows(rows())
    finally:
        progress.clear()
        for told in damaged:
            click.echo(on_screen(f"damaged: {told}"), err=True)
    line.say(progress.summary)
    if damaged:
        raise Failure(f"{line.path}: damaged: what could not be read is not in the dump", PARTIAL)


@click.command("load")
@click.argument("source", metavar="FILE", type=click.File("rb"))
@click.option("--renew", is_flag=True, help="New message ids, sent now, never received.")
@click.option("--again", is_flag=True, help="From the beginning, whatever was loaded of this dump before.")
@click.option("--dry-run", is_flag=True, help="Check each line and load nothing.")
@click.pass_obj
def load(line: CommandLine, source: IO[bytes], renew: bool, again: bool, dry_run: bool) -> None:
    r"""Send what dump has written.

    \b
      sqsqlite load orders.jsonl
      zcat all.jsonl.gz | sqsqlite --db new.db load -

    Makes the file and the queues if there are none; queues that exist keep their settings. Messages keep their ids,
    send times, receive counts and delays, and FIFO queues know the same sends as duplicates. Hundreds a commit: after
    an error or a kill, the same command goes on where it was, and of a dump that was loaded it loads nothing.
    """
    from sqsqlite.actions.caller import LOCAL
    from sqsqlite.operators import load as loads

    progress = Progress("checked" if dry_run else "loaded", source, **line.progress_options)
    done = loads.Loaded()

    def tell(so_far: "Loaded") -> None:
        nonlocal done
        done = so_far
        progress.advance(so_far.messages - progress.count)

    try:
        if dry_run:
            done = loads.examine(source, limits=line.options.get("limits") or "sqs")
            progress.advance(done.messages)
        else:
            store = line.open(create=True)
            done = loads.load(store, source, LOCAL, renew=renew, again=again, progress=tell)
    finally:
        progress.clear()
        _tell(line, done, progress.summary)


def _tell(line: CommandLine, done: "Loaded", summary: str) -> None:
    line.say(summary)
    if done.before:
        line.say(f"{done.before:,} of this dump were loaded before (--again loads them once more)")
    if done.expired:
        line.say(
            f"{done.expired:,} were left out: beyond the retention of their queue (--renew sends them anew)"
        )
    for warning in done.warnings:
        line.say(f"warning: {warning}")
