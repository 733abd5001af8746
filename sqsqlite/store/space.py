"""Before and between transactions: are the file and its WAL still there, and is there room for the WAL to grow?"""

from sqsqlite.errors import Corrupt, InputOutputError
from sqsqlite.store import wal_files
from sqsqlite.store.checkpoints import FULL_PATIENCE_MS, Wal, begin_wal_again
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.file import File
from sqsqlite.store.translate import CORRUPT, IOERR, primary_code


def look_around(file: File, connection: Connection) -> None:
    """Before a transaction of `connection`: see that the WAL can grow, and be copied into the file all the same.

    The caller holds the turn.

    Raises:
        CannotOpen: the file or its WAL was deleted, replaced or cut off: what is sent would be gone with the process.
        DiskFull: a reader keeps the WAL from beginning again, and what is free is needed to copy it.
    """
    file.writers.check_identity()
    if file.writers.are_cut(connection, connection):
        _refuse_cut(file, connection)
    headroom = file.headroom
    if headroom.look(connection):
        return
    outcome = begin_wal_again(file, "RESTART")
    while outcome is not Wal.BEGUN and not headroom.has_margin(connection):
        if headroom.release():
            outcome = begin_wal_again(file, "RESTART")
        elif outcome is Wal.KEPT:
            raise headroom.kept_by_reader(connection)
        else:
            # Another program has taken the room: SQLite may still find some inside the WAL.
            return
    if outcome is Wal.BEGUN:
        headroom.wal_began_again()
    else:
        headroom.watch(connection)


def _refuse_cut(file: File, connection: Connection) -> None:
    """Another program may have written between two parts of the look: look again, with the write lock.

    Raises:
        CannotOpen: the file or its WAL was cut off all the same.
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
    """The disk is full: let the WAL begin again in the space it has, with some of the ballast if need be.

    The caller holds the turn.

    Args:
        first: not tried yet for the transaction at hand.

    Returns:
        Whether trying once more makes sense.
    """
    if first and begin_wal_again(file, "RESTART", FULL_PATIENCE_MS) is Wal.BEGUN:
        return True
    if not file.headroom.release():
        return False
    begin_wal_again(file, "RESTART", FULL_PATIENCE_MS)
    return True
