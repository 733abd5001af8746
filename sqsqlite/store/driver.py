# SPDX-License-Identifier: Apache-2.0
"""Which SQLite this process uses: one copy, and one without the WAL-reset bug.

SQLite 3.7.0 to 3.51.2 can lose pages if a commit restarts the WAL in the same instant as a second checkpoint. A queue
does both all day. If the standard library's SQLite is too old, `pysqlite3` brings its own.
"""

import os
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, quote, unquote_to_bytes, urlsplit

from sqsqlite.errors import UnsafeSQLite

FIRST_FIXED = (3, 51, 3)
# Releases that were withdrawn, and older lines that got the fix.
WITHDRAWN = frozenset({(3, 52, 0)})
BACK_PORTED = frozenset({(3, 50, 7), (3, 44, 6)})
OVERRIDE = "SQSQLITE_ALLOW_UNSAFE_SQLITE"


def is_safe(version: tuple[int, ...]) -> bool:
    """Whether a SQLite of this version is free of the WAL-reset bug."""
    if version in BACK_PORTED:
        return True
    return version >= FIRST_FIXED and version not in WITHDRAWN


def _load() -> ModuleType:
    import sqlite3

    if is_safe(sqlite3.sqlite_version_info):
        return sqlite3
    try:
        from pysqlite3 import dbapi2
    except ImportError:
        return sqlite3
    module: ModuleType = dbapi2
    return module


dbapi: ModuleType = _load()
"""The DB-API module of the only SQLite copy that opens queue files in this process."""

connect = dbapi.connect
"""Its `connect`, also after `same_copy` has put another one in its place for applications."""

Connection = Any
"""One of its connections."""

is_standard_library: bool = dbapi.__name__.startswith("sqlite3")

PRODUCT = f"SQLite {dbapi.sqlite_version} ({dbapi.__name__.split('.')[0]})"
"""The copy by its version and its package."""


def other_copies() -> list[str]:
    """The other copies of SQLite that this process has loaded, of those packages that we know: version and package."""
    found = []
    for name in ("sqlite3", "pysqlite3.dbapi2", "sqlcipher3.dbapi2"):
        module = sys.modules.get(name)
        # A program may have put pysqlite3 in the place of sqlite3.
        if module is not None and not module.__name__.startswith(dbapi.__name__.split(".")[0]):
            found.append(f"SQLite {module.sqlite_version} ({name.split('.')[0]})")
    if (apsw := sys.modules.get("apsw")) is not None:
        found.append(f"SQLite {apsw.sqlite_lib_version()} (apsw)")
    return found


def file_of(database: object, uri: bool) -> tuple[Path | None, Any]:
    """The file that the arguments of the driver's `connect` name, and the database to pass on in place of theirs.

    A relative name becomes absolute: the program may change its folder before the connection is opened again.

    Returns:
        None as the file for a database in memory, and for what the driver will refuse.
    """
    if not isinstance(database, (str, bytes, os.PathLike)):
        return None, database
    name = os.fsdecode(database)
    if name in ("", ":memory:"):
        return None, database
    if not uri or not name.startswith("file:"):
        path = Path(os.path.abspath(name))
        return path, str(path)
    parts = urlsplit(name)
    named = os.fsdecode(unquote_to_bytes(parts.path))
    query = parse_qs(parts.query)
    if named in ("", ":memory:") or "memory" in query.get("mode", ()) or "memdb" in query.get("vfs", ()):
        return None, database
    path = Path(os.path.abspath(named))
    return path, f"file:{quote(os.fsencode(path))}" + (f"?{parts.query}" if parts.query else "")


def check_version() -> None:
    """Refuse a SQLite with the WAL-reset bug, unless SQSQLITE_ALLOW_UNSAFE_SQLITE=1 is set.

    Raises:
        UnsafeSQLite: the only SQLite here is affected.
    """
    if is_safe(dbapi.sqlite_version_info):
        return
    if os.environ.get(OVERRIDE) == "1":
        warnings.warn(
            f"{PRODUCT} has the WAL-reset bug: connections that write and checkpoint at once can corrupt the file",
            RuntimeWarning,
            stacklevel=3,
        )
        return
    raise UnsafeSQLite(
        f"{PRODUCT} has the WAL-reset bug, which can corrupt a queue's file. Needed: SQLite 3.51.3 or newer, by "
        f"`pip install 'pysqlite3>=0.6.1'` where it has wheels, or a Python built with a newer SQLite. "
        f"{OVERRIDE}=1 opens it all the same."
    )
