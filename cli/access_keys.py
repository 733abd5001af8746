# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite keys` manages the access keys of `sqsqlite serve`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sqsqlite.cli.arguments import LengthType
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.message_rows import instant
from sqsqlite.cli.queues import yes_option
from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID

if TYPE_CHECKING:
    from sqsqlite import NewKey


@click.group("keys")
def keys() -> None:
    r"""Make, list, rotate and remove the access keys of serve.

    \b
      sqsqlite keys add
      sqsqlite keys add --account 111122223333 --user worker
      sqsqlite keys list

    While the file has a key, clients must sign requests. Every user who can read the file can read the secrets.
    """


@keys.command("add")
@click.option(
    "--account",
    metavar="ID",
    default=DEFAULT_ACCOUNT_ID,
    show_default=True,
    help="The account of the key, twelve digits. A file without a server has the default one.",
)
@click.option("--user", metavar="NAME", default="", help="A user of the account, for policies that name one.")
@click.pass_obj
def add(line: CommandLine, account: str, user: str) -> None:
    r"""Make a key and print it. The secret is never printed again.

    \b
      sqsqlite keys add
      sqsqlite keys add --account 111122223333 --user worker --output json

    A running server accepts the key at once.
    """
    _print_secret(line, line.open(create=True).keys.add(account, user))


@keys.command("list")
@click.pass_obj
def list_(line: CommandLine) -> None:
    r"""List the keys, without their secrets.

    \b
      sqsqlite keys list
    """
    found = line.sqs.keys.list()
    if not found:
        line.say("no keys: a server started now accepts unsigned requests, and listens on loopback only")
    line.output.rows(
        {
            "access_key_id": key.access_key_id,
            "account": key.account_id,
            "user": key.user_name or None,
            "created_at": instant(key.created_at),
            "expires_at": instant(key.expires_at),
        }
        for key in found
    )


@keys.command("rotate")
@click.argument("access_key_id", metavar="KEY_ID")
@click.option(
    "--grace",
    type=int,
    metavar="SECONDS",
    default=3_600,
    show_default=True,
    help="How long the old key still works; 0 ends it at once.",
)
@click.pass_obj
def rotate(line: CommandLine, access_key_id: str, grace: int) -> None:
    r"""Replace a key; the old one ends after a time of grace.

    \b
      sqsqlite keys rotate SQSLABCDEFGHIJKLMNOP
      sqsqlite keys rotate SQSLABCDEFGHIJKLMNOP --grace 0

    The new key has the account and user of the old one. Its secret is never printed again.
    """
    _print_secret(line, line.sqs.keys.rotate(access_key_id, grace))
    line.say(f"{access_key_id}: ends {f'in {grace:,} seconds' if grace else 'now'}")


@keys.command("remove")
@click.argument("access_key_id", metavar="KEY_ID")
@yes_option
@click.pass_obj
def remove(line: CommandLine, access_key_id: str, yes: bool) -> None:
    r"""Remove a key, from a running server too.

    \b
      sqsqlite keys remove SQSLABCDEFGHIJKLMNOP

    The account of the key and its queues stay.
    """
    sqs = line.sqs
    line.confirm(f"remove the key {access_key_id}", yes=yes)
    sqs.keys.remove(access_key_id)
    line.say(f"{access_key_id}: removed")


@keys.command("session")
@click.argument("access_key_id", metavar="KEY_ID")
@click.option(
    "--duration",
    metavar="LENGTH",
    type=LengthType(),
    default="1h",
    show_default=True,
    help="How long the credentials last, 15m to 36h.",
)
@click.option(
    "--keys",
    "key_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Look for the key in this file too, as `serve --keys` does.",
)
@click.option("--export", is_flag=True, help="Print lines for eval in a shell.")
@click.pass_obj
def session(
    line: CommandLine, access_key_id: str, duration: int, key_file: Path | None, *, export: bool
) -> None:
    r"""Make temporary credentials of a key and print them. They are never printed again.

    \b
      sqsqlite keys session SQSLABCDEFGHIJKLMNOP
      sqsqlite keys session SQSLABCDEFGHIJKLMNOP --duration 15m --output json
      eval "$(sqsqlite keys session SQSLABCDEFGHIJKLMNOP --export)"

    The credentials have the account and user of the key, and end with the key if it ends first. The command writes
    nothing to the file.
    """
    from sqsqlite import key_file_session

    made = None if key_file is None else key_file_session(key_file, access_key_id, duration)
    made = made or line.sqs.keys.session(access_key_id, duration)
    if export:
        click.echo(f"export AWS_ACCESS_KEY_ID={made.access_key_id}")
        click.echo(f"export AWS_SECRET_ACCESS_KEY={made.secret_access_key}")
        click.echo(f"export AWS_SESSION_TOKEN={made.token}")
        return
    line.output.rows(
        [
            {
                "AccessKeyId": made.access_key_id,
                "SecretAccessKey": made.secret_access_key,
                "SessionToken": made.token,
                "Expiration": instant(1_000 * made.expires_at),
            }
        ]
    )


def _print_secret(line: CommandLine, key: "NewKey") -> None:
    line.output.rows(
        [
            {
                "access_key_id": key.access_key_id,
                "secret_access_key": key.secret_access_key,
                "account": key.account_id,
                "user": key.user_name or None,
            }
        ]
    )
    line.advise_privacy(line.path)
