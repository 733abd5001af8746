# SPDX-License-Identifier: Apache-2.0
"""Alembic's environment: runs revisions on the connection that it gets, inside the transaction begun there.

`sqsqlite db upgrade` and the tests provide one (store/migrate.py). Authors need none for `alembic revision`,
`history` and `heads`.
"""

from typing import Any

from alembic import context
from alembic.util import CommandError

# "SQSq": in the header of files that SQSQLite made itself. An adopted file's header is its application's.
APPLICATION_ID = 0x53515371


def write_schema_version(ctx: Any, step: Any, *_: Any, **__: Any) -> None:
    """After each revision, in its transaction: revision 0002 makes schema version 2, which `connect` checks."""
    connection = ctx.connection
    version = int(step.up_revision_id)
    connection.exec_driver_sql(
        "INSERT INTO sqs_meta (name, number) VALUES ('schema_version', ?) "
        "ON CONFLICT (name) DO UPDATE SET number = excluded.number",
        (version,),
    )
    if connection.exec_driver_sql("PRAGMA application_id").scalar() == APPLICATION_ID:
        connection.exec_driver_sql(f"PRAGMA user_version = {version}")


def run() -> None:
    """Run the revisions that the command asked for."""
    connection = context.config.attributes.get("connection")
    if connection is None:
        raise CommandError("no connection: a file is migrated by `sqsqlite --db FILE db upgrade`")
    context.configure(
        connection=connection,
        version_table="sqs_alembic_version",
        # An author's --autogenerate sees our objects only, never those of the application.
        include_name=lambda name, kind, _: kind != "table" or str(name).startswith("sqs_"),
        on_version_apply=write_schema_version,
    )
    context.run_migrations()


run()
