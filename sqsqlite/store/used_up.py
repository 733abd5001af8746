# SPDX-License-Identifier: Apache-2.0
"""What a system runs out of: file descriptors, and room on the disk.

An error for want of a descriptor says nothing about the file that was to be opened, so a missing file must not be taken
for absent then. A full disk is a disk without space, a user's quota that is used up, or a process's limit on the size
of files. SQLite recognises only the first. After another failed write, questions to the system tell which it was.
"""

import errno
import math
import os
from pathlib import Path
from typing import Any

from sqsqlite.errors import CannotOpen

USED_UP = frozenset({errno.EMFILE, errno.ENFILE})


def refuse_used_up(error: OSError) -> None:
    """Pass on an error that came from a want of descriptors. For where other errors mean that something is absent."""
    if error.errno in USED_UP:
        raise error


def raise_used_up(error: OSError, path: Path) -> None:
    """The same, typed: raise CannotOpen for the database at `path` if that is what the error came from."""
    if error.errno in USED_UP:
        raise none_free(path) from error


def are_used_up() -> bool:
    """Whether no descriptor is free at this moment."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in USED_UP
    return False


def none_free(path: Path) -> CannotOpen:
    """What is raised then, by whatever works with the database at `path`."""
    return CannotOpen(
        f"{path}: no file descriptor is free: close files or connections of this process, or raise its limit "
        "(`ulimit -n`)"
    )


resource: Any
try:
    import resource
except ImportError:  # Windows: no such limits
    resource = None

OUT_OF_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# SQLite writes by pages, so less than one fits where it failed. An allocation of this many bytes fails there as well.
PROBE_BYTES = 64 * 1024
# Flags of `os.open`: fail at a link, and do not wait at a pipe. What is opened is a regular file of ours.
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


if resource is None:

    def size_limit() -> float:
        """Bytes that a file may have when this process writes it: no system call tells."""
        return math.inf

else:
    _UNLIMITED, _FSIZE = resource.RLIM_INFINITY, resource.RLIMIT_FSIZE

    def size_limit() -> float:
        """Bytes that a file may have when this process writes it (`ulimit -f`), or infinity."""
        limit: int = resource.getrlimit(_FSIZE)[0]
        return math.inf if limit == _UNLIMITED else limit


def is_out_of_room(path: Path) -> bool:
    """Whether a write to the database at `path`, or to its WAL, that has just failed met a limit or a quota.

    The ballast has the owner and the file system of the database, so it meets the same quota. Where it is missing, as
    next to a copy that was never opened, only the free space can be asked for.
    """
    limit = size_limit()
    if limit < math.inf and any(_size(Path(f"{path}{ending}")) >= limit for ending in ("", "-wal")):
        return True
    return cannot_grow(Path(f"{path}-sqs", "ballast")) or _free_bytes(path.parent) < PROBE_BYTES


def cannot_grow(path: Path, size_bytes: int = PROBE_BYTES) -> bool:
    """Whether there is no room to make a file longer by so much.

    Not for a database in use: the descriptor is closed again.
    """
    if not hasattr(os, "posix_fallocate"):
        return False
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | NO_LINK)
    except OSError:
        return False
    kept_bytes = os.fstat(descriptor).st_size
    try:
        os.posix_fallocate(descriptor, kept_bytes, size_bytes)
    except OSError as error:
        return error.errno in OUT_OF_ROOM
    else:
        return False
    finally:
        cut_back(descriptor, kept_bytes)
        os.close(descriptor)


def cut_back(descriptor: int, size_bytes: int) -> bool:
    """Make a file shorter. False where that fails: file systems that copy on write need room for it.

    Only for the ballast. A piece of it is given up after a write has failed, and the caller reports that failure.
    """
    try:
        os.ftruncate(descriptor, size_bytes)
    except OSError:
        return False
    return True


def _free_bytes(folder: Path) -> float:
    if not hasattr(os, "statvfs"):  # Windows
        return math.inf
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
