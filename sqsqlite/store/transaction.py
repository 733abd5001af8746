"""What an operation works with: one write transaction, at one instant."""

from collections.abc import Callable
from typing import Any

from sqsqlite.errors import SQSError
from sqsqlite.store.driver import Connection
from sqsqlite.store.headroom import Headroom
from sqsqlite.store.settings import Settings


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
        """Messages sent at or before this instant are beyond a retention of so many seconds."""
        return self.settings.jumps.expired_at(retention_seconds, self.now_ms)


class Transaction(Snapshot):
    """A connection inside BEGIN IMMEDIATE, the instant, and what is to follow the commit.

    Operations take it, and neither begin, commit, sleep nor look at a clock themselves.

    Attributes:
        headroom: the disk's margin.
        damaged: a line for each message that was passed by because its row is damaged: logged after the commit.
        deltas: changes of the counts by epoch id, written once, before the commit.
        wakes: queue id -> the earliest instant at which something of the queue becomes receivable (0: at once).
        sent_bytes: of the messages that were sent: how much longer the WAL gets.
        sweep: whether rows were discarded that upkeep should take away.
        moves: whether a message move task began that upkeep should carry out.
        has_erased: whether a secret was deleted, which the WAL shall not keep either.
        is_callers: a transaction of the caller's: it holds rows that depend on what is settled in it, so a settle
            succeeds only if it settles.
        unsettled: what batches in it left unsettled, and nobody has said to have looked at.
        difference_ms: by how much the wall clock is ahead of the file's, if this transaction notes it in the file.
        is_over: a caller's transaction that was committed or rolled back.
    """

    # Defaults of the class: most transactions set none of them.
    damaged: tuple[str, ...] = ()
    sent_bytes = 0
    sweep = moves = has_erased = False
    is_callers = is_over = False
    difference_ms: int | None = None
    unsettled: tuple[SQSError, ...] = ()

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
        """Raise DiskFull if a send of so many bytes would leave no room to receive and delete."""
        self.headroom.require(size_bytes, self.connection)
        self.sent_bytes += size_bytes

    def forget(self) -> None:
        """After a rollback: nothing was counted, nobody is to be woken."""
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
        """After the commit, tell those who wait for the queue that something is receivable from `visible_at` on."""
        wakes = self.wakes
        earlier = wakes.get(queue_id)
        if earlier is None or visible_at < earlier:
            wakes[queue_id] = visible_at
