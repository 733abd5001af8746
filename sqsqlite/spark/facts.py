# SPDX-License-Identifier: Apache-2.0
"""The facts file: a snapshot of queue files, which Spark reads instead of the files themselves.

Spark reads through several connections, and these cannot share a snapshot of SQLite: partitions of a live file see
different instants, and count a message twice that was moved in between. A facts file does not change. So Spark can read
it in as many partitions as there are cores, and no writer waits for a report.

The statements are in sql/facts.py.
"""

import glob
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqsqlite.errors import CannotOpen, Corrupt, DiskFull, NotAdopted, ReadOnlyFile, StoreError
from sqsqlite.spark.errors import NoFacts
from sqsqlite.spark.snapshot_folder import snapshot_folder
from sqsqlite.sql import facts as sql
from sqsqlite.sql import schema
from sqsqlite.store import create, driver, meta
from sqsqlite.store.connections import connect, disconnect, uri
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.meta import check_version
from sqsqlite.store.translate import CONSTRAINT, primary_code, translate

# Seconds that a report waits for one file. Readers of a WAL do not wait, except while another process recovers it.
BUSY_TIMEOUT = 5.0
# Of the facts file, which is written and read from end to end.
PAGE_SIZE = 32_768
# The ends of names of files that SQLite writes next to a database; a glob such as `queues/*` finds them too.
_NEXT_TO_DATABASE = ("-wal", "-shm", "-journal")


def path_text(path: str | os.PathLike[str]) -> str:
    r"""A path as a text that any store and any network takes: bytes that are not UTF-8 become `\xNN`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@dataclass(slots=True)
class Facts:
    """A facts file.

    Attributes:
        path: its path.
        files: the number of queue files that it was asked to hold.
        messages: the number of messages, of all files. The column `seq` runs from 1 to this number.
        taken_at: the instant at which the last file was read, in milliseconds since 1970 UTC.
        problems: by path, why a queue file is missing from the facts.
    """

    path: Path
    files: int = 0
    messages: int = 0
    taken_at: int = 0
    problems: dict[str, str] = field(default_factory=dict)


Progress = Callable[[Facts], None]
"""Called after each queue file."""


# --- queue files


def find_files(patterns: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that paths and globs name, in order. A file that several names lead to appears once.

    A glob (`**` for folders below) may match nothing. A path is returned even if no such file exists, so that the
    report can say so.
    """
    found: dict[object, Path] = {}
    for given in patterns:
        pattern = os.fspath(given)
        names = [pattern]
        if glob.has_magic(pattern) and not os.path.lexists(pattern):
            names = sorted(glob.glob(pattern, recursive=True))
            names = [name for name in names if os.path.isfile(name) and not name.endswith(_NEXT_TO_DATABASE)]
        for name in names:
            path = Path(name).absolute()
            found.setdefault(_identity(path), path)
    return list(found.values())


def _identity(path: Path) -> object:
    """The same for all links to a file. For a path without a file, the path."""
    try:
        status = path.stat()
    except OSError:
        return path
    return status.st_dev, status.st_ino


def check_file(path: str | os.PathLike[str]) -> None:
    """Refuse a file without queues, or of another schema version, before Spark reads it.

    Raises:
        StoreError: the file cannot be opened; the same errors as `sqsqlite.connect`.
    """
    path = Path(path).absolute()
    connection = _open(path)
    try:
        check_version(connection, path)
    finally:
        disconnect(connection, path)


