# SPDX-License-Identifier: Apache-2.0
"""Connections that the application opens by the driver itself, past `sqsqlite.dbapi`.

They are of the same copy of SQLite, so they do no harm, and only have to be known: a file that they have open is not
refused, and a forked child does not use it. Not known are those that were opened before SQSQLite was imported.
"""

import sys
import threading
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

from sqsqlite.store import foreign
from sqsqlite.store.driver import dbapi, file_of, is_standard_library

_opening = threading.local()


def _wrap_connect() -> None:
    """pysqlite3 announces nothing, so its `connect` notes what it opens."""
    import pysqlite3

    plain = dbapi.connect

    @wraps(plain)
    def connect(database: Any, *arguments: Any, **options: Any) -> Any:
        path, _ = file_of(database, uri=bool(options.get("uri")))
        if path is None:
            return plain(database, *arguments, **options)
        with foreign.no_fork(), foreign.noting(path):
            return plain(database, *arguments, **options)

    for module in (dbapi, pysqlite3):
        vars(module)["connect"] = connect


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: the standard library announces each connect before and after."""
    if event == "sqlite3.connect":
        path, _ = file_of(arguments[0], uri=True)
        noting: AbstractContextManager[None] | None = foreign.noting(path) if path is not None else None
        _opening.noting = noting
        if noting is not None:
            noting.__enter__()
    elif event == "sqlite3.connect/handle":
        noting, _opening.noting = getattr(_opening, "noting", None), None
        if noting is not None:
            noting.__exit__(None, None, None)


def install() -> None:
    """Note these connections from now on. Called once."""
    if is_standard_library:
        sys.addaudithook(_note)
    else:
        _wrap_connect()
