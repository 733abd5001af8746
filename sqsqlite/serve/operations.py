# SPDX-License-Identifier: Apache-2.0
"""From a checked request to its response, in the event loop: writes share commits, and reads run in threads."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import dispatch
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract import requests
from sqsqlite.contract.requests import Request
from sqsqlite.contract.responses import ReceiveMessageResponse, Response
from sqsqlite.serve.client import HttpClient
from sqsqlite.serve.commits import Commits
from sqsqlite.serve.polls import Polls

if TYPE_CHECKING:
    from sqsqlite.store.store import Store

_READERS = 4


class Operations:
    """The operations of one store, in one event loop.

    Args:
        committing: see `Commits`.
        waiting: see `Polls`.
    """

    def __init__(
        self, store: "Store", committing: Callable[[int], object], waiting: Callable[[int], object]
    ) -> None:
        self.store = store
        self._commits = Commits(store, committing)
        self._polls = Polls(store, self._commits, waiting)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="sqsqlite-read")
        # One thread: slow reads delay only other slow reads.
        self._slow_reader = ThreadPoolExecutor(1, thread_name_prefix="sqsqlite-slow-read")

    async def execute(self, request: Request, caller: Caller, client: HttpClient) -> Response:
        """Execute a request, and report it to the store's observers.

        Raises:
            SQSError: what SQS answers.
            StoreError: the file can't be read or written.
        """
        started = time.perf_counter()
        try:
            response = await self._execute(request, caller, client)
        except Exception as error:
            dispatch.notify(self.store, request, None, error, time.perf_counter() - started)
            raise
        dispatch.notify(self.store, request, response, None, time.perf_counter() - started)
        return response  # type: ignore[no-any-return]

    async def _execute(self, request: Request, caller: Caller, client: HttpClient) -> Any:
        kind = type(request)
        operation = dispatch.WRITES.get(kind)
        if operation is not None:
            return await self._commits.submit(operation, request, caller, size_bytes=client.size_bytes)
        if isinstance(request, requests.ReceiveMessage):
            return await self._polls.receive(request, caller, client)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, dispatch.execute_read, self.store, request, caller)

    async def give_back(
        self, response: ReceiveMessageResponse, request: requests.ReceiveMessage, caller: Caller
    ) -> None:
        """Make the messages of a receive visible again, because its client has disconnected."""
        await self._polls.give_back(response, request, caller)

    async def in_thread(self, check: Callable[..., None], *arguments: Any) -> None:
        """Call a check that may read the file for a second, and raise what it raises."""
        await asyncio.get_running_loop().run_in_executor(self._slow_reader, check, *arguments)

    @property
    def waiting(self) -> int:
        """How many long polls wait now."""
        return sum(len(line.waiting) for line in self._polls.lines.values())

    def end_waits(self) -> None:
        """Answer the long polls now. New ones do not wait."""
        self._polls.end_waits()

    def give_up(self) -> None:
        """Refuse the writes that have not begun. See `Commits.give_up`."""
        self._commits.give_up()

    async def close(self) -> None:
        """Finish the submitted writes, and stop the threads."""
        await self._polls.close()
        await self._commits.close()
        self._readers.shutdown()
        self._slow_reader.shutdown()
