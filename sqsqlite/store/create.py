# SPDX-License-Identifier: Apache-2.0
"""Checking the path that is opened, and making a file of queues where there is none.

SQLite finds the WAL by the database's name. If two processes open one database by two names (a mounted file, a hard
link), they keep two WALs, and the checkpoints of each overwrite commits that the other has acknowledged.
"""

import os
import re
import warnings
from pathlib import Path

from sqsqlite.errors import (
    CannotOpen,
    DiskFull,
    MissingFolder,
    NotADatabase,
    NotAdopted,
    ReadOnlyFile,
    StoreError,
)
from sqsqlite.sql import file as sql
from sqsqlite.sql import schema
from sqsqlite.sql.operators import LIST_SCHEMA_OBJECTS
from sqsqlite.store import meta
from sqsqlite.store.connections import connect, disconnect
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.interrupts import refuse_handlers
from sqsqlite.store.meta import check_version
from sqsqlite.store.translate import translate
from sqsqlite.store.used_up import OUT_OF_ROOM, USED_UP, none_free, refuse_used_up

# This process's mounts. Only Linux has this file, and only Linux can mount a file.
MOUNTS = "/proc/self/mountinfo"

# File systems whose files another machine, or the host of this one, can open too. Locks and the shared memory of a WAL
# work on one machine only.
SHARED = frozenset(
    {"9p", "afs", "ceph", "cifs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs", "virtiofs"}
    | {"fakeowner", "fuse.glusterfs", "fuse.grpcfuse", "fuse.osxfs", "fuse.sshfs", "fuse.vmhgfs-fuse"}
    | {"prl_fs", "vboxsf", "vmhgfs"}
)
_warned: set[Path] = set()


def check(path: Path) -> None:
    """Refuse a file that has other names, and warn of a file system that other machines share.

    Args:
        path: absolute, without symbolic links. The file need not exist yet.

    Raises:
        CannotOpen: the file itself is a mount point, or has several hard links.
    """
    point, kind = mount_of(path, _mounts())
    if point == os.fsencode(path):
        raise CannotOpen(
            f"{path}: the file itself is mounted here. SQLite looks for the -wal and -shm next to each name of the "
            "file, so a process that opens it by another name would overwrite commits of this one: mount the folder "
            "instead of the file"
        )
    if _link_count(path) > 1:
        raise CannotOpen(
            f"{path}: the file has several hard links. SQLite looks for the -wal and -shm next to each name of the "
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
    """The mount point of `path`, and the type of its file system. Both are empty if `mounts` is.

    Args:
        path: absolute, without symbolic links.
        mounts: text in the form of /proc/self/mountinfo.
    """
    name = os.fsencode(path)
    found, rest = b"", b""
    for line in mounts.split(b"\n"):
        fields = line.split(b" ", 5)
        if len(fields) < 6:
            continue  # after the last line feed
        point = fields[4]
        if b"\\" in point:
            point = _unescaped(point)
        # The longest mount point holds the file. Of two on the same folder, the later one hides the earlier one.
        if len(point) >= len(found) and (name == point or name.startswith(point.rstrip(b"/") + b"/")):
            found, rest = point, fields[5]
    # The order: options and optional fields, a hyphen, the type, the source, the options of the file system.
    kind = rest.partition(b" - ")[2].split(b" ", 1)[0]
    return found, os.fsdecode(kind)


def _link_count(path: Path) -> int:
    try:
        return os.stat(path).st_nlink
    except FileNotFoundError:
        return 0


def _unescaped(point: bytes) -> bytes:
    """Decode a path: the kernel writes spaces, tabs, line feeds and backslashes as three octal digits."""
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), point)


def _mounts() -> bytes:
    try:
        with open(MOUNTS, "rb", buffering=0) as file:
            return file.readall()
    except OSError as error:
        refuse_handlers(error)
        refuse_used_up(error)
        return b""


