"""Writing for the event loop: requests that arrive together share one transaction, on a thread of their own.

What is submitted in one turn of the loop, and whatever comes while the thread syncs the commit before, is one batch.
Nobody is answered before the sync that covers the answer.
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

# Seconds that a transaction which has begun is given to end, once the rest is given up.
LAST_SECONDS = 1.0
# Calls in one transaction at most, and bytes of their requests, but for the first: bounds how long that one waits.
BATCH_LIMIT = 256
BATCH_BYTES = 8 * 1024 * 1024


class _Submitted(NamedTuple):
    call: Call
    future: "asyncio.Future[Any]"
    size_bytes: int


class Commits:
    """The writing thread of one event loop.

    Args:
        committing: called, on that thread, with the number of operations in each transaction.
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
        # Under the lock: a call is either begun before the rest is given up, or never.
        self._lock = threading.Lock()
        self._is_writing = False
        self._is_given_up = False
        self._thread = threading.Thread(target=self._run, name="sqsqlite-commits", daemon=True)
        self._thread.start()

    def submit(
        self, operation: Callable[..., Any], *arguments: Any, size_bytes: int = 0
    ) -> "asyncio.Future[Any]":
        """Run `operation(tx, *arguments)`; the future ends after the commit, with its result or its error.

        Args:
            size_bytes: about how much it writes.
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
        return StoreClosed(f"{self._store.path}: the server is being stopped")

    def _perform(self, tx: "Transaction", operation: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """On the thread, inside the transaction: the lock that others may hold for long is ours."""
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
        """Write one batch. What came of it is not kept here while the thread waits for the next: it may be long."""
        self._committing(len(batch))
        outcomes = self._outcomes([submitted.call for submitted in batch])
        self._tell_loop(self._deliver, batch, outcomes)
        self._is_writing = False

    def _tell_loop(self, function: Callable[..., object], *arguments: Any) -> None:
        # A loop that has given this thread up may have ended without it.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _outcomes(self, calls: list[Call]) -> list[Entry]:
        try:
            return self._store.write_many(calls)
        except Exception as error:  # noqa: BLE001 - the clients are answered with it, and the thread goes on
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
        # An error knows the frames that know these lists: left as they are, the others' results would stay with it.
        submitted.clear()
        outcomes.clear()

    def give_up(self) -> None:
        """Refuse what has not begun. What has is a moment from its commit, and is given a second."""
        with self._lock:
            self._is_given_up = True
            is_writing = self._is_writing
        if is_writing:
            in_doubt = CommitInDoubt(f"{self._store.path}: the server was stopped during the commit")
            self._loop.call_later(LAST_SECONDS, self._abandon, in_doubt)
        else:
            # Behind the outcomes that the loop has been told of.
            self._loop.call_soon(self._abandon, self._stopped())

    def _abandon(self, error: StoreError) -> None:
        """The thread may wait for long still, for the lock or the disk: nobody waits for the thread."""
        for future in self._open:
            if not future.done():
                future.set_exception(error)
        self._open.clear()
        self._end()

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    async def close(self) -> None:
        """Write what was submitted, and end the thread; behind `give_up` it is left behind, if need be."""
        self._closed = True
        self._hand_over()
        self._batches.put(None)
        await self._ended


def _fitting(waiting: list[_Submitted]) -> int:
    """How many of those that wait, at least one, make the next transaction."""
    size_bytes = waiting[0].size_bytes
    for count, submitted in enumerate(waiting[1:BATCH_LIMIT], 1):
        size_bytes += submitted.size_bytes
        if size_bytes > BATCH_BYTES:
            return count
    return min(len(waiting), BATCH_LIMIT)
