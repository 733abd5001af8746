# SPDX-License-Identifier: Apache-2.0
"""How every write transaction begins and what follows its commit, whether it is a group's or the application's own."""

from collections import Counter

from sqsqlite.store import meta, secrecy
from sqsqlite.store.checkpoints import require_growth
from sqsqlite.store.clock import FileClock
from sqsqlite.store.connections import PlainConnection
from sqsqlite.store.damage import warn_of_damage
from sqsqlite.store.driver import Connection
from sqsqlite.store.file import File
from sqsqlite.store.neutral import run
from sqsqlite.store.transaction import Transaction, write_counts
from sqsqlite.store.upkeep import Upkeep
from sqsqlite.store.wake import Waker

# Seconds of waiting for the turn that are not taken off the wait for SQLite's own lock: that costs two statements.
SHORT_WAIT = 0.1


class Transactions:
    """The write transactions of one file."""

    def __init__(self, file: File, waker: Waker, upkeep: Upkeep) -> None:
        self.file = file
        self._waker = waker
        self._upkeep = upkeep
        self._empty_receives: Counter[int] = Counter()

    def begin(self, connection: Connection, timeout: float) -> Transaction:
        """BEGIN IMMEDIATE, and one look at the clock. The caller holds the turn.

        Args:
            timeout: seconds to wait for SQLite's own lock: what the wait for the turn has left of busy_timeout.
        """
        file = self.file
        if file.headroom.is_measure_due():
            require_growth(file, connection)
        # One cursor for the hot statements: to make one for each costs as much as the shortest of them.
        execute = connection.cursor().execute if type(connection) is PlainConnection else connection.execute
        if file.busy_timeout - timeout < SHORT_WAIT:
            execute("BEGIN IMMEDIATE")
        else:
            run(connection, f"PRAGMA busy_timeout = {round(timeout * 1000)}")
            try:
                execute("BEGIN IMMEDIATE")
            finally:
                run(connection, f"PRAGMA busy_timeout = {round(file.busy_timeout * 1000)}")
        return Transaction(connection, execute, file.clock.now_ms(), file.settings, file.headroom)

    def finish(self, tx: Transaction) -> None:
        """Before the COMMIT of a transaction of ours: its counts, the clock's difference, and the disk's margin.

        Raises:
            DiskFull: the commit would leave less than the next checkpoint needs.
        """
        if self._empty_receives:
            self.count_empty_receives(tx)
        self._note_difference(tx)
        write_counts(tx)
        self.file.headroom.require_margin(tx.connection)

    def _note_difference(self, tx: Transaction) -> None:
        """Note in the file how far the wall clock is ahead of the file's, if that changed."""
        file = self.file
        if tx.deltas and isinstance(file.clock, FileClock):
            difference_ms = file.clock.behind_ms()
            if abs(difference_ms - file.difference_ms) > meta.DIFFERENCE_NOTED_MS:
                meta.note_difference(tx.connection, difference_ms, tx.now_ms)
                tx.difference_ms = difference_ms

    def committed(self, tx: Transaction) -> None:
        """After a commit and its answers: wake sleepers, give upkeep its due, log skipped messages, call what waits."""
        if tx.difference_ms is not None:
            self.file.difference_ms = tx.difference_ms
        if tx.wakes:
            self._waker.announce(tx.wakes)
        if tx.has_erased:
            secrecy.empty_wal(self.file)
        self._upkeep.committed(tx)
        if tx.damaged:
            warn_of_damage(self.file.path, tx.damaged)
        for call in tx.after_commit:
            call()

    def remember_empty_receive(self, epoch_id: int) -> None:
        """Remember a receive that returned nothing: summed in memory, written with the next commit."""
        self._empty_receives[epoch_id] += 1
        self._upkeep.visited()

    @property
    def has_empty_receives(self) -> bool:
        """Whether some are remembered and not written yet."""
        return bool(self._empty_receives)

    def count_empty_receives(self, tx: Transaction) -> None:
        """Put the remembered empty receives into the transaction's counts."""
        drained, self._empty_receives = self._empty_receives, Counter()
        for epoch_id, count in drained.items():
            tx.delta(epoch_id).empty_receives += count
