"""Group commit: operations that arrive while a commit is syncing share the next one.

The first thread to arrive leads: it takes the turn, runs its own operation and those that queued up meanwhile in one
transaction, commits, and only then is anybody answered. One of those who arrived during the commit leads next. A
thread that is alone pays no hop and no linger: it is always the leader, and no timer is involved.
"""

import contextlib
import enum
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from sqsqlite.errors import Busy, CommitInDoubt, DiskFull, SQSQLiteError, StoreError
from sqsqlite.store.checkpoints import Wal, begin_wal_again
from sqsqlite.store.driver import dbapi
from sqsqlite.store.headroom import BALLAST_PIECES
from sqsqlite.store.interrupts import until_done
from sqsqlite.store.space import make_room
from sqsqlite.store.transaction import Transaction
from sqsqlite.store.transactions import Transactions
from sqsqlite.store.translate import BUSY, commit_error, is_full, primary_code, translate
from sqsqlite.store.writer import writer_of

R = TypeVar("R")

# Operations in one transaction at most: bounds how long the first of them waits for its answer.
GROUP_LIMIT = 256
# A full disk is given room once by a fresh WAL, then by each piece of the ballast.
LAST_TRY = 1 + BALLAST_PIECES


# Seconds between two looks of an interrupted follower at whether its leader is done.
SETTLE_EVERY = 0.0005
_LEADER, _FATE, _LEADS = "leader", "fate", "leads"


class _Commit(enum.Enum):
    """How far a leader's transaction has come, in case it is interrupted."""

    OPEN = "nothing of it is in the file"
    BEGUN = "COMMIT runs, or has run"
    FAILED = "COMMIT failed so that nobody knows"
    DONE = "it is in the file"


