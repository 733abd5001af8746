# SPDX-License-Identifier: Apache-2.0
"""Which SQLite this process uses: one copy, and one without the WAL-reset bug.

SQLite 3.7.0 to 3.51.2 can lose pages if a commit restarts the WAL in the same instant as a second checkpoint. A queue
does both all day. If the standard library's SQLite is too old, `pysqlite3` brings its own.
"""

import os
import warnings
from types import ModuleType
from typing import Any

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

Connection = Any
"""One of its connections."""

is_standard_library: bool = dbapi.__name__.startswith("sqlite3")


def check_version() -> None:
    """Refuse a SQLite with the WAL-reset bug, unless SQSQLITE_ALLOW_UNSAFE_SQLITE=1 is set.

    Raises:
        UnsafeSQLite: the only SQLite here is affected.
    """
    if is_safe(dbapi.sqlite_version_info):
        return
    found = f"SQLite {dbapi.sqlite_version} ({dbapi.__name__})"
    if os.environ.get(OVERRIDE) == "1":
        warnings.warn(
            f"{found} has the WAL-reset bug: connections that write and checkpoint at once can corrupt the file",
            RuntimeWarning,
            stacklevel=3,
        )
        return
    raise UnsafeSQLite(
        f"{found} has the WAL-reset bug, which can corrupt a queue's file. Needed: SQLite 3.51.3 or newer, by "
        f"`pip install 'pysqlite3>=0.6.1'` where it has wheels, or a Python built with a newer SQLite. "
        f"{OVERRIDE}=1 opens it all the same."
    )
