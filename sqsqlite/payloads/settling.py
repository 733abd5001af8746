# SPDX-License-Identifier: Apache-2.0
"""Removing payloads when, and only if, the deletion of their messages has been committed."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sqsqlite.errors import StoreError
from sqsqlite.payloads.pointers import Pointer
from sqsqlite.payloads.store import PayloadStore
from sqsqlite.sql import operators as sql
from sqsqlite.store import meta

if TYPE_CHECKING:
    from sqsqlite.store.driver import Connection
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction


def owner_of(file: "Store") -> str:
    """The owner of a file's payloads: its id. A file that was restored from a backup has another one."""
    with file.reading() as snapshot:
        return meta.read(snapshot.connection).file_id.hex()


def discard_when_committed(
    file: "Store",
    store: PayloadStore,
    deleted: Iterable[tuple[str, Pointer]],
    connection: "Connection | None" = None,
) -> None:
    """Remove the payloads of messages that were deleted: at once, or after the commit of the caller's transaction.

    Args:
        deleted: receipt handles as the queue issued them, each with its pointer.
        connection: the application's connection whose transaction has deleted them.
    """
    pairs = list(deleted)

    def discard() -> None:
        for handle, pointer in pairs:
            if _is_gone(file, handle):
                store.discard(pointer)

    if connection is not None:
        file.join(connection, _then, discard)
        return
    tx = file.transaction_of_thread
    if tx is None:
        discard()
    else:
        _then(tx, discard)


def _then(tx: "Transaction", discard: Callable[[], None]) -> None:
    tx.after_commit = (*tx.after_commit, discard)


def _is_gone(file: "Store", handle: str) -> bool:
    """Whether the message of a handle has left the file.

    A commit after a delete does not say so: the application may have rolled back to a savepoint in between.
    """
    receipt = file.settings.sealer.parse(handle)
    if receipt is None:
        return False
    try:
        with file.reading() as snapshot:
            return snapshot.execute(sql.SELECT_LEASE_AND_QUEUE, {"id": receipt.lease_id}).fetchone() is None
    except StoreError:
        return False  # the sweep will know
