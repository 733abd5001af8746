"""Snapshots to read from, and what an error of the driver's means."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from sqsqlite.store.diagnosis import ODD, damage_behind
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.file import File
from sqsqlite.store.transaction import Snapshot
from sqsqlite.store.translate import translate


def raise_typed(file: File, error: Exception, seen: Connection | None = None) -> NoReturn:
    """Raise an error of the driver's, or an odd one, as what it means; else as it is.

    Args:
        seen: the snapshot that the operation has seen: by now another may have swept the damage away.
    """
    typed = translate(error, file.path) if isinstance(error, dbapi.Error) else error
    if typed is error:
        typed = damage_behind(file, error, seen) or error
    if typed is error:
        raise error
    raise typed from error


@contextmanager
def snapshot(file: File) -> Iterator[Snapshot]:
    """One state of the file, for the length of the block.

    Raises:
        StoreClosed: the store is closed.
        StoreError: reading failed.
    """
    if file.is_closed:
        raise file.closed_error()
    examined: Exception | None = None
    try:
        with file.readers.lent() as connection:
            connection.execute("BEGIN")
            try:
                yield Snapshot(connection, file.clock.now_ms(), file.settings)
            except ODD as error:
                examined = error
                raise_typed(file, error, connection if connection.in_transaction else None)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
    except ODD as error:
        if error is examined:
            raise
        raise_typed(file, error)
