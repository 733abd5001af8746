"""The schema version of a file: what this SQSQLite can work with."""

from pathlib import Path
from typing import Any

from sqsqlite.errors import Corrupt, SchemaTooNew, SchemaTooOld
from sqsqlite.sql import file as sql
from sqsqlite.sql import schema


def schema_version(connection: Any, path: Path) -> int:
    """The schema version of a file; 0 where none was noted.

    Raises:
        Corrupt: it is no number.
    """
    row = connection.execute(sql.SELECT_SCHEMA_VERSION).fetchone()
    version = 0 if row is None else row[0]
    if not isinstance(version, int):
        raise Corrupt(f"{path}: the file is damaged: its schema version is {version!r}: restore a backup")
    return version


def check_version(connection: Any, path: Path) -> None:
    """Refuse a file of another schema version.

    Raises:
        SchemaTooOld: `sqsqlite db upgrade` brings it here.
        SchemaTooNew: a newer SQSQLite wrote it.
        Corrupt: its version is no number.
    """
    version = schema_version(connection, path)
    if version < schema.SCHEMA_VERSION:
        raise SchemaTooOld(
            f"{path}: schema version {version}, this SQSQLite needs {schema.SCHEMA_VERSION}: run "
            f"`sqsqlite --db {path} db upgrade` (it makes a backup first; --dry-run shows what it would do)"
        )
    if version > schema.SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{path}: schema version {version}, this SQSQLite knows {schema.SCHEMA_VERSION}: install a newer one"
        )
