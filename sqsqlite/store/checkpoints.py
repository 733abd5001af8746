# SPDX-License-Identifier: Apache-2.0
"""Copying the WAL into the file, and beginning it again.

It also checks, before and between transactions, that the file and its WAL still exist, and that the WAL can grow.
"""

import enum
import os
import time

from sqsqlite.errors import Corrupt, InputOutputError
from sqsqlite.store import wal_files
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.file import File
from sqsqlite.store.translate import CORRUPT, IOERR, primary_code

# Above this many bytes in the WAL, a RESTART checkpoint under the turn makes the WAL begin again.
RESTART_ABOVE = 4 * 1024 * 1024
# Milliseconds that it waits for readers of the old WAL. All writers wait with it.
RESTART_PATIENCE_MS = 5
# The same where only a new beginning of the WAL can make room on a full disk.
FULL_PATIENCE_MS = 100
# Seconds between two tests whether another checkpoint has ended.
ANOTHER_CHECKPOINT_EVERY = 0.001


class Wal(enum.Enum):
    """The result of an attempt to copy the WAL into the file and to begin it again."""

    BEGUN = "begun again"
    KEPT = "kept by a reader"
    NO_ROOM = "the file cannot grow"


def begin_wal_again(file: File, mode: str, patience_ms: int = RESTART_PATIENCE_MS) -> Wal:
    """Copy the WAL into the file and begin it again. The caller holds the turn.

    Args:
        mode: "RESTART": use the WAL's space again. "TRUNCATE": give the space back to the disk.
        patience_ms: how long to wait for readers. It waits ten times as long for another checkpoint, which ends by
            itself.
    """
    deadline = time.monotonic() + patience_ms / 100
    with file.watchers.lent() as connection:
        while True:
            try:
                busy, frames = _restart(file, connection, mode, patience_ms)
            except dbapi.Error:
                return Wal.NO_ROOM  # or another failure, which the current transaction then meets itself
            if not busy:
                return Wal.BEGUN
            # Without a count of frames, it did not begin: another connection runs a checkpoint.
            if frames >= 0 or time.monotonic() > deadline:
                return Wal.KEPT
            time.sleep(ANOTHER_CHECKPOINT_EVERY)


def checkpoint(file: File) -> None:
    """Copy the WAL into the file without holding writers up. If the WAL is long, begin it again under the turn."""
    file.writers.check_identity()  # a deleted WAL must not overwrite what others have written since
    with file.watchers.lent() as connection:
        if file.writers.are_cut(connection, connection):
            return  # never copy a hole into the file; the next writer looks again, with the write lock
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        try:
            wal_bytes = os.stat(f"{file.path}-wal").st_size
        except FileNotFoundError:
            return
        if wal_bytes <= RESTART_ABOVE or not _wal_is_long(connection):
            return
    # Take the turn first, then the connection: a fork waits for connections in use, and the thread that has the turn
    # may be waiting for the fork.
    with file.turnstile.taken(file.busy_timeout), file.watchers.lent() as connection:
        _restart(file, connection)


def _restart(
    file: File, connection: Connection, mode: str = "RESTART", patience_ms: int = RESTART_PATIENCE_MS
) -> tuple[bool, int]:
    """Whether a reader or writer prevented it, and the frames in the WAL: -1 if the checkpoint did not begin.

    A long reader, such as a dump into a slow pipe, makes the WAL longer, but no writer waits for it.
    """
    connection.execute(f"PRAGMA busy_timeout = {patience_ms}").fetchall()
    try:
        busy, frames, _ = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(file.busy_timeout * 1000)}").fetchall()
    return bool(busy), frames


def _wal_is_long(connection: Connection) -> bool:
    """Whether the used part is long. The WAL's size does not tell: the file keeps it when the WAL begins again."""
    page_size = connection.execute("PRAGMA page_size").fetchone()[0]
    frames = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
    return bool(frames * page_size > RESTART_ABOVE)


def require_growth(file: File, connection: Connection) -> None:
    """Check before a transaction of `connection` that the WAL can grow, and can still be copied into the file.

    The caller holds the turn.

    Raises:
        CannotOpen: the file or its WAL was deleted, replaced or cut off: new messages would be lost with the process.
        DiskFull: a reader keeps the WAL from beginning again, and copying the WAL needs all of the free space.
    """
    file.writers.check_identity()
    if file.writers.are_cut(connection, connection):
        _refuse_cut(file, connection)
    headroom = file.headroom
    if headroom.measure(connection):
        return
    outcome = begin_wal_again(file, "RESTART")
    while outcome is not Wal.BEGUN and not headroom.has_margin(connection):
        if headroom.release():
            outcome = begin_wal_again(file, "RESTART")
        elif outcome is Wal.KEPT:
            raise headroom.kept_by_reader(connection)
        else:
            # Another program has filled the disk. SQLite may still find space inside the WAL.
            return
    if outcome is Wal.BEGUN:
        headroom.wal_began_again()
    else:
        headroom.watch(connection)


def _refuse_cut(file: File, connection: Connection) -> None:
    """Look again, with the write lock: another program may have written between two parts of the first look.

    Raises:
        CannotOpen: the file or its WAL was cut off.
    """
    is_cut, cause = True, None
    try:
        with file.watchers.lent() as observer:
            connection.execute("BEGIN IMMEDIATE")
            is_cut = file.writers.are_cut(connection, observer)
    except (dbapi.Error, InputOutputError, Corrupt) as error:
        if isinstance(error, dbapi.Error) and primary_code(error) not in (IOERR, CORRUPT):
            raise
        cause = error  # SQLite could not read what is missing
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if is_cut:
        file.readers.keep_one_for_ever()
        raise wal_files.cut(file.path) from cause


def make_room(file: File, *, first: bool) -> bool:
    """Make room on a full disk: begin the WAL again in its own space, and give up some of the ballast if necessary.

    The caller holds the turn.

    Args:
        first: whether this is the first attempt for the current transaction.

    Returns:
        Whether the transaction should be tried again.
    """
    if first and begin_wal_again(file, "RESTART", FULL_PATIENCE_MS) is Wal.BEGUN:
        return True
    if not file.headroom.release():
        return False
    begin_wal_again(file, "RESTART", FULL_PATIENCE_MS)
    return True
