"""Connections for the application's own rows: its transaction and the queue's are one.

An application that opened the file by itself would bring a second copy of SQLite, or write past the turns. So it takes
its connections from here: raw ones for `transaction()`, SQLAlchemy engines for everything else.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sqsqlite.errors import StoreError
from sqsqlite.store.connections import Connection, Pool
from sqsqlite.store.cursors import ApplicationCursor, Cursors
from sqsqlite.store.driver import dbapi
from sqsqlite.store.foreign import TORN
from sqsqlite.store.neutral import LASTING_METHODS, make_plain, neutral, run
from sqsqlite.store.transaction import Transaction
from sqsqlite.store.translate import commit_error, translate

if TYPE_CHECKING:
    from sqlalchemy import Connection as SQLAlchemyConnection
    from sqlalchemy import Engine

    from sqsqlite.store.store import Store


class ApplicationConnection(dbapi.Connection):  # type: ignore[name-defined,misc]
    """A connection that leaves its turn when its transaction ends, and goes back to its pool when it is closed.

    Attributes:
        thread: where its transaction began.
        is_block: it was given out by `transaction()`, which alone ends it.
        is_lent: it is out of the pool.
        is_put_away: it was given back: who still refers to it may not use it.
        is_changed: the application may have left something on it that outlives a transaction.
        is_query_only: it was last used by `read_engine`.
    """

    application: "Application | None" = None
    transaction: Transaction | None = None
    thread = 0
    is_block = False
    is_lent = False
    is_put_away = False
    is_changed = False
    is_query_only = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._cursors = Cursors()
        super().__init__(*arguments, **options)

    def cursor(self, factory: type = ApplicationCursor) -> Any:
        """A cursor that ends with the transaction it is used in."""
        self._refuse_put_away()
        cursor = super().cursor(factory)
        self._cursors.add(cursor)
        return cursor

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """`cursor().execute`."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        """`cursor().executemany`."""
        return self.cursor().executemany(sql, parameters)

    def executescript(self, script: str, /) -> Any:
        """`cursor().executescript`: refused in a block, because it commits first."""
        return self.cursor().executescript(script)

    def blobopen(self, *arguments: Any, **options: Any) -> Any:
        """A blob, which ends like a cursor."""
        return self._open_blob("blobopen", *arguments, **options)

    def open_blob(self, *arguments: Any, **options: Any) -> Any:
        """`blobopen`, as pysqlite3 names it."""
        return self._open_blob("open_blob", *arguments, **options)

    def _open_blob(self, name: str, *arguments: Any, **options: Any) -> Any:
        self._refuse_put_away()
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
        """As the driver has it since Python 3.12. Setting it is refused: it would end the transaction, or begin one."""
        return super().autocommit

    @autocommit.setter
    def autocommit(self, _: Any) -> None:
        raise StoreError(
            "autocommit can't be set: transactions begin and end by `sqs.transaction()` and the engines"
        )

    def commit(self) -> None:
        """COMMIT; afterwards those who wait for its messages are woken."""
        if not self.is_inherited:
            self.refuse_in_block("commit()")
        self.finish()

    def finish(self) -> None:
        """`commit`, also for `transaction()`."""
        if self.is_inherited:
            raise StoreError(f"the transaction is the parent process's: {TORN}")
        self._cursors.end()
        if self.in_transaction and self.application is not None:
            self.application.end(self, super().commit)
        else:
            super().commit()

    def rollback(self) -> None:
        """ROLLBACK: nothing was sent or deleted."""
        if not self.is_inherited:
            self.refuse_in_block("rollback()")
        self.undo()

    def undo(self) -> None:
        """`rollback`, also for `transaction()`; once more does no harm."""
        if self.is_inherited:
            return
        try:
            self._cursors.end()
            try:
                super().rollback()
            except dbapi.Error:
                if not self.is_changed:
                    raise
                # The application's authorizer or progress handler may refuse that, too.
                dbapi.Connection.set_authorizer(self, None)
                dbapi.Connection.set_progress_handler(self, None, 0)
                super().rollback()
        finally:
            if self.application is not None:
                self.application.over(self)

    def close(self) -> None:
        """Back to the pool; what was not committed is rolled back."""
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

    def _refuse_put_away(self) -> None:
        if self.is_put_away:
            raise StoreError(
                "a connection of `sqs.transaction()` or of an engine was used after its end: that would be outside any "
                "transaction. Take another one"
            )

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked from the one whose connection and transaction these are."""
        return self.application is not None and self.application.pool.is_torn


