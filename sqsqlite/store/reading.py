"""Snapshots to read from, and what an error of the driver's means."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from sqsqlite.store.diagnosis import ODD, damage_behind
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.file import File
from sqsqlite.store.translate import translate


def raise_typed(file: File, error: Exception, snapshot: Connection | None = None) -> NoReturn:
    """Raise an error of the driver's, or an odd one, as what it means; else as it is.

    Args:
        snapshot: what the operation has seen: by now another may have swept the damage away.
    """
    typed = translate(error, file.path) if isinstance(error, dbapi.Error) else error
    if typed is error:
        typed = damage_behind(file, error, snapshot) or error
    if typed is error:
        raise error
    raise typed from error


@contextmanager
def snapshot(file: File) -> Iterator[Connection]:
    """A connection that sees one instant of the file for the length of the block.

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
                yield connection
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
