# SPDX-License-Identifier: Apache-2.0
"""One SQLite file, open: reading, writing in group commits, waking, upkeep, the caller's own transactions."""

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqsqlite.errors import StoreError
from sqsqlite.store.blocks import Blocks
from sqsqlite.store.clock import Clock
from sqsqlite.store.commit import GroupCommit
from sqsqlite.store.damage import ODD, damage_behind
from sqsqlite.store.driver import Connection
from sqsqlite.store.file import Settings
from sqsqlite.store.line import Call, Entry
from sqsqlite.store.neutral import neutral
from sqsqlite.store.opening import open_file
from sqsqlite.store.transaction import Snapshot, Transaction, raise_typed, snapshot
from sqsqlite.store.transactions import Transactions
from sqsqlite.store.turns import let_go
from sqsqlite.store.upkeep import Chores, Upkeep
from sqsqlite.store.used_up import raise_used_up
from sqsqlite.store.wake import Waker

if TYPE_CHECKING:
    from sqsqlite.store.application import Application


_COUNT = 4_096
_CHARACTERS = 512


class Hints:
    """Texts that were added lately, up to 4,096 of up to 512 characters. For any number of threads."""

    def __init__(self) -> None:
        self._texts: set[str] = set()

    def __contains__(self, text: str) -> bool:
        return text in self._texts

    def add(self, text: str) -> None:
        """Remember a text, unless it is long; where there are too many, all others are forgotten."""
        if len(text) > _CHARACTERS or text in self._texts:
            return
        if len(self._texts) >= _COUNT:
            self._texts.clear()
        self._texts.add(text)

    def discard(self, text: str) -> None:
        """Forget a text."""
        self._texts.discard(text)


R = TypeVar("R")


