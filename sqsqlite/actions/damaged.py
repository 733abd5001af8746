# SPDX-License-Identifier: Apache-2.0
"""Messages that can't be read: the row is missing, or breaks what its table promises.

Operations pass them by, so that one of them does not stop its queue, and can take them out of the file with all that is
kept about them elsewhere. Nothing here runs while all rows are healthy. A page that SQLite refuses to read is another
matter: within the transaction that has met it, SQLite refuses to write as well.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import groups, sweep
from sqsqlite.actions.queue_rows import QueueRow, StoredMessage
from sqsqlite.contract.message_attributes import load_attributes
from sqsqlite.errors import Corrupt
from sqsqlite.sql import fifo as fifo_sql
from sqsqlite.sql import messages as sql
from sqsqlite.sql import operators as find
from sqsqlite.store.damage import flaw, undecoded
from sqsqlite.store.driver import dbapi
from sqsqlite.store.translate import is_undecodable

if TYPE_CHECKING:
    from sqsqlite.store.transaction import Transaction


# What reading a row that breaks its schema can raise, besides the driver's own errors.
ERRORS = (dbapi.Error, TypeError, ValueError, LookupError, AttributeError)
UUID_BYTES = MD5_BYTES = 16
_OPTIONAL = ("sender_id", "group_id", "trace_header", "attributes")


def refuse_other(error: Exception) -> None:
    """Raise an error of the driver's that is not about one row: a damaged page, an interrupted connection."""
    if isinstance(error, dbapi.Error) and not is_undecodable(error):
        raise error


def select_message(connection: Any, row_id: int) -> StoredMessage:
    """A message as far as it can be read.

    Raises:
        Corrupt: it is missing.
    """
    with undecoded(connection):
        row = connection.execute(sql.SELECT_MESSAGE, (row_id,)).fetchone()
    if row is None:
        raise Corrupt("its row in sqs_messages is missing")
    return StoredMessage(*row)


def check_message(message: StoredMessage, *, attributes: bool = True) -> None:
    """See that a message is what its table promises.

    Args:
        attributes: whether they, the sender, the group and the trace header matter.

    Raises:
        Corrupt: why it is not.
    """
    values: list[tuple[str, Any, type]] = [
        ("message_id", message.message_id, bytes),
        ("body_md5", message.body_md5, bytes),
        ("body", message.body, str),
    ]
    if attributes:
        optional = [(name, getattr(message, name)) for name in _OPTIONAL]
        values += [(name, value, str) for name, value in optional if value is not None]
    if (found := flaw(values)) is not None:
        raise Corrupt(found)
    for name, value, size in (
        ("message_id", message.message_id, UUID_BYTES),
        ("body_md5", message.body_md5, MD5_BYTES),
    ):
        if len(value) != size:
            raise Corrupt(f"its {name} has {len(value)} bytes, not {size}")
    if attributes and message.attributes:
        try:
            load_attributes(message.attributes)
        except ValueError as error:
            raise Corrupt("its attributes can't be decoded") from error


def line(row_id: int, queue_name: str, why: object) -> str:
    """What a log, an error or a finding says of a damaged message."""
    return f"message {row_id} of queue {queue_name} is damaged: {why}"


def read_one_by_one(
    tx: "Transaction", queue: QueueRow, ids: Sequence[int], *, attributes: bool
) -> dict[int, StoredMessage]:
    """The healthy ones among some messages, by row id. The others are noted in `tx.damaged`."""
    found = {}
    for row_id in ids:
        try:
            message = select_message(tx.connection, row_id)
            check_message(message, attributes=attributes)
        except Corrupt as error:
            told = line(row_id, queue.name, error)
            tx.damaged += (f"{told}. It was skipped: run `sqsqlite check`",)
        else:
            found[row_id] = message
    return found


def group_of(tx: "Transaction", row_id: int) -> tuple[bytes | None, str | None]:
    """Message id and group of a message; None for what can't be read.

    A FIFO queue's message has its group elsewhere too: where its row in sqs_messages fails, that is asked.
    """
    try:
        row = tx.execute(fifo_sql.SELECT_GROUP_OF_MESSAGE, (row_id,)).fetchone()
        if row is not None and _is_id(row[0]) and (row[1] is None or isinstance(row[1], str)):
            return row[0], row[1]
    except dbapi.DatabaseError as error:
        refuse_other(error)
    try:
        message = select_message(tx.connection, row_id)
    except Corrupt:
        message_id = None
    else:
        message_id = message.message_id if _is_id(message.message_id) else None
    row = tx.execute(fifo_sql.SELECT_GROUP_OF_LEASE, (row_id,)).fetchone()
    return message_id, None if row is None else row[0]


def _is_id(found: object) -> bool:
    return isinstance(found, bytes) and len(found) == UUID_BYTES


def remove(tx: "Transaction", row_ids: Iterable[int]) -> int:
    """Delete messages whatever their state: their leases, their provenance, their share of the counts. Gives how many.

    A row id never names another message later. What was deleted meanwhile is not counted again.
    """
    count = 0
    for row_id in row_ids:
        lease = tx.execute(find.SELECT_LEASE_AND_QUEUE, {"id": row_id}).fetchone()
        tx.execute(sql.DELETE_MESSAGE, (row_id,))
        tx.execute(sql.DELETE_DEAD_LETTER, (row_id,))
        if lease is None:
            continue
        epoch_id, group_key, queue_id = lease
        [(hidden, received)] = tx.execute(
            sql.DELETE_ANY_LEASE, {"id": row_id, "epoch_id": epoch_id}
        ).fetchall()
        count += 1
        if queue_id is None:
            continue  # of a queue that was purged or deleted: nothing is counted there
        sweep.count_gone(tx, epoch_id, [(row_id, hidden, received, group_key)])
        if group_key is not None:
            groups.refresh(tx, queue_id, group_key, row_id)
        tx.wake(queue_id, 0)
    return count
