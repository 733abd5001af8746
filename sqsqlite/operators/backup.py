# SPDX-License-Identifier: Apache-2.0
"""Backing up a file while it is in use, and restoring a backup."""

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from sqsqlite.errors import Corrupt, SchemaTooNew
from sqsqlite.sql import file as sql
from sqsqlite.sql import schema
from sqsqlite.sql.operators import RENEW_COPY
from sqsqlite.store import create, migrate
from sqsqlite.store.backup import check_target, copy_to
from sqsqlite.store.closed import reading
from sqsqlite.store.damage import findings
from sqsqlite.store.driver import Connection
from sqsqlite.store.meta import schema_version

if TYPE_CHECKING:
    from sqsqlite.store.store import Store


def backup(store: "Store", target: str | os.PathLike[str], *, replace: bool = False) -> int:
    """Copy the file as it is at one instant, messages in flight included, while others send and receive.

    The copy gets its name when it is whole and synced. Killed before that, the target is as it was.

    Args:
        target: the backup: one file, which needs no other.
        replace: take the place of an existing backup, in one step at the end.

    Returns:
        Its size in bytes.

    Raises:
        TargetExists: the target exists, and `replace` is False.
        FileInUse: the target is a database that is open.
        MissingFolder, ReadOnlyFile, DiskFull, InputOutputError: see `errors`.
    """
    with store.file.readers.lent() as connection:
        return copy_to(connection, store.path, create.named(target), replace=replace)


def restore(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Make a file of queues from a backup, with an id and a secret of its own.

    Receipt handles that the original issued are not valid in it, so messages that were in flight are visible at once.
    Receive counts and delays stay. A backup of an older schema version is upgraded on the way. The backup is only read.

    Args:
        target: a path where nothing exists.

    Returns:
        Its size in bytes.

    Raises:
        TargetExists, FileInUse: the target is not free.
        Corrupt: the backup is damaged.
        NotAdopted, NotADatabase, CannotOpen: `source` is not a backup of queues.
        SchemaTooNew: a newer SQSQLite made it.
    """
    source, target = create.resolved(source), create.named(target)
    with reading(source, keep_wal=True) as connection:
        check_target(source, target, replace=False)
        version = _check_backup(connection, source)
        return copy_to(connection, source, target, finish=lambda copy: _renew(copy, version))


def _check_backup(connection: Connection, source: Path) -> int:
    """Check that the backup is sound, and return its schema version."""
    if damage := findings(connection, "integrity_check", 1):
        raise Corrupt(f"{source}: the backup is damaged: {damage[0]}")
    version = schema_version(connection, source)
    if version > schema.SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{source}: schema version {version}, this SQSQLite knows {schema.SCHEMA_VERSION}: install a newer one"
        )
    return version


def _renew(copy: Connection, version: int) -> None:
    """Upgrade the copy and give it an id and a secret of its own, before any process can open it."""
    migrate.run(copy, migrate.pending(version))
    copy.execute("BEGIN IMMEDIATE")
    for name, size_bytes in (("file_id", 16), ("secret", 32)):
        copy.execute(sql.SET_META, {"name": name, "number": None, "bytes": secrets.token_bytes(size_bytes)})
    for statement in RENEW_COPY:
        copy.execute(statement)
    copy.execute("COMMIT")
