# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite payloads` looks after the bodies that are kept outside of the file."""

from pathlib import Path

import click

from sqsqlite.cli.arguments import LengthType
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import FAILED, PARTIAL, Failure
from sqsqlite.cli.options import given


@click.group("payloads")
def payloads() -> None:
    r"""Look after the big bodies of messages in a payload store.

    \b
      sqsqlite payloads sweep --store file:///var/lib/app/payloads --dry-run
      sqsqlite payloads sweep --store s3://bucket/prefix

    Programs store and read payloads by `sqsqlite.payloads`. `receive`, `peek` and `dump` show the pointers to them.
    """


@payloads.command("sweep")
@click.argument("file", metavar="[FILE]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--store", "url", metavar="URL", required=True, help="The store: a folder, or such as s3://BUCKET/PREFIX."
)
@click.option(
    "--older-than",
    metavar="LENGTH",
    type=LengthType(),
    default="1d",
    show_default=True,
    help="Leave younger payloads, whose messages may be about to be sent.",
)
@click.option(
    "--owner",
    metavar="NAME",
    help="Whose payloads, by the first part of their keys. Default: those that this file's id names.",
)
@click.option("--dry-run", is_flag=True, help="Remove nothing.")
@click.pass_context
def sweep_(
    context: click.Context, file: Path | None, url: str, older_than: int, owner: str | None, dry_run: bool
) -> None:
    r"""Remove payloads that no message of the file refers to.

    \b
      sqsqlite payloads sweep --store file:///var/lib/app/payloads --dry-run
      sqsqlite payloads sweep orders.db --store s3://bucket/prefix --older-than 7d
      sqsqlite payloads sweep --store s3://bucket/prefix --owner remote

    Such payloads stem from senders that were killed or rolled back, from purges and expired messages, and from
    removals that failed. LENGTH must be longer than your longest transaction. FILE (default: the file of --db) may be
    in use.

    Other files' payloads are not touched. Clients of an endpoint do not know the file: the owner of their payloads is
    `remote`, or the name that their program gives. Sweep these only if all their messages are in this file. Do not
    sweep while messages that left this file (`forward`, `dump`) are still to be read elsewhere.
    """
    line: CommandLine = context.obj
    if file is not None:
        given(context)["db"] = file
    sqs = line.sqs
    from sqsqlite.payloads import PayloadStore, sweep

    try:
        store = PayloadStore(url, create=False, owner=owner)
    except ValueError as error:
        raise click.UsageError(str(error), context) from error
    except ModuleNotFoundError as error:
        raise Failure(str(error), FAILED) from error
    swept = sweep(sqs, store, older_than=older_than, dry_run=dry_run)
    row = {
        name: getattr(swept, name)
        for name in ("found", "referred", "young", "removed", "removed_bytes", "failed")
    }
    line.output.rows([{"store": store.url, "owner": swept.owner, **row}])
    if dry_run:
        line.say("a dry run: nothing was removed")
    if swept.failed:
        raise Failure(f"{swept.failed:,} payloads could not be removed: run this again", PARTIAL)
