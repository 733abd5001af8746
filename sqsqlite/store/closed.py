# SPDX-License-Identifier: Apache-2.0
"""Reading a file without opening it as a store: checks, plans of an upgrade, restores.

A backup stays unchanged: one file, in a folder that may be read-only. Files that `connect` refuses can be read too.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sqsqlite.errors import CannotOpen, NotAdopted, ReadOnlyFile
from sqsqlite.store import create
from sqsqlite.store.connections import connect, disconnect
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.translate import translate


@contextmanager
def reading(path: str | os.PathLike[str], *, keep_wal: bool = False) -> Iterator[Connection]:
    """A connection that only reads a file of queues, of any schema version.

    Args:
        keep_wal: leave the WAL unchanged, with a `-shm` next to it. Otherwise, if this user may write the file, its
            last connection moves the WAL into the file, as always.

    Raises:
        CannotOpen: the file does not exist, is empty, or the system refuses to open it.
        ReadOnlyFile: the file is in WAL mode, and this user may not write the folder, which that mode needs.
        NotAdopted: the file is a SQLite database without queues.
        NotADatabase, Corrupt: the file is not a SQLite database, or is damaged.
        ValueError: `path` can't be a path.
    """
    path = create.resolved(path)
    if not create.check_kind(path) or not path.stat().st_size:
        raise CannotOpen(f"{path}: this file does not exist, or is empty")
    may_write = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    mode = "rw" if may_write and not keep_wal else "ro"
    try:
        connection = connect(path, synchronous="FULL", busy_timeout=5.0, mode=mode)
    except (CannotOpen, ReadOnlyFile) as error:
        if os.access(path, os.R_OK) and not may_write:
            raise ReadOnlyFile(
                f"{path}: the file is in WAL mode, and this user may not write the folder {path.parent}, where SQLite "
                "keeps the -wal and -shm; copy the file, with its -wal if there is one, to a folder of your own"
            ) from error
        raise
    try:
        connection.execute("PRAGMA query_only = ON").fetchall()
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            create.check(path)  # only a WAL is found by the file's name
        if not create.is_ours(connection):
            raise NotAdopted(f"{path}: a SQLite database without queues")
        yield connection
    except dbapi.Error as error:
        raise translate(error, path) from error
    finally:
        disconnect(connection, path)
