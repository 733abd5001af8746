"""Other names of a file: mounted as a file, or hard-linked. And folders that other machines see too.

SQLite finds the WAL by the database's name. Two processes that open one database by two names keep two WALs, and each
checkpoint writes over what the other has acknowledged.
"""

import os
import re
import warnings
from pathlib import Path

from sqsqlite.errors import CannotOpen
from sqsqlite.store.descriptors import refuse_used_up
from sqsqlite.store.interrupts import refuse_handlers

# What the kernel knows of this process's mounts. Only Linux has it; elsewhere files can't be mounted.
MOUNTS = "/proc/self/mountinfo"

# File systems whose files another machine, or the host of this one, can open as well: locks and the shared memory of a
# WAL don't reach it.
SHARED = frozenset(
    {"9p", "afs", "ceph", "cifs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs", "virtiofs"}
    | {"fakeowner", "fuse.glusterfs", "fuse.grpcfuse", "fuse.osxfs", "fuse.sshfs", "fuse.vmhgfs-fuse"}
    | {"prl_fs", "vboxsf", "vmhgfs"}
)
_warned: set[Path] = set()


def check(path: Path) -> None:
    """Refuse a file that has other names, and warn of a file system that is shared with other machines.

    Args:
        path: absolute, without symbolic links. The file need not exist yet.

    Raises:
        CannotOpen: the file itself is a mount point, or has several hard links.
    """
    point, kind = mount_of(path, _mounts())
    if point == os.fsencode(path):
        raise CannotOpen(
            f"{path}: the file itself is mounted here. SQLite looks for the -wal and -shm beside each name of the "
            "file, so a process that opens it by another name would overwrite commits of this one: mount the folder "
            "instead of the file"
        )
    if _link_count(path) > 1:
        raise CannotOpen(
            f"{path}: the file has several hard links. SQLite looks for the -wal and -shm beside each name of the "
            "file, so a process that opens it by another name would overwrite commits of this one: remove the other "
            "names (`find -samefile` lists them). To give the file to a container, mount the folder"
        )
    if kind in SHARED and path not in _warned:
        _warned.add(path)
        warnings.warn(
            f"{path}: lies on {kind}, a file system that other machines share. A queue's file works on one machine "
            "only: if a second one opens it (or a virtual machine and its host do), commits are lost",
            RuntimeWarning,
            stacklevel=2,
        )


def mount_of(path: Path, mounts: bytes) -> tuple[bytes, str]:
    """The mount point that `path` is on, and the type of its file system. Both empty where `mounts` is.

    Args:
        path: absolute, without symbolic links.
        mounts: text in the form of /proc/self/mountinfo.
    """
    name = os.fsencode(path)
    found, rest = b"", b""
    for line in mounts.split(b"\n"):
        fields = line.split(b" ", 5)
        if len(fields) < 6:
            continue  # behind the last line feed
        point = fields[4]
        if b"\\" in point:
            point = _unescaped(point)
        # The longest one holds the file. Of two on the same folder, the later one hides the earlier one.
        if len(point) >= len(found) and (name == point or name.startswith(point.rstrip(b"/") + b"/")):
            found, rest = point, fields[5]
    # Options and optional fields, a hyphen, the type, the source, the options of the file system.
    kind = rest.partition(b" - ")[2].split(b" ", 1)[0]
    return found, os.fsdecode(kind)


def _link_count(path: Path) -> int:
    try:
        return os.stat(path).st_nlink
    except FileNotFoundError:
        return 0


def _unescaped(point: bytes) -> bytes:
    """The kernel writes spaces, tabs, line feeds and backslashes as three octal digits."""
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), point)


def _mounts() -> bytes:
    try:
        with open(MOUNTS, "rb", buffering=0) as file:
            return file.readall()
    except OSError as error:
        refuse_handlers(error)
        refuse_used_up(error)
        return b""
