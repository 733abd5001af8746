# SPDX-License-Identifier: Apache-2.0
"""Reading the messages of a file for a dump. Of a damaged file: all that can be read and that `load` accepts."""

import json
import uuid
from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.actions import dead_letters
from sqsqlite.actions.damaged import UUID_BYTES, check_message, line
from sqsqlite.actions.queue_rows import StoredMessage
from sqsqlite.contract import limits, queue_attributes
from sqsqlite.contract.message_attributes import TRACE_HEADER, MessageAttributeValue
from sqsqlite.contract.names import is_queue_arn
from sqsqlite.contract.parameters import check_tags
from sqsqlite.contract.prepared import prepare_message
from sqsqlite.errors import Corrupt, SQSError
from sqsqlite.operators.dump_lines import MOST_EARLIER, DumpedDeduplication, DumpedMessage, decode, encode
from sqsqlite.sql import messages as sql
from sqsqlite.sql import operators as dump_sql
from sqsqlite.store.damage import undecoded
from sqsqlite.store.driver import dbapi
from sqsqlite.store.translate import CORRUPT, is_undecodable, primary_code

if TYPE_CHECKING:
    from sqsqlite.store.driver import Connection

LARGEST = 2**53  # that a dump can have: dump_lines.Number
PAGE = 200
# Above any row id that AUTOINCREMENT gives in practice, and far enough below the largest number to count beyond it.
_END = 1 << 62
# Row ids skipped at a time on a damaged stretch, as a part of what was skipped: one by one at first.
_STRIDE = 64


_TEXTS = frozenset((str, type(None)))


class Stored(NamedTuple):
    """A row of DUMP_MESSAGES: a lease, its message if there is one, and where it was moved from."""

    id: int
    epoch_id: int
    message: StoredMessage | None
    deduplication_id: str | None = None
    sent_at: int = 0
    first_received_at: int | None = None
    receive_count: int = 0
    queue_receive_count: int = 0
    visible_at: int = 0
    received: int = 0
    source_arn: str | None = None
    source_receive_count: int | None = None
    moved_at: int | None = None
    earlier: str | None = None


