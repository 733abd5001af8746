# SPDX-License-Identifier: Apache-2.0
"""Whether FILE-wal and FILE-shm are still the files that this process has open, and whole.

A deleted file stays open: SQLite would go on committing into a WAL that no other process sees, and that is gone with
    the
process. Nor does SQLite notice a WAL that was cut off: the next commit leaves a hole before it, and whatever reads the
WAL after a crash stops at the hole.

Nothing is opened here. The files are looked at by name, and the WAL through a descriptor of SQLite's.
"""

import errno
import os
import threading
from collections import defaultdict
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqsqlite.errors import CannotOpen
from sqsqlite.store import foreign
from sqsqlite.store.driver import dbapi
from sqsqlite.store.interrupts import refuse_handlers
from sqsqlite.store.neutral import run
from sqsqlite.store.used_up import USED_UP

# Source: SQLite, "Database File Format", section 4.
HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")

# From here on `wal_checkpoint(NOOP)` tells how long the WAL is; before, it would begin a checkpoint.
CAN_MEASURE: bool = dbapi.sqlite_version_info >= (3, 51, 0)

# Frames looked at in one look, at most.
PROBES = 64


class _Noted:
    """The files that a database's connections in this process have open.

    Attributes:
        descriptor: one of SQLite's on the WAL, -1 where the system lists none.
        salt, frames: of the WAL at the last look: which one it was, and how long.
    """

    def __init__(self, wal: foreign.Identity, shm: foreign.Identity, descriptor: int = -1) -> None:
        self.wal = wal
        self.shm = shm
        self.descriptor = descriptor
        self.salt = b""
        self.frames = 0


_noted: dict[foreign.Identity, _Noted] = {}
# The connections that they were noted for. Weakly: one that an interrupt has lost counts until it is freed.
_noted_for: "defaultdict[foreign.Identity, WeakSet[Any]]" = defaultdict(WeakSet)
_lock = threading.RLock()


def closing() -> AbstractContextManager[bool]:
    """A lock to hold while a connection is closed and forgotten, and while its files are looked at.

    With its last connection SQLite deletes the files: no thread may look for them before `forget` was called. Never
    held while a connection is opened, which may wait for other processes.
    """
    return _lock


def note(path: Path, database: foreign.Identity, connection: Any) -> None:
    """A connection has just been opened: note which files it opened, or see that they are those of the others.

    Raises:
        CannotOpen: as `check`.
    """
    with _lock:
        if not list(_noted_for[database]):
            found = _at(path)
            if found is None:
                _refuse_other_mode(path, connection)
                raise _gone(path)
            _noted[database] = _Noted(*found)
        check(path, database)
        _noted_for[database].add(connection)


def forget(database: foreign.Identity, connection: Any) -> None:
    """A connection was closed, under the same hold of `closing()`."""
    _noted_for[database].discard(connection)
    if not list(_noted_for[database]):
        _noted.pop(database, None)
        _noted_for.pop(database, None)


def check(path: Path, database: foreign.Identity) -> None:
    """Refuse to go on when the open files were replaced or deleted.

    SQLite deletes them only when no process has a connection left: while one is open here, another program did it.

    Raises:
        CannotOpen: the -wal or the -shm was deleted or replaced.
    """
    with _lock:
        noted = _noted.get(database)
        if noted is not None and list(_noted_for[database]) and _at(path) != (noted.wal, noted.shm):
            raise _gone(path)


def are_cut(path: Path, database: foreign.Identity, connection: Any, observer: Any) -> bool:
    """Whether the WAL or the database is shorter than SQLite believes, or has a hole where the WAL was cut off.

    While others write, the parts of the answer may be of different instants: then it may be wrongly True.

    Args:
        connection: to the database; if it holds the write lock, the answer is right.
        observer: another connection, outside any transaction; or the same one, if that is.
    """
    noted = _noted.get(database)
    if noted is None or not CAN_MEASURE:
        return False
    _, frames, copied = observer.execute("PRAGMA wal_checkpoint(NOOP)").fetchone()
    page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]
    if frames < 0:
        return False
    if frames and _wal_is_cut(path, noted, frames, FRAME_HEADER_BYTES + page_size):
        return True
    # Each page beyond the end of the file is in the WAL, in a frame that was not copied yet. One page is never
    # written: where SQLite keeps its locks, at 1 GiB.
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    missing = pages - os.stat(path).st_size // page_size
    return bool(missing > frames - copied + 1)


