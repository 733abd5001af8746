"""The schema version of a file: what this SQSQLite can work with."""

from pathlib import Path
from typing import Any

from sqsqlite import statements_file as sql
from sqsqlite.errors import SchemaTooNew, SchemaTooOld
from sqsqlite.store import ddl


def check_version(connection: Any, path: Path) -> None:
    """Refuse a file of another schema version.

    Raises:
        SchemaTooOld: `sqsqlite db upgrade` brings it here.
        SchemaTooNew: a newer SQSQLite wrote it.
    """
    row = connection.execute(sql.SELECT_SCHEMA_VERSION).fetchone()
    version = 0 if row is None else row[0]
    if version < ddl.SCHEMA_VERSION:
        raise SchemaTooOld(
            f"{path}: schema version {version}, this SQSQLite needs {ddl.SCHEMA_VERSION}: run "
            f"`sqsqlite --db {path} db upgrade` (it makes a backup first; --dry-run shows what it would do)"
        )
    if version > ddl.SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{path}: schema version {version}, this SQSQLite knows {ddl.SCHEMA_VERSION}: install a newer one"
        )