class Rescue:
    """The messages of some epochs, oldest first.

    Args:
        passed_by: called with a sentence for each range of rows that can't be read.
    """

    def __init__(
        self, connection: "Connection", epoch_ids: Collection[int], passed_by: Callable[[str], None]
    ) -> None:
        self._connection = connection
        self._epoch_ids = epoch_ids
        self._listed = json.dumps(list(epoch_ids))
        self._passed_by = passed_by

    def rows(self) -> Iterator[Stored]:
        """Yield them page by page; where a page can't be read, row by row."""
        after_id = 0
        while True:
            try:
                page = self._page(after_id)
            except dbapi.Error as error:
                if primary_code(error) != CORRUPT:
                    raise
                for last_id, stored in self._one_by_one(after_id):
                    after_id = last_id
                    if stored is not None:
                        yield stored
                if after_id >= _END:
                    return
                continue
            for stored in page:
                yield stored
            if len(page) < PAGE:
                return
            after_id = page[-1].id

    def _page(self, after_id: int) -> list[Stored]:
        bounds = {"epoch_ids": self._listed, "after_id": after_id, "max_messages": PAGE}
        page = [_stored(row) for row in self._fetch(dump_sql.DUMP_MESSAGES, bounds)]
        ids = [after_id, *(stored.id for stored in page)]
        if any(one >= other for one, other in pairwise(ids)):
            raise _corrupt("row ids are out of order")
        return page

    def _fetch(self, statement: str, bounds: Any) -> list[Any]:
        try:
            rows: list[Any] = self._connection.execute(statement, bounds).fetchall()
        except dbapi.Error as error:
            if not is_undecodable(error):
                raise
            with undecoded(self._connection):
                rows = self._connection.execute(statement, bounds).fetchall()
        return rows

    def _one_by_one(self, after_id: int) -> Iterator[tuple[int, Stored | None]]:
        """Up to a page of row ids, each with its row if that can be read and is of the epochs; `_END` ends them."""
        for _ in range(PAGE):
            row_id, ended_at = self._next_lease(after_id)
            if ended_at > after_id:
                yield from self._by_index(after_id, row_id)
            if row_id >= _END:
                yield _END, None
                return
            try:
                rows = self._fetch(dump_sql.DUMP_MESSAGE, {"id": row_id})
            except dbapi.Error as error:
                if primary_code(error) != CORRUPT:
                    raise
                self._passed_by(f"message {row_id} is damaged: its page can't be read")
                yield row_id, None
            else:
                stored = _stored(rows[0]) if rows else None
                wanted = stored is not None and stored.epoch_id in self._epoch_ids
                yield row_id, stored if wanted else None
            after_id = row_id

    def _next_lease(self, after_id: int) -> tuple[int, int]:
        """The next row id that can be read (`_END` after the last one), and the end of the range that can't be read."""
        skipped = failed = 0
        while (found := self._seek(after_id + skipped)) is None:
            failed, skipped = skipped, skipped + 1 + skipped // _STRIDE
            if after_id + skipped >= _END:
                return _END, _END
        if not skipped:
            return found, after_id
        while skipped - failed > 1:
            middle = (failed + skipped) // 2
            nearer = self._seek(after_id + middle)
            if nearer is None:
                failed = middle
            else:
                found, skipped = nearer, middle
        return found, after_id + skipped

    def _seek(self, after_id: int) -> int | None:
        """The next row id, `_END` after the last one; None: the page can't be read."""
        try:
            row = self._connection.execute(dump_sql.NEXT_LEASE, {"after_id": after_id}).fetchone()
        except dbapi.Error as error:
            if primary_code(error) != CORRUPT:
                raise
            return None
        if row is None:
            return _END
        return int(row[0]) if row[0] > after_id else None

    def _by_index(self, after_id: int, before_id: int) -> Iterator[tuple[int, Stored]]:
        """The messages of leases that can't be read, found by an index: without counts and delays."""
        known: list[tuple[int, int, int]] = []
        for epoch_id in self._epoch_ids:
            bounds = {"epoch_id": epoch_id, "after_id": after_id, "before_id": before_id}
            try:
                known += self._connection.execute(dump_sql.LIST_LEASES_BY_INDEX, bounds).fetchall()
            except dbapi.Error as error:
                if primary_code(error) != CORRUPT:
                    raise
        upper = "on" if before_id >= _END else f"to {before_id - 1}"
        self._passed_by(
            f"rows {after_id + 1} {upper} of sqs_leases can't be read: {len(known)} of their messages are known by an "
            "index, and dumped as never received if they can be read themselves"
        )
        for row_id, epoch_id, sent_at in sorted(set(known)):
            try:
                rows = self._fetch(sql.SELECT_MESSAGE, (row_id,))
            except dbapi.Error as error:
                if primary_code(error) != CORRUPT:
                    raise
                self._passed_by(f"message {row_id} is damaged: its page can't be read")
                continue
            message = StoredMessage(*rows[0]) if rows else None
            yield row_id, Stored(row_id, epoch_id, message, sent_at=sent_at)


def is_plain(found: Stored) -> bool:
    """Whether the row is sound, by checks that cost next to nothing."""
    message = found.message
    first = found.first_received_at
    return (
        message is not None
        and type(message.body) is str
        and type(message.message_id) is bytes
        and len(message.message_id) == UUID_BYTES
        and type(message.attributes) in _TEXTS
        and type(message.group_id) in _TEXTS
        and type(message.trace_header) in _TEXTS
        and type(message.sender_id) in _TEXTS
        and type(found.deduplication_id) in _TEXTS
        and type(found.source_arn) in _TEXTS
        and (found.earlier is None or _are_moves(found.earlier))
        and type(found.sent_at) is type(found.visible_at) is int
        and type(found.receive_count) is type(found.queue_receive_count) is int
        and 0 <= found.sent_at <= LARGEST
        and 0 <= found.visible_at <= LARGEST
        and 0 <= found.receive_count <= LARGEST
        and 0 <= found.queue_receive_count <= found.receive_count
        and (first is None or (type(first) is int and 0 <= first <= LARGEST))
        and (found.source_arn is None or _has_provenance(found))
    )


