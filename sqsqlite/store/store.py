"""One SQLite file, open: connections, turns, group commit, wake-ups, upkeep, clock, the caller's transactions."""

import contextlib
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from sqsqlite.contract.limits import Limits
from sqsqlite.contract.receipts import Sealer
from sqsqlite.errors import (
    DiskFull,
    InputOutputError,
    StoreClosed,
    StoreError,
    TransactionInProgress,
    UnsettledBatch,
)
from sqsqlite.store import create, driver, foreign, meta, room, secrecy
from sqsqlite.store.beside import make_folder
from sqsqlite.store.clock import Clock, FileClock
from sqsqlite.store.commit import GroupCommit
from sqsqlite.store.connections import LEVELS, Connection, Pool, connect, disconnect
from sqsqlite.store.counts import write_counts
from sqsqlite.store.damage import warn_of_damage
from sqsqlite.store.descriptors import raise_used_up
from sqsqlite.store.diagnosis import ODD, damage_behind
from sqsqlite.store.driver import dbapi
from sqsqlite.store.headroom import Headroom
from sqsqlite.store.hints import Hints
from sqsqlite.store.interrupts import until_done
from sqsqlite.store.jumps import Jumps
from sqsqlite.store.neutral import neutral, run
from sqsqlite.store.settings import Settings
from sqsqlite.store.tasks import current_task, held_by
from sqsqlite.store.transaction import Transaction
from sqsqlite.store.translate import BUSY, primary_code, translate
from sqsqlite.store.turns import let_go, turnstile_for
from sqsqlite.store.upkeep import Chores, Upkeep
from sqsqlite.store.version import check_version
from sqsqlite.store.wake import Waker

if TYPE_CHECKING:
    from sqsqlite.store.application import Application

R = TypeVar("R")

# Seconds of waiting for the turn that are not taken off the wait for SQLite's own lock: that costs two statements.
SHORT_WAIT = 0.1


