# SPDX-License-Identifier: Apache-2.0
"""The connection that an application gets. It cannot end a block, and its cursors end with their transaction.

A statement that was not read to its end keeps its snapshot, and SQLite's locks, for as long as its cursor lives. A loop
variable is enough to keep it. The next BEGIN IMMEDIATE on the connection then fails at once, and the WAL can't begin
again.
"""

from collections.abc import Callable
from typing import Any, NoReturn, Protocol
from weakref import ref

from sqsqlite.errors import StoreError
from sqsqlite.store.connections import Pool
from sqsqlite.store.driver import dbapi
from sqsqlite.store.foreign import TORN
from sqsqlite.store.interrupts import until_done
from sqsqlite.store.neutral import LASTING_METHODS, may_outlive
from sqsqlite.store.transaction import Transaction

# Dead cursors are dropped when the list has this many more cursors than were alive at the last time.
SIFT_ABOVE = 200


class ApplicationCursor(dbapi.Cursor):  # type: ignore[name-defined,misc]
    """A cursor of the application."""

    __slots__ = ()

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """Execute, and note a statement that may leave a setting on the connection."""
        self.connection.refuse_ended()
        if may_outlive(sql):
            self.connection.is_changed = True
        return dbapi.Cursor.execute(self, sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        """Execute once for each set of parameters."""
        self.connection.refuse_ended()
        return super().executemany(sql, parameters)

    def executescript(self, script: str, /) -> Any:
        """Execute a script. Refused in a block, because it commits first."""
        self.connection.refuse_in_block("executescript()")
        self.connection.refuse_ended()
        self.connection.is_changed = True
        return super().executescript(script)


class EndedCursor(dbapi.Cursor):  # type: ignore[name-defined,misc]
    """The class of an `ApplicationCursor` whose transaction has ended. It refuses to read.

    SQLite would go on reading outside the transaction. Changing the class costs nothing at each fetch.
    """

    __slots__ = ()

    def _refuse(self, *_: object) -> NoReturn:
        raise StoreError(
            "the transaction in which this cursor was reading has ended: read its rows earlier, for example by "
            "fetchall()"
        )

    execute = executemany = executescript = fetchone = fetchmany = fetchall = __next__ = _refuse


class Cursors:
    """The cursors and open blobs of one connection. This object does not keep them alive."""

    def __init__(self) -> None:
        self._given_out: list[ref[Any]] = []
        self._sift_above = SIFT_ABOVE

    def add(self, cursor: Any) -> None:
        """Add a cursor or a blob."""
        given_out = self._given_out
        given_out.append(ref(cursor))
        if len(given_out) > self._sift_above:
            self._given_out = [each for each in given_out if each() is not None]
            self._sift_above = len(self._given_out) + SIFT_ABOVE

    def end(self) -> None:
        """Close all of them. A second call does no harm."""
        given_out = self._given_out
        while given_out:
            cursor = given_out[-1]()
            if cursor is not None:
                cursor.close()
                if type(cursor) is ApplicationCursor:
                    cursor.__class__ = EndedCursor
            given_out.pop()
        self._sift_above = SIFT_ABOVE


class Owner(Protocol):
    """The object that a connection calls when its transaction ends: `application.Application`."""

    pool: Pool

    def end(self, connection: "ApplicationConnection", commit: Callable[[], None]) -> None:
        """Call `commit`, and do what follows a commit."""

    def over(self, connection: "ApplicationConnection") -> None:
        """Clean up after a commit or a rollback."""

    def take_back(self, connection: "ApplicationConnection") -> None:
        """Put a free connection back into the pool."""


class ApplicationConnection(dbapi.Connection):  # type: ignore[name-defined,misc]
    """A connection that leaves its turn when its transaction ends, and goes back to its pool when it is closed.

    Attributes:
        thread: the thread in which its transaction began.
        is_block: `transaction()` gave it out, and alone ends its transaction.
        is_lent: it is out of the pool.
        is_put_away: it was given back. Code that still refers to it may not use it.
        is_changed: the application may have left something on it that outlives a transaction.
        is_query_only: `read_engine` used it last. None: an interrupt came while this was being set.
    """

    application: Owner | None = None
    transaction: Transaction | None = None
    thread = 0
    is_block = False
    is_lent = False
    is_put_away = False
    is_changed = False
    is_query_only: bool | None = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._cursors = Cursors()
        super().__init__(*arguments, **options)

    def cursor(self, factory: type = ApplicationCursor) -> Any:
        """A cursor that ends with the transaction in which it is used."""
        self._refuse_put_away()
        cursor = super().cursor(factory)
        self._cursors.add(cursor)
        return cursor

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """Call `cursor().execute`."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        """Call `cursor().executemany`."""
        return self.cursor().executemany(sql, parameters)

    def executescript(self, script: str, /) -> Any:
        """Call `cursor().executescript`. Refused in a block, because it commits first."""
        return self.cursor().executescript(script)

    def blobopen(self, *arguments: Any, **options: Any) -> Any:
        """A blob, which ends like a cursor."""
        return self._open_blob("blobopen", *arguments, **options)

    def open_blob(self, *arguments: Any, **options: Any) -> Any:
        """pysqlite3's name for `blobopen`."""
        return self._open_blob("open_blob", *arguments, **options)

    def _open_blob(self, name: str, *arguments: Any, **options: Any) -> Any:
        self._refuse_put_away()
        self.refuse_ended()
        blob = getattr(super(), name)(*arguments, **options)
        self._cursors.add(blob)
        return blob

    @property
    def isolation_level(self) -> None:
        """None: the driver never begins or commits by itself. Setting it, as SQLAlchemy does, changes nothing."""
        return None

    @isolation_level.setter
    def isolation_level(self, level: str | None) -> None:
        pass

    @property
    def autocommit(self) -> Any:
        """The driver's attribute since Python 3.12. Setting it is refused: it would end or begin a transaction."""
        return super().autocommit

    @autocommit.setter
    def autocommit(self, _: Any) -> None:
        raise StoreError(
            "autocommit can't be set: transactions begin and end by `sqs.transaction()` and the engines"
        )

    def commit(self) -> None:
        """COMMIT, then wake the consumers that wait for its messages."""
        if not self.is_inherited:
            self.refuse_in_block("commit()")
        self.finish()

    def finish(self) -> None:
        """Do the work of `commit`, also for `transaction()`."""
        if self.is_inherited:
            raise StoreError(f"the transaction is the parent process's: {TORN}")
        self._cursors.end()
        self.refuse_ended()
        if self.in_transaction and self.application is not None:
            self.application.end(self, super().commit)
        else:
            super().commit()

    def rollback(self) -> None:
        """Roll back: nothing is sent or deleted."""
        if not self.is_inherited:
            self.refuse_in_block("rollback()")
        self.undo()

    def undo(self) -> None:
        """Do the work of `rollback`, also for `transaction()`. A second call does no harm."""
        if self.is_inherited:
            return
        try:
            self._undo()
        except dbapi.Error:
            raise
        except BaseException:
            # A signal handler raised. The caller may still drop the connection, as SQLAlchemy does. The traceback would
            # then keep SQLite's lock.
            try:
                until_done(self._undo)
            finally:
                # Another signal may come before `until_done` has begun.
                until_done(self._undo)
            raise

    def _undo(self) -> None:
        try:
            self._cursors.end()
            try:
                super().rollback()
            except dbapi.Error:
                if not self.is_changed:
                    raise
                # The application's authorizer or progress handler may refuse this too.
                dbapi.Connection.set_authorizer(self, None)
                dbapi.Connection.set_progress_handler(self, None, 0)
                super().rollback()
        finally:
            if self.application is not None:
                self.application.over(self)

    def close(self) -> None:
        """Roll back what was not committed, and give the connection back to the pool."""
        if self.application is None:
            super().close()
            return
        if self.is_inherited:
            return
        self.refuse_in_block("close()")
        if not self.is_lent:
            return
        self.undo()
        self.application.take_back(self)

    def __enter__(self) -> "ApplicationConnection":
        self.refuse_in_block("`with` on the connection")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.rollback()

    def refuse_in_block(self, what: str) -> None:
        """Raise StoreError if `transaction()` has given the connection out: its block alone ends the transaction."""
        if self.is_block:
            raise StoreError(
                f"{what} within `with sqs.transaction()`: the block commits at its end, and rolls back when it raises"
            )

    def refuse_ended(self) -> None:
        """Raise StoreError if SQLite has ended the transaction: each statement would commit by itself from now on.

        SQLite rolls back after some errors: a full disk, an interrupt, a progress handler that refuses, ON CONFLICT
        ROLLBACK. The application may have caught the error.
        """
        if self.transaction is not None and not self.in_transaction:
            raise StoreError(
                "the transaction has ended already: SQLite rolled it back with an error (a full disk, an interrupt, ON "
                "CONFLICT ROLLBACK), or SQL ended it. Nothing more can be run in it, nor committed"
            )

    def _refuse_put_away(self) -> None:
        if self.is_put_away:
            raise StoreError(
                "a connection of `sqs.transaction()` or of an engine was used after its end: that would be outside any "
                "transaction. Take another one"
            )

    @property
    def is_inherited(self) -> bool:
        """Whether the connection belongs to the process from which this one was forked."""
        return self.application is not None and self.application.pool.is_torn


def _changing(name: str) -> Callable[..., Any]:
    """Wrap a method of the driver: it also notes that the connection was changed."""

    def method(self: ApplicationConnection, *arguments: Any, **options: Any) -> Any:
        self.is_changed = True
        return getattr(dbapi.Connection, name)(self, *arguments, **options)

    method.__name__ = name
    return method


for _name in LASTING_METHODS:
    if hasattr(dbapi.Connection, _name):
        setattr(ApplicationConnection, _name, _changing(_name))
