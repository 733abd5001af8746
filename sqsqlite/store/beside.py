"""The folder FILE-sqs beside a database: lock files, wake-up sockets, the ballast. Deleting it loses no message."""

import os
import stat
from pathlib import Path

from sqsqlite.errors import DiskFull, ReadOnlyFile
from sqsqlite.store.full import OUT_OF_ROOM

# What everybody opens who writes the database.
_FILES = ("waiting-room", "turn", "ballast")


def make_folder(folder: Path) -> None:
    """Make the folder and the files in it that are missing.

    They get the rights of the database, as SQLite's WAL does: whoever may write the one may write the others.

    Raises:
        ReadOnlyFile: it cannot be made, or another user made it and keeps this one out.
        DiskFull: there is no room for it.
    """
    database = folder.with_name(folder.name.removesuffix("-sqs"))
    _make(folder, folder, database)
    for name in _FILES:
        _make(folder / name, folder, database)


def _make(path: Path, folder: Path, database: Path) -> None:
    is_folder = path == folder
    try:
        _make_like(path, database, is_folder=is_folder)
    except OSError as error:
        kind = DiskFull if error.errno in OUT_OF_ROOM else ReadOnlyFile
        raise kind(
            f"{path}: cannot be made ({error.strerror}): all who use the queue must be allowed to"
        ) from error
    if not os.access(path, os.X_OK if is_folder else os.R_OK | os.W_OK):
        raise ReadOnlyFile(
            f"{path}: this user may not {'look into' if is_folder else 'write'} it; all who use the queue must: give "
            f"it the rights of {database}, or remove {folder} while nobody has the queue open"
        )


def _make_like(path: Path, database: Path, *, is_folder: bool) -> None:
    """Make what is missing. A file that is there is not opened: closing it again would drop the locks on it."""
    like = database.stat()
    mode = stat.S_IMODE(like.st_mode)
    try:
        if is_folder:
            path.mkdir()
            # To look into a folder takes the third bit: for each who may read.
            mode |= (mode & 0o444) >> 2
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        os.chown(path, like.st_uid, like.st_gid)
    path.chmod(mode)