def instant_of(path: str | os.PathLike[str]) -> tuple[int, list[tuple[int, int]]]:
    """The present instant by the clock of a queue file, and the steps of its jumps, which decide what has expired.

    Raises:
        StoreError: the file cannot be opened; the same errors as `sqsqlite.connect`.
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


# --- taking the facts


@contextmanager
def facts_of(
    paths: Sequence[str | os.PathLike[str]],
    *,
    all_message_ids: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Iterator[Facts]:
    """A facts file for the length of the block, in a new folder of its own.

    Snapshot folders that killed processes left in the same place are removed.

    Args:
        paths: the queue files.
        all_message_ids: see `take_facts`.
        folder: where the snapshot folder is made; by default, the system's folder for temporary files. On a cluster,
            every machine must see the folder under this name.
        progress: called after each queue file.

    Raises:
        StoreError, NoFacts: see `take_facts`.
    """
    with snapshot_folder(folder) as own:
        if folder is not None:
            os.chmod(own, 0o755)  # noqa: S103 # executors may run as another user
        target = Path(own, "facts.sqlite")
        yield take_facts(paths, target, all_message_ids=all_message_ids, progress=progress)


def take_facts(
    paths: Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    now_ms: int | None = None,
    all_message_ids: bool = False,
    progress: Progress | None = None,
) -> Facts:
    """Write the facts of queue files into a new file.

    Each queue file is read in one transaction, which is one instant of it: the "now" of its ages. If a file is missing,
    locked, damaged or of another schema version, the facts hold its problem instead, and the other files are read.

    Args:
        paths: the queue files. They are not changed.
        target: the path of the new file.
        now_ms: the instant of all files, in milliseconds since 1970 UTC; by default, each file's own clock.
        all_message_ids: copy the id of every message, not only of the messages that reports list.
        progress: called after each queue file.

    Raises:
        StoreError: the only queue file cannot be read; the same errors as `sqsqlite.connect`.
        NoFacts: no queue file can be read, the target exists, or the disk has no room for it.
    """
    facts = Facts(Path(target).absolute())
    if facts.path.exists():
        raise NoFacts(f"{facts.path}: the file exists already; a snapshot needs a new file")
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
    # Reports read the facts file only when it is complete, and a crash makes it useless: so it is not synced. The
    # journal undoes the rows of a queue file that turns out to be damaged; memory is enough for that.
    connection.execute("PRAGMA facts.journal_mode = MEMORY").fetchall()
    connection.execute("PRAGMA facts.synchronous = OFF").fetchall()


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
            f"{error}. A report must be allowed to write the file's folder, because SQLite's WAL needs it. Otherwise "
            "report on a backup (`sqsqlite backup`)"
        ) from error


def _connect(path: Path) -> Connection:
    # Not `ro`: SQLite opens an attached file with the rights of the first. This connection writes nothing to the queue
    # file, but if it is the last one to close the file, it checkpoints the WAL, which must be synced.
    connection = connect(path, synchronous="FULL", busy_timeout=BUSY_TIMEOUT)
    try:
        if not create.is_ours(connection):
            raise NotAdopted(f"{path}: a SQLite database without queues")
        # A backup has no WAL, so mounts and links do no harm.
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            create.check(Path(os.path.realpath(path)))
    except BaseException as error:
        disconnect(connection, path)
        if isinstance(error, dbapi.Error):
            raise translate(error, path) from error
        raise
    return connection


def _read(facts: Facts, path: Path, now_ms: int | None, all_message_ids: bool) -> tuple[int, int]:
    """Copy the facts of one queue file. Returns the number of messages of all files so far, and the instant."""
    connection = _open(path)
    try:
        _attach(connection, facts.path, "rw")
        connection.execute(sql.CREATE_READING)
        connection.execute("BEGIN")
        check_version(connection, path)  # the first read: from here on the transaction sees one instant
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
        if isinstance(translated, DiskFull):  # only the facts file is written
            raise _no_room(facts.path) from error
        if (
            primary_code(error) == CONSTRAINT
        ):  # the columns of the facts are as strict as those of the queue file
            raise Corrupt(f"{path}: the file is damaged: {error}: run `sqsqlite check`") from error
        raise translated from error
    finally:
        disconnect(connection, path)


def _no_room(target: Path) -> NoFacts:
    return NoFacts(
        f"{target}: there is no room for the snapshot, which needs about 50 bytes a message. --snapshot-dir, or "
        "`folder` from Python, names another folder"
    )


def _now_ms(connection: Connection) -> int:
    """By the file's own clock, or by the wall clock if the file's clock was set before this boot or elsewhere."""
    clock = meta.clock_of(meta.read(connection))
    return time.time_ns() // 1_000_000 if clock is None else clock.now_ms()


def _steps(connection: Connection, now_ms: int) -> list[tuple[int, int]]:
    """The steps of the clock's jumps at `now_ms`, that of the last boot too if no process has opened the file yet."""
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
