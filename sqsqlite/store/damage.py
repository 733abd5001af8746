# SPDX-License-Identifier: Apache-2.0
"""Damage in a file: what SQLite finds, rows that break what the schema guarantees, and the error that it explains.

An operation that fails in an unknown way has met damage, or a bug of ours. A look at the file tells which.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

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
    """Each line that is not "ok": of the whole file, or of our tables where it needs what only the application has.

    Args:
        pragma: "integrity_check" or "quick_check".
        limit: lines at most of the file; of each of our tables it is 100, which SQLite sets.
        progress: called with the reason why the application's tables were left out.
    """
    try:
        lines = connection.execute(f"PRAGMA {pragma}({limit})").fetchall()
    except dbapi.OperationalError as error:
        if primary_code(error) != ERROR:
            raise
        # An index of the application's is sorted by a collation or a function that its own connections define.
        progress(f"{pragma} of the queues' tables alone ({error})")
        lines = []
        for (table,) in connection.execute(LIST_TABLES).fetchall():
            quoted = table.replace(
                "'", "''"
            )  # a name may be anything: the application may have added one since
            lines += connection.execute(f"PRAGMA {pragma}('{quoted}')").fetchall()
    return [line for (line,) in lines if line != "ok"]


def warn_of_damage(path: "Path", lines: Iterable[str]) -> None:
    """Log skipped messages as warnings of the logger "sqsqlite": on standard error unless logging is set up.

    Not an exception: the healthy messages are on their way to the caller.
    """
    for line in lines:
        # Not before there is a line: a signal handler that raises in logging's lock leaves it locked for good.
        import logging

        logging.getLogger("sqsqlite").warning("%s: %s", path, line)


@contextmanager
def undecoded(connection: "Connection") -> "Iterator[None]":
    """Within the block, a TEXT that is not UTF-8 comes as its bytes. Otherwise the driver gives up the whole row."""
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
    """What is wrong with (column, value, type) of a row that was read `undecoded`; None: each has its type.

    A TEXT may be null where the caller leaves it out.
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
"""What working with rows raises that break their schema; and what bugs raise."""

# SQLite's result codes of the same kind: an error in a statement, too big, a constraint, a wrong type. 0: the driver's.
_ODD_CODES = (0, 1, 18, 19, 20)

# These find nothing in a sound file. Statements that find something when a clock is wrong are left out.
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
    """The error to raise in place of one of `ODD`, if the file is damaged. None: the error stays what it is.

    Requests are checked before their operations run, so a sound file gives none of these. Looks through the whole file,
    outside the transaction that has failed.

    Args:
        snapshot: a connection in the read transaction that has failed, to look at what it saw.
    """
    if isinstance(error, SQSQLiteError | UnicodeEncodeError):
        return None  # the second: a text of the caller's, on its way into the file
    if isinstance(error, dbapi.Error) and primary_code(error) not in _ODD_CODES:
        return None
    # What a request holds was decoded before: this is what a row holds.
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
        # An error in a statement, which tests run: what it names is missing from the schema.
        if primary_code(error) in (CORRUPT, NOTADB, ERROR):
            return str(error)
    return None
