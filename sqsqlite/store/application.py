# SPDX-License-Identifier: Apache-2.0
"""Connections for the application's own rows: its transaction and the queue's are one.

An application that opened the file by itself would bring a second copy of SQLite, or write past the turns. So it takes
its connections from here: raw ones for `transaction()`, SQLAlchemy engines for everything else.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sqsqlite.errors import StoreError
from sqsqlite.store.application_connection import ApplicationConnection
from sqsqlite.store.connections import Pool
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.neutral import make_plain, neutral, run
from sqsqlite.store.transaction import Transaction
from sqsqlite.store.transactions import Transactions
from sqsqlite.store.translate import commit_error, translate
from sqsqlite.store.used_up import raise_used_up

if TYPE_CHECKING:
    from sqlalchemy import Connection as SQLAlchemyConnection
    from sqlalchemy import Engine


class Application:
    """The application's side of one store."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._file = file = transactions.file
        self.pool = Pool(
            file.path,
            synchronous=file.synchronous,
            busy_timeout=file.busy_timeout,
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
        """Put a free connection back into the pool."""
        connection.is_block = connection.is_lent = False
        connection.is_put_away = True
        if connection.is_changed:
            # Opening another one is safer than undoing all that the application may have done to this one.
            self.pool.discard(connection)
        else:
            make_plain(connection)
            self.pool.give_back(connection)

    def put_away(self, connection: ApplicationConnection) -> None:
        """Roll back what is open, leave the turn, take the connection back. A second call does no harm."""
        if connection.is_lent and not connection.is_inherited:
            connection.undo()
            self.take_back(connection)

    def begin(self, connection: ApplicationConnection) -> None:
        """Take the turn and BEGIN IMMEDIATE: a transaction that upgraded from reading would fail at once."""
        file = self._file
        connection.thread = threading.get_ident()
        try:
            timeout = file.turnstile.take(connection, file.busy_timeout)
            with neutral(connection):
                self._set_up(connection, query_only=False)
                connection.transaction = tx = self._transactions.begin(connection, timeout)
            tx.is_callers = True
        except BaseException as error:
            file.turnstile.leave(connection)
            if isinstance(error, dbapi.Error):
                raise translate(error, file.path) from error
            if isinstance(error, OSError):
                raise_used_up(error, file.path)
            raise

    def _set_up(self, connection: ApplicationConnection, *, query_only: bool) -> None:
        """Set the connection up before BEGIN: afterwards SQLite refuses another synchronous level."""
        if connection.is_changed:
            run(connection, f"PRAGMA synchronous = {self._file.synchronous}")
            run(connection, f"PRAGMA busy_timeout = {round(self._file.busy_timeout * 1000)}")
        if connection.is_changed or connection.is_query_only is not query_only:
            # Only when needed: all prepared statements expire with it.
            connection.is_query_only = None
            run(connection, f"PRAGMA query_only = {'ON' if query_only else 'OFF'}")
            connection.is_query_only = query_only

    def end(self, connection: ApplicationConnection, commit: Callable[[], None]) -> None:
        """Call `commit`, leave the turn, and wake the waiters."""
        tx = connection.transaction
        try:
            with neutral(connection):
                self._file.headroom.require_margin(connection)
            commit()
        except dbapi.Error as error:
            raise commit_error(error, self._file.path, connection) from error
        self.over(connection)
        if tx is not None:
            self._transactions.committed(tx)

    def over(self, connection: ApplicationConnection) -> None:
        """Clean up after a commit or a rollback."""
        tx = connection.transaction
        if tx is not None:
            tx.is_over = True
            connection.transaction = None
        self._file.turnstile.leave(connection)

    @staticmethod
    def has_lent(connection: Connection) -> bool:
        """Whether the connection is of `engine` or `transaction()`, of this file or another one."""
        return isinstance(connection, ApplicationConnection)

    def transaction_of(self, connection: ApplicationConnection) -> Transaction:
        """The transaction that a connection of `engine` or `transaction()` has begun.

        Raises:
            StoreError: the connection is another file's, or is not inside a transaction that may write.
        """
        if connection.application is not self:
            raise StoreError(
                f"{connection!r} is from the engine of another `connect`: take it from this one's `sqs.engine`, which "
                f"is to {self._file.path}"
            )
        if connection.transaction is None or not connection.in_transaction:
            raise StoreError(
                "the connection is not in a write transaction (any more): begin one on `sqs.engine`, and end it by "
                "commit() or rollback(), not by SQL"
            )
        return connection.transaction

    def connection_of(self, caller: Any) -> Connection:
        """The raw connection under one of SQLAlchemy's or Django's. Begins the transaction of SQLAlchemy's.

        Raises:
            StoreError: an asynchronous one, outside of its `run_sync`.
        """
        if hasattr(caller, "run_sync"):
            raise StoreError(
                f"{type(caller).__name__} is asynchronous: pass what its `run_sync` gives, as in `await "
                "session.run_sync(lambda inner: queue.send(body, connection=inner))`"
            )
        if hasattr(caller, "get_bind"):  # a Session, which begins by itself
            caller = caller.connection()
        if hasattr(caller, "ensure_connection"):  # Django's wrapper, which connects when it is first used
            caller.ensure_connection()
        elif hasattr(caller, "in_transaction") and hasattr(caller, "begin") and not caller.in_transaction():
            caller.begin()
        raw = caller if isinstance(caller, dbapi.Connection) else getattr(caller, "connection", caller)
        return getattr(raw, "driver_connection", raw)

    # --- SQLAlchemy

    @property
    def engine(self) -> "Engine":
        """The engine for writes: every transaction takes the turn and is BEGIN IMMEDIATE."""
        if self._engine is None:
            self._engine = self._make_engine(self._begin_immediate)
        return self._engine

    @property
    def read_engine(self) -> "Engine":
        """The engine for reads: each transaction reads one snapshot. SQLite refuses writes."""
        if self._read_engine is None:
            self._read_engine = self._make_engine(self._begin_reading)
        return self._read_engine

    def _make_engine(self, begin: "Callable[[SQLAlchemyConnection], None]") -> "Engine":
        try:
            from sqlalchemy import create_engine, event
            from sqlalchemy.pool import NullPool

            engine = create_engine("sqlite://", module=dbapi, creator=self.connection, poolclass=NullPool)
        except OSError as error:
            raise_used_up(error, self._file.path)
            raise
        event.listen(engine, "connect", self._forget_dialects_functions)
        event.listen(engine, "begin", begin)
        for asked in ("set_engine_execution_options", "set_connection_execution_options"):
            event.listen(engine, asked, self._refuse_autocommit)
        return engine

    @staticmethod
    def _refuse_autocommit(_: object, options: Mapping[str, Any]) -> None:
        """Refuse AUTOCOMMIT: our event would begin a transaction that SQLAlchemy never commits."""
        if str(options.get("isolation_level")).upper() == "AUTOCOMMIT":
            raise StoreError(
                "an AUTOCOMMIT connection has no transaction to send or delete in: take one without"
            )

    @staticmethod
    def _forget_dialects_functions(connection: ApplicationConnection, _: object) -> None:
        """The dialect has added its own functions. They are no reason to discard the connection."""
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
