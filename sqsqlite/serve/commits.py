# SPDX-License-Identifier: Apache-2.0
"""Writing for the event loop: requests that arrive together share one transaction, on one thread.

A batch is what the loop submits in one iteration, plus what arrives while the thread syncs the commit before. A request
is answered only after the sync that covers it.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from sqsqlite.errors import CommitInDoubt, StoreClosed, StoreError
from sqsqlite.store.line import Call, Entry

if TYPE_CHECKING:
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction

# Seconds for a transaction that has begun to end, after the others have been refused.
LAST_SECONDS = 1.0
# The most calls in one transaction, and the most bytes of their requests. This limits how long the first one waits.
BATCH_LIMIT = 256
BATCH_BYTES = 8 * 1024 * 1024


class _Submitted(NamedTuple):
    call: Call
    future: asyncio.Future[Any]
    size_bytes: int


class Commits:
    """The writing thread of one event loop.

    Args:
        committing: called on that thread with the number of operations in each transaction.
    """

    def __init__(self, store: "Store", committing: Callable[[int], object]) -> None:
        self._store = store
        self._committing = committing
        self._loop = asyncio.get_running_loop()
        self._turn: list[_Submitted] = []
        self._batches: queue.SimpleQueue[list[_Submitted] | None] = queue.SimpleQueue()
        self._closed = False
        self._open: set[asyncio.Future[Any]] = set()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        # Under the lock: a call begins before `give_up`, or never.
        self._lock = threading.Lock()
        self._is_writing = False
        self._is_given_up = False
        self._thread = threading.Thread(target=self._run, name="sqsqlite-commits", daemon=True)
        self._thread.start()

    def submit(
        self, operation: Callable[..., Any], *arguments: Any, size_bytes: int = 0
    ) -> asyncio.Future[Any]:
        """Run `operation(tx, *arguments)` in a transaction.

        Args:
            size_bytes: about how much the operation writes.

        Returns:
            A future that has the result or the error after the commit.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        if self._closed or self._is_given_up:
            future.set_exception(self._stopped())
            return future
        if not self._turn:
            self._loop.call_soon(self._hand_over)
        self._open.add(future)
        self._turn.append(_Submitted((self._perform, (operation, arguments)), future, size_bytes))
        return future

    def _stopped(self) -> StoreClosed:
        return StoreClosed(f"{self._store.path}: the server is stopping")

    def _perform(self, tx: "Transaction", operation: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Run one call inside the transaction, on the thread. The write lock, which may take long, is held by now."""
        with self._lock:
            if self._is_given_up:
                raise self._stopped()
            self._is_writing = True
        return operation(tx, *arguments)

    def _hand_over(self) -> None:
        if self._turn:
            self._batches.put(self._turn)
            self._turn = []

    def _run(self) -> None:
        self._write_batches()
        self._tell_loop(self._end)

    def _write_batches(self) -> None:
        waiting: list[_Submitted] = []
        open_for_more = True
        while open_for_more or waiting:
            if not waiting:
                batch = self._batches.get()
                if batch is None:
                    return
                waiting = batch
            while open_for_more and not self._batches.empty():
                batch = self._batches.get()
                if batch is None:
                    open_for_more = False
                else:
                    waiting += batch
                    batch.clear()
            count = _fitting(waiting)
            self._write(waiting[:count])
            del waiting[:count]

    def _write(self, batch: list[_Submitted]) -> None:
        """Write one batch. No local keeps the results while the thread waits for the next batch: they may be large."""
        self._committing(len(batch))
        outcomes = self._outcomes([submitted.call for submitted in batch])
        self._tell_loop(self._deliver, batch, outcomes)
        self._is_writing = False

    def _tell_loop(self, function: Callable[..., object], *arguments: Any) -> None:
        # After `give_up`, the loop may have ended before this thread.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _outcomes(self, calls: list[Call]) -> list[Entry]:
        try:
            return self._store.write_many(calls)
        except Exception as error:  # noqa: BLE001 - the clients get the error, and the thread goes on
            failed = Entry(*calls[0])
            failed.error = error
            return [failed] * len(calls)

    def _deliver(self, submitted: list[_Submitted], outcomes: list[Entry]) -> None:
        for (_, future, _), outcome in zip(submitted, outcomes, strict=True):
            self._open.discard(future)
            if future.done():
                continue
            if outcome.error is None:
                future.set_result(outcome.result)
            else:
                future.set_exception(outcome.error)
        # An error refers to frames that refer to these lists and to its own entry. It would keep all results alive, and
        # itself with its request.
        for outcome in outcomes:
            outcome.error = None
        submitted.clear()
        outcomes.clear()

    def give_up(self) -> None:
        """Refuse the writes that have not begun. One that has begun gets `LAST_SECONDS` to commit."""
        with self._lock:
            self._is_given_up = True
            is_writing = self._is_writing
        if is_writing:
            in_doubt = CommitInDoubt(f"{self._store.path}: the server was stopped during the commit")
            self._loop.call_later(LAST_SECONDS, self._abandon, in_doubt)
        else:
            # After the results that the loop has already received.
            self._loop.call_soon(self._abandon, self._stopped())

    def _abandon(self, error: StoreError) -> None:
        """Answer all open requests, and do not wait for the thread: the lock or the disk may block it for long."""
        for future in self._open:
            if not future.done():
                future.set_exception(error)
        self._open.clear()
        self._end()

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    async def close(self) -> None:
        """Finish the submitted writes, and stop the thread. After `give_up`, do not wait for it."""
        self._closed = True
        self._hand_over()
        self._batches.put(None)
        await self._ended


def _fitting(waiting: list[_Submitted]) -> int:
    """How many of the waiting calls, at least one, fit in the next transaction."""
    size_bytes = waiting[0].size_bytes
    for count, submitted in enumerate(waiting[1:BATCH_LIMIT], 1):
        size_bytes += submitted.size_bytes
        if size_bytes > BATCH_BYTES:
            return count
    return min(len(waiting), BATCH_LIMIT)
