"""Before and between transactions: is the file still there, and is there room for its WAL, and to copy that into it?"""

from typing import TYPE_CHECKING

from sqsqlite.store.upkeep import FULL_PATIENCE_MS, Wal

if TYPE_CHECKING:
    from sqsqlite.store.connections import Connection
    from sqsqlite.store.store import Store


def look_around(store: "Store", connection: "Connection") -> None:
    """Before a transaction of `connection`: see that the WAL can grow, and be copied into the file all the same.

    The caller holds the turn.

    Raises:
        CannotOpen: the file was deleted or replaced: what is sent would be gone with the process.
        DiskFull: a reader keeps the WAL from beginning again, and what is free is needed to copy it.
    """
    store.writers.check_identity()
    headroom = store.headroom
    if headroom.look(connection):
        return
    outcome = store.upkeep.begin_wal_again("RESTART")
    while outcome is not Wal.BEGUN and not headroom.has_margin(connection):
        if headroom.release():
            outcome = store.upkeep.begin_wal_again("RESTART")
        elif outcome is Wal.KEPT:
            raise headroom.kept_by_reader(connection)
        else:
            # Another program has taken the room: SQLite may still find some inside the WAL.
            return
    if outcome is Wal.BEGUN:
        headroom.wal_began_again()
    else:
        headroom.watch(connection)


def make_room(store: "Store", *, first: bool) -> bool:
    """The disk is full: let the WAL begin again in the space it has, with some of the ballast if need be.

    The caller holds the turn.

    Args:
        first: not tried yet for the transaction at hand.

    Returns:
        Whether trying once more makes sense.
    """
    if first and store.upkeep.begin_wal_again("RESTART", FULL_PATIENCE_MS) is Wal.BEGUN:
        return True
    if not store.headroom.release():
        return False
    store.upkeep.begin_wal_again("RESTART", FULL_PATIENCE_MS)
    return True
