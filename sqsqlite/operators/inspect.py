# SPDX-License-Identifier: Apache-2.0
"""Looking at messages without receiving them. SQS has no action for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import queue_rows
from sqsqlite.actions.queue_rows import StoredMessage
from sqsqlite.contract.names import NO_SUCH_QUEUE
from sqsqlite.errors import CannotOpen, Corrupt, QueueDoesNotExist
from sqsqlite.sql import file as file_sql
from sqsqlite.sql import messages as sql
from sqsqlite.sql import queues as queue_sql
from sqsqlite.sql.operators import PEEK_FIFO
from sqsqlite.store.damage import undecoded, warn_of_damage
from sqsqlite.store.driver import dbapi
from sqsqlite.store.transaction import Snapshot
from sqsqlite.store.translate import is_undecodable

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract.message_attributes import MessageAttributeValue
    from sqsqlite.store.store import Store

_PAGE = 500
# Places in the rows of the statements that peek.
_GROUP_ID, _SENT_AT, _VISIBLE_AT, _TURN = 5, 8, 11, 13


@dataclass(frozen=True, slots=True)
class Peeked:
    """A message looked at.

    Attributes:
        state: "visible", "delayed" or "in flight".
        visible_at: when it becomes visible (milliseconds since 1970 UTC), 0: it is.
        sent_at, first_received_at: milliseconds since 1970 UTC.
        dead_letter_source_arn: where it was moved from, if it was.
        deduplication_id, sequence_number: of FIFO queues, else None.
    """

    row_id: int
    message_id: str
    body: str
    attributes: "dict[str, MessageAttributeValue]"
    group_id: str | None
    trace_header: str | None
    state: str
    sent_at: int
    visible_at: int
    receive_count: int
    first_received_at: int | None
    dead_letter_source_arn: str | None
    deduplication_id: str | None
    sequence_number: str | None


def queue_names(store: "Store", caller: "Caller", prefix: str = "") -> list[str]:
    """The names of all queues of the account that begin with `prefix`, in order."""
    bounds = {"account_id": caller.account_id, "prefix": prefix, "upper_name": prefix + "\U0010ffff"}
    with store.reading() as snapshot:
        return [name for (name,) in snapshot.execute(queue_sql.LIST_QUEUE_NAMES, bounds).fetchall()]


def count_messages(store: "Store", caller: "Caller", name: str) -> int:
    """Messages in a queue, visible, in flight and delayed, less those beyond their retention.

    Raises:
        QueueDoesNotExist: no queue of this name in the account.
    """
    with store.reading() as snapshot:
        row = snapshot.execute(queue_sql.COUNT_MESSAGES, queue_rows.place(name, caller)).fetchone()
        if row is None:
            raise QueueDoesNotExist(NO_SUCH_QUEUE)
        epoch_id, retention_seconds, messages, oldest_at = row
        now_ms = snapshot.now_ms
        expired_at = snapshot.expired_at(retention_seconds)
        if oldest_at is not None and oldest_at <= expired_at:
            bounds = {"epoch_id": epoch_id, "expired_at": expired_at, "now_ms": now_ms}
            messages -= snapshot.execute(queue_sql.COUNT_EXPIRED, bounds).fetchone()[0]
        return int(messages)


def touch(store: "Store") -> None:
    """Read a row of the file: nothing comes back, an error says that it can't be read.

    Raises:
        StoreError: why. CannotOpen: the path leads to another file by now, or to none.
    """
    try:
        store.file.readers.check_identity()
    except OSError as error:
        raise CannotOpen(f"{store.path}: {error.strerror}") from error
    with store.reading() as snapshot:
        snapshot.execute(file_sql.SELECT_SCHEMA_VERSION).fetchone()


def peek(
    store: "Store", queue_url: str, caller: "Caller", max_messages: int = 10, *, hidden: bool = False
) -> list[Peeked]:
    """The next messages a receive would bring, or the hidden ones; nothing is written.

    Raises:
        QueueDoesNotExist: no queue has this name or URL.
    """
    with store.reading() as snapshot:
        now_ms = snapshot.now_ms
        queue = queue_rows.find(snapshot, queue_url, caller)
        bounds = {
            "epoch_id": queue.epoch_id,
            "expired_at": queue.expired_at(snapshot),
            "max_messages": max_messages,
        }
        rows, _ = fetch_readable(store, snapshot, sql.PEEK_HIDDEN, bounds, queue.name)
        if hidden:
            found = [peeked(snapshot, row) for row in rows]
            return [message for message in found if message.state != "visible"]
        # Ended timeouts and delays are visible although no claim has promoted them yet.
        due = [row for row in rows if row[_VISIBLE_AT] <= now_ms]
        statement = PEEK_FIFO if queue.fifo else sql.PEEK
        ready, _ = fetch_readable(store, snapshot, statement, bounds, queue.name)
        if queue.has_tenants:
            # A tenant's message that comes back is placed behind the waiting ones.
            again = [row for row in due if row[_GROUP_ID] is not None]
            due = [row for row in due if row[_GROUP_ID] is None]
        else:
            again = []
        rows = [*sorted(due + ready, key=_order_of_service), *again][:max_messages]
        return [peeked(snapshot, row) for row in rows]


def fetch_readable(
    store: "Store", snapshot: Snapshot, statement: str, bounds: dict[str, Any], queue_name: str
) -> tuple[list[Any], tuple[Any, ...] | None]:
    """The rows of a statement that peeks, without those of damaged messages, which are logged; and the last row."""
    from sqsqlite.actions.damaged import check_message, line

    try:
        rows: list[Any] = snapshot.execute(statement, bounds).fetchall()
    except dbapi.Error as error:
        if not is_undecodable(error):
            raise
        with undecoded(snapshot.connection):
            rows = snapshot.execute(statement, bounds).fetchall()
    readable = []
    lines = []
    for row in rows:
        try:
            check_message(StoredMessage._make(row[:8]))
            if any(isinstance(value, bytes) for value in row[8:]):
                raise Corrupt("its lease is damaged")
        except Corrupt as error:
            lines.append(f"{line(row[0], queue_name, error)}. It is not shown")
        else:
            readable.append(row)
    warn_of_damage(store.path, lines)
    return readable, rows[-1] if rows else None


def _order_of_service(row: tuple[Any, ...]) -> tuple[int, int]:
    return row[_TURN], row[0]


def messages(
    store: "Store", queue_url: str, caller: "Caller", after: tuple[int, int] = (0, 0)
) -> Iterator[Peeked]:
    """All messages of a queue in order of sending, whatever their state, page by page: one snapshot a page.

    Args:
        after: (sent_at, row_id) of the last one seen.
    """
    while True:
        with store.reading() as snapshot:
            queue = queue_rows.find(snapshot, queue_url, caller)
            expired_at = queue.expired_at(snapshot)
            bounds = {
                "epoch_id": queue.epoch_id,
                "after_sent_at": max(after[0], expired_at),
                "after_id": after[1] if after[0] >= expired_at else 1 << 62,
                "max_messages": _PAGE,
            }
            rows, last = fetch_readable(store, snapshot, sql.LIST_MESSAGES, bounds, queue.name)
            page = [peeked(snapshot, row) for row in rows]
        yield from page
        if last is None:
            return
        after = (last[_SENT_AT], last[0])


def last_messages(store: "Store", queue_url: str, caller: "Caller", count: int) -> list[Peeked]:
    """The `count` messages sent last, whatever their state, oldest first; nothing is written.

    Raises:
        QueueDoesNotExist: no queue has this name or URL.
    """
    with store.reading() as snapshot:
        queue = queue_rows.find(snapshot, queue_url, caller)
        bounds = {
            "epoch_id": queue.epoch_id,
            "expired_at": queue.expired_at(snapshot),
            "max_messages": count,
        }
        rows, _ = fetch_readable(store, snapshot, sql.LIST_LAST_MESSAGES, bounds, queue.name)
        return [peeked(snapshot, row) for row in reversed(rows)]


def peeked(snapshot: Snapshot, row: tuple[Any, ...]) -> Peeked:
    """A row of the statements that peek, as a value."""
    from sqsqlite.actions.messages import sequence_number, uuid_text
    from sqsqlite.contract.message_attributes import load_attributes

    message = StoredMessage._make(row[:8])
    sent_at, receive_count, first_received_at, visible_at, received, _, fifo, deduplication_id = row[8:]
    source = snapshot.execute(sql.SELECT_DEAD_LETTER, (message.id,)).fetchone()
    state = "visible" if visible_at <= snapshot.now_ms else "in flight" if received else "delayed"
    return Peeked(
        message.id,
        uuid_text(message.message_id),
        message.body,
        load_attributes(message.attributes) if message.attributes else {},
        message.group_id,
        message.trace_header,
        state,
        sent_at,
        0 if state == "visible" else visible_at,
        receive_count,
        first_received_at,
        None if source is None else source[0],
        deduplication_id,
        sequence_number(message.id) if fifo else None,
    )
