"""Backing a file up while it is in use, and making a file of queues from a backup."""

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from sqsqlite.errors import CannotOpen, Corrupt, NotAdopted, SchemaTooNew
from sqsqlite.sql import file as sql
from sqsqlite.sql import schema
from sqsqlite.sql.operators import RENEW_COPY
from sqsqlite.store import create, migrate
from sqsqlite.store.backup import check_target, copy_to
from sqsqlite.store.connections import connect, disconnect
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.soundness import findings
from sqsqlite.store.translate import translate
from sqsqlite.store.version import schema_version

if TYPE_CHECKING:
    from sqsqlite.store.store import Store


def backup(store: "Store", target: str | os.PathLike[str], *, replace: bool = False) -> int:
    """Copy the file as it is at one instant, messages in flight and all, while others send and receive.

    Under the target's name there is always a whole, synced backup or what was there before, whenever this is killed.

    Args:
        target: the backup: one file, which needs no other beside it.
        replace: take the place of an existing backup, at the end and at once.

    Returns:
        Its size in bytes.

    Raises:
        TargetExists: the target exists, and `replace` is False.
        FileInUse: the target is a database that is open.
        MissingFolder, DiskFull, InputOutputError: as their names say.
    """
    with store.file.readers.lent() as connection:
        return copy_to(connection, store.path, Path(target), replace=replace)


def restore(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Make a file of queues from a backup. It is a file of its own from then on.

    It has a new id and secret, so receipt handles that the original issued are not valid in it; therefore messages
    that were in flight are visible at once, their receive counts kept. Delays go on. A backup of an older schema
    version is upgraded on the way; the backup itself is only read.

    Args:
        target: a path where there is nothing yet.

    Returns:
        Its size in bytes.

    Raises:
        TargetExists, FileInUse: the target is not free.
        Corrupt: the backup is damaged.
        NotAdopted, NotADatabase, CannotOpen: it is no backup of queues.
        SchemaTooNew: a newer SQSQLite made it.
    """
    source, target = Path(source), Path(target)
    if not source.is_file():
        raise CannotOpen(f"{source}: there is no such file")
    check_target(source, target, replace=False)
    connection = connect(source, synchronous="FULL", busy_timeout=5.0, mode="ro")
    try:
        version = _check_backup(connection, source)
        return copy_to(connection, source, target, finish=lambda copy: _renew(copy, version))
    except dbapi.Error as error:
        raise translate(error, source) from error
    finally:
        disconnect(connection, source)


def _check_backup(connection: Connection, source: Path) -> int:
    """The backup's schema version, once it was found to be sound."""
    if not create.is_ours(connection):
        raise NotAdopted(f"{source}: a SQLite database without queues")
    if damage := findings(connection, "integrity_check", 1):
        raise Corrupt(f"{source}: the backup is damaged: {damage[0]}")
    version = schema_version(connection, source)
    if version > schema.SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{source}: schema version {version}, this SQSQLite knows {schema.SCHEMA_VERSION}: install a newer one"
        )
    return version


def _renew(copy: Connection, version: int) -> None:
    """Cut the copy's ties to the original, before anybody can open it."""
    migrate.run(copy, migrate.pending(version))
    copy.execute("BEGIN IMMEDIATE")
    for name, size_bytes in (("file_id", 16), ("secret", 32)):
        copy.execute(sql.SET_META, {"name": name, "number": None, "bytes": secrets.token_bytes(size_bytes)})
    for statement in RENEW_COPY:
        copy.execute(statement)
    copy.execute("COMMIT")
