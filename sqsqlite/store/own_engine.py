# SPDX-License-Identifier: Apache-2.0
"""Operations in a transaction of the application's own engine: one of `sqsqlite.dbapi`, or of the driver itself.

SQLite begins the transaction as that engine says, deferred as a rule. A deferred one that has read an older snapshot
can't write any more. So the write lock is taken before the operation reads anything.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sqsqlite.errors import Busy, StoreError
from sqsqlite.sql import file as sql
from sqsqlite.store import foreign
from sqsqlite.store.blocks import run_joined
from sqsqlite.store.driver import PRODUCT, Connection, dbapi, other_copies
from sqsqlite.store.neutral import neutral
from sqsqlite.store.own_connection import OwnConnection
from sqsqlite.store.transaction import Transaction
from sqsqlite.store.transactions import Transactions
from sqsqlite.store.translate import BUSY, LOCKED, primary_code, translate

R = TypeVar("R")

_ADVICE = (
    "Roll back, and repeat the transaction. So that it can't happen, begin with BEGIN IMMEDIATE: in SQLAlchemy by "
    '`connect_args={"isolation_level": "IMMEDIATE"}` of create_engine, in Django by "OPTIONS": {"transaction_mode": '
    '"IMMEDIATE"}'
)


def join(
    transactions: Transactions,
    connection: Connection,
    operation: Callable[..., R],
    arguments: tuple[Any, ...],
) -> R:
    """Run an operation in the transaction of an application's own connection, completely or not at all.

    Raises:
        Busy: another connection has the write lock, or has written since the transaction's first read.
        dbapi.ProgrammingError: the connection is another thread's.
        StoreError: the connection is to another file or of another copy of SQLite, or it is in no transaction and
            begins none by itself.
    """
    if type(connection).__module__.split(".")[0] == "aiosqlite":
        return _on_its_thread(connection, lambda raw: join(transactions, raw, operation, arguments))
    file = transactions.file
    if file.is_closed:
        raise file.closed_error()
    if not isinstance(connection, dbapi.Connection):
        others = " or ".join(other_copies())
        raise StoreError(
            f"{connection!r} is not a connection of {PRODUCT}, which SQSQLite uses{', but perhaps of ' * bool(others)}"
            f"{others}: open it by `sqsqlite.dbapi`, or take it from `sqs.engine`"
        )
    if isinstance(connection, OwnConnection):
        connection.check_thread()
    _refuse_another_file(file.path, connection)
    file.turnstile.refuse_holder(but=connection)
    with neutral(connection):
        try:
            _take_write_lock(file.path, connection)
        except dbapi.Error as error:
            raise translate(error, file.path) from error
        return run_joined(file, _transaction(transactions, connection), operation, arguments)


def _on_its_thread(connection: Any, work: Callable[[Connection], R]) -> R:
    """Call `work` with the driver's connection of an aiosqlite connection, in the thread that this one has.

    Only SQLAlchemy's asynchronous engine gives it to a caller that is not a coroutine: within `run_sync`.
    """
    from sqlalchemy.util import await_only

    raw = connection._conn  # noqa: SLF001 - aiosqlite has no public name for either
    result: R = await_only(connection._execute(lambda: work(raw)))  # noqa: SLF001
    return result


def _refuse_another_file(path: Path, connection: Connection) -> None:
    if isinstance(connection, OwnConnection):
        wanted = connection.identity
    else:
        [name] = [row[2] for row in _execute(connection)("PRAGMA database_list") if row[1] == "main"]
        wanted = foreign.identity(Path(os.fsdecode(name))) if name else None
    if wanted != foreign.identity(path):
        raise StoreError(
            f"{connection!r} is a connection to another database than {path}: rows and messages share a transaction "
            "only in one file"
        )


def _execute(connection: Connection) -> Callable[..., Any]:
    """The driver's own `execute`: without the connection's row factory."""
    execute: Callable[..., Any] = dbapi.Cursor(connection).execute
    return execute


def _take_write_lock(path: Path, connection: Connection) -> None:
    if not connection.in_transaction:
        if connection.isolation_level is None:
            raise StoreError(
                "the connection is in no transaction, so each statement would commit by itself: begin one first (BEGIN "
                "IMMEDIATE; in Django transaction.atomic(); in SQLAlchemy a level other than AUTOCOMMIT)"
            )
        # The driver would begin it before the first change of rows.
        connection.execute("BEGIN IMMEDIATE")
    try:
        _execute(connection)(sql.TAKE_WRITE_LOCK)
    except dbapi.OperationalError as error:
        if primary_code(error) not in (BUSY, LOCKED):
            raise
        raise Busy(
            f"{path}: the transaction of `connection=` began with a read (BEGIN DEFERRED), and can't write: another "
            f"connection has written since, or is writing. {_ADVICE}"
        ) from error


def _transaction(transactions: Transactions, connection: Connection) -> Transaction:
    """What the operations of one transaction share: the consumers that wake after its commit."""
    file = transactions.file
    if isinstance(connection, OwnConnection):
        for call in connection.after_commit:
            if isinstance(call, _Committed) and call.transactions is transactions:
                return call.tx
    tx = Transaction(connection, _execute(connection), file.clock.now_ms(), file.settings, file.headroom)
    tx.execute = _execute(connection)
    tx.is_callers = True
    if isinstance(connection, OwnConnection):
        connection.after_commit.append(_Committed(transactions, tx))
    return tx


class _Committed:
    """What follows the commit of a transaction that an operation has joined."""

    def __init__(self, transactions: Transactions, tx: Transaction) -> None:
        self.transactions = transactions
        self.tx = tx

    def __call__(self) -> None:
        self.transactions.committed(self.tx)
