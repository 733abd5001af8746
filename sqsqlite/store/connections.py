# SPDX-License-Identifier: Apache-2.0
"""Opening connections, lending them out, and closing all of them around a fork."""

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakSet

from sqsqlite.errors import CannotOpen, SQSQLiteError, StoreClosed
from sqsqlite.store import driver, foreign, same_copy, wal_files
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.interrupts import until_done
from sqsqlite.store.meta import check_version
from sqsqlite.store.translate import translate

same_copy.install()


class PlainConnection(dbapi.Connection):  # type: ignore[name-defined,misc]
    """A connection that allows weak references: one that an interrupt has lost is freed, and so closed."""


LEVELS = ("OFF", "NORMAL", "FULL", "EXTRA")
# Upkeep checkpoints much earlier. This is the last resort if the upkeep thread gets no time: 32 MiB.
AUTOCHECKPOINT_PAGES = 16_384
# Bytes. A WAL that grew beyond this (because of a long reader) is cut back to it when it begins again.
JOURNAL_SIZE_LIMIT = 32 * 1024 * 1024
# Seconds that a fork waits for connections in use. If one is still in use then, the child can't use the file.
FORK_PATIENCE = 2.0


def uri(path: Path, mode: str) -> str:
    """The file as a URI for SQLite. Mode `rwc` creates it, `rw` does not. Special characters are quoted."""
    return f"file:{quote(os.fsencode(path))}?mode={mode}"


def connect(
    path: Path, *, synchronous: str, busy_timeout: float, mode: str = "rw", factory: type = PlainConnection
) -> Connection:
    """Open a connection with the settings that all connections to queue files have. `busy_timeout` is in seconds."""
    with foreign.no_fork(), foreign.opening(path):
        try:
            connection = driver.connect(
                uri(path, mode),
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
                timeout=busy_timeout,
                factory=factory,
            )
        except dbapi.Error as error:
            raise translate(error, path) from error
        identity = foreign.identity(path)
        foreign.opened(identity, connection)
        try:
            # The first statement reads the header, and fails if the file is not a database.
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            for pragma in (
                f"synchronous = {synchronous}",
                "mmap_size = 0",
                "recursive_triggers = OFF",
                f"wal_autocheckpoint = {AUTOCHECKPOINT_PAGES}",
                f"journal_size_limit = {JOURNAL_SIZE_LIMIT}",
            ):
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except (dbapi.Error, UnicodeError) as error:  # UnicodeError: SQLite quotes a damaged schema
            typed = translate(error, path)  # before closing, which frees its descriptors
            _close(connection)
            foreign.closed(identity, connection)
            raise typed from error
    return connection


def disconnect(connection: Connection, path: Path) -> None:
    """Close a connection from `connect` that no pool owns."""
    _close(connection)
    foreign.closed(foreign.identity(path), connection)


def _close(connection: Connection) -> None:
    # Another thread may be reading the WAL through a descriptor of this connection.
    with wal_files.closing():
        connection.close()


