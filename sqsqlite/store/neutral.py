# SPDX-License-Identifier: Apache-2.0
"""Keep what an application sets on its connection from the queue's statements, and from the connection's next user."""

import re
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

from sqsqlite.store.driver import Connection, dbapi

# Setting a PRAGMA has "=" or parentheses.
_LASTING = re.compile(r"\b(?:attach|temp|temporary)\b|\bpragma\b[^;]*?[=(]", re.IGNORECASE)
# The driver's methods that change a connection for good; some exist in one driver only.
LASTING_METHODS = (
    "create_aggregate",
    "create_collation",
    "create_function",
    "create_window_function",
    "deserialize",
    "enable_load_extension",
    "load_extension",
    "set_authorizer",
    "set_busy_handler",
    "set_busy_timeout",
    "set_progress_handler",
    "set_trace_callback",
    "setconfig",
    "setlimit",
)


@lru_cache(maxsize=256)
def may_outlive(sql: str) -> bool:
    """Whether a statement may leave something on the connection: a setting, a temporary table, an attached file.

    Its words decide. A false alarm costs a new connection, 0.5 ms, after the transaction.
    """
    return _LASTING.search(sql) is not None


_NOTHING_TO_DO: AbstractContextManager[None] = nullcontext()


def neutral(connection: Connection) -> AbstractContextManager[None]:
    """A block in which rows are tuples, text is `str`, and writing is allowed, whatever the application has set."""
    if connection.row_factory is None and connection.text_factory is str and not _is_changed(connection):
        return _NOTHING_TO_DO
    return _Neutral(connection)


def _is_changed(connection: Connection) -> bool:
    """Whether the application may have set something on a connection that we lent it. Its own are its own."""
    return getattr(connection, "is_changed", False)


class _Neutral:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._factories: tuple[Any, Any] = (connection.row_factory, connection.text_factory)
        self._query_only = False

    def __enter__(self) -> None:
        connection = self._connection
        make_plain(connection)
        if _is_changed(connection) and run(connection, "PRAGMA query_only") != [(0,)]:
            self._query_only = True
            run(connection, "PRAGMA query_only = OFF")

    def __exit__(self, *_: object) -> None:
        connection = self._connection
        connection.row_factory, connection.text_factory = self._factories
        if self._query_only:
            run(connection, "PRAGMA query_only = ON")


def make_plain(connection: Connection) -> None:
    """Rows as tuples, text as `str`."""
    connection.row_factory = None
    connection.text_factory = str


def run(connection: Any, pragma: str) -> list[Any]:
    """A PRAGMA of ours: not one that the application has changed the connection by."""
    rows: list[Any] = dbapi.Cursor(connection).execute(pragma).fetchall()
    return rows
