# SPDX-License-Identifier: Apache-2.0
"""Group commit: operations that arrive while a commit is syncing share the next one.

The first thread to arrive leads. It takes the turn, runs its own operation and those of the threads that joined the
line meanwhile in one transaction, commits, and only then answers them. One of the threads that arrived during the
commit leads next. A thread that is alone always leads. It waits for no other thread and no timer.
"""

import threading
import time
from collections.abc import Sequence

from sqsqlite.errors import DiskFull, SQSQLiteError, StoreError
from sqsqlite.store.checkpoints import Wal, begin_wal_again, make_room
from sqsqlite.store.driver import dbapi
from sqsqlite.store.headroom import BALLAST_PIECES
from sqsqlite.store.interrupts import until_done
from sqsqlite.store.line import Commit, Entry, Line
from sqsqlite.store.transaction import Transaction
from sqsqlite.store.transactions import Transactions
from sqsqlite.store.translate import BUSY, commit_error, is_full, primary_code, translate

# On a full disk, beginning the WAL again makes room once, and then each piece of the ballast does.
LAST_TRY = 1 + BALLAST_PIECES


class GroupCommit:
    """Runs all write operations of one store, except those in the caller's own transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._file = transactions.file
        self._line = Line(transactions.file)

    def run(self, entry: Entry) -> None:
        """Give the entry its outcome. Its transaction has been committed by then, and synced if the level says so.

        Raises:
            Busy: other threads led for the whole busy_timeout. Nothing was done.
        """
        try:
            if self._line.leads(entry):
                self._transact(entry)
                self._line.settle(entry)
        except BaseException:
            try:
                until_done(lambda: self._line.settle(entry))
            finally:
                # Another signal may come before `until_done` has begun.
                until_done(lambda: self._line.settle(entry))
            raise
        for tx in entry.committed:
            self._transactions.committed(tx)

    def _transact(
        self, leader: Entry, group: Sequence[Entry] = (), timeout: float | None = None, *, tries: int = 0
    ) -> None:
        """Run a group and commit it. Each entry ends with a result or an error, unless an interrupt ends it all.

        Args:
            leader: the entry that holds the turn and the connection meanwhile.
            group: empty: the leader and all entries that wait behind it.
            timeout: seconds to wait for SQLite's own lock. None: the leader does not have the turn yet.
            tries: how many times room was made on a full disk.
        """
        file = self._file
        leader.commit = Commit.OPEN
        for entry in group:
            entry.is_decided = False
        try:
            if timeout is None:
                patience = self._patience(leader) if leader.queued_at else file.busy_timeout
                timeout = file.turnstile.take(leader, patience)
            leader.connection = file.writers.take()
            leader.committed += (self._attempt(leader, group, timeout),)
        except (dbapi.Error, StoreError) as error:
            if leader.connection is not None:
                # Closing the connection rolls back what the failed transaction still held.
                file.writers.discard(leader.connection)
                leader.connection = None
            self._try_again(leader, group or leader.group or (leader,), timeout, error, tries)
        else:
            connection, leader.connection = leader.connection, None
            file.writers.give_back(connection)
            if tries < LAST_TRY and file.headroom.wal_in_the_way:
                self._empty_wal_for(leader, group or leader.group or (leader,), timeout)

    def _patience(self, leader: Entry) -> float:
        """The rest of busy_timeout after a wait in the line, in seconds."""
        return max(0.0, self._file.busy_timeout - (time.monotonic() - leader.queued_at))

    def _attempt(self, leader: Entry, group: Sequence[Entry], timeout: float) -> Transaction:
        """Run and commit one transaction. The function is long because every write goes through it."""
        connection = leader.connection
        tx = self._transactions.begin(connection, timeout)
        if not group:
            # Not earlier: if the leader waits for SQLite's lock in vain, threads that came later must not be refused
            # with it.
            if self._line.has_followers:
                self._line.gather(leader)
            group = leader.group
        if len(group) > 1:
            if not _run_plain(tx, group):
                # An operation failed after it had written, which should not happen: run all again, with savepoints.
                connection.execute("ROLLBACK")
                tx = self._transactions.begin(connection, timeout)
                _run_with_savepoints(tx, group)
        else:
            [entry] = group or (leader,)
            entry.error = None
            changes = connection.total_changes
            try:
                entry.result = entry.operation(tx, *entry.arguments)
            except dbapi.Error:
                raise
            except Exception as error:  # whatever it is, it is this entry's outcome
                if entry is not leader and _is_from_outside(error):
                    raise
                if connection.total_changes != changes:
                    tx.execute("ROLLBACK")
                    tx.execute("BEGIN IMMEDIATE")
                    tx.forget()
                entry.error = error
        self._transactions.finish(tx)
        leader.committing = group or (leader,)
        leader.commit = Commit.BEGUN
        try:
            tx.run("COMMIT")
        except dbapi.Error as error:
            # Set this first, so that an interrupt finds it: one may come at any call from here on.
            leader.commit = Commit.FAILED
            known = commit_error(error, self._file.path, connection)
            if isinstance(known, DiskFull):
                raise  # the file has nothing of the transaction
            raise known from error
        leader.commit = Commit.DONE
        for entry in leader.committing:
            entry.is_decided = True
        return tx

    def _try_again(
        self, leader: Entry, group: Sequence[Entry], timeout: float | None, error: Exception, tries: int
    ) -> None:
        """Try a failed transaction again, with more room or entry by entry. Otherwise its error is the outcome."""
        file = self._file
        found_no_room = isinstance(error, DiskFull) or is_full(error, file.path)
        if found_no_room and tries < LAST_TRY and make_room(file, first=not tries):
            self._transact(leader, group, timeout, tries=tries + 1)
        elif len(group) > 1 and isinstance(error, dbapi.Error) and primary_code(error) != BUSY:
            # One of them may have filled the disk, for example, and the others need not fail with it. But if another
            # program keeps a lock, every entry would wait for it, one after the other.
            for entry in group:
                self._transact(leader, (entry,), timeout, tries=tries)
        else:
            _fail(group, translate(error, file.path), error)

    def _empty_wal_for(self, leader: Entry, group: Sequence[Entry], timeout: float | None) -> None:
        """Empty the WAL, and run the sends again that were refused for lack of room."""
        file = self._file
        file.headroom.wal_in_the_way = False
        refused = [entry for entry in group if isinstance(entry.error, DiskFull)]
        if refused and begin_wal_again(file, "TRUNCATE") is Wal.BEGUN:
            self._transact(leader, refused, timeout, tries=LAST_TRY)


def _fail(group: Sequence[Entry], error: Exception, cause: Exception | None = None) -> None:
    if cause is not None and cause is not error:
        error.__cause__ = cause
    for entry in group:
        entry.result, entry.error = None, error
        entry.is_decided = True


def _is_from_outside(error: Exception) -> bool:
    """Whether the error belongs to this thread, not to the entry that was running.

    A signal handler may have raised it, or another thread, which limits this one's time as rq and stopit do. They raise
    their own exceptions or TimeoutError. Our own bugs raise Python's exceptions.
    """
    if isinstance(error, (SQSQLiteError, TypeError, ValueError)):
        return False
    is_pythons = type(error).__module__ == "builtins" and not isinstance(error, TimeoutError)
    return not is_pythons or threading.current_thread() is threading.main_thread()


def _run_plain(tx: Transaction, group: Sequence[Entry]) -> bool:
    """Run every operation without a savepoint. False: one failed after it had written."""
    connection = tx.connection
    for entry in group:
        entry.error = None
        changes = connection.total_changes
        try:
            entry.result = entry.operation(tx, *entry.arguments)
        except dbapi.Error:
            raise
        except Exception as error:  # whatever it is, it is this entry's outcome
            if _is_from_outside(error):
                raise
            if connection.total_changes != changes:
                return False
            # The operation was refused before it wrote. The others go on.
            entry.error = error
    return True


def _run_with_savepoints(tx: Transaction, group: Sequence[Entry]) -> None:
    execute = tx.execute
    for entry in group:
        entry.result = entry.error = None
        execute("SAVEPOINT entry")
        kept = {epoch_id: delta.copy() for epoch_id, delta in tx.deltas.items()}
        try:
            entry.result = entry.operation(tx, *entry.arguments)
        except dbapi.Error:
            raise
        except Exception as error:  # as in _run_plain
            if _is_from_outside(error):
                raise
            execute("ROLLBACK TO entry")
            tx.deltas = kept
            entry.error = error
        execute("RELEASE entry")