# "SQSq" in ASCII. It goes into the header of files that we create, never into an adopted one.
APPLICATION_ID = 0x53515371

# Fixed for a file's life, so it was measured before the first release (docs/storage.md). A transaction of one message
# changes six pages: half of SQLite's default halves what each commit and checkpoint writes. Sends of 200 bytes take a
# fifth less time, ten bodies of 100 KB a tenth more.
PAGE_SIZE = 2048
AUTO_VACUUM = 2  # incremental: a purge can give its space back to the disk without VACUUM

# SQLite's smallest page. SQLite takes a file of one byte for an empty one, and would overwrite it.
SMALLEST_FILE_BYTES = 512


def named(path: str | os.PathLike[str]) -> Path:
    """The path of an argument.

    Raises:
        ValueError: the path is empty or ":memory:", or contains a NUL character.
    """
    name = os.fspath(path)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if name == ":memory:" or not name:
        raise ValueError(f"path={name!r}: a queue lives in a file; a path is needed")
    if "\0" in name:
        raise ValueError(f"path={name!r}: a path can't contain a NUL character")
    return Path(name)


def resolved(path: str | os.PathLike[str]) -> Path:
    """The absolute path without symbolic links. It gives the files next to it their names. Raises as `named`."""
    return Path(os.path.realpath(named(path)))


def check_path(path: Path) -> None:
    """Refuse a path that cannot become a queue's file or has other names, before SQLite touches it.

    Raises:
        MissingFolder: the folder that the file should be in does not exist.
        ReadOnlyFile: this user may not write the file or its folder.
        NotADatabase: the file is not a SQLite database.
        CannotOpen: the system refuses to open it for another reason.
    """
    exists = check_kind(path)
    if exists and not os.access(path, os.R_OK | os.W_OK):
        raise ReadOnlyFile(f"{path}: this user may not write the file")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ReadOnlyFile(f"{path}: this user may not write the folder {path.parent}, where the WAL goes")
    check(path)


def check_kind(path: Path) -> bool:
    """Refuse a path that cannot be a SQLite database. Returns whether the file exists.

    Raises:
        MissingFolder, NotADatabase, CannotOpen: see `check_path`.
    """
    try:
        return _check_kind(path)
    except PermissionError as error:
        raise CannotOpen(f"{path}: this user may not open {path.parent}, or a folder above it") from error
    except OSError as error:  # a name that is too long, for example
        refuse_handlers(error)
        raise refused(path, error) from error


def _check_kind(path: Path) -> bool:
    if not path.parent.is_dir():
        raise MissingFolder(f"{path}: there is no folder {path.parent}")
    if path.is_dir():
        raise CannotOpen(f"{path}: is a folder, not a file")
    if not path.exists():
        return False
    if not path.is_file():
        raise CannotOpen(f"{path}: is not a regular file")
    if 0 < (size_bytes := path.stat().st_size) < SMALLEST_FILE_BYTES:
        raise NotADatabase(f"{path}: {size_bytes} bytes, so the file is not a SQLite database")
    return True


def refused(path: Path, error: OSError) -> StoreError:
    """The error to raise if the system has refused to open `path` or a file next to it."""
    if error.errno in USED_UP:
        return none_free(path)
    kind = DiskFull if error.errno in OUT_OF_ROOM else CannotOpen
    about = "" if error.filename in (None, str(path)) else f": {error.filename}"
    return kind(f"{path}: cannot be opened{about}: {error.strerror}")


def is_ours(connection: Connection) -> bool:
    """Whether the database has queue tables of any version. A table that only has the same name does not count."""
    return connection.execute(sql.FIND_META_TABLE).fetchone() is not None


def is_empty(connection: Connection) -> bool:
    """Whether the database has no tables or other objects."""
    found: int = connection.execute(sql.COUNT_SCHEMA_OBJECTS).fetchone()[0]
    return found == 0


