# SPDX-License-Identifier: Apache-2.0
"""The connections of `sqsqlite.dbapi`, which the application owns: its engine opens, uses and closes them.

They are the driver's, and three things more. They count as ours, so they and a queue may have the same file open. A
transaction in which messages were sent or received wakes the waiting consumers when it commits; BEGIN IMMEDIATE stands
in line with the writers of the queue. And they obey the rules of a fork (own_fork.py).
"""

import re
import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any
from weakref import WeakSet

from sqsqlite.errors import Busy, TransactionInProgress
from sqsqlite.store import foreign, turns, wal_files
from sqsqlite.store.driver import check_version, dbapi, file_of
from sqsqlite.store.neutral import LASTING_METHODS, may_outlive

# Seconds that SQLite waits for a lock, unless `connect(timeout=...)` says otherwise.
DEFAULT_TIMEOUT = 5.0

# Settings of a connection that a new one gets again. Those of the file, such as user_version, are in the file.
_SETTINGS = frozenset(
    {"analysis_limit", "automatic_index", "busy_timeout", "cache_size", "cache_spill", "case_sensitive_like"}
    | {"cell_size_check", "checkpoint_fullfsync", "count_changes", "empty_result_callbacks", "foreign_keys"}
    | {"full_column_names", "fullfsync", "hard_heap_limit", "ignore_check_constraints", "journal_size_limit"}
    | {"legacy_alter_table", "mmap_size", "query_only", "read_uncommitted", "recursive_triggers"}
    | {"reverse_unordered_selects", "secure_delete", "short_column_names", "soft_heap_limit", "synchronous"}
    | {"temp_store", "threads", "trusted_schema", "wal_autocheckpoint", "writable_schema"}
)
_PRAGMA = re.compile(r"\s*PRAGMA\s+(?:\w+\s*\.\s*)?(\w+)\s*[=(]", re.IGNORECASE)
# Comments may stand before the first word.
_FIRST_WORDS = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*(\w+)(?:\s+(\w+))?", re.DOTALL)
_ROW_WORDS = ("INSERT", "UPDATE", "DELETE", "REPLACE")
_SCHEMA_WORDS = ("CREATE", "ALTER", "DROP", "REINDEX", "ANALYZE", "VACUUM")
_WRITING = re.compile(rf"\b({'|'.join((*_ROW_WORDS, *_SCHEMA_WORDS))})\b", re.IGNORECASE)
_WRITERS = ("IMMEDIATE", "EXCLUSIVE")
# The driver's order of `connect`'s arguments after the database.
_POSITIONAL = (
    "timeout",
    "detect_types",
    "isolation_level",
    "check_same_thread",
    "factory",
    "cached_statements",
    "uri",
)


@lru_cache(maxsize=512)
def _kind_of(sql: str) -> str:
    """What a statement means to its connection.

    Returns:
        "begin", "commit", "rows", "schema", "setting", "bound", or "" for nothing.
    """
    found = _FIRST_WORDS.match(sql)
    first, second = (word.upper() if word else "" for word in found.groups()) if found else ("", "")
    if first == "BEGIN" and second in _WRITERS:
        return "begin"
    if first in ("COMMIT", "END"):
        return "commit"
    if first in _ROW_WORDS:
        return "rows"
    if may_outlive(sql):
        pragma = _PRAGMA.match(sql)
        if pragma is None:
            return "bound"  # a temporary table, say, which a new connection would not have
        return "setting" if pragma[1].lower() in _SETTINGS else ""
    return "schema" if first in _SCHEMA_WORDS else ""


