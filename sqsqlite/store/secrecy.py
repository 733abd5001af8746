# SPDX-License-Identifier: Apache-2.0
"""Secrets in the file: who may read it while it holds some, and that a deleted one is gone from it.

Nothing is opened here: closing a file drops the locks that SQLite has on it in this process.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqsqlite.errors import Busy
from sqsqlite.sql.access import FIND_ACCESS_KEY
from sqsqlite.store.checkpoints import begin_wal_again
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.file import File
from sqsqlite.store.neutral import run
from sqsqlite.store.transaction import Transaction

_SECURE_DELETE = ("OFF", "ON", "FAST")
_GROUP, _OTHERS = 0o070, 0o007
# To read and to write: who may do only one of them cannot use a queue.
_BOTH = 0o066
# Numbers are given from 0 on, the lowest that is free.
_DESCRIPTORS_TRIED = 65_536


def tighten(path: Path) -> None:
    """Take the database, its -wal and its -shm from all who may not write the database.

    SQLite gives the last two the mode that the database had when they were made: a `chmod` of the database leaves them
    as they were, readable perhaps. What belongs to another user stays until that user opens the file.
    """
    if os.name != "posix":
        return
    try:
        allowed = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return  # deleted in use, which the store itself looks for and reports
    for kind in (_GROUP, _OTHERS):
        if allowed & kind & _BOTH != kind & _BOTH:
            allowed &= ~kind
    # The database first: from then on SQLite makes the others with its new mode.
    for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        # Gone: the last connection of another process took it away.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            found = os.lstat(each)
            # SQLite does not follow a link either.
            if found.st_mode & 0o7777 & ~allowed and stat.S_ISREG(found.st_mode):
                _narrow(each, found, stat.S_IMODE(found.st_mode) & allowed)


def _narrow(path: Path, found: os.stat_result, mode: int) -> None:
    """Change the mode of a file, and of nothing that takes its place meanwhile."""
    try:
        os.chmod(path, mode, follow_symlinks=False)
    except NotImplementedError:
        # The C library is older than 2.32, and can't tell a link from a file; or /proc is hidden. Then by a descriptor
        # of SQLite's: the connection that found the keys keeps one open.
        descriptor = _descriptor(found)
        if descriptor is not None:
            os.fchmod(descriptor, mode)


def _descriptor(found: os.stat_result) -> int | None:
    """A descriptor of this process's on the file. Tried one by one: to list them takes /proc."""
    for descriptor in range(_DESCRIPTORS_TRIED):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), found):
                return descriptor
    return None


def tighten_with_keys(path: Path, connection: Connection) -> None:
    """`tighten` if the file holds an access key. A table that can't be read may hold some."""
    try:
        found = connection.execute(FIND_ACCESS_KEY).fetchone()
    except dbapi.Error:
        found = True
    if found:
        tighten(path)


@contextmanager
def overwriting(tx: Transaction) -> Iterator[None]:
    """A block in which SQLite overwrites with zeros what it deletes, and what it moves from one page to another."""
    [(before,)] = run(tx.connection, "PRAGMA main.secure_delete")
    run(tx.connection, "PRAGMA main.secure_delete = ON")
    try:
        yield
    finally:
        run(tx.connection, f"PRAGMA main.secure_delete = {_SECURE_DELETE[before]}")


def empty_wal(file: File) -> None:
    """After a commit that deleted a secret: the pages with the secret are in the WAL too, until it begins again.

    Once, for the commit stands: where a reader or a writer is in the way, the secret stays in the WAL until upkeep, or
    the last process to close the file, begins it again.
    """
    with contextlib.suppress(Busy), file.turnstile.taken(file.busy_timeout):
        begin_wal_again(file, "TRUNCATE")
