# SPDX-License-Identifier: Apache-2.0
"""The folder FILE-sqs next to a database: lock files, wake-up sockets, the ballast. Deleting it loses no message.

Other users may be able to write the parent folder, as in /tmp. So each file is checked before use: a link could lead to
another file of this user, and with a lock file of another user that user could keep writers waiting. A file that must
be writable even when no descriptor is left stays open (`KeptFile`).
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

# Every process that writes the database opens these.
_FILES = ("waiting-room", "turn", "ballast")
# Seconds for a user who makes one of them to give it the rights of the database. And seconds between two looks.
PATIENCE = 0.5
LOOK_AGAIN = 0.005
# Whether names can be looked up in the examined folder itself, not in one that replaces it. Windows can't do that.
_BY_DESCRIPTOR = os.open in os.supports_dir_fd


def make_folder(folder: Path) -> None:
    """Make the folder and the files in it that are missing.

    They get the rights of the database, as SQLite's WAL does: all users who may write the database may write them.

    Raises:
        ReadOnlyFile: the folder cannot be made, or another user made it and refuses access.
        CannotOpen: the folder or one of its files can't be trusted: see `open_beside`.
        DiskFull: the disk has no room for it.
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
    """Open a file of the folder FILE-sqs. Make it if it is missing. The caller closes the descriptor.

    Args:
        flags: of `os.open`: O_WRONLY or O_RDWR.

    Raises:
        CannotOpen: the folder or the file is a link or of another kind, or its owner is not root, this user or the
            database's owner. A group that may write the database is trusted too.
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

    Works only on Linux, where a descriptor can name a file without opening it. A path would not do: the owner of the
    folder could replace the file meanwhile.

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
    # Looking into a folder needs the execute bit: set it wherever the read bit is set.
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
    """Make a missing file. Do not open an existing one: closing it again would drop the locks on it."""
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
    """The folder's descriptor. None: the system can't look up names in a descriptor."""
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
    """Give a new file or folder the rights and the group of the database. Under root also its owner.

    If the parent folder passes its group on to new files, a new folder does so too.
    """
    made = os.stat(made_here)
    if os.geteuid() == 0:
        os.chown(made_here, like.st_uid, like.st_gid)
    elif made.st_gid != like.st_gid:
        # A user outside that group can't set it. Their own group stays, as for the WAL.
        with contextlib.suppress(PermissionError):
            os.chown(made_here, -1, like.st_gid)
    mode |= made.st_mode & stat.S_ISGID
    if stat.S_IMODE(made.st_mode) != mode:
        os.chmod(made_here, mode)


def _refuse_foreign(
    path: Path, found: os.stat_result, like: os.stat_result, *, is_folder: bool = False
) -> None:
    """Raise CannotOpen for a file or folder that `open_beside` does not trust.

    A file with a second name is as bad as a link: it may be any file of its owner.
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
    """A file next to the database. It must carry no locks: closing one descriptor drops the locks of all.

    After a fork the child uses the descriptor too, because nothing depends on its offset. The descriptor is closed
    with the object at the latest.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # The descriptor and the (device, inode) that it leads to.
        self._kept: list[tuple[int, tuple[int, int]]] = []
        weakref.finalize(self, _close, self._kept).atexit = False

    def descriptor(self) -> int:
        """A descriptor to write the file that has the name now. Opens it again if the file was replaced.

        Raises:
            OSError: the file cannot be opened.
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
        """Close the file. The next use opens it again."""
        _close(self._kept)


def _close(kept: list[tuple[int, tuple[int, int]]]) -> None:
    """Close the kept descriptor, unless the program has closed it: the number may name another file by now."""
    while kept:
        descriptor, identity = kept.pop()
        if _identity_behind(descriptor) == identity:
            os.close(descriptor)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _identity_behind(descriptor: int) -> tuple[int, int] | None:
    """The file behind a descriptor. None: the descriptor is closed."""
    try:
        return _identity(os.fstat(descriptor))
    except OSError:
        return None
