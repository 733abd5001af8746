"""Group commit: operations that arrive while a commit is syncing share the next one.

The first thread to arrive leads: it takes the turn, runs its own operation and those that queued up meanwhile in one
transaction, commits, and only then is anybody answered. One of those who arrived during the commit leads next. A
thread that is alone pays no hop and no linger: it is always the leader, and no timer is involved.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from sqsqlite.errors import Busy, CommitInDoubt, DiskFull, StoreError
from sqsqlite.store.counts import write_counts
from sqsqlite.store.driver import dbapi
from sqsqlite.store.headroom import BALLAST_PIECES
from sqsqlite.store.room import make_room
from sqsqlite.store.translate import BUSY, FULL, commit_error, primary_code, translate
from sqsqlite.store.upkeep import Wal

if TYPE_CHECKING:
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction

R = TypeVar("R")

# Operations in one transaction at most: bounds how long the first of them waits for its answer.
GROUP_LIMIT = 256
# A full disk is given room once by a fresh WAL, then by each piece of the ballast.
LAST_TRY = 1 + BALLAST_PIECES


class _Entry:
    """One caller's operation and, later, what became of it."""

    __slots__ = ("arguments", "error", "leads", "operation", "result", "waiting")

    def __init__(self, operation: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.operation = operation
        self.arguments = arguments
        self.result: Any = None
        self.error: BaseException | None = None
        self.waiting: threading.Lock | None = None
        self.leads = False

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


class GroupCommit:
    """All write operations of one store go through here, except those in a transaction of the caller's."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        # Held by whoever leads; handed from leader to leader without being released.
        self._leading = threading.Lock()
        self._queued: deque[_Entry] = deque()

    def run(self, operation: Callable[..., R], *arguments: Any) -> R:
        """`operation(tx, *arguments)` in a transaction, committed (and synced, by the level) when this returns.

        Raises:
            Busy: the turn didn't come within busy_timeout; nothing was done.
            CommitInDoubt: the commit failed so that nobody knows whether it will be there after a restart.
        """
        entry = _Entry(operation, arguments)
        if not self._leading.acquire(False):
            self._queue(entry)
            if not entry.leads:
                queued: R = entry.outcome()
                return queued
        self._lead(entry)
        result: R = entry.outcome()
        return result

    def _queue(self, entry: _Entry) -> None:
        """Wait until a leader has taken care of the entry, or has made it the next leader."""
        entry.waiting = waiting = threading.Lock()
        waiting.acquire()
        self._queued.append(entry)
        # The leader may have gone between our look and the append: then nobody else will see the entry.
        if self._leading.acquire(False):
            self._hand_over()
        timeout = self._store.busy_timeout
        try:
            if waiting.acquire(timeout=timeout):
                return
        except BaseException:
            self._abandon(entry, waiting)
            raise
        try:
            self._queued.remove(entry)
        except ValueError:
            # A leader has it in hand: the outcome is being decided, and only the outcome may be reported.
            waiting.acquire()
        else:
            raise Busy(f"other threads have been writing for {timeout:g} s (busy_timeout)")

    def _abandon(self, entry: _Entry, waiting: threading.Lock) -> None:
        """Its thread was interrupted while it waited: nobody would lead if it were made leader."""
        try:
            self._queued.remove(entry)
        except ValueError:
            # A leader has it in hand: its turn has come, so this is over within a commit.
            waiting.acquire()
            if entry.leads:
                self._hand_over()

    def _lead(self, entry: _Entry) -> None:
        store = self._store
        group = [entry]
        committed: list[Transaction] = []
        try:
            try:
                store.turnstile.take(store.busy_timeout)
            except StoreError as error:
                entry.error = error
                return
            try:
                if self._queued:
                    self._gather(group)
                self._transact(group, committed)
            finally:
                store.turnstile.leave()
        finally:
            self._hand_over()
            for follower in group[1:]:
                assert follower.waiting is not None
                follower.waiting.release()
        for tx in committed:
            store.committed(tx)

    def _gather(self, group: list[_Entry]) -> None:
        while len(group) < GROUP_LIMIT:
            try:
                group.append(self._queued.popleft())
            except IndexError:
                return

    def _hand_over(self) -> None:
        """Make the first of those who wait the leader; if there is none, the next to come leads."""
        while True:
            try:
                successor = self._queued.popleft()
            except IndexError:
                self._leading.release()
                # Somebody may have queued up in between, and found the lock still held.
                if not self._queued or not self._leading.acquire(False):
                    return
            else:
                successor.leads = True
                assert successor.waiting is not None
                successor.waiting.release()
                return

    def _transact(self, group: list[_Entry], committed: "list[Transaction]", *, tries: int = 0) -> None:
        """Run the group and commit it. Whatever happens, each entry ends with a result or an error.

        Args:
            tries: so often a full disk has been given room for it.
        """
        store = self._store
        connection = None
        try:
            connection = store.writers.take()
            committed.append(self._attempt(connection, group))
        except BaseException as error:
            if connection is not None:
                # Closed, not reused: whatever the failed transaction still held is rolled back with it.
                store.writers.discard(connection)
            if not isinstance(error, Exception):
                _fail(
                    group,
                    CommitInDoubt(f"{store.path}: the thread that committed for this one was interrupted"),
                )
                raise
            code = primary_code(error)
            is_full = code == FULL or isinstance(error, DiskFull)
            if is_full and tries < LAST_TRY and make_room(store, first=not tries):
                self._transact(group, committed, tries=tries + 1)
            elif len(group) > 1 and isinstance(error, dbapi.Error) and code != BUSY:
                # One of them hit the disk's end, say; the others needn't fail with it. But a lock that another program
                # keeps is kept from each of them, and they would wait for it one after the other.
                for entry in group:
                    self._transact([entry], committed, tries=tries)
            else:
                _fail(group, translate(error, store.path), error)
        else:
            store.writers.give_back(connection)
            if tries < LAST_TRY and store.headroom.wal_in_the_way:
                self._empty_wal_for(group, committed)

    def _empty_wal_for(self, group: list[_Entry], committed: "list[Transaction]") -> None:
        """Sends were refused for want of room that an empty WAL may give: once more with one."""
        store = self._store
        store.headroom.wal_in_the_way = False
        refused = [entry for entry in group if isinstance(entry.error, DiskFull)]
        if refused and store.upkeep.begin_wal_again("TRUNCATE") is Wal.BEGUN:
            self._transact(refused, committed, tries=LAST_TRY)

    def _attempt(self, connection: Any, group: list[_Entry]) -> "Transaction":
        tx = self._store.begin(connection)
        if len(group) == 1:
            _run_alone(tx, group[0])
        elif not _run_plain(tx, group):
            # Something failed after it had written, which should not happen: once more, each by itself.
            connection.execute("ROLLBACK")
            tx = self._store.begin(connection)
            _run_with_savepoints(tx, group)
        self._store.drain_empty_receives(tx)
        write_counts(tx)
        self._store.headroom.require_margin(connection)
        try:
            connection.execute("COMMIT")
        except Exception as error:
            if primary_code(error) == FULL:
                raise  # nothing of it is in the file
            raise commit_error(error, self._store.path) from error
        return tx


def _fail(group: list[_Entry], error: Exception, cause: Exception | None = None) -> None:
    if cause is not None and cause is not error:
        error.__cause__ = cause
    for entry in group:
        entry.result, entry.error = None, error


def _run_alone(tx: "Transaction", entry: _Entry) -> None:
    """One operation; a refusal leaves nothing to commit."""
    entry.error = None
    changes = tx.connection.total_changes
    try:
        entry.result = entry.operation(tx, *entry.arguments)
    except dbapi.Error:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this entry's outcome
        if tx.connection.total_changes != changes:
            tx.execute("ROLLBACK")
            tx.execute("BEGIN IMMEDIATE")
            tx.forget()
        entry.error = error


def _run_plain(tx: "Transaction", group: list[_Entry]) -> bool:
    """Every operation, without a savepoint. False: one failed after it had written."""
    connection = tx.connection
    for entry in group:
        entry.error = None
        changes = connection.total_changes
        try:
            entry.result = entry.operation(tx, *entry.arguments)
        except dbapi.Error:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this entry's outcome
            if connection.total_changes != changes:
                return False
            # A refusal before the first write: its own business, the others go on.
            entry.error = error
    return True


def _run_with_savepoints(tx: "Transaction", group: list[_Entry]) -> None:
    execute = tx.execute
    for entry in group:
        entry.result = entry.error = None
        execute("SAVEPOINT entry")
        kept = {epoch_id: delta.copy() for epoch_id, delta in tx.deltas.items()}
        try:
            entry.result = entry.operation(tx, *entry.arguments)
        except dbapi.Error:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            execute("ROLLBACK TO entry")
            tx.deltas = kept
            entry.error = error
        execute("RELEASE entry")
