# SPDX-License-Identifier: Apache-2.0
"""Work that no answer waits for: checkpoints, sweeping what is gone, forgetting old history, message move tasks.

One thread a store, started when the first commit makes work for it. Nothing depends on it: a claim passes over what
has expired, and what a process leaves undone the next one finds. Chunks are small and followed by a pause, so that no
writer waits for more than a few milliseconds.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from sqsqlite.errors import Corrupt, SQSQLiteError
from sqsqlite.store.checkpoints import checkpoint
from sqsqlite.store.driver import dbapi
from sqsqlite.store.file import File
from sqsqlite.store.interrupts import Signal
from sqsqlite.store.transaction import Snapshot, Transaction, snapshot

R = TypeVar("R")

# Commits between two PASSIVE checkpoints; a commit of one message writes about 8 pages.
CHECKPOINT_EVERY_COMMITS = 256
# As which messages count that would fill the ballast: what the WAL owes the file must fit in there.
COMMITS_OF_BALLAST = 2 * CHECKPOINT_EVERY_COMMITS
# A chunk of sweeping or moving writes as many pages as this many commits of one message.
CHUNK_COMMITS = 32
# The pause behind a chunk of a move, as a part of the chunk's time: consumers wait for these messages.
MOVE_PAUSE = 0.5
# Seconds between two looks for expired messages and other things that time alone makes, or another process.
LOOK_EVERY = 5.0
# Seconds that `close` spends on sweeping what this process itself discarded, and on what is left to move: a task begun
# by a command, which is over at once, would otherwise wait for a process that stays.
LAST_CHUNKS = 0.05


class Chores(NamedTuple):
    """What upkeep does with rows: functions of the engine's.

    Attributes:
        sweep_chunk: frees some space from a place on, and gives the place where to go on (None: nothing is left).
        next_move_at: the instant at which this worker has a chunk to move (None: never).
        move_chunk: moves one, if it is due.
        leave_moves: leaves to other workers what is not finished.
    """

    sweep_chunk: Callable[[Transaction, int], int | None]
    next_move_at: Callable[[Snapshot, bytes], int | None]
    move_chunk: Callable[[Transaction, bytes], None]
    leave_moves: Callable[[Transaction, bytes], None]


class Upkeep:
    """The upkeep of one store.

    Args:
        write: commits an operation, as `Store.write` does.
    """

    def __init__(self, file: File, chores: Chores, write: Callable[..., Any]) -> None:
        self._file = file
        self._write = write
        self._chores = chores
        self._lock = threading.Lock()
        self._work = Signal()
        self._thread: threading.Thread | None = None
        self._commits = 0
        self._sweep_from: int | None = 0  # a process before may have left something
        self._look_at = self._visit_at = 0.0
        self._worker = os.urandom(8)
        self._reported = ""
        self._has_moved = False
        self._move_at: int | None = None
        self._closed = False

    def opened(self) -> None:
        """Go on with the move tasks that a process before has left."""
        self._visit_at = time.monotonic() + LOOK_EVERY
        try:
            with snapshot(self._file) as found:
                self._move_at = self._chores.next_move_at(found, self._worker)
        except Corrupt:
            return  # a file whose move tasks can't be read must open: its messages may be whole, `dump` saves them
        if self._move_at is not None:
            self._start()
            self._work.set()

    def committed(self, tx: Transaction) -> None:
        """After each commit: count it, and wake the thread when there is something to do."""
        self._commits += 1
        if tx.sent_bytes:
            self._commits += COMMITS_OF_BALLAST * tx.sent_bytes // self._file.headroom.ballast_bytes
        if tx.sweep:
            self._sweep_anew()
        due = tx.sweep or tx.moves or self._commits >= CHECKPOINT_EVERY_COMMITS
        if due or time.monotonic() >= self._look_at:
            self._start()
            self._work.set()

    def visited(self) -> None:
        """Now and then, also in a process that only looks for messages: others may have left move tasks."""
        if time.monotonic() >= self._visit_at:
            self._visit_at = time.monotonic() + LOOK_EVERY
            self._start()
            self._work.set()

    def _start(self) -> None:
        if self._is_running or self._closed:
            return
        with self._lock:
            if not self._is_running:
                thread = threading.Thread(target=self._run, name="sqsqlite-upkeep", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return  # no thread is to be had; called behind a commit, which stands: the next one tries again
                self._thread = thread

    @property
    def _is_running(self) -> bool:
        """False also of a thread that died: a handler of logging raised in it, say, while it reported an error."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        has_failed = False
        while not self._closed:
            try:
                self._wait(has_failed)
                self._work.clear()
                if self._closed:
                    return
                has_failed = False
                self._round()
            except (SQSQLiteError, dbapi.Error) as error:
                # Busy, a full disk, a closed store: the next writer meets the error itself. A damaged row may be one
                # that only upkeep reads.
                has_failed = True
                if isinstance(error, Corrupt):
                    self._report(error)
            except Exception as error:  # noqa: BLE001 - the thread must outlive it: else no WAL is ever begun again
                has_failed = True
                self._report(error)

    def _report(self, error: Exception) -> None:
        """Log it with its traceback, as an error of the logger "sqsqlite": once, for it may come at each commit."""
        import logging

        said = f"{type(error).__name__}: {error}"
        if said != self._reported:
            self._reported = said
            logging.getLogger("sqsqlite").error(
                "%s: upkeep failed, and tries again: %s", self._file.path, said, exc_info=error
            )

    def _wait(self, has_failed: bool) -> None:
        """For work, or for the instant at which a move task goes on; after a failure a while."""
        if has_failed:
            self._work.wait(LOOK_EVERY)
        elif self._move_at is None:
            self._work.wait()
        else:
            self._file.clock.wait(self._work, self._move_at)

    def _round(self) -> None:
        if self._commits >= CHECKPOINT_EVERY_COMMITS:
            self._commits = 0
            checkpoint(self._file)
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_EVERY
            self._sweep_anew()
        while not self._closed:
            move = self._is_move_due()
            if not (move or self._sweep_from is not None):
                return
            if self._sweep_from is not None:
                self._sweep_from = self._chunk(self._chores.sweep_chunk, self._sweep_from)
            if move and not self._closed:
                self._has_moved = True
                self._chunk(self._chores.move_chunk, self._worker, pause=MOVE_PAUSE)

    def _sweep_anew(self) -> None:
        """Look at all queues, unless a look is under way: that goes on, and what is behind it waits for the next."""
        if self._sweep_from is None:
            self._sweep_from = 0

    def _is_move_due(self) -> bool:
        with snapshot(self._file) as found:
            self._move_at = self._chores.next_move_at(found, self._worker)
        return self._move_at is not None and self._move_at <= self._file.clock.now_ms()

    def _chunk(self, operation: Callable[..., R], *arguments: object, pause: float = 1.0) -> R:
        """One transaction, and a pause as long, or `pause` times as long."""
        started = time.monotonic()
        result: R = self._write(operation, *arguments)
        self._commits += CHUNK_COMMITS
        if self._commits >= CHECKPOINT_EVERY_COMMITS:
            self._commits = 0
            checkpoint(self._file)
        time.sleep(pause * (time.monotonic() - started))
        return result

    def close(self) -> None:
        """Stop the thread, after a last few chunks of what it has to do."""
        deadline = time.monotonic() + LAST_CHUNKS
        self._closed = True
        self._work.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5)
        try:
            while self._sweep_from is not None and thread is not None and time.monotonic() < deadline:
                self._sweep_from = self._write(self._chores.sweep_chunk, self._sweep_from)
            while thread is not None and time.monotonic() < deadline and self._is_move_due():
                self._has_moved = True
                self._write(self._chores.move_chunk, self._worker)
            if self._has_moved:
                self._write(self._chores.leave_moves, self._worker)
        except (SQSQLiteError, dbapi.Error):
            return  # the next process finds it

    def after_fork_in_child(self) -> None:
        """The thread stayed in the parent."""
        self.__init__(self._file, self._chores, self._write)  # type: ignore[misc]