def create(path: Path, *, adopt: bool, synchronous: str, busy_timeout: float) -> None:
    """Make `path` a queue's file unless it is one. The caller holds the turn.

    Raises:
        NotAdopted: the file is another application's SQLite database, and `adopt` is False or it uses a name of ours.
        NotADatabase: the file is not a SQLite database.
    """
    connection = connect(path, synchronous=synchronous, busy_timeout=busy_timeout, mode="rwc")
    try:
        if is_ours(connection):
            _use_wal(connection, path)  # a backup is one file without a WAL, and may have been copied here
            return
        fresh = is_empty(connection)
        if fresh:
            # These two take effect only before the first page is written.
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute(f"PRAGMA auto_vacuum = {AUTO_VACUUM}")
            _use_wal(connection, path)  # so a new file never needs a rollback journal
        else:
            _check_adoption(connection, path, adopt)
        connection.execute("BEGIN IMMEDIATE")
        write_schema(connection)
        if fresh:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION}")
        connection.execute("COMMIT")
        if not fresh:
            # After the schema, so that a failure before leaves an adopted file in its own journal mode. If this fails,
            # the next open finds the queue's tables and tries again.
            _use_wal(connection, path)
    except dbapi.Error as error:
        raise translate(error, path) from error
    finally:
        disconnect(connection, path)


def _use_wal(connection: Connection, path: Path) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise CannotOpen(f"{path}: the file system does not allow WAL (journal mode stays {mode})")


def write_schema(connection: Connection) -> None:
    """Tables, indexes and the file's own facts, in the caller's transaction."""
    for statement in schema.statements():
        connection.execute(statement)
    connection.execute(
        sql.SET_META, {"name": "schema_version", "number": schema.SCHEMA_VERSION, "bytes": None}
    )
    connection.execute(sql.INSERT_ALEMBIC_VERSION, {"version": schema.ALEMBIC_VERSION})
    connection.execute(sql.SET_META, {"name": "file_id", "number": None, "bytes": os.urandom(16)})
    connection.execute(sql.SET_META, {"name": "secret", "number": None, "bytes": os.urandom(32)})


def read_facts(path: Path, *, adopt: bool, synchronous: str, busy_timeout: float) -> meta.Meta | None:
    """The facts of a file that is ready for use. None: something must be written first.

    It creates no other file and waits for no writer.

    Raises:
        NotAdopted: the file is a SQLite database without queues, and `adopt` is False or it uses a name of ours.
        NotADatabase: the file is not a SQLite database.
        SchemaTooOld, SchemaTooNew: the file has the schema of another version.
    """
    connection = connect(path, synchronous=synchronous, busy_timeout=busy_timeout)
    try:
        # Use one snapshot: otherwise another process could make the queue's tables in between, and they would look
        # like an application's.
        connection.execute("BEGIN")
        if not is_ours(connection):
            _check_adoption(connection, path, adopt)
            return None
        check_version(connection, path)
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            return None  # a backup is one file without a WAL, and may have been copied here
        return meta.read(connection)
    except dbapi.Error as error:
        raise translate(error, path) from error
    finally:
        disconnect(connection, path)


def _check_adoption(connection: Connection, path: Path, adopt: bool) -> None:
    """Refuse an application's database unless `adopt` is True and it leaves our names free.

    An empty database is accepted.
    """
    taken = connection.execute(LIST_SCHEMA_OBJECTS).fetchone()
    if taken is not None:
        kind, name, _ = taken
        raise NotAdopted(
            f"{path}: a SQLite database without queues, whose {kind} {name} has a name that the queue's own may need: "
            "all of them are named sqs_.... Rename it, or keep the queues in another file"
        )
    if not adopt and not is_empty(connection):
        raise NotAdopted(
            f"{path}: a SQLite database without queues. adopt=True (on the command line --adopt) adds the "
            "queue's tables, all named sqs_..., to its own and switches it to WAL"
        )