def _changing(name: str) -> Callable[..., Any]:
    """The driver's method, which also notes that the connection is not as it was."""

    def method(self: ApplicationConnection, *arguments: Any, **options: Any) -> Any:
        self.is_changed = True
        return getattr(dbapi.Connection, name)(self, *arguments, **options)

    method.__name__ = name
    return method


for _name in LASTING_METHODS:
    if hasattr(dbapi.Connection, _name):
        setattr(ApplicationConnection, _name, _changing(_name))


class Application:
    """The application's side of one store."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self.pool = Pool(
            store.path,
            synchronous=store.synchronous,
            busy_timeout=store.busy_timeout,
            factory=ApplicationConnection,
        )
        self._engine: Engine | None = None
        self._read_engine: Engine | None = None

    def connection(self) -> ApplicationConnection:
        """A raw connection, outside any transaction."""
        connection: ApplicationConnection = self.pool.take()
        connection.application = self
        connection.is_put_away = connection.is_changed = False
        connection.is_lent = True
        return connection

    def take_back(self, connection: ApplicationConnection) -> None:
        """The connection is free again."""
        connection.is_block = connection.is_lent = False
        connection.is_put_away = True
        if connection.is_changed:
            # Opening another one is surer than taking back everything that may have been done to this one.
            self.pool.discard(connection)
        else:
            make_plain(connection)
            self.pool.give_back(connection)

    def put_away(self, connection: ApplicationConnection) -> None:
        """Roll back what is open, leave the turn, take the connection back: once or again."""
        if connection.is_lent and not connection.is_inherited:
            connection.undo()
            self.take_back(connection)

    def begin(self, connection: ApplicationConnection) -> None:
        """Take the turn and BEGIN IMMEDIATE: a transaction that upgraded from reading would fail at once."""
        store = self._store
        connection.thread = threading.get_ident()
        try:
            timeout = store.turnstile.take(connection, store.busy_timeout)
            with neutral(connection):
                self._set_up(connection, query_only=False)
                connection.transaction = tx = store.begin(connection, timeout)
            tx.is_callers = True
        except BaseException as error:
            store.turnstile.leave(connection)
            if isinstance(error, dbapi.Error):
                raise translate(error, store.path) from error
            raise

    def _set_up(self, connection: ApplicationConnection, *, query_only: bool) -> None:
        """Before BEGIN: afterwards SQLite refuses another synchronous level."""
        if connection.is_changed:
            run(connection, f"PRAGMA synchronous = {self._store.synchronous}")
            run(connection, f"PRAGMA busy_timeout = {round(self._store.busy_timeout * 1000)}")
        if connection.is_changed or connection.is_query_only != query_only:
            # Only when needed: all prepared statements expire with it.
            run(connection, f"PRAGMA query_only = {'ON' if query_only else 'OFF'}")
            connection.is_query_only = query_only

    def end(self, connection: ApplicationConnection, commit: Callable[[], None]) -> None:
        """COMMIT by `commit`, leave the turn, wake the waiters."""
        tx = connection.transaction
        try:
            with neutral(connection):
                self._store.headroom.require_margin(connection)
            commit()
        except dbapi.Error as error:
            raise commit_error(error, self._store.path) from error
        self.over(connection)
        if tx is not None:
            self._store.committed(tx)

    def over(self, connection: ApplicationConnection) -> None:
        """The transaction has ended, either way."""
        tx = connection.transaction
        if tx is not None:
            tx.is_over = True
            connection.transaction = None
        self._store.turnstile.leave(connection)

    def transaction_of(self, connection: Connection) -> Transaction:
        """The transaction that a connection of ours has begun.

        Raises:
            StoreError: not a connection of this file's `engine`, or not inside a transaction that may write.
        """
        if not isinstance(connection, ApplicationConnection) or connection.application is not self:
            raise StoreError(
                f"{connection!r} is not a connection to {self._store.path} from `sqs.engine` or `sqs.transaction()`: "
                "only those can carry the application's rows and the queue's messages in one transaction"
            )
        if connection.transaction is None or not connection.in_transaction:
            raise StoreError(
                "the connection is not in a write transaction (any more): begin one on `sqs.engine`, and end it by "
                "commit() or rollback(), not by SQL"
            )
        return connection.transaction

    def connection_of(self, caller: Any) -> ApplicationConnection:
        """The raw connection under a SQLAlchemy Connection or Session, its transaction begun."""
        if hasattr(caller, "get_bind"):  # a Session: begins by itself
            caller = caller.connection()
        if hasattr(caller, "in_transaction") and hasattr(caller, "begin") and not caller.in_transaction():
            caller.begin()
        raw = getattr(caller, "connection", caller)
        found: ApplicationConnection = getattr(raw, "driver_connection", raw)
        return found

    # --- SQLAlchemy

    @property
    def engine(self) -> "Engine":
        """Writes: every transaction takes the turn and is BEGIN IMMEDIATE."""
        if self._engine is None:
            self._engine = self._make_engine(self._begin_immediate)
        return self._engine

    @property
    def read_engine(self) -> "Engine":
        """Reads: one snapshot a transaction; an attempt to write is refused by SQLite."""
        if self._read_engine is None:
            self._read_engine = self._make_engine(self._begin_reading)
        return self._read_engine

    def _make_engine(self, begin: "Callable[[SQLAlchemyConnection], None]") -> "Engine":
        from sqlalchemy import create_engine, event
        from sqlalchemy.pool import NullPool

        engine = create_engine("sqlite://", module=dbapi, creator=self.connection, poolclass=NullPool)
        event.listen(engine, "connect", self._forget_dialects_functions)
        event.listen(engine, "begin", begin)
        for asked in ("set_engine_execution_options", "set_connection_execution_options"):
            event.listen(engine, asked, self._refuse_autocommit)
        return engine

    @staticmethod
    def _refuse_autocommit(_: object, options: Mapping[str, Any]) -> None:
        """SQLAlchemy would begin, by our own event, and never commit."""
        if str(options.get("isolation_level")).upper() == "AUTOCOMMIT":
            raise StoreError(
                "an AUTOCOMMIT connection has no transaction to send or delete in: take one without"
            )

    @staticmethod
    def _forget_dialects_functions(connection: ApplicationConnection, _: object) -> None:
        """The dialect has added functions of its own: no reason to part with the connection."""
        connection.is_changed = False

    def _begin_immediate(self, connection: "SQLAlchemyConnection") -> None:
        self.begin(self.connection_of_begun(connection))

    def _begin_reading(self, connection: "SQLAlchemyConnection") -> None:
        raw = self.connection_of_begun(connection)
        self._set_up(raw, query_only=True)
        raw.execute("BEGIN")

    @staticmethod
    def connection_of_begun(connection: "SQLAlchemyConnection") -> ApplicationConnection:
        found = connection.connection.driver_connection
        assert isinstance(found, ApplicationConnection)
        return found

    def close(self) -> None:
        for engine in (self._engine, self._read_engine):
            if engine is not None:
                engine.dispose()
        self.pool.close()