class Store:
    """A queue's file, for any number of threads.

    Args:
        chores: what upkeep does with rows.
        options: see `opening.open_file`.

    Attributes:
        file: what its parts share.
        observers: called with each operation's event (actions/dispatch.py): logs, metrics and tracing hang here.
        found_empty: names of queues whose last receive found nothing: the next one looks before it takes the write
            lock.
    """

    def __init__(self, path: str | os.PathLike[str], *, chores: Chores, **options: Any) -> None:
        self.file = file = open_file(path, **options)
        self.observers: list[Callable[[Any], None]] = []
        self.found_empty = Hints()
        self.waker = Waker(file)
        self.upkeep = Upkeep(file, chores, self.write)
        self.transactions = Transactions(file, self.waker, self.upkeep)
        self._commit = GroupCommit(self.transactions)
        self._blocks = Blocks(file)
        self._application: Application | None = None
        self._application_lock = threading.Lock()
        _stores.add(self)
        self.upkeep.opened()

    @property
    def path(self) -> Path:
        """The file, without links."""
        return self.file.path

    @property
    def settings(self) -> Settings:
        """What it was opened with."""
        return self.file.settings

    @property
    def clock(self) -> Clock:
        """The file's own clock, or the one given to `connect`."""
        return self.file.clock

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self.file.is_closed

    # --- writing

    def write(self, operation: Callable[..., R], *arguments: Any) -> R:
        """Run `operation(tx, *arguments)`: in this thread's own transaction if it has one, else in a group commit.

        Raises:
            StoreError: Busy, DiskFull, CommitInDoubt and the others, translated.
        """
        tx = self._blocks.current
        if tx is not None:
            return self._blocks.join(tx, operation, arguments)
        file = self.file
        if file.is_closed:
            raise file.closed_error()
        # Told here, not by the turnstile alone: behind a leader that waits for this very thread it would take 30 s.
        file.turnstile.refuse_holder()
        entry = Entry(operation, arguments)
        try:
            self._commit.run(entry)
            while entry.is_to_repeat:
                entry = Entry(operation, arguments)
                self._commit.run(entry)
            result: R = entry.outcome()
        except ODD as error:
            if (damage := damage_behind(file, error)) is not None:
                raise damage from error
            raise
        except OSError as error:
            raise_used_up(error, file.path)
            raise
        return result

    def write_many(self, calls: Sequence[Call]) -> list[Entry]:
        """Several operations, each with an outcome of its own, in one transaction, for requests that arrive together.

        The thread is in no transaction of its own.
        """
        if self.file.is_closed:
            raise self.file.closed_error()
        entries = [Entry(*call) for call in calls]
        last = entries[-1]
        last.companions, last.group = entries[:-1], entries
        self._commit.run(last)
        for place, entry in enumerate(entries):
            if entry.is_to_repeat:
                entries[place] = Entry(entry.operation, entry.arguments)
                self._commit.run(entries[place])
            elif isinstance(entry.error, ODD):
                entry.error = damage_behind(self.file, entry.error) or entry.error
        # A cycle would keep the results, 10 MiB perhaps, until it is collected.
        last.companions = last.group = last.committing = ()
        return entries

    def join(self, connection: Connection, operation: Callable[..., R], *arguments: Any) -> R:
        """Run an operation inside the transaction that an application's connection has begun.

        Raises:
            StoreError: it is no connection to this file, or in no transaction.
        """
        application = self.application
        if application.has_lent(connection):
            return self._blocks.join(application.transaction_of(connection), operation, arguments)
        from sqsqlite.store import own_engine  # an application may do without

        return own_engine.join(self.transactions, connection, operation, arguments)

    @property
    def transaction_of_thread(self) -> Transaction | None:
        """The transaction this thread is in by `transaction()`, if it is.

        Raises:
            TransactionInProgress: another task of this thread is in it.
        """
        return self._blocks.current

    def transaction(self) -> AbstractContextManager[Transaction]:
        """The caller's own write transaction, in this thread and task: all operations inside join it.

        Commits when the block ends, rolls back when it raises.
        """
        return self._blocks.transaction(self.application)

    # --- reading

    @contextlib.contextmanager
    def reading(self, within: Connection | None = None) -> Iterator[Snapshot]:
        """What to read from for the length of the block: inside a transaction that one, else a snapshot.

        Args:
            within: an application's connection whose transaction to read in. With one of its own engine a snapshot
                is read: what is read here, about queues, does not change in such a transaction.
        """
        if within is None:
            tx = self._blocks.readable
        else:
            application = self.application
            tx = application.transaction_of(within) if application.has_lent(within) else None
        if tx is None:
            with snapshot(self.file) as found:
                yield found
            return
        try:
            with neutral(tx.connection):
                yield Snapshot(tx.connection, self.clock.now_ms(), self.settings)
        except ODD as error:
            raise_typed(self.file, error)

    # --- the application's connections

    @property
    def application(self) -> "Application":
        """Connections for the application's own statements in the same file."""
        if self._application is None:
            try:
                from sqsqlite.store.application import Application
            except OSError as error:
                raise_used_up(error, self.path)
                raise

            with self._application_lock:
                # Another thread may have been first; its connections would be strangers to a second one.
                if self._application is None:
                    self.file.writers.check_identity()
                    self._application = Application(self.transactions)
        return self._application

    # --- the end

    def close(self) -> None:
        """Wake the waiters, finish upkeep, close the connections. A second call does nothing."""
        file = self.file
        if file.is_closed:
            return
        if self.transactions.has_empty_receives:
            # Approximate by definition: a busy or full file loses some, and is closed all the same.
            with contextlib.suppress(StoreError):
                self.write(self.transactions.count_empty_receives)
        self.upkeep.close()
        file.is_closed = True
        self.waker.close()
        if self._application is not None:
            self._application.close()
        for pool in (file.writers, file.readers, file.watchers):
            pool.close()
        file.headroom.close()
        let_go(file.turnstile)

    def after_fork_in_child(self) -> None:
        """Threads, queued operations and open transactions stayed in the parent."""
        file = self.file
        self._blocks.after_fork_in_child()
        self._application_lock = threading.Lock()
        self._commit = GroupCommit(self.transactions)
        self.waker.after_fork_in_child()
        self.upkeep.after_fork_in_child()
        # Connections at work stayed open: no turn is waited for, nothing is begun.
        file.is_closed = file.is_closed or file.writers.is_torn


_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for store in list(_stores):
        store.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