class _Entry:
    """One caller's operation and, later, what became of it; while it leads, what it holds."""

    __slots__ = (
        "__weakref__",
        "arguments",
        "commit",
        "committing",
        "connection",
        "error",
        "fate",
        "group",
        "is_decided",
        "is_to_repeat",
        "is_told",
        "is_woken",
        "operation",
        "queued_at",
        "result",
        "thread",
        "waiting",
    )

    def __init__(self, operation: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.operation = operation
        self.arguments = arguments
        self.thread = threading.get_ident()
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_decided = False
        self.is_to_repeat = False  # its leader was interrupted, and nothing was done
        self.is_told = self.is_woken = False
        self.waiting: threading.Lock | None = None
        self.queued_at = 0.0  # by time.monotonic(), if it had to queue up
        # Set once, by `setdefault`: the leader that has the entry in hand, _LEADS, or the entry itself: it gave up.
        self.fate: dict[str, Any] | None = None
        self.group: tuple[_Entry, ...] | list[_Entry] = ()
        self.connection: Any = None
        self.commit = _Commit.OPEN
        self.committing: tuple[_Entry, ...] | list[_Entry] = ()  # the group, or after a failure one of it

    def outcome(self) -> Any:
        """The result, or the error raised. To be asked once.

        The entry is one of its own group, and an error knows the frames that know the entry. Both are cycles, which
        would keep the result and the arguments, 10 MiB perhaps, until they are collected.
        """
        self.group = self.committing = ()
        error, self.error = self.error, None
        if error is None:
            return self.result
        try:
            raise error
        finally:
            del error


class GroupCommit:
    """All write operations of one store go through here, except those in a transaction of the caller's.

    A signal handler may raise between any two steps of the main thread. So who leads stands in a dict, taken by one
    `setdefault`, what a leader holds stands in its entry, and `_settle` ends whatever was begun: once or again.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._file = transactions.file
        self._leader: dict[str, _Entry] = {}
        self._queued: deque[_Entry] = deque()

    def run(self, operation: Callable[..., R], *arguments: Any) -> R:
        """`operation(tx, *arguments)` in a transaction, committed (and synced, by the level) when this returns.

        Raises:
            Busy: the turn didn't come within busy_timeout; nothing was done.
            CommitInDoubt: the commit failed so that nobody knows whether it will be there after a restart.
        """
        entry = self._run(operation, arguments)
        while entry.is_to_repeat:
            entry = self._run(operation, arguments)
        result: R = entry.outcome()
        return result

    def _run(self, operation: Callable[..., Any], arguments: tuple[Any, ...]) -> _Entry:
        entry = _Entry(operation, arguments)
        committed: list[Transaction] = []
        try:
            if self._leader.setdefault(_LEADER, entry) is entry or self._queue(entry):
                self._lead(entry, committed)
        except BaseException:
            try:
                until_done(lambda: self._settle(entry))
            finally:
                # Another signal may come before `until_done` has begun.
                until_done(lambda: self._settle(entry))
            raise
        for tx in committed:
            self._transactions.committed(tx)
        return entry

    def _queue(self, entry: _Entry) -> bool:
        """Wait until a leader has taken care of the entry, or has made it the next leader (True)."""
        entry.fate = {}
        entry.queued_at = time.monotonic()
        entry.waiting = waiting = threading.Lock()
        waiting.acquire()
        self._queued.append(entry)
        # The leader may have gone between our look and the append: then nobody else will see the entry.
        if self._leader.setdefault(_LEADER, entry) is entry:
            self._hand_over(entry)
        timeout = self._file.busy_timeout
        if waiting.acquire(timeout=timeout):
            return self._comes_to_lead(entry)
        if entry.fate.setdefault(_FATE, entry) is entry:
            self._unqueue(entry)
            raise Busy(
                f"{self._file.path}: other threads have been writing for {timeout:g} s (busy_timeout)"
                f"{writer_of(self._file.path)}"
            )
        # A leader has it in hand: the outcome is being decided, and only the outcome may be reported.
        waiting.acquire()
        return self._comes_to_lead(entry)

    def _unqueue(self, entry: _Entry) -> None:
        with contextlib.suppress(ValueError):
            self._queued.remove(entry)

    def _lead(self, entry: _Entry, committed: list[Transaction]) -> None:
        file = self._file
        group = entry.group = [entry]
        timeout = file.busy_timeout
        if entry.queued_at:
            timeout = max(0.0, timeout - (time.monotonic() - entry.queued_at))
        try:
            timeout = file.turnstile.take(entry, timeout)
        except StoreError as error:
            entry.error = error
        else:
            self._transact(entry, group, committed, timeout)
        self._settle(entry)

    def _gather(self, entry: _Entry, group: list[_Entry]) -> None:
        """Take those who wait into the group. Each leaves the queue last, so that none is in neither."""
        while self._queued and len(group) < GROUP_LIMIT:
            follower = self._queued[0]
            assert follower.fate is not None
            if follower.fate.setdefault(_FATE, entry) is entry:
                group.append(follower)
            self._unqueue(follower)

    def _settle(self, entry: _Entry) -> None:
        """Leave nothing behind that others wait for: the connection, the turn, the followers, the leadership."""
        if self._leader.get(_LEADER) is not entry and not self._comes_to_lead(entry):
            return
        if entry.fate is not None:
            # It leads no more: neither does it come to lead from the queue.
            entry.fate.setdefault(_FATE, entry)
            self._unqueue(entry)
        if entry.connection is not None:
            # Interrupted at work. Closed, so that whatever it holds is rolled back with it.
            if entry.commit is _Commit.BEGUN:
                entry.commit = _Commit.OPEN if entry.connection.in_transaction else _Commit.DONE
            self._file.writers.discard(entry.connection)
            entry.connection = None
        self._file.turnstile.leave(entry)
        if len(entry.group) > 1 or self._queued:
            taken = [other for other in list(self._queued) if other.fate and other.fate.get(_FATE) is entry]
            for follower in (*entry.group[1:], *taken):
                self._tell(follower, entry)
        entry.is_told = True  # it is done with: settled again, it has nothing to wait for
        self._hand_over(entry)

    def _tell(self, follower: _Entry, leader: _Entry) -> None:
        """Let a follower go, with its outcome. It has none yet if its leader was interrupted."""
        self._unqueue(follower)
        if not follower.is_decided:
            if leader.commit is _Commit.OPEN or follower not in leader.committing:
                follower.is_to_repeat = True
            elif leader.commit is _Commit.FAILED:
                follower.error = CommitInDoubt(
                    f"{self._file.path}: the thread that committed for this one was interrupted"
                )
            follower.is_decided = True
        if not follower.is_told:
            follower.is_told = True
            assert follower.waiting is not None
            follower.waiting.release()

    def _comes_to_lead(self, entry: _Entry) -> bool:
        """Whether a follower that was woken, or interrupted while it waited, leads now."""
        if entry.fate is None or entry.is_told:
            return False
        if entry.fate.setdefault(_FATE, entry) is entry:
            self._unqueue(entry)
            return False
        # A leader has it in hand, or is about to make it the leader: within a commit that is done.
        while not entry.is_told:
            if self._leader.get(_LEADER) is entry:
                self._unqueue(entry)
                return True
            time.sleep(SETTLE_EVERY)
        return False

    def _hand_over(self, entry: _Entry) -> None:
        """Make the first of those who wait the leader; if there is none, the next to come leads."""
        while self._leader.get(_LEADER) is entry:
            if not self._queued:
                self._leader.pop(_LEADER, None)
                # Somebody may have queued up in between, and found the leader still there.
                if not self._queued or self._leader.setdefault(_LEADER, entry) is not entry:
                    return
            with contextlib.suppress(IndexError):
                successor = self._queued[0]
                if self._appoint(successor):
                    return

    def _appoint(self, successor: _Entry) -> bool:
        """The leadership last: interrupted before, it is done once more, and the successor waits for it."""
        assert successor.fate is not None
        assert successor.waiting is not None
        if successor.fate.setdefault(_FATE, _LEADS) is not _LEADS:
            self._unqueue(successor)
            return False
        if not successor.is_woken:
            successor.is_woken = True
            successor.waiting.release()
        self._leader[_LEADER] = successor
        return True

    def _transact(
        self,
        leader: _Entry,
        group: list[_Entry],
        committed: list[Transaction],
        timeout: float,
        *,
        tries: int = 0,
    ) -> None:
        """Run the group and commit it. Each entry ends with a result or an error, unless an interrupt ends it all.

        Args:
            leader: holds the connection meanwhile.
            timeout: seconds to wait for SQLite's own lock.
            tries: so often a full disk has been given room for it.
        """
        file = self._file
        for entry in group:
            entry.is_decided = False
        leader.commit = _Commit.OPEN
        try:
            leader.connection = file.writers.take()
            committed.append(self._attempt(leader, group, timeout))
        except (dbapi.Error, StoreError) as error:
            if leader.connection is not None:
                # Closed, not reused: whatever the failed transaction still held is rolled back with it.
                file.writers.discard(leader.connection)
                leader.connection = None
            code = primary_code(error)
            found_no_room = isinstance(error, DiskFull) or is_full(error, file.path)
            if found_no_room and tries < LAST_TRY and make_room(file, first=not tries):
                self._transact(leader, group, committed, timeout, tries=tries + 1)
            elif len(group) > 1 and isinstance(error, dbapi.Error) and code != BUSY:
                # One of them hit the disk's end, say; the others needn't fail with it. But a lock that another program
                # keeps is kept from each of them, and they would wait for it one after the other.
                for entry in group:
                    self._transact(leader, [entry], committed, timeout, tries=tries)
            else:
                _fail(group, translate(error, file.path), error)
        else:
            connection, leader.connection = leader.connection, None
            file.writers.give_back(connection)
            if tries < LAST_TRY and file.headroom.wal_in_the_way:
                self._empty_wal_for(leader, group, committed, timeout)

    def _empty_wal_for(
        self, leader: _Entry, group: list[_Entry], committed: list[Transaction], timeout: float
    ) -> None:
        """Sends were refused for want of room that an empty WAL may give: once more with one."""
        file = self._file
        file.headroom.wal_in_the_way = False
        refused = [entry for entry in group if isinstance(entry.error, DiskFull)]
        if refused and begin_wal_again(file, "TRUNCATE") is Wal.BEGUN:
            self._transact(leader, refused, committed, timeout, tries=LAST_TRY)

    def _attempt(self, leader: _Entry, group: list[_Entry], timeout: float) -> Transaction:
        connection = leader.connection
        tx = self._transactions.begin(connection, timeout)
        # Not before: had it waited for SQLite's lock in vain, those who came later would be refused in its time.
        if self._queued and group is leader.group:
            self._gather(leader, group)
        if len(group) == 1:
            _run_alone(tx, group[0], leader)
        elif not _run_plain(tx, group):
            # Something failed after it had written, which should not happen: once more, each by itself.
            connection.execute("ROLLBACK")
            tx = self._transactions.begin(connection, timeout)
            _run_with_savepoints(tx, group)
        self._transactions.finish(tx)
        leader.committing = group
        leader.commit = _Commit.BEGUN
        try:
            connection.execute("COMMIT")
        except dbapi.Error as error:
            # The first thing, so that an interrupt finds it: one may come at any call from here on.
            leader.commit = _Commit.FAILED
            known = commit_error(error, self._file.path, connection)
            if isinstance(known, DiskFull):
                raise  # nothing of it is in the file
            raise known from error
        leader.commit = _Commit.DONE
        for entry in group:
            entry.is_decided = True
        return tx


def _fail(group: list[_Entry], error: Exception, cause: Exception | None = None) -> None:
    if cause is not None and cause is not error:
        error.__cause__ = cause
    for entry in group:
        entry.result, entry.error = None, error
        entry.is_decided = True


def _run_alone(tx: Transaction, entry: _Entry, leader: _Entry) -> None:
    """One operation, the leader's own or a follower's; a refusal leaves nothing to commit."""
    entry.error = None
    changes = tx.connection.total_changes
    try:
        entry.result = entry.operation(tx, *entry.arguments)
    except dbapi.Error:
        raise
    except Exception as error:  # whatever it is, it is this entry's outcome
        if entry is not leader and _is_from_outside(error):
            raise
        if tx.connection.total_changes != changes:
            tx.execute("ROLLBACK")
            tx.execute("BEGIN IMMEDIATE")
            tx.forget()
        entry.error = error


def _is_from_outside(error: Exception) -> bool:
    """Whether it belongs to this thread, not to the entry that was being run.

    A signal handler raised it, or another thread did in this one to limit its time, as rq and stopit do: an exception
    of theirs, or TimeoutError. A slip of ours is an exception of Python's own.
    """
    if isinstance(error, (SQSQLiteError, TypeError, ValueError)):
        return False
    is_pythons = type(error).__module__ == "builtins" and not isinstance(error, TimeoutError)
    return not is_pythons or threading.current_thread() is threading.main_thread()


def _run_plain(tx: Transaction, group: list[_Entry]) -> bool:
    """Every operation, without a savepoint. False: one failed after it had written."""
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
            # A refusal before the first write: its own business, the others go on.
            entry.error = error
    return True


def _run_with_savepoints(tx: Transaction, group: list[_Entry]) -> None:
    execute = tx.execute
    for entry in group:
        entry.result = entry.error = None
        execute("SAVEPOINT entry")
        kept = {epoch_id: delta.copy() for epoch_id, delta in tx.deltas.items()}
        try:
            entry.result = entry.operation(tx, *entry.arguments)
        except dbapi.Error:
            raise
        except Exception as error:  # as above
            if _is_from_outside(error):
                raise
            execute("ROLLBACK TO entry")
            tx.deltas = kept
            entry.error = error
        execute("RELEASE entry")
