"""Cursors on the application's connections: they end with their transaction.

A statement that was not read to its end keeps its snapshot, and SQLite's locks, for as long as its cursor lives: a loop
variable is enough. The next BEGIN IMMEDIATE on the connection then fails at once, and the WAL can't begin again.
"""

from typing import Any, NoReturn
from weakref import ref

from sqsqlite.errors import StoreError
from sqsqlite.store.driver import dbapi
from sqsqlite.store.neutral import may_outlive

# References to dead cursors are dropped when there are this many more than living ones were.
SIFT_ABOVE = 200


class ApplicationCursor(dbapi.Cursor):  # type: ignore[name-defined,misc]
    """A cursor of the application's."""

    __slots__ = ()

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """The driver's; a statement that may outlive the transaction is noted."""
        self.connection.refuse_ended()
        if may_outlive(sql):
            self.connection.is_changed = True
        return dbapi.Cursor.execute(self, sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        """The driver's."""
        self.connection.refuse_ended()
        return super().executemany(sql, parameters)

    def executescript(self, script: str, /) -> Any:
        """Refused in a block: it commits first."""
        self.connection.refuse_in_block("executescript()")
        self.connection.refuse_ended()
        self.connection.is_changed = True
        return super().executescript(script)


class EndedCursor(dbapi.Cursor):  # type: ignore[name-defined,misc]
    """What an `ApplicationCursor` becomes at the end of its transaction.

    SQLite would go on reading outside it. The class is changed rather than each method asking: fetching costs nothing.
    """

    __slots__ = ()

    def _refuse(self, *_: object) -> NoReturn:
        raise StoreError(
            "the transaction has ended that this cursor was reading in: read its rows before, by fetchall() for example"
        )

    execute = executemany = executescript = fetchone = fetchmany = fetchall = __next__ = _refuse


class Cursors:
    """The cursors (and open blobs) that one connection gave out, without keeping them alive."""

    def __init__(self) -> None:
        self._given_out: list[ref[Any]] = []
        self._sift_above = SIFT_ABOVE

    def add(self, cursor: Any) -> None:
        """Note one more."""
        given_out = self._given_out
        given_out.append(ref(cursor))
        if len(given_out) > self._sift_above:
            self._given_out = [each for each in given_out if each() is not None]
            self._sift_above = len(self._given_out) + SIFT_ABOVE

    def end(self) -> None:
        """Close all of them; once more does no harm."""
        given_out = self._given_out
        while given_out:
            cursor = given_out[-1]()
            if cursor is not None:
                cursor.close()
                if type(cursor) is ApplicationCursor:
                    cursor.__class__ = EndedCursor
            given_out.pop()
        self._sift_above = SIFT_ABOVE
