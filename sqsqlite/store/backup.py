# SPDX-License-Identifier: Apache-2.0
"""Exclusive access to a file, for work that must not happen while another process has it open.

Copying a whole file while others use it. The copy gets its name only when it is complete.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqsqlite.errors import (
    CannotOpen,
    DiskFull,
    FileInUse,
    InputOutputError,
    MissingFolder,
    ReadOnlyFile,
    StoreError,
    TargetExists,
)
from sqsqlite.store import foreign, used_up
from sqsqlite.store.beside import make_folder
from sqsqlite.store.connections import connect, disconnect, uri
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.interrupts import refuse_handlers
from sqsqlite.store.secrecy import tighten_with_keys
from sqsqlite.store.translate import BUSY, IOERR, primary_code, translate
from sqsqlite.store.turns import let_go, turnstile_for

# Milliseconds that a process gets to finish closing the file.
PATIENCE_MS = 500
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_BESIDE = ("-wal", "-shm", "-journal")  # SQLite's own files next to a database


@contextmanager
def alone(path: Path, busy_timeout: float) -> Iterator[Connection]:
    """The file's only connection, in this process or another. A process that opens the file meanwhile waits.

    Args:
        busy_timeout: seconds to wait for the turn to write.

    Raises:
        FileInUse: another connection has the file open, even an idle one.
        Busy: other writers kept the turn for the whole busy_timeout.
    """
    folder = Path(f"{path}-sqs")
    make_folder(folder)
    turnstile = turnstile_for(foreign.identity(path), folder)
    try:
        with turnstile.taken(busy_timeout):
            connection = connect(path, synchronous="FULL", busy_timeout=PATIENCE_MS / 1000)
            try:
                _exclude(connection, path)
                yield connection
            except dbapi.Error as error:
                raise translate(error, path) from error
            finally:
                disconnect(connection, path)
    finally:
        let_go(turnstile)


def _exclude(connection: Connection, path: Path) -> None:
    """Lock the file exclusively. In WAL mode every open connection keeps a shared lock, which prevents that."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except dbapi.Error as error:
        if primary_code(error) == BUSY:
            raise FileInUse(
                f"{path}: a process has the file open; stop it first (fuser, lsof name it)"
            ) from error
        raise
    connection.execute("ROLLBACK")


def copy_to(
    connection: Connection,
    source: Path,
    target: Path,
    *,
    replace: bool = False,
    finish: Callable[[Connection], None] | None = None,
) -> int:
    """Copy the database that `connection` reads: one consistent instant of it, synced, then named `target`.

    The copy is one file: its journal mode is DELETE, so it opens from read-only media and needs no `-wal`.
    If the process is killed half way, a `.partial` file stays, and the target is untouched.

    Args:
        connection: outside any write transaction. Writers do not wait; the WAL grows while the copy is made.
        source: the file that `connection` has open. The copy gets its permissions, and the copy's owner may write it.
            If the file has access keys, users who could only read it get no rights on the copy.
        replace: replace an existing target.
        finish: changes the copy before it gets its name.

    Returns:
        The copy's size in bytes.

    Raises:
        TargetExists, FileInUse, MissingFolder: see `check_target`.
        ReadOnlyFile, DiskFull, InputOutputError, Corrupt: nothing is left under the target's name.
    """
    check_target(source, target, replace=replace)
    partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}.partial")
    try:
        _lay(partial, os.stat(source).st_mode & 0o777 | stat.S_IWUSR)
        try:
            _copy(connection, partial, finish)
            tighten_with_keys(partial, connection)
        except dbapi.Error as error:
            # By now SQLite has freed the space that the copy took.
            if primary_code(error) == IOERR and used_up.cannot_grow(partial, _size_bytes(connection)):
                raise DiskFull(f"{target}: a quota or a limit on the size of files is reached") from error
            raise translate(error, target) from error
        size_bytes = _sync(partial)
        _publish(partial, target, replace=replace)
    except OSError as error:
        refuse_handlers(error)
        raise _kind_of(error)(f"{target}: cannot be written ({error.strerror})") from error
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):  # missing, or a name that is too long for a file
                Path(f"{partial}{ending}").unlink()
    _sync_folder(target.parent)
    return size_bytes


def _kind_of(error: OSError) -> type[StoreError]:
    if error.errno in used_up.OUT_OF_ROOM:
        return DiskFull
    return ReadOnlyFile if error.errno in _NOT_ALLOWED else InputOutputError


def check_target(source: Path, target: Path, *, replace: bool) -> None:
    """Refuse a target that must not be written.

    Raises:
        MissingFolder, CannotOpen: a file of this name is impossible, or the target is no regular file.
        TargetExists: the target exists, and `replace` is False.
        FileInUse: the target is the source itself, a database that is open or that a crash left with a journal, or
            such a journal.
    """
    if not target.parent.is_dir():
        raise MissingFolder(f"{target}: there is no folder {target.parent}")
    try:
        exists = target.exists()
    except OSError as error:  # a name that is too long, for example
        refuse_handlers(error)
        raise CannotOpen(f"{target}: cannot be written ({error.strerror})") from error
    if exists:
        if target.is_dir():
            raise CannotOpen(f"{target}: is a folder, not a file")
        if not target.is_file():
            raise CannotOpen(f"{target}: is not a regular file")
        if os.path.samefile(source, target):
            raise FileInUse(f"{target}: is the file itself")
        if not replace:
            raise TargetExists(f"{target}: exists already")
    for ending in _BESIDE:
        database = target.name.removesuffix(ending)
        if database not in ("", target.name) and os.path.lexists(target.with_name(database)):
            raise FileInUse(f"{target}: has the name of a file of SQLite's, next to {database}")
        # SQLite would take this file for the copy's own journal or WAL, and put old pages into the copy.
        if os.path.lexists(f"{target}{ending}"):
            raise FileInUse(
                f"{target}: next to it is {target.name}{ending}, of a database that is open or was killed"
            )


def _lay(partial: Path, mode: int) -> None:
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        if os.name == "posix":
            os.fchmod(descriptor, mode)  # the umask may have removed a right, such as the group's to write
    finally:
        os.close(descriptor)


def _copy(connection: Connection, partial: Path, finish: Callable[[Connection], None] | None) -> None:
    copy = dbapi.connect(uri(partial, "rw"), uri=True, isolation_level=None)
    try:
        # Until it is renamed, no other process uses the copy: a journal or a sync would be useless before the end.
        copy.execute("PRAGMA synchronous = OFF").fetchall()
        # All pages in one step: between several steps, each commit of a writer would start the copy again.
        connection.backup(copy, pages=-1)
        mode = copy.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        assert mode == "delete", mode
        if finish is not None:
            finish(copy)
    finally:
        copy.close()


def _size_bytes(connection: Connection) -> int:
    pages, page_size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
    )
    return int(pages * page_size)


def _sync(partial: Path) -> int:
    """Sync by an ordinary file call, because SQLite has closed the copy in this process."""
    descriptor = os.open(partial, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _publish(partial: Path, target: Path, *, replace: bool) -> None:
    if replace:
        os.replace(partial, target)
        return
    try:
        # Unlike a rename, a link never replaces a file that another process has made meanwhile.
        os.link(partial, target)
    except FileExistsError as error:
        raise TargetExists(f"{target}: exists already") from error
    except OSError as error:  # a file system without links
        refuse_handlers(error)
        os.rename(partial, target)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot sync a folder
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