class Pool:
    """Connections of one kind. A thread takes one, uses it alone, and gives it back.

    SQLite's in-memory tables of locks are wrong after a fork: the child would believe that it holds its parent's locks.
    So before a fork every pool closes its connections. Afterwards parent and child each open their own.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self._path = path
        self._options = options
        self._identity = foreign.identity(path)
        self._idle: deque[Connection] = deque()
        self._gate = threading.Lock()
        self._open: WeakSet[Connection] = WeakSet()
        self._kept: set[Connection] = set()
        self._closed = False
        _pools.add(self)

    def take(self) -> Connection:
        """An open connection, for the caller alone until `give_back`."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            if not connection.in_transaction:
                connection.taken_by = threading.get_ident()
                return connection
            self.discard(connection)

    def give_back(self, connection: Connection) -> None:
        """Give the connection back. It must not be inside a transaction."""
        connection.taken_by = 0
        self._idle.append(connection)
        if self._closed:
            self.close()

    def discard(self, connection: Connection) -> None:
        """Close a connection that can't be trusted any more."""
        self._forget(connection)

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """`take` and `give_back` around a block.

        After any interrupt the connection is closed, because the interrupt may have come between any two steps.
        """
        connection = self.take()
        try:
            yield connection
        except BaseException as error:
            if isinstance(error, SQSQLiteError) and not connection.in_transaction:
                self.give_back(connection)
            else:
                until_done(lambda: self.discard(connection))
            raise
        self.give_back(connection)

    def _connect(self) -> Connection:
        with self._gate:
            if self._closed:
                raise StoreClosed(f"{self._path}: closed")
            self.check_identity()
            connection = connect(self._path, **self._options)
            try:
                wal_files.note(self._path, self._identity, connection)
                # Another process may have upgraded the file while this one had no connection open.
                check_version(connection, self._path)
            except BaseException:
                self._forget(connection)
                raise
            self._open.add(connection)
            return connection

    def check_identity(self) -> None:
        """Refuse to go on if another file, or another -wal, has the name now: older connections use the old one.

        Raises:
            CannotOpen: the file or its -wal was replaced or deleted.
        """
        try:
            same = foreign.identity(self._path) == self._identity
        except FileNotFoundError:
            same = False
        if not same:
            raise CannotOpen(
                f"{self._path}: deleted or replaced by another file since it was opened: open it again"
            )
        wal_files.check(self._path, self._identity)

    def are_cut(self, connection: Connection, observer: Connection) -> bool:
        """Whether the file or its WAL was cut off: see `wal_files.are_cut`."""
        return wal_files.are_cut(self._path, self._identity, connection, observer)

    def keep_one_for_ever(self) -> None:
        """Leave a connection open until the process ends, so that no other one is the last. A second call does nothing.

        When the last connection closes, SQLite copies the WAL into the file, which would make the damage worse.
        """
        if self._kept or not self._idle:
            return  # a connection is in use, so no other one is the last for now
        connection = self.take()
        self._open.discard(connection)
        self._kept.add(connection)
        foreign.keep_for_ever(self._kept)

    @property
    def is_torn(self) -> bool:
        """Whether this process was forked while a connection was in use: see `foreign.TORN`."""
        return foreign.is_torn(self._identity)

    def _forget(self, connection: Connection) -> None:
        try:
            with wal_files.closing():
                try:
                    # An application's connection overrides close(), which calls this method.
                    dbapi.Connection.close(connection)
                finally:
                    wal_files.forget(self._identity, connection)
        finally:
            self._open.discard(connection)
            foreign.closed(self._identity, connection)

    def close(self) -> None:
        """Close the idle connections now, and the others when they are given back."""
        self._closed = True
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return
            self._forget(connection)

    def before_fork(self) -> None:
        self._gate.acquire()
        deadline = time.monotonic() + FORK_PATIENCE
        while True:
            try:
                self._forget(self._idle.pop())
                continue
            except IndexError:
                if not self._has_others_at_work() or time.monotonic() > deadline:
                    return
                time.sleep(0.0005)

    def _has_others_at_work(self) -> bool:
        """Whether another thread has a connection. This thread is forking, and uses its own only afterwards."""
        own = threading.get_ident()
        # Not by length: see `foreign.open_count`. A connection that was just opened has no taker yet.
        return any(getattr(connection, "taken_by", 0) != own for connection in list(self._open))

    def after_fork_in_parent(self) -> None:
        self._gate.release()

    def after_fork_in_child(self) -> None:
        self._gate = threading.Lock()
        if inherited := set(self._open):
            foreign.keep_for_ever(inherited)


_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()
# Held through a fork: of two threads that fork at once, the second must find the pools as the first one left them.
_fork_lock = threading.Lock()
_forking: list[Pool] = []


def _before_fork() -> None:
    _fork_lock.acquire()
    _forking[:] = list(_pools)
    for pool in _forking:
        pool.before_fork()


def _after_fork_in_parent() -> None:
    for pool in _forking:
        pool.after_fork_in_parent()
    _forking.clear()
    _fork_lock.release()


def _after_fork_in_child() -> None:
    global _fork_lock
    for pool in _forking:
        pool.after_fork_in_child()
    _forking.clear()
    _fork_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
