# SPDX-License-Identifier: Apache-2.0
"""What an operation works with: a snapshot or a write transaction at one instant, and the counts that it changes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from sqsqlite.errors import SQSError
from sqsqlite.sql import queues as sql
from sqsqlite.store.damage import ODD, damage_behind
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.file import File, Settings
from sqsqlite.store.headroom import Headroom
from sqsqlite.store.translate import translate


class Delta:
    """What one transaction changes in a queue's `sqs_queue_counts` row. All numbers are differences."""

    # Defaults of the class: most operations change three or four of them.
    messages = in_flight = delayed = turn = 0
    sent = received = deleted = dead_lettered = deduplicated = empty_receives = sent_bytes = 0

    def copy(self) -> "Delta":
        twin = Delta()
        vars(twin).update(vars(self))
        return twin


class Snapshot:
    """A connection that reads one state of the file, and the instant: what an operation that writes nothing takes.

    Attributes:
        execute: the connection's own `execute`.
        run: the same for hot statements, at less cost: what it gives is good until the next `run`.
        now_ms: the one instant of the operation, milliseconds since 1970 UTC.
        settings: what the file was opened with.
    """

    def __init__(self, connection: Connection, now_ms: int, settings: Settings) -> None:
        self.connection = connection
        self.execute: Callable[..., Any] = connection.execute
        self.run = self.execute
        self.now_ms = now_ms
        self.settings = settings

    def expired_at(self, retention_seconds: int) -> int:
        """Messages sent at or before this instant are beyond a retention of that many seconds."""
        return self.settings.jumps.expired_at(retention_seconds, self.now_ms)


class Transaction(Snapshot):
    """A connection inside BEGIN IMMEDIATE, the instant, and what is to follow the commit.

    Operations take it, and neither begin, commit, sleep nor look at a clock themselves.

    Attributes:
        headroom: the disk's margin.
        damaged: a line for each message that was skipped because its row is damaged; logged after the commit.
        deltas: changes of the counts by epoch id, written once, before the commit.
        wakes: queue id -> the earliest instant at which something of the queue becomes receivable (0: at once).
        sent_bytes: of the messages that were sent: how much longer the WAL gets.
        sweep: whether rows were discarded that upkeep should take away.
        moves: whether a message move task began that upkeep should carry out.
        has_erased: whether a secret was deleted, which the WAL shall not keep either.
        is_callers: a transaction of the caller's: it holds rows that depend on what is settled in it, so a settle
            succeeds only if it settles.
        unsettled: errors of batches in it, which the caller has not accepted yet.
        difference_ms: by how much the wall clock is ahead of the file's, if this transaction notes it in the file.
        is_over: a caller's transaction that was committed or rolled back.
        after_commit: of a caller's transaction: called once it has committed and has left the turn. They raise nothing.
    """

    # Defaults of the class: most transactions set none of them.
    damaged: tuple[str, ...] = ()
    sent_bytes = 0
    sweep = moves = has_erased = False
    is_callers = is_over = False
    difference_ms: int | None = None
    unsettled: tuple[SQSError, ...] = ()
    after_commit: tuple[Callable[[], None], ...] = ()

    def __init__(
        self,
        connection: Connection,
        run: Callable[..., Any],
        now_ms: int,
        settings: Settings,
        headroom: Headroom,
    ) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.run = run
        self.now_ms = now_ms
        self.settings = settings
        self.headroom = headroom
        self.deltas: dict[int, Delta] = {}
        self.wakes: dict[int, int] = {}

    def require_room(self, size_bytes: int) -> None:
        """Raise DiskFull if a send of that many bytes would leave no room to receive and delete."""
        self.headroom.require(size_bytes, self.connection)
        self.sent_bytes += size_bytes

    def forget(self) -> None:
        """After a rollback: there is nothing to count, and no consumer to wake."""
        self.damaged = ()
        self.deltas.clear()
        self.wakes.clear()
        self.sent_bytes = 0
        self.sweep = self.moves = self.has_erased = False

    def delta(self, epoch_id: int) -> Delta:
        """This transaction's changes to the counts of one epoch."""
        found = self.deltas.get(epoch_id)
        if found is None:
            found = self.deltas[epoch_id] = Delta()
        return found

    def wake(self, queue_id: int, visible_at: int) -> None:
        """After the commit, tell waiting consumers of the queue that something is receivable from `visible_at` on."""
        wakes = self.wakes
        earlier = wakes.get(queue_id)
        if earlier is None or visible_at < earlier:
            wakes[queue_id] = visible_at


MINUTE_MS = 60_000


def write_counts(tx: Transaction) -> None:
    """Write what the transaction changed: once a queue, right before the commit.

    In a caller's own transaction it follows each operation, so that the caller's savepoints cover it.
    """
    if not tx.deltas:
        return
    minute_at = tx.now_ms - tx.now_ms % MINUTE_MS
    for epoch_id, delta in tx.deltas.items():
        row = (
            delta.messages,
            delta.in_flight,
            delta.delayed,
            delta.turn,
            delta.sent,
            delta.received,
            delta.deleted,
            delta.dead_lettered,
            delta.deduplicated,
            delta.empty_receives,
            delta.sent_bytes,
            epoch_id,
            minute_at,
        )
        if tx.run(sql.ADD_COUNTS, row).rowcount == 0:
            close_minute(tx, epoch_id, minute_at)
            tx.execute(sql.ADD_COUNTS, row)
    tx.deltas.clear()


def close_minute(tx: Transaction, epoch_id: int, minute_at: int) -> None:
    """The open minute becomes history, and `minute_at` is the open one."""
    tx.execute(sql.CLOSE_MINUTE, {"epoch_id": epoch_id})
    tx.execute(sql.OPEN_MINUTE, {"epoch_id": epoch_id, "minute_at": minute_at})


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