def _wal_is_cut(path: Path, noted: _Noted, frames: int, frame_bytes: int) -> bool:
    if os.stat(f"{path}-wal").st_size < HEADER_BYTES + frames * frame_bytes:
        return True
    if not hasattr(os, "pread"):
        return False
    with _lock:  # no other thread closes a descriptor of ours meanwhile
        descriptor = _descriptor(noted)
        if descriptor < 0:
            return False
        try:
            is_cut = _has_hole(noted, descriptor, frames, frame_bytes)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            return False
        # A connection that an interrupt has lost closes it when it is freed, even in the middle of this. Its number
        # may be another file's now, so the next look decides.
        return is_cut and _descriptor(noted) == descriptor


def _has_hole(noted: _Noted, descriptor: int, frames: int, frame_bytes: int) -> bool:
    header = os.pread(descriptor, HEADER_BYTES, 0)
    salt = header[16:24]
    if header[:4] not in MAGIC:
        return True
    # Each frame has the salt of its WAL, unless it is in a hole. Those up to the last look were looked at then, and if
    # they were cut off since, the last one of them is in the hole.
    first = max(1, noted.frames) if salt == noted.salt and noted.frames <= frames else 1
    for frame in range(first, frames + 1, 1 + (frames - first) // PROBES):
        start = HEADER_BYTES + (frame - 1) * frame_bytes
        if os.pread(descriptor, FRAME_HEADER_BYTES, start)[8:16] != salt:
            return True
    noted.salt, noted.frames = salt, frames
    return False


def hold_unfinished_commit(path: Path, connection: Any) -> bool:
    """Whether recovery after a crash could find a commit in the WAL that SQLite took back. True if that is unknown.

    A commit ends with a frame that tells the size of the database. The salt of its WAL distinguishes it from what stood
    there before.

    Args:
        connection: outside any transaction, its COMMIT just failed.
    """
    noted = _noted.get(foreign.identity(path))
    if noted is None or not CAN_MEASURE or not hasattr(os, "pread"):
        return True
    [(_, frames, _)] = run(connection, "PRAGMA wal_checkpoint(NOOP)")
    [(page_bytes,)] = run(connection, "PRAGMA page_size")
    frame_bytes = FRAME_HEADER_BYTES + page_bytes
    with _lock:
        descriptor = _descriptor(noted)
        if descriptor < 0 or frames < 0:
            return True
        try:
            return _has_commit_behind(noted, descriptor, frames, frame_bytes)
        except OSError as error:
            refuse_handlers(error)
            return True


def _has_commit_behind(noted: _Noted, descriptor: int, frames: int, frame_bytes: int) -> bool:
    salt = os.pread(descriptor, HEADER_BYTES, 0)[16:24]
    if frames:
        noted.salt, noted.frames = salt, 0
    elif salt == noted.salt:
        return False  # the WAL was to begin again, and still has the header of the one before
    size_bytes = os.fstat(descriptor).st_size
    for start in range(HEADER_BYTES + frames * frame_bytes, size_bytes - frame_bytes + 1, frame_bytes):
        header = os.pread(descriptor, FRAME_HEADER_BYTES, start)
        if header[8:16] != salt:
            break
        if any(header[4:8]):
            return True
    return False


def cut(path: Path) -> CannotOpen:
    """What is raised where `are_cut`."""
    return CannotOpen(
        f"{path}: the file or its -wal was cut off while in use: messages were lost. Stop all processes that use the "
        "file, then run `sqsqlite check`"
    )


def _refuse_other_mode(path: Path, connection: Any) -> None:
    """Refuse a file that is no WAL any more. Only while no process had it open could another program do that."""
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != "wal":
        raise CannotOpen(
            f"{path}: another program has changed the journal mode to {mode.upper()} while no connection was open "
            "(before a fork they are closed). Nothing is lost: close the file and open it again, which makes it a WAL"
        )


def _gone(path: Path) -> CannotOpen:
    return CannotOpen(
        f"{path}: its -wal or -shm was deleted or replaced while in use: what was acknowledged since then is lost, and "
        "perhaps more. Stop all processes that use the file, then open it again and run `sqsqlite check`"
    )


def _at(path: Path) -> tuple[foreign.Identity, foreign.Identity] | None:
    try:
        return foreign.identity(Path(f"{path}-wal")), foreign.identity(Path(f"{path}-shm"))
    except FileNotFoundError:
        return None


def _descriptor(noted: _Noted) -> int:
    """One of SQLite's on the WAL. A number may have been given to another file since the last look."""
    if noted.descriptor >= 0:
        try:
            status = os.fstat(noted.descriptor)
        except OSError as error:
            refuse_handlers(error)
            noted.descriptor = -1
        else:
            if (status.st_dev, status.st_ino) == noted.wal:
                return noted.descriptor
    try:
        noted.descriptor = min(foreign.descriptors(noted.wal), default=-1)
    except OSError as error:
        if error.errno not in USED_UP:
            raise
        # None is free to list them with: the WAL is looked into the next time.
    return noted.descriptor


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