class OwnCursor(dbapi.Cursor):  # type: ignore[name-defined,misc]
    """A cursor of an `OwnConnection`. The `factory` of `cursor()` must be this class or derive from it."""

    __slots__ = ()

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """Execute one statement, as the driver does."""
        return self.connection.run(dbapi.Cursor.execute, self, sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        """Execute once for each set of parameters, as the driver does."""
        return self.connection.run(dbapi.Cursor.executemany, self, sql, parameters)

    def executescript(self, script: Any, /) -> Any:
        """Commit what is open, as the driver does, then execute the script."""
        connection = self.connection
        connection.check_thread()
        if connection.in_transaction and getattr(connection, "autocommit", -1) == -1:
            connection.commit()
        if isinstance(script, str) and may_outlive(script):
            connection.is_bound = True
        if isinstance(script, str) and _WRITING.search(script):
            connection.take_turn()
        return connection.work(dbapi.Cursor.executescript, self, script)

    def close(self) -> None:
        """End the statement."""
        super().close()
        self.connection.forget_cursor(self)


class OwnConnection(dbapi.Connection):  # type: ignore[name-defined,misc]
    """A connection that its application owns. It takes the arguments of the driver's `connect`.

    Attributes:
        identity: (device, inode) of its file; None for a database in memory.
        after_commit: called once each, when the transaction that is open now has committed.
        thread: which one took the turn to write.
        at_work, user: how many calls of the driver run on it now, and the thread of the last one.
        is_bound: it has what a new connection would not have: an attached file, a temporary table.
        timeout: seconds to wait for the turn to write.
    """

    identity: foreign.Identity | None = None
    at_work = user = thread = 0
    is_bound = False
    _turnstile: turns.Turnstile | None = None

    def __init__(self, database: Any, *arguments: Any, **options: Any) -> None:
        options.update(zip(_POSITIONAL, arguments, strict=False))
        options.pop("factory", None)  # this class
        self.path, database = file_of(database, bool(options.get("uri")))
        # Checked here, not by the driver: the thread that forks must be able to close the connection.
        is_of_one_thread = options.get("check_same_thread", True)
        self._owner = threading.get_ident() if is_of_one_thread else 0
        self._arguments = database, {**options, "check_same_thread": False}
        self.settings: dict[tuple[object, ...], tuple[str, tuple[Any, ...], dict[str, Any]]] = {}
        self._cursors: WeakSet[Any] = WeakSet()
        self.after_commit: list[Callable[[], None]] = []
        self.timeout = float(options.get("timeout", DEFAULT_TIMEOUT))
        self.open()
        with foreign.no_fork():
            every.add(self)

    def open(self) -> None:
        """Open the file, for the first time or again."""
        database, options = self._arguments
        if self.path is None:
            super().__init__(database, **options)
            return
        check_version()
        with foreign.no_fork(), foreign.opening(self.path):
            kept = dict(self.__dict__)
            try:
                super().__init__(database, **options)
            finally:
                # The standard library's driver empties an object that it initializes for the second time.
                self.__dict__.update(kept)
            if self.path.exists():
                self.identity = foreign.identity(self.path)
                foreign.opened(self.identity, self)

    # --- statements

    def cursor(self, factory: Any = OwnCursor) -> Any:
        """A cursor. `factory` must be `sqsqlite.dbapi.Cursor` or derive from it."""
        self.check_thread()
        if not (isinstance(factory, type) and issubclass(factory, OwnCursor)):
            raise TypeError(f"the factory of a cursor must derive from sqsqlite.dbapi.Cursor: {factory!r}")
        cursor = super().cursor(factory)
        self._cursors.add(cursor)
        return cursor

    # The standard library's driver would make the cursor of these itself, past `cursor` and `OwnCursor`.

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """Execute one statement on a new cursor, and return that cursor, as the driver does."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        """Execute once for each set of parameters on a new cursor, and return that cursor, as the driver does."""
        return self.cursor().executemany(sql, parameters)

    def executescript(self, script: Any, /) -> Any:
        """Execute a script on a new cursor, and return that cursor, as the driver does."""
        return self.cursor().executescript(script)

    def run(self, method: Callable[..., Any], cursor: OwnCursor, sql: Any, parameters: Any) -> Any:
        """Execute a statement by a method of the driver's cursor, and note what it does to the connection."""
        kind = _kind_of(sql) if isinstance(sql, str) else ""
        if not kind:
            return self.work(method, cursor, sql, parameters)
        # The driver begins no transaction for a change of the schema: SQLite makes it one of its own.
        if kind in ("begin", "schema") or (kind == "rows" and self._begins_writing()):
            self.take_turn()
        result = self.work(method, cursor, sql, parameters, is_commit=kind == "commit")
        if kind == "setting":
            self._keep_pragma(sql)
        elif kind == "bound":
            self.is_bound = True
        return result

    def _keep_pragma(self, sql: str) -> None:
        pragma = _PRAGMA.match(sql)
        assert pragma is not None
        name = pragma[1].lower()
        # SQLite ignores this one within a transaction.
        if name != "foreign_keys" or not self._is_within():
            self.settings["PRAGMA", name] = ("execute", (sql,), {})

    def work(self, method: Callable[..., Any], *arguments: Any, is_commit: bool = False) -> Any:
        """Call the driver, and look afterwards whether the transaction has ended."""
        self.check_thread()
        has_worked = False
        self.user = threading.get_ident()
        self.at_work += 1
        try:
            result = method(*arguments)
            has_worked = True
            return result
        finally:
            self.at_work -= 1
            if (self._turnstile or self.after_commit) and not self._is_within():
                self._over(has_committed=is_commit and has_worked)

    def _is_within(self) -> bool:
        try:
            return bool(dbapi.Connection.in_transaction.__get__(self))
        except dbapi.ProgrammingError:  # closed
            return False

    def check_thread(self) -> None:
        """Refuse a thread that did not make the connection, unless it was made with check_same_thread=False.

        Raises:
            dbapi.ProgrammingError: this is such a thread.
        """
        if self._owner and self._owner != threading.get_ident():
            raise dbapi.ProgrammingError(
                "the connection belongs to the thread that made it: make one for each thread, or pass "
                f"check_same_thread=False (made in thread {self._owner}, used in {threading.get_ident()})"
            )

    # --- transactions

    def _begins_writing(self) -> bool:
        """Whether the driver will put a BEGIN IMMEDIATE before the next change of rows."""
        level = self.isolation_level
        return bool(level) and level.upper() in _WRITERS

    def take_turn(self) -> None:
        """Stand in line with the writers of the queue, if this process has the file open as one.

        Raises:
            dbapi.OperationalError: the turn did not come in time; the driver's own error for a lock.
        """
        if self._turnstile is not None or self.identity is None or self._is_within():
            return
        turnstile = turns.known(self.identity)
        if turnstile is None:
            return
        self.thread = threading.get_ident()
        try:
            turnstile.take(self, self.timeout)
        except (Busy, TransactionInProgress) as error:
            raise dbapi.OperationalError(f"database is locked: {error}") from error
        self._turnstile = turnstile

    def _over(self, *, has_committed: bool) -> None:
        """The transaction has ended: leave the turn, and do what waits for the commit."""
        turnstile, self._turnstile = self._turnstile, None
        if turnstile is not None:
            turnstile.leave(self)
        calls, self.after_commit = self.after_commit, []
        if has_committed:
            for call in calls:
                call()

    def commit(self) -> None:
        """Commit, and wake the consumers that wait for its messages."""
        self.work(dbapi.Connection.commit, self, is_commit=True)

    def rollback(self) -> None:
        """Roll back."""
        self.work(dbapi.Connection.rollback, self)

    def close(self) -> None:
        """Close, and roll back what was not committed."""
        self.check_thread()
        self.close_file()
        self._over(has_committed=False)

    def close_file(self) -> None:
        """Close the file, whatever thread this is."""
        # Another thread may be reading the WAL through a descriptor of this connection.
        with wal_files.closing():
            dbapi.Connection.close(self)
        if self.identity is not None:
            foreign.closed(self.identity, self)

    def __enter__(self) -> "OwnConnection":
        self.check_thread()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Commit, or roll back if the block or the commit raises."""
        if kind is not None:
            self.rollback()
            return
        try:
            self.commit()
        except BaseException:
            if self._is_within():
                self.rollback()
            raise

    def backup(self, *arguments: Any, **options: Any) -> None:
        """Copy the database, as the driver does."""
        self.work(partial(dbapi.Connection.backup, self, *arguments, **options))

    # --- for a fork: see own_fork.py

    @property
    def is_idle(self) -> bool:
        """Whether closing it loses nothing: no transaction, no statement, no cursor that may have rows to give."""
        return not (
            self.at_work
            or self.is_bound
            or self._is_within()
            or any(getattr(cursor, "description", self) is not None for cursor in list(self._cursors))
        )

    @property
    def is_open(self) -> bool:
        """Whether it was not closed."""
        try:
            dbapi.Connection.total_changes.__get__(self)
        except dbapi.ProgrammingError:
            return False
        return True

    def forget_cursor(self, cursor: OwnCursor) -> None:
        """A cursor is closed, and has no rows to give."""
        self._cursors.discard(cursor)

    def keep_setting(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Note a call of a method that changes the connection for good."""
        if name == "deserialize":
            self.is_bound = True
        elif name.startswith("create_"):
            # A function is known by its name and its number of arguments, a collation by its name.
            self.settings[name, *map(str, arguments[:2])] = (name, arguments, options)
        elif name.startswith("set_"):
            self.settings[name,] = (name, arguments, options)
        else:  # limits and extensions, in their order
            self.settings[name, len(self.settings)] = (name, arguments, options)


def _lasting(name: str) -> Callable[..., Any]:
    """Wrap a method of the driver: it also notes what it has set."""

    def method(self: OwnConnection, *arguments: Any, **options: Any) -> Any:
        result = self.work(partial(getattr(dbapi.Connection, name), self, *arguments, **options))
        self.keep_setting(name, arguments, options)
        return result

    method.__name__ = name
    return method


def _blob(name: str) -> Callable[..., Any]:
    """Wrap a method of the driver that opens a blob, which counts as a cursor with rows while it is open."""

    def method(self: OwnConnection, *arguments: Any, **options: Any) -> Any:
        self.check_thread()
        blob = getattr(dbapi.Connection, name)(self, *arguments, **options)
        self._cursors.add(blob)
        return blob

    method.__name__ = name
    return method


for _name in LASTING_METHODS:
    if hasattr(dbapi.Connection, _name):
        setattr(OwnConnection, _name, _lasting(_name))
for _name in ("blobopen", "open_blob"):
    if hasattr(dbapi.Connection, _name):
        setattr(OwnConnection, _name, _blob(_name))


every: WeakSet[OwnConnection] = WeakSet()
"""All of them, for a fork."""
