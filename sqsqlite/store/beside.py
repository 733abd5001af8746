# SPDX-License-Identifier: Apache-2.0
"""The folder FILE-sqs next to a database: lock files, wake-up sockets, the ballast. Deleting it loses no message.

The folder above may be open to others, as /tmp is. So each file found here is checked before it is used: a link would
lead to another file of this user's, and a stranger's lock file would keep writers waiting for the stranger. A file that
must be writable when the process may open no more stays open (`KeptFile`).
"""

import contextlib
import os
import stat
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqsqlite.errors import CannotOpen, DiskFull, ReadOnlyFile
from sqsqlite.store.interrupts import refuse_handlers
from sqsqlite.store.used_up import NO_LINK, OUT_OF_ROOM, refuse_used_up

# What everybody opens who writes the database.
_FILES = ("waiting-room", "turn", "ballast")
# Seconds within which a user who makes one of them has given it the rights of the database, and between two looks.
PATIENCE = 0.5
LOOK_AGAIN = 0.005
# Names are looked up in the folder that was examined, not in one that takes its place. Windows can't do that.
_BY_DESCRIPTOR = os.open in os.supports_dir_fd


def make_folder(folder: Path) -> None:
    """Make the folder and the files in it that are missing.

    They get the rights of the database, as SQLite's WAL does: a user who may write the one may write the others.

    Raises:
        ReadOnlyFile: it cannot be made, or another user made it and keeps this one out.
        CannotOpen: the folder or one of its files is not to be trusted: see `open_beside`.
        DiskFull: there is no room for it.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            _make_all(folder)
        except (CannotOpen, ReadOnlyFile):
            if time.monotonic() >= until or not _is_being_made(folder):
                raise
            time.sleep(LOOK_AGAIN)
        else:
            return


def _make_all(folder: Path) -> None:
    database = _database(folder)
    with _typed(folder):
        like = database.stat()
        _make_folder(folder, like)
    _require_rights(folder, folder, os.X_OK, "look into")
    for name in _FILES:
        path = folder / name
        with _typed(path), _opened(folder, like) as at:
            _make_file(path, at, like)
        _require_rights(path, folder, os.R_OK | os.W_OK, "write")


def open_beside(path: Path, flags: int) -> int:
    """Open a file of the folder FILE-sqs, made if it is missing. The caller closes the descriptor.

    Args:
        flags: of `os.open`: O_WRONLY or O_RDWR.

    Raises:
        CannotOpen: the folder or the file is a link, or something else than a folder and a file; or it belongs to
            neither root, this user nor the database's owner. A group that may write the database is trusted, too.
        OSError: the system does not open it.
    """
    like = _database(path.parent).stat()
    with _opened(path.parent, like) as at:
        _make_file(path, at, like)
        descriptor = os.open(_name(path, at), flags | os.O_CLOEXEC | NO_LINK, dir_fd=at)
    try:
        _refuse_foreign(path, os.fstat(descriptor), like)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def share_socket(path: Path) -> None:
    """Let the users who may write the database send to a socket that this process has bound in the folder FILE-sqs.

    Only where the system has descriptors that name a file without opening it (Linux): by its path, the owner of the
    folder could put another file in its place meanwhile.

    Raises:
        OSError: the socket is gone, or the system refuses.
    """
    if not hasattr(os, "O_PATH"):
        return
    like = _database(path.parent).stat()
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | NO_LINK)
    try:
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            _give(f"/proc/self/fd/{descriptor}", like, stat.S_IMODE(like.st_mode))
    finally:
        os.close(descriptor)


def _is_being_made(folder: Path) -> bool:
    """Whether another process may be about to give the folder, or a file in it, the rights of the database."""
    now = time.time()
    for path in (folder, *(folder / name for name in _FILES)):
        with contextlib.suppress(FileNotFoundError, PermissionError, NotADirectoryError):
            if abs(now - os.lstat(path).st_ctime) < PATIENCE:
                return True
    return False


def _database(folder: Path) -> Path:
    return folder.with_name(folder.name.removesuffix("-sqs"))


@contextmanager
def _typed(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        refuse_handlers(error)
        refuse_used_up(error)
        kind = DiskFull if error.errno in OUT_OF_ROOM else ReadOnlyFile
        raise kind(
            f"{path}: cannot be made ({error.strerror}): all who use the queue must be allowed to"
        ) from error


def _require_rights(path: Path, folder: Path, rights: int, what: str) -> None:
    if not os.access(path, rights):
        raise ReadOnlyFile(
            f"{path}: this user may not {what} it; all who use the queue must: give it the rights of "
            f"{_database(folder)}, or remove {folder} while no process has the queue open"
        )


def _make_folder(folder: Path, like: os.stat_result) -> None:
    mode = stat.S_IMODE(like.st_mode)
    # To look into a folder takes the third bit: for each who may read.
    mode |= (mode & 0o444) >> 2
    try:
        folder.mkdir(mode)
    except FileExistsError:
        _refuse_foreign(folder, os.lstat(folder), like, is_folder=True)
        return
    with _opened(folder, like) as at:
        if at is not None:
            _give(at, like, mode)


def _make_file(path: Path, at: int | None, like: os.stat_result) -> None:
    """Make a missing file. An existing one stays closed: closing it again would drop the locks on it."""
    name = _name(path, at)
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        mode = stat.S_IMODE(like.st_mode)
        try:
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=at)
        except FileExistsError:
            return  # another process was faster, and looks at the file when it opens it
        try:
            if at is not None:
                _give(descriptor, like, mode)
        finally:
            os.close(descriptor)
    else:
        _refuse_foreign(path, found, like)


@contextmanager
def _opened(folder: Path, like: os.stat_result) -> Iterator[int | None]:
    """The folder's descriptor; None where names can't be looked up in one."""
    if not _BY_DESCRIPTOR:
        _refuse_foreign(folder, os.lstat(folder), like, is_folder=True)
        yield None
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | NO_LINK)
    try:
        _refuse_foreign(folder, os.fstat(descriptor), like, is_folder=True)
        yield descriptor
    finally:
        os.close(descriptor)


def _name(path: Path, at: int | None) -> str | Path:
    return path if at is None else path.name


def _give(made_here: int | str, like: os.stat_result, mode: int) -> None:
    """Give what this process has just made the rights and the group of the database, and its owner under root.

    A folder made in one that hands its group down goes on doing so, for what other users of the group make there.
    """
    made = os.stat(made_here)
    if os.geteuid() == 0:
        os.chown(made_here, like.st_uid, like.st_gid)
    elif made.st_gid != like.st_gid:
        # Without belonging to that group, this user's own one stays, as for the WAL.
        with contextlib.suppress(PermissionError):
            os.chown(made_here, -1, like.st_gid)
    mode |= made.st_mode & stat.S_ISGID
    if stat.S_IMODE(made.st_mode) != mode:
        os.chmod(made_here, mode)


def _refuse_foreign(
    path: Path, found: os.stat_result, like: os.stat_result, *, is_folder: bool = False
) -> None:
    """Raise CannotOpen for what `open_beside` does not trust.

    A file with a second name is as bad as a link: it may be any file of its owner's.
    """
    folder = path if is_folder else path.parent
    is_kind = stat.S_ISDIR if is_folder else stat.S_ISREG
    remedy = (
        f"Find out who did that, and remove {folder} while no process has the queue open: it is made anew"
    )
    if not is_kind(found.st_mode) or (not is_folder and found.st_nlink > 1):
        kind = "a link" if stat.S_ISLNK(found.st_mode) or stat.S_ISREG(found.st_mode) else "something else"
        wanted = "a folder" if is_folder else "a file of one name"
        raise CannotOpen(f"{path}: must be {wanted} that SQSQLite made, and is {kind}. {remedy}")
    if not hasattr(os, "geteuid") or found.st_uid in (0, os.geteuid(), like.st_uid):
        return
    if found.st_gid == like.st_gid and found.st_mode & like.st_mode & stat.S_IWGRP:
        return
    raise CannotOpen(
        f"{path}: belongs to user {found.st_uid}, who is neither root, this user ({os.geteuid()}) nor the owner of "
        f"{_database(folder)} ({like.st_uid}), and no group may write both. {remedy}"
    )


class KeptFile:
    """A file next to the database. No locks may be held on it: closing one descriptor drops those of all.

    After a fork the child uses the descriptor too: nothing depends on its offset. It is closed when the object goes, at
    the latest.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # The descriptor and the (device, inode) that it leads to.
        self._kept: list[tuple[int, tuple[int, int]]] = []
        weakref.finalize(self, _close, self._kept).atexit = False

    def descriptor(self) -> int:
        """To write the file that has the name now: opened anew if that is another one than before.

        Raises:
            OSError: it cannot be opened.
        """
        if self._kept:
            descriptor, identity = self._kept[0]
            with contextlib.suppress(FileNotFoundError):
                if _identity(os.stat(self._path)) == identity == _identity_behind(descriptor):
                    return descriptor
        self.close()
        descriptor = open_beside(self._path, os.O_WRONLY)
        self._kept.append((descriptor, _identity(os.fstat(descriptor))))
        return descriptor

    def close(self) -> None:
        """Keep it no more. Using it again opens it again."""
        _close(self._kept)


def _close(kept: list[tuple[int, tuple[int, int]]]) -> None:
    """Close what is kept, unless the program has closed it: by now the number may be another file's."""
    while kept:
        descriptor, identity = kept.pop()
        if _identity_behind(descriptor) == identity:
            os.close(descriptor)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _identity_behind(descriptor: int) -> tuple[int, int] | None:
    """None: it is closed."""
    try:
        return _identity(os.fstat(descriptor))
    except OSError:
        return None
