# SPDX-License-Identifier: Apache-2.0
"""Schema versions: a file's version, the version that this SQSQLite needs, and the migrations between them.

Alembic runs the revisions under `migrations/`. Revision 0002 leads to schema version 2. Opening a file only reads the
version, and does not load this module.
"""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqsqlite.errors import SchemaTooNew
from sqsqlite.sql import schema
from sqsqlite.sql.operators import LIST_SCHEMA_OBJECTS
from sqsqlite.store import create
from sqsqlite.store.backup import alone, copy_to
from sqsqlite.store.closed import reading
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.meta import schema_version

if TYPE_CHECKING:
    from alembic.config import Config

Objects = dict[tuple[str, str], str]
"""The SQL of each of our objects by (type, name), with all white space alike."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: `version` is the schema version that it leads to."""

    revision: str
    version: int
    description: str


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What `upgrade` did or, as a dry run, would do.

    Attributes:
        version: the file's schema version before.
        migrations: the steps, in order. Empty: the file was up to date.
        backup: the path of the backup. None: no backup was made.
    """

    path: Path
    version: int
    migrations: tuple[Migration, ...]
    backup: Path | None


def current(path: Path) -> int:
    """The schema version of a file of queues.

    Raises:
        NotAdopted: the file is a database without queues.
        StoreError: the file can't be read.
    """
    with reading(path) as connection:
        return schema_version(connection, path)


def check(path: Path) -> list[str]:
    """The differences from the needed schema, a line each: its version, changed tables or indexes.

    Raises: as `current`.
    """
    with reading(path) as connection:
        version = schema_version(connection, path)
        if version < schema.SCHEMA_VERSION:
            return [f"schema version {version}, needed is {schema.SCHEMA_VERSION}: run `sqsqlite db upgrade`"]
        if version > schema.SCHEMA_VERSION:
            return [f"schema version {version}, known is {schema.SCHEMA_VERSION}: install a newer SQSQLite"]
        return differences(connection)


def differences(connection: Connection) -> list[str]:
    """The differences of our tables, indexes, views and triggers from a new file's, a line each."""
    found = objects(connection)
    new = dbapi.connect(":memory:", isolation_level=None)
    try:
        for statement in schema.statements():
            new.execute(statement)
        expected = objects(new)
    finally:
        new.close()
    lines = [f"{kind} {name} is missing" for kind, name in expected.keys() - found.keys()]
    lines += [f"{kind} {name} is not one of this version" for kind, name in found.keys() - expected.keys()]
    lines += [
        f"{kind} {name} differs: {found[kind, name]}"
        for kind, name in expected.keys() & found.keys()
        if found[kind, name] != expected[kind, name]
    ]
    return sorted(lines)


def objects(connection: Connection) -> Objects:
    """The objects of the file's schema that are ours."""
    return {(kind, name): _words(text) for kind, name, text in connection.execute(LIST_SCHEMA_OBJECTS)}


def _words(text: str | None) -> str:
    """The SQL without line breaks, because Alembic, SQLAlchemy and our own text break lines in different places."""
    return re.sub(r"\s*([(),])\s*", r"\1", " ".join((text or "").split()))


def upgrade(
    path: Path,
    *,
    dry_run: bool = False,
    backup: bool = True,
    busy_timeout: float = 30.0,
    scripts: Path | None = None,
) -> Upgrade:
    """Bring a file to the newest schema version. Each step has its own transaction, and runs completely or not at all.

    Args:
        dry_run: only return the steps. Works while others use the file.
        backup: copy the file to `FILE.v1-20300131T120000Z.backup` before the first step.
        busy_timeout: seconds to wait for the turn to write.
        scripts: the folder of `env.py` and `versions`. None: the folder that comes with SQSQLite.

    Raises:
        FileInUse: a process has the file open. It must not go on while rows change their meaning.
        SchemaTooNew: a newer SQSQLite made the file.
        NotAdopted: the file is a database without queues.
        TargetExists, DiskFull: the backup could not be made. Nothing was changed.
    """
    path = create.resolved(path)  # the locks next to the file have its own name, not that of a link
    with reading(path) as connection:
        version, steps = _plan(connection, path, scripts)
    if dry_run or not steps:
        return Upgrade(path, version, steps, None)
    create.check_path(path)
    with alone(path, busy_timeout) as connection:
        # Another process may have upgraded the file while this one waited for the turn.
        version, steps = _plan(connection, path, scripts)
        kept = None
        if steps and backup:
            kept = path.with_name(
                f"{path.name}.v{version}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.backup"
            )
            copy_to(connection, path, kept)
        run(connection, steps, scripts)
    return Upgrade(path, version, steps, kept)


def run(connection: Connection, steps: "tuple[Migration, ...]", scripts: Path | None = None) -> None:
    """Run the steps on this connection, each in its own transaction. Without any, load nothing."""
    if not steps:
        return
    from alembic import command
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import StaticPool

    engine = create_engine("sqlite://", module=dbapi, creator=lambda: connection, poolclass=StaticPool)
    event.listen(engine, "begin", lambda begun: begun.exec_driver_sql("BEGIN IMMEDIATE"))
    config = _config(scripts)
    try:
        for step in steps:
            with engine.begin() as transaction:
                config.attributes["connection"] = transaction
                command.upgrade(config, step.revision)
    except DBAPIError as error:
        if isinstance(error.orig, dbapi.Error):
            raise error.orig from error  # the caller knows the path and translates it
        raise


def pending(version: int, scripts: Path | None = None) -> tuple[Migration, ...]:
    """The steps from a schema version to the newest, in order.

    Raises:
        SchemaTooNew: the version is beyond the newest.
    """
    if scripts is None and version == schema.SCHEMA_VERSION:
        return ()  # do not load Alembic for it
    from alembic.script import ScriptDirectory

    found = [
        Migration(script.revision, int(script.revision), (script.doc or "").strip())
        for script in ScriptDirectory.from_config(_config(scripts)).walk_revisions()
    ]
    newest = max(step.version for step in found)
    if version > newest:
        raise SchemaTooNew(f"schema version {version}, this SQSQLite knows {newest}: install a newer one")
    return tuple(sorted((step for step in found if step.version > version), key=lambda step: step.version))


def _plan(connection: Connection, path: Path, scripts: Path | None) -> tuple[int, tuple[Migration, ...]]:
    version = schema_version(connection, path)
    try:
        return version, pending(version, scripts)
    except SchemaTooNew as error:
        raise SchemaTooNew(f"{path}: {error}") from error


def _config(scripts: Path | None) -> "Config":
    from importlib.resources import files

    from alembic.config import Config

    folder = str(files("sqsqlite.migrations") if scripts is None else scripts)
    config = Config()
    config.set_main_option("script_location", folder.replace("%", "%%"))  # `%` begins a variable there
    return config
