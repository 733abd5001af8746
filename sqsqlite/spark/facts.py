"""Taking the facts: one short read transaction of each queue file, into one narrow file that reports read.

Spark reads with several connections, and SQLite's snapshots can't be shared between them: partitions of a live file see
different instants, and count a message twice that was moved in between. A facts file does not change, so it can be
read in as many partitions as there are cores, and the writers wait for nobody.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqsqlite.errors import CannotOpen, Corrupt, DiskFull, NotAdopted, ReadOnlyFile, StoreError
from sqsqlite.spark.errors import NoFacts
from sqsqlite.spark.paths import path_text
from sqsqlite.sql import facts as sql
from sqsqlite.sql import schema
from sqsqlite.store import create, driver, meta, mounts
from sqsqlite.store.connections import connect, disconnect, uri
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.translate import CONSTRAINT, primary_code, translate
from sqsqlite.store.version import check_version

# Seconds that a file may keep a report waiting. Readers of a WAL wait for nobody; one that recovers it does.
BUSY_TIMEOUT = 5.0
# Of the facts, which are written and read from end to end.
PAGE_SIZE = 32_768


@dataclass(slots=True)
class Facts:
    """A facts file.

    Attributes:
        path: where it is.
        files: how many queue files it was asked to hold.
        messages: how many it holds, of all files: its `seq` runs from 1 to this.
        taken_at: the instant of the last file's read transaction, in milliseconds since 1970 UTC.
        problems: what was wrong with a file, by its path: that file is left out.
    """

    path: Path
    files: int = 0
    messages: int = 0
    taken_at: int = 0
    problems: dict[str, str] = field(default_factory=dict)


def take_facts(
    paths: Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    now_ms: int | None = None,
    all_message_ids: bool = False,
    progress: Callable[[Facts], None] | None = None,
) -> Facts:
    """Write the facts of queue files into a new file.

    Each file is read in one transaction: one instant of it, which is the "now" of its ages. A file that is missing,
    locked, damaged or of another schema version is noted with its problem, and the others are read.

    Args:
        paths: the queue files, read and not changed.
        target: where no file is yet.
        now_ms: the instant of all files; each file's own clock unless said.
        all_message_ids: not only of the messages that reports name.
        progress: called after each file.

    Raises:
        StoreError: the only file could not be read: as opening it would.
        NoFacts: none of many could be read, the target exists, or there is no room for it.
    """
    facts = Facts(Path(target).absolute())
    if facts.path.exists():
        raise NoFacts(f"{facts.path}: exists already: facts are written into a new file")
    driver.check_version()
    _lay(facts.path)
    for path in paths:
        problem = _take(facts, Path(path).absolute(), now_ms, all_message_ids)
        if problem is not None and len(paths) == 1:
            raise problem
        if progress is not None:
            progress(facts)
    if len(facts.problems) == facts.files:
        raise NoFacts("\n".join(facts.problems.values()) or "there is no file to read")
    return facts


def _lay(target: Path) -> None:
    connection = dbapi.connect(":memory:", isolation_level=None)
    try:
        _attach(connection, target, "rwc")
        connection.execute(f"PRAGMA facts.page_size = {PAGE_SIZE}")
        for statement in sql.CREATE_FACTS:
            connection.execute(statement)
    except dbapi.Error as error:
        translated = translate(error, target)
        raise _no_room(target) if isinstance(translated, DiskFull) else translated from error
    finally:
        connection.close()


def _attach(connection: Connection, target: Path, mode: str) -> None:
    connection.execute("ATTACH ? AS facts", (uri(target, mode),))
    # Nobody reads it before it is done, and after a crash it is taken anew. The journal, which a file that turns out
    # to be damaged half way needs, stays in memory.
    connection.execute("PRAGMA facts.journal_mode = MEMORY").fetchall()
    connection.execute("PRAGMA facts.synchronous = OFF").fetchall()


def check_file(path: str | os.PathLike[str]) -> None:
    """Refuse what holds no queues, or those of another schema version, before somebody else reads it.

    Raises:
        StoreError: as opening it would.
    """
    path = Path(path).absolute()
    connection = _open(path)
    try:
        check_version(connection, path)
    finally:
        disconnect(connection, path)


def instant_of(path: str | os.PathLike[str]) -> tuple[int, list[tuple[int, int]]]:
    """The present instant by a queue file's clock, and the steps of its jumps: what tells which messages have expired.

    Raises:
        StoreError: as opening it would.
    """
    path = Path(path).absolute()
    connection = _open(path)
    try:
        now_ms = _now_ms(connection)
        return now_ms, _steps(connection, now_ms)
    except dbapi.Error as error:
        raise translate(error, path) from error
    finally:
        disconnect(connection, path)


def _take(facts: Facts, path: Path, now_ms: int | None, all_message_ids: bool) -> StoreError | None:
    facts.files += 1
    row = {
        "file_id": facts.files,
        "file": path_text(path),
        "taken_at": None,
        "schema_version": None,
        "problem": None,
    }
    try:
        counted, taken_at = _read(facts, path, now_ms, all_message_ids)
    except StoreError as error:
        facts.problems[path_text(path)] = row["problem"] = path_text(str(error))
        _note(facts.path, {**row, "messages": 0})
        return error
    _note(
        facts.path,
        {
            **row,
            "taken_at": taken_at,
            "schema_version": schema.SCHEMA_VERSION,
            "messages": counted - facts.messages,
        },
    )
    facts.messages, facts.taken_at = counted, max(facts.taken_at, taken_at)
    return None


def _open(path: Path) -> Connection:
    """A connection to a file that holds queues."""
    if not path.is_file():
        raise CannotOpen(f"{path}: there is no such file")
    try:
        return _connect(path)
    except ReadOnlyFile as error:
        raise ReadOnlyFile(
            f"{error}. Reports too must be allowed to write the file's folder, as SQLite's WAL needs it; or report on "
            "a backup (`sqsqlite backup`)"
        ) from error


def _connect(path: Path) -> Connection:
    # Not `ro`: SQLite opens an attached file with the rights of the first. Nothing is written to this one, but whoever
    # closes it last carries its WAL over, so that has to be synced.
    connection = connect(path, synchronous="FULL", busy_timeout=BUSY_TIMEOUT)
    try:
        if not create.is_ours(connection):
            raise NotAdopted(f"{path}: a SQLite database without queues")
        # A backup has no WAL, so it may be mounted, and linked, as often as one likes.
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            mounts.check(Path(os.path.realpath(path)))
    except BaseException as error:
        disconnect(connection, path)
        if isinstance(error, dbapi.Error):
            raise translate(error, path) from error
        raise
    return connection


def _read(facts: Facts, path: Path, now_ms: int | None, all_message_ids: bool) -> tuple[int, int]:
    """Copy one file's facts. Returns how many messages there are now in all, and the instant."""
    connection = _open(path)
    try:
        _attach(connection, facts.path, "rw")
        connection.execute(sql.CREATE_READING)
        connection.execute("BEGIN")
        check_version(
            connection, path
        )  # the first read: from here on the file stands still for this connection
        now_ms = _now_ms(connection) if now_ms is None else now_ms
        values = {
            "file_id": facts.files,
            "file": path_text(path),
            "now_ms": now_ms,
            "all_message_ids": all_message_ids,
            "jumps": json.dumps(_steps(connection, now_ms)),
        }
        for statement in sql.FILL:
            connection.execute(statement, values)
        [counted] = connection.execute(sql.COUNT_MESSAGES).fetchone()
        connection.execute("COMMIT")
        return counted, now_ms
    except dbapi.Error as error:
        translated = translate(error, path)
        if isinstance(translated, DiskFull):  # the queue's file is not written to
            raise _no_room(facts.path) from error
        if primary_code(error) == CONSTRAINT:  # the facts' columns are as strict as those they are taken from
            raise Corrupt(f"{path}: the file is damaged: {error}: run `sqsqlite check`") from error
        raise translated from error
    finally:
        disconnect(connection, path)


def _no_room(target: Path) -> NoFacts:
    return NoFacts(
        f"{target}: no room for the snapshot, which takes about 50 bytes a message. --snapshot-dir, or `folder` from "
        "Python, says where it is laid"
    )


def _now_ms(connection: Connection) -> int:
    """By the file's own clock; by the wall clock where that was last set before this boot, or on another machine."""
    clock = meta.clock_of(meta.read(connection))
    return time.time_ns() // 1_000_000 if clock is None else clock.now_ms()


def _steps(connection: Connection, now_ms: int) -> list[tuple[int, int]]:
    """The steps of the clock's jumps at `now_ms`, with the one that an open would make if none was since the boot."""
    facts = meta.read(connection)
    is_set = meta.clock_of(facts) is not None
    jumps = facts.jumps if is_set else meta.jumps_until(connection, facts, now_ms)
    return jumps.steps(now_ms)


def _note(target: Path, row: dict[str, object]) -> None:
    connection = dbapi.connect(":memory:", isolation_level=None)
    try:
        _attach(connection, target, "rw")
        connection.execute(sql.INSERT_FILE, row)
    except dbapi.Error as error:
        raise _no_room(target) from error
    finally:
        connection.close()
