"""Writing for the event loop: requests that arrive together share one transaction, on a thread of their own.

What is submitted in one turn of the loop, and whatever comes while the thread syncs the commit before, is one batch.
Nobody is answered before the sync that covers the answer.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqsqlite.errors import StoreClosed
from sqsqlite.store.batch import Call, Outcome, write_all

if TYPE_CHECKING:
    from sqsqlite.store.store import Store

# Calls in one transaction at most: bounds how long the first of them waits.
BATCH_LIMIT = 256

_Submitted = tuple[Call, "asyncio.Future[Any]"]


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
        self._thread = threading.Thread(target=self._run, name="sqsqlite-commits", daemon=True)
        self._thread.start()

    def submit(self, operation: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
        """Run `operation(tx, *arguments)`; the future ends after the commit, with its result or its error."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if self._closed:
            future.set_exception(StoreClosed(f"{self._store.path}: the server is being stopped"))
            return future
        if not self._turn:
            self._loop.call_soon(self._hand_over)
        self._turn.append((Call(operation, arguments), future))
        return future

    def _hand_over(self) -> None:
        if self._turn:
            self._batches.put(self._turn)
            self._turn = []

    def _run(self) -> None:
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
            now, waiting = waiting[:BATCH_LIMIT], waiting[BATCH_LIMIT:]
            self._committing(len(now))
            outcomes = self._outcomes([call for call, _ in now])
            self._loop.call_soon_threadsafe(_deliver, now, outcomes)

    def _outcomes(self, calls: list[Call]) -> list[Outcome]:
        try:
            return write_all(self._store, calls)
        except Exception as error:  # noqa: BLE001 - theirs who wait for an answer: the thread must go on
            return [Outcome(None, error)] * len(calls)

    async def close(self) -> None:
        """Write what was submitted, and end the thread."""
        self._closed = True
        self._hand_over()
        self._batches.put(None)
        await self._loop.run_in_executor(None, self._thread.join)


def _deliver(submitted: list[_Submitted], outcomes: list[Outcome]) -> None:
    for (_, future), outcome in zip(submitted, outcomes, strict=True):
        if future.cancelled():
            continue
        if outcome.error is None:
            future.set_result(outcome.result)
        else:
            future.set_exception(outcome.error)