def _has_provenance(found: Stored) -> bool:
    count, moved_at = found.source_receive_count, found.moved_at
    return (
        isinstance(found.source_arn, str)
        and is_queue_arn(found.source_arn)
        and type(count) is type(moved_at) is int
        and 0 <= count <= LARGEST
        and 0 <= moved_at <= LARGEST
    )


def _are_moves(earlier: str) -> bool:
    try:
        moves = dead_letters.read(earlier)
    except (TypeError, ValueError):
        return False
    return len(moves) <= MOST_EARLIER and all(is_queue_arn(move.source_arn) for move in moves)


def mended(found: Stored, queue_name: str, now_ms: int, passed_by: Callable[[str], None]) -> Stored:
    """A damaged row whose message is whole, with defaults for values that are not valid: never received, sent now.

    Raises:
        Corrupt: why the message itself can't be dumped.
    """
    if found.message is None:
        raise Corrupt("its row in sqs_messages is missing")
    check_message(found.message)
    told = "its lease is damaged: dumped with the times and counts that can be read"
    passed_by(line(found.id, queue_name, told))
    plain = Stored(found.id, found.epoch_id, found.message, sent_at=now_ms)
    numbers = ("sent_at", "first_received_at", "receive_count", "queue_receive_count", "visible_at")
    kept: dict[str, Any] = {
        name: number
        for name in numbers
        if type(number := getattr(found, name)) is int and 0 <= number <= LARGEST
    }
    if isinstance(found.deduplication_id, str):
        kept["deduplication_id"] = found.deduplication_id
    if _has_provenance(found):
        whole = ("source_arn", "source_receive_count", "moved_at")
        kept.update((name, getattr(found, name)) for name in whole)
        if isinstance(found.earlier, str) and _are_moves(found.earlier):
            kept["earlier"] = found.earlier
    kept["receive_count"] = max(kept.get("receive_count", 0), kept.get("queue_receive_count", 0))
    return plain._replace(**kept)


def check_loadable(dumped: DumpedMessage) -> None:
    """Check that `load` accepts a message, except for its size.

    Raises:
        Corrupt: why it does not.
    """
    trace = dumped.trace_header
    system = {TRACE_HEADER: MessageAttributeValue(data_type="String", string_value=trace)} if trace else None
    try:
        prepare_message(
            dumped.body,
            dumped.attributes,
            system,
            dumped.group_id,
            dumped.deduplication_id,
            limits=limits.NATIVE,
        )
    except SQSError as error:
        raise Corrupt(f"no queue would take it: {error.message}") from error
    if dumped.group_id is None and dumped.queue.endswith(".fifo"):
        raise Corrupt("its message group is missing")


def check_deduplication(dumped: DumpedDeduplication) -> None:
    """Check the types of the values, and the message id.

    Raises:
        Corrupt: a value is not valid.
    """
    try:
        decode(encode(dumped))
        uuid.UUID(dumped.message_id)
    except ValueError as error:  # msgspec's among them
        raise Corrupt(str(error)) from error


def loadable_attributes(stored: dict[str, str], *, fifo: bool) -> dict[str, str]:
    """The attributes that a new queue can have."""
    if _is_allowed(stored, fifo=fifo):
        return stored
    return {name: text for name, text in stored.items() if _is_allowed({name: text}, fifo=fifo)}


def _is_allowed(some: dict[str, str], *, fifo: bool) -> bool:
    try:
        queue_attributes.parse_attributes(some, fifo=fifo, creating=True, limits=limits.NATIVE, current=None)
    except (SQSError, ValueError):
        return False
    return True


def loadable_tags(stored: dict[str, str]) -> dict[str, str]:
    """The tags that a new queue can have."""
    return {key: value for key, value in stored.items() if _is_tag(key, value)}


def _is_tag(key: str, value: str) -> bool:
    try:
        check_tags({key: value}, limits.NATIVE)
    except SQSError:
        return False
    return True


def _stored(row: tuple[Any, ...]) -> Stored:
    message = None if row[2] is None else StoredMessage._make(row[2:10])
    return Stored(row[0], row[1], message, *row[10:])


def _corrupt(text: str) -> Exception:
    error: Exception = dbapi.DatabaseError(text)
    error.sqlite_errorcode = CORRUPT  # type: ignore[attr-defined]
    return error
