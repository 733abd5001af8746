# SPDX-License-Identifier: Apache-2.0
"""Damage in a file: SQLite's findings, rows that break the schema, and the errors that damage explains.

If an operation fails in an unknown way, the file is damaged or we have a bug. Checking the file tells which.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqsqlite.errors import Corrupt, SQSQLiteError
from sqsqlite.sql import operators as find
from sqsqlite.sql.operators import LIST_TABLES
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.file import File
from sqsqlite.store.translate import CORRUPT, ERROR, NOTADB, primary_code

if TYPE_CHECKING:
    from pathlib import Path


def findings(
    connection: "Connection", pragma: str, limit: int, progress: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Each line that is not "ok". It checks only our tables if the whole file needs functions of the application.

    Args:
        pragma: "integrity_check" or "quick_check".
        limit: the most lines for the file. SQLite sets the limit for one table: 100.
        progress: called with the reason if the application's tables were left out.
    """
    try:
        lines = connection.execute(f"PRAGMA {pragma}({limit})").fetchall()
    except dbapi.OperationalError as error:
        if primary_code(error) != ERROR:
            raise
        # An index of the application uses a collation or a function that only its own connections define.
        progress(f"{pragma} of the queues' tables alone ({error})")
        lines = []
        for (table,) in connection.execute(LIST_TABLES).fetchall():
            quoted = table.replace("'", "''")  # any name is possible: the application may have added one
            lines += connection.execute(f"PRAGMA {pragma}('{quoted}')").fetchall()
    return [line for (line,) in lines if line != "ok"]


def warn_of_damage(path: "Path", lines: Iterable[str]) -> None:
    """Log skipped messages as warnings of the logger "sqsqlite": on standard error unless logging is set up.

    It raises nothing, so the caller gets the healthy messages.
    """
    for line in lines:
        # Import it only for a line: a signal handler that raises inside logging's lock leaves it locked for good.
        import logging

        logging.getLogger("sqsqlite").warning("%s: %s", path, line)


@contextmanager
def undecoded(connection: "Connection") -> "Iterator[None]":
    """A block in which a TEXT that is not UTF-8 is read as its bytes. Otherwise the driver can't read the whole row."""
    before = connection.text_factory
    connection.text_factory = _text_or_bytes
    try:
        yield
    finally:
        connection.text_factory = before


def _text_or_bytes(stored: bytes) -> str | bytes:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def flaw(values: Iterable[tuple[str, Any, type]]) -> str | None:
    """The first fault in (column, value, type) of a row that was read `undecoded`. None: each value has its type.

    If a TEXT may be null, the caller leaves a null out.
    """
    for column, value, kind in values:
        if type(value) is kind:
            continue
        if kind is str and isinstance(value, bytes):
            return f"its {column} is not UTF-8"
        found = "missing" if value is None else f"of the type {type(value).__name__}"
        return f"its {column} is {found}"
    return None


ODD = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError, dbapi.Error)
"""The errors that rows raise if they break their schema. Bugs raise them too."""

# SQLite's result codes of this kind: error in a statement, too big, constraint, wrong type. 0: the driver's error.
_ODD_CODES = (0, 1, 18, 19, 20)

# These find nothing in a sound file. Left out: statements that find something if a clock is wrong.
_INVARIANTS = (
    find.FIND_LEASES_WITHOUT_MESSAGE,
    find.FIND_MESSAGES_WITHOUT_LEASE,
    find.FIND_REUSABLE_IDS,
    find.FIND_LEASES_WITHOUT_EPOCH,
    find.FIND_QUEUES_WITHOUT_EPOCH,
    find.FIND_WRONG_COUNTS,
    find.FIND_ODD_LEASES,
    find.FIND_LEASES_WITHOUT_GROUP,
    find.FIND_GROUPS_WITHOUT_LEASE,
    find.FIND_DEAD_LETTERS_WITHOUT_LEASE,
    find.FIND_ODD_MESSAGES,
    find.FIND_ODD_COUNTS,
    find.FIND_ODD_QUEUES,
)


def damage_behind(file: File, error: Exception, snapshot: Connection | None = None) -> Corrupt | None:
    """The error to raise in place of one of `ODD`, if the file is damaged. None: raise the error itself.

    Requests are checked before their operations run, so a sound file raises none of them. The check reads the whole
    file, outside the failed transaction.

    Args:
        snapshot: a connection in the failed read transaction, to check the state that it has read.
    """
    if isinstance(error, SQSQLiteError | UnicodeEncodeError):
        return None  # UnicodeEncodeError: the text comes from the caller, not from the file
    if isinstance(error, dbapi.Error) and primary_code(error) not in _ODD_CODES:
        return None
    # A request's text was decoded earlier, so this text is from a row.
    import msgspec  # here, because short commands start without it

    undecodable = isinstance(error, UnicodeError | msgspec.DecodeError)
    why = "a text in it can't be decoded" if undecodable else _find_damage(file, snapshot)
    if why is None:
        return None
    return Corrupt(
        f"{file.path}: the file is damaged: {why}: run `sqsqlite check` ({type(error).__name__}: {error})"
    )


def _find_damage(file: File, snapshot: Connection | None) -> str | None:
    if snapshot is not None:
        return _damage(snapshot)
    with file.readers.lent() as connection:
        connection.execute("BEGIN")
        try:
            return _damage(connection)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _damage(connection: Connection) -> str | None:
    try:
        if damage := findings(connection, "quick_check", 1):
            return damage[0].replace("\n", " ")
        if any(connection.execute(statement).fetchone() for statement in _INVARIANTS):
            return "its rows do not fit together"
    except UnicodeError:
        return "its schema can't be decoded"
    except dbapi.Error as error:
        # An error in a statement. Tests run all of ours, so a name in it is missing from the schema.
        if primary_code(error) in (CORRUPT, NOTADB, ERROR):
            return str(error)
    return None