class Store:
    """A queue's file, for any number of threads.

    Args:
        path: the file; created when missing.
        synchronous: "FULL" (each commit synced) or "NORMAL" (the last commits may be lost at power loss).
        busy_timeout: seconds that a write waits for others before it raises Busy.
        adopt: take a SQLite file that holds somebody's tables already.
        clock: None for the file's own clock.
        limits, compat, region: see `Settings`.
        chores: what upkeep does with rows.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str,
        busy_timeout: float,
        adopt: bool,
        clock: Clock | None,
        limits: Limits,
        compat: str,
        region: str,
        chores: Chores,
    ) -> None:
        if synchronous not in LEVELS:
            raise ValueError(f"synchronous={synchronous!r}: one of {', '.join(LEVELS)} is allowed")
        driver.check_version()
        self.path = _resolved(path)
        self.synchronous = synchronous
        self.busy_timeout = busy_timeout
        self.folder = Path(f"{self.path}-sqs")
        self.closed = False
        # Called with each operation's event (actions/dispatch.py): logs, metrics and tracing hang here.
        self.observers: list[Callable[[Any], None]] = []
        # Queue names whose last receive found nothing: the next one looks before it takes the write lock.
        self.found_empty = Hints()
        self._empty_receives: Counter[int] = Counter()
        self._thread = threading.local()
        self._application: Application | None = None
        self._application_lock = threading.Lock()
        self.headroom = Headroom(self.folder, self.path)
        try:
            create.check_path(self.path)
            self._open_in_room(adopt, clock, limits, compat, region)
        except OSError as error:
            if error.errno is None:
                raise  # a signal handler's
            raise create.refused(self.path, error) from error
        self.waker = Waker(self, self.folder)
        self.upkeep = Upkeep(self, chores)
        self._group_commit = GroupCommit(self)
        _stores.add(self)
        self.upkeep.opened()

    def _open_in_room(self, *options: Any) -> None:
        try:
            self._open(*options)
        except (DiskFull, InputOutputError):
            # On a full disk SQLite's -wal and -shm find no room; the second is reported as an I/O error.
            if not self.headroom.release():
                raise
            self._open(*options)

    def _open(self, adopt: bool, clock: Clock | None, limits: Limits, compat: str, region: str) -> None:
        options: dict[str, Any] = {"synchronous": self.synchronous, "busy_timeout": self.busy_timeout}
        if not self.path.exists():
            # Before the lock files: its (device, inode) names the turnstile. SQLite takes an empty file.
            self.path.touch(exist_ok=True)
        with foreign.no_fork():
            facts = create.look(self.path, adopt=adopt, **options)
        make_folder(self.folder)
        self.turnstile = turnstile_for(foreign.identity(self.path), self.folder)
        try:
            self.headroom.open()
            self._use(facts, clock, adopt=adopt, **options)
        except BaseException:
            self.headroom.close()
            let_go(self.turnstile)
            raise
        self.settings = Settings(
            self.path, limits, compat, compat == "docs", region, Sealer(self._secret), self._jumps
        )

    def _use(self, facts: meta.Meta | None, clock: Clock | None, *, adopt: bool, **options: Any) -> None:
        found = clock or (meta.clock_of(facts) if facts is not None else None)
        if facts is None or found is None:
            # Only then is anything written: opening a file that is in order waits for no writer.
            with self.turnstile.taken(self.busy_timeout), foreign.no_fork():
                facts, found = self._prepare(clock, adopt=adopt, **options)
        self.clock: Clock = found
        self._jumps = facts.jumps if clock is None else Jumps()
        self._difference_ms = facts.difference_ms
        self.writers = Pool(self.path, **options)
        self.readers = Pool(self.path, **options)
        self.watchers = Pool(self.path, **options)
        # One connection from now on: an upgrade, a restore or a second SQLite copy must find the file in use.
        with self.readers.lent() as connection:
            secrecy.tighten_with_keys(self.path, connection)
        self.file_id = facts.file_id
        self._secret = facts.secret

    def _prepare(self, clock: Clock | None, *, adopt: bool, **options: Any) -> tuple[meta.Meta, Clock]:
        """Make the file a queue's, or ready again, and set its clock. The turn is held."""
        create.create(self.path, adopt=adopt, **options)
        connection = connect(self.path, **options)
        try:
            check_version(connection, self.path)
            found = clock or meta.set_clock(connection)
            return meta.read(connection), found
        except dbapi.Error as error:
            raise translate(error, self.path) from error
        finally:
            disconnect(connection, self.path)

    # --- writing

    def begin(self, connection: Connection, timeout: float) -> Transaction:
        """BEGIN IMMEDIATE, and one look at the clock.

        Args:
            timeout: seconds to wait for SQLite's own lock: what the wait for the turn has left of busy_timeout.
        """
        if self.headroom.is_look_due():
            room.look_around(self, connection)
        if self.busy_timeout - timeout < SHORT_WAIT:
            connection.execute("BEGIN IMMEDIATE")
        else:
            run(connection, f"PRAGMA busy_timeout = {round(timeout * 1000)}")
            try:
                connection.execute("BEGIN IMMEDIATE")
            finally:
                run(connection, f"PRAGMA busy_timeout = {round(self.busy_timeout * 1000)}")
        return Transaction(connection, self.clock.now_ms(), self.settings, self.headroom)

    def write(self, operation: Callable[..., R], *arguments: Any) -> R:
        """Run `operation(tx, *arguments)`: in this thread's own transaction if it has one, else in a group commit.

        Raises:
            StoreError: Busy, DiskFull, CommitInDoubt and the others, translated.
        """
        tx = self.transaction_of_thread
        if tx is not None:
            return self._join(tx, operation, arguments)
        if self.closed:
            raise self._closed_error()
        # Told here, not by the turnstile alone: behind a leader that waits for this very thread it would take 30 s.
        self.turnstile.refuse_holder()
        try:
            return self._group_commit.run(operation, *arguments)
        except ODD as error:
            if (damage := damage_behind(self, error)) is not None:
                raise damage from error
            raise
        except OSError as error:
            raise_used_up(error, self.path)
            raise

    def join(self, connection: Connection, operation: Callable[..., R], *arguments: Any) -> R:
        """Run an operation inside the transaction that an application's connection has begun."""
        return self._join(self.application.transaction_of(connection), operation, arguments)

    def _join(self, tx: Transaction, operation: Callable[..., R], arguments: tuple[Any, ...]) -> R:
        """In a transaction of the caller's: all of the operation or nothing of it, and the counts right behind."""
        tx.connection.refuse_ended()
        with neutral(tx.connection):
            return self._run_joined(tx, operation, arguments)

    def _run_joined(self, tx: Transaction, operation: Callable[..., R], arguments: tuple[Any, ...]) -> R:
        tx.now_ms = self.clock.now_ms()
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
            self._raise_typed(error)
        except OSError as error:
            raise_used_up(error, self.path)
            raise
        return result

    def _raise_typed(self, error: Exception, snapshot: Connection | None = None) -> NoReturn:
        """Raise an error of the driver's, or an odd one, as what it means; else as it is.

        Args:
            snapshot: what the operation has seen: by now another may have swept the damage away.
        """
        typed = translate(error, self.path) if isinstance(error, dbapi.Error) else error
        if typed is error:
            typed = damage_behind(self, error, snapshot) or error
        if typed is error:
            raise error
        raise typed from error

    @property
    def transaction_of_thread(self) -> Transaction | None:
        """The transaction this thread is in by `transaction()`, if it is.

        Raises:
            TransactionInProgress: another task of this thread is in it.
        """
        found = self._open_in_thread()
        if found is not None and self._is_another_tasks():
            raise held_by(self._thread.owner)
        return found

    def _open_in_thread(self) -> Transaction | None:
        found: Transaction | None = getattr(self._thread, "transaction", None)
        return found if found is not None and not found.is_over else None

    def _is_another_tasks(self) -> bool:
        """Whether a task began the transaction, and this is not that task. Begun outside tasks, it is the thread's."""
        owner = self._thread.owner
        return owner is not None and owner is not current_task()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """The caller's own write transaction, in this thread and task: all operations inside join it.

        Commits when the block ends, rolls back when it raises.
        """
        if self.transaction_of_thread is not None:
            raise TransactionInProgress("this thread is in a transaction already; they don't nest")
        connection = self.application.connection()
        try:
            self.application.begin(connection)
            tx = self.application.transaction_of(connection)
            connection.is_block = True
            self._thread.owner = current_task()
            self._thread.transaction = tx
            yield tx
            self._refuse_odd_end(connection)
            if tx.unsettled:
                raise UnsettledBatch(tx.unsettled)
            connection.finish()
        finally:
            try:
                until_done(lambda: self._end_block(connection))
            finally:
                # Another signal may come before `until_done` has begun.
                until_done(lambda: self._end_block(connection))

    def _end_block(self, connection: Any) -> None:
        self.application.put_away(connection)
        if threading.get_ident() == connection.thread:
            self._thread.transaction = self._thread.owner = None

    def _refuse_odd_end(self, connection: Any) -> None:
        if connection.thread != threading.get_ident():
            raise StoreError(
                f"{self.path}: transaction() was entered in one thread and left in another: rolled back. A transaction "
                "belongs to its thread"
            )

    def note_difference(self, tx: Transaction) -> None:
        """Let a transaction that writes note how far the wall clock is ahead of the file's, if that changed."""
        if tx.deltas and isinstance(self.clock, FileClock):
            difference_ms = self.clock.behind_ms()
            if abs(difference_ms - self._difference_ms) > meta.DIFFERENCE_NOTED_MS:
                meta.note_difference(tx.connection, difference_ms, tx.now_ms)
                tx.difference_ms = difference_ms

    def committed(self, tx: Transaction) -> None:
        """After a commit and its answers: wake sleepers, give upkeep its due, say what was passed by."""
        if tx.difference_ms is not None:
            self._difference_ms = tx.difference_ms
        if tx.wakes:
            self.waker.tell(tx.wakes)
        if tx.has_erased:
            secrecy.empty_wal(self)
        self.upkeep.committed(tx)
        if tx.damaged:
            warn_of_damage(self.path, tx.damaged)

    def count_empty_receive(self, epoch_id: int) -> None:
        """Remember a receive that returned nothing: summed in memory, written with the next commit."""
        self._empty_receives[epoch_id] += 1
        self.upkeep.visited()

    def drain_empty_receives(self, tx: Transaction) -> None:
        """Put the remembered empty receives into the transaction's counts."""
        if self._empty_receives:
            drained, self._empty_receives = self._empty_receives, Counter()
            for epoch_id, count in drained.items():
                tx.delta(epoch_id).empty_receives += count

    # --- reading

    @contextlib.contextmanager
    def reading(self, within: Connection | None = None) -> Iterator[Connection]:
        """A connection to read from: the transaction's own inside one, else one snapshot for the block.

        Args:
            within: an application's connection whose transaction to read in.
        """
        tx = self._open_in_thread() if within is None else self.application.transaction_of(within)
        examined: Exception | None = None
        try:
            if tx is not None and (within is not None or not self._is_another_tasks()):
                with neutral(tx.connection):
                    yield tx.connection
                return
            if self.closed:
                raise self._closed_error()
            with self.readers.lent() as connection:
                connection.execute("BEGIN")
                try:
                    yield connection
                except ODD as error:
                    examined = error
                    self._raise_typed(error, connection if connection.in_transaction else None)
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except ODD as error:
            if error is examined:
                raise
            self._raise_typed(error)

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
                    self.writers.check_identity()
                    self._application = Application(self)
        return self._application

    # --- the end

    def close(self) -> None:
        """Wake the waiters, finish upkeep, close the connections. A second call does nothing."""
        if self.closed:
            return
        if self._empty_receives:
            # Approximate by definition: a busy or full file loses some, and is closed all the same.
            with contextlib.suppress(StoreError):
                self.write(self.drain_empty_receives)
        self.upkeep.close()
        self.closed = True
        self.waker.close()
        if self._application is not None:
            self._application.close()
        for pool in (self.writers, self.readers, self.watchers):
            pool.close()
        self.headroom.close()
        let_go(self.turnstile)

    def after_fork_in_child(self) -> None:
        """Threads, queued operations and open transactions stayed in the parent."""
        self._thread = threading.local()
        self._application_lock = threading.Lock()
        self._group_commit = GroupCommit(self)
        self.waker.after_fork_in_child()
        self.upkeep.after_fork_in_child()
        # Connections at work stayed open: no turn is waited for, nothing is begun.
        self.closed = self.closed or self.writers.is_torn

    def _closed_error(self) -> StoreError:
        if self.writers.is_torn:
            return StoreError(f"{self.path}: {foreign.TORN}")
        return StoreClosed(f"{self.path}: closed")


def _take_back(tx: Transaction) -> None:
    """Undo the operation at hand.

    A statement that a signal handler cut short lasts as long as the traceback, and SQLite refuses the RELEASE
    meanwhile. Then the savepoint stays until the transaction ends: the caller must hear of what the handler raised.
    """
    tx.execute("ROLLBACK TO sqs_operation")
    try:
        tx.execute("RELEASE sqs_operation")
    except dbapi.Error as error:
        if primary_code(error) != BUSY:
            raise


def _resolved(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if name == ":memory:" or not name:
        raise ValueError(f"path={name!r}: a queue lives in a file; a path is needed")
    if "\0" in name:
        raise ValueError(f"path={name!r}: a path holds no NUL character")
    return Path(os.path.realpath(name))


_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for store in list(_stores):
        store.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
