"""Reading the messages of a file for a dump: all of them, or of a damaged file as many as can be read."""

import json
from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.actions.queue_rows import StoredMessage
from sqsqlite.sql import messages as sql
from sqsqlite.sql import operators as dump_sql
from sqsqlite.store.damage import undecoded
from sqsqlite.store.driver import dbapi
from sqsqlite.store.translate import CORRUPT, is_undecodable, primary_code

if TYPE_CHECKING:
    from sqsqlite.store.driver import Connection

PAGE = 200
# Above any row id that AUTOINCREMENT gives in practice, and far enough below the largest number to count beyond it.
_END = 1 << 62
# Row ids skipped at a time on a damaged stretch, as a part of what was skipped: one by one at first.
_STRIDE = 64


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
        passed_by: is told of each stretch of the file that can't be read.
    """

    def __init__(
        self, connection: "Connection", epoch_ids: Collection[int], passed_by: Callable[[str], None]
    ) -> None:
        self._connection = connection
        self._epoch_ids = epoch_ids
        self._listed = json.dumps(list(epoch_ids))
        self._passed_by = passed_by

    def rows(self) -> Iterator[Stored]:
        """Page by page; a page that can't be read so is read row by row."""
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
        """The next row id that can be read (`_END`: there is none), and up to where none could."""
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
        """The row id behind one, `_END` if none is; None: the page can't be read."""
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
        """The messages of leases that can't be read, by what an index still knows: without counts and delays."""
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


def _stored(row: tuple[Any, ...]) -> Stored:
    message = None if row[2] is None else StoredMessage._make(row[2:10])
    return Stored(row[0], row[1], message, *row[10:])


def _corrupt(text: str) -> Exception:
    error: Exception = dbapi.DatabaseError(text)
    error.sqlite_errorcode = CORRUPT  # type: ignore[attr-defined]
    return error
