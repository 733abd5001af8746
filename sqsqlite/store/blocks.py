# SPDX-License-Identifier: Apache-2.0
"""The caller's own transactions: `with sqs.transaction()`, and the operations that join one.

Several tasks may share a thread. Only the task that began a transaction may use it.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from sqsqlite.errors import StoreError, TransactionInProgress, UnsettledBatch
from sqsqlite.store.damage import ODD
from sqsqlite.store.driver import dbapi
from sqsqlite.store.file import File
from sqsqlite.store.interrupts import until_done
from sqsqlite.store.neutral import neutral
from sqsqlite.store.transaction import Transaction, raise_typed, write_counts
from sqsqlite.store.translate import BUSY, primary_code
from sqsqlite.store.used_up import raise_used_up

if TYPE_CHECKING:
    from sqsqlite.store.application import Application


def current_task() -> Any:
    """The task that this thread is running now, in asyncio or trio. None outside of tasks.

    It imports neither library: a program with a running task has imported one.
    """
    asyncio = sys.modules.get("asyncio")
    # Missing while another thread is still importing the module.
    running_loop = getattr(asyncio, "_get_running_loop", None)
    if asyncio is not None and running_loop is not None and running_loop() is not None:
        return asyncio.current_task()
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        return trio.lowlevel.current_task()
    return None


def held_by(owner: Any) -> TransactionInProgress:
    """The error for a call on the thread of a block that does not come from the task in the block."""
    name = owner.get_name() if hasattr(owner, "get_name") else owner.name
    return TransactionInProgress(
        f"task {name!r} is inside `with sqs.transaction()` on this thread, and this call is not that task's. Do not "
        "await inside the block, or call from another thread, which waits for its end: for example by "
        "asyncio.to_thread"
    )


R = TypeVar("R")


class Blocks:
    """The transactions of `transaction()`, one for each thread."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._thread = threading.local()

    @property
    def current(self) -> Transaction | None:
        """This thread's transaction, if it has one.

        Raises:
            TransactionInProgress: the transaction belongs to another task of this thread.
        """
        found: Transaction | None = getattr(self._thread, "transaction", None)
        if found is None or found.is_over:
            return None
        if self._is_another_tasks():
            raise held_by(self._thread.owner)
        return found

    @property
    def readable(self) -> Transaction | None:
        """This thread's transaction, to read in it. None also if it belongs to another task."""
        found: Transaction | None = getattr(self._thread, "transaction", None)
        return None if found is None or found.is_over or self._is_another_tasks() else found

    def _is_another_tasks(self) -> bool:
        """Whether another task began the transaction. One that began outside of tasks belongs to the whole thread."""
        owner = self._thread.owner
        return owner is not None and owner is not current_task()

    @contextlib.contextmanager
    def transaction(self, application: "Application") -> Iterator[Transaction]:
        """See `Store.transaction`."""
        if self.current is not None:
            raise TransactionInProgress("this thread is in a transaction already; they don't nest")
        connection = application.connection()
        try:
            application.begin(connection)
            tx = application.transaction_of(connection)
            connection.is_block = True
            self._thread.owner = current_task()
            self._thread.transaction = tx
            yield tx
            self._refuse_odd_end(connection)
            if tx.unsettled:
                raise UnsettledBatch(list(tx.unsettled))
            connection.finish()
        finally:
            try:
                until_done(lambda: self._end(application, connection))
            finally:
                # Another signal may come before `until_done` has begun.
                until_done(lambda: self._end(application, connection))

    def _end(self, application: "Application", connection: Any) -> None:
        application.put_away(connection)
        if threading.get_ident() == connection.thread:
            self._thread.transaction = self._thread.owner = None

    def _refuse_odd_end(self, connection: Any) -> None:
        if connection.thread != threading.get_ident():
            raise StoreError(
                f"{self._file.path}: transaction() was entered in one thread and left in another: rolled back. A "
                "transaction belongs to its thread"
            )

    def join(self, tx: Transaction, operation: Callable[..., R], arguments: tuple[Any, ...]) -> R:
        """Run an operation in the caller's transaction, completely or not at all, and then write its counts."""
        tx.connection.refuse_ended()
        with neutral(tx.connection):
            return run_joined(self._file, tx, operation, arguments)

    def after_fork_in_child(self) -> None:
        """Forget the open transactions, which stay in the parent."""
        self._thread = threading.local()


def run_joined(file: File, tx: Transaction, operation: Callable[..., R], arguments: tuple[Any, ...]) -> R:
    """Run an operation in a transaction that goes on afterwards, completely or not at all, and write its counts."""
    tx.now_ms = file.clock.now_ms()
    try:
        tx.execute("SAVEPOINT sqs_operation")
        try:
            result = operation(tx, *arguments)
            write_counts(tx)
        except BaseException:
            tx.deltas.clear()
            if tx.connection.in_transaction:
                _take_back(tx)
            raise
        tx.execute("RELEASE sqs_operation")
    except ODD as error:
        raise_typed(file, error)
    except OSError as error:
        raise_used_up(error, file.path)
        raise
    return result


def _take_back(tx: Transaction) -> None:
    """Undo the current operation.

    A statement that a signal handler interrupted lives as long as the traceback, and SQLite refuses the RELEASE
    meanwhile. Then the savepoint stays until the transaction ends, so that the caller gets the handler's exception.
    """
    tx.execute("ROLLBACK TO sqs_operation")
    try:
        tx.execute("RELEASE sqs_operation")
    except dbapi.Error as error:
        if primary_code(error) != BUSY:
            raise
