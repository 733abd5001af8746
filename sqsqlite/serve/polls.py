"""Receiving for the event loop: thousands of idle long polls, without a thread each.

The polls of one queue stand in line, and news of the queue concerns the line, not each of them: it is served from its
front until a claim finds nothing. A poll whose client has gone gets no lease.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from sqsqlite.access.failures import ServiceUnavailable
from sqsqlite.actions import receive, visibility
from sqsqlite.contract import requests
from sqsqlite.contract.responses import ReceiveMessageResponse
from sqsqlite.errors import SQSQLiteError
from sqsqlite.serve.alarm import Alarm
from sqsqlite.serve.budget import NoRoom
from sqsqlite.serve.client import HttpClient
from sqsqlite.store.wake import Waiter

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract.requests import ReceiveMessage
    from sqsqlite.serve.budget import Share
    from sqsqlite.serve.commits import Commits
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction

_FOREVER = 1 << 62
# Claims made at once for a line that was served without end; a claim that finds nothing is waste.
_MOST_AT_ONCE = 32
# How long at least a receive waits for the memory that its messages take, before it is refused.
ROOM_SECONDS = 20
_NO_ROOM = "There are too many long answers at once. Nothing was done: the same request may succeed later."


class Poll:
    """One ReceiveMessage that waits. `until`: milliseconds since 1970 UTC."""

    def __init__(self, request: "ReceiveMessage", caller: "Caller", client: HttpClient, until: int) -> None:
        self.request = request
        self.caller = caller
        self.client = client
        self.until = until
        self.answer: asyncio.Future[ReceiveMessageResponse] = asyncio.get_running_loop().create_future()

    def is_over(self) -> bool:
        """Whether nobody waits for messages any more. From any thread."""
        return self.answer.done() or self.client.is_gone()


class _News:
    """Set by the waker, on its thread: kicks the line in the loop."""

    def __init__(self, line: "_Line") -> None:
        self._line = line
        self._loop = asyncio.get_running_loop()
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def clear(self) -> None:
        self._is_set = False

    def set(self) -> None:
        if not self._is_set:
            self._is_set = True
            self._loop.call_soon_threadsafe(self._line.kicked.set)

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - nobody waits on it: the loop is told
        return self._is_set


class _Line:
    """The polls of one queue, first come first served."""

    def __init__(self, polls: "Polls", queue_id: int, epoch_id: int) -> None:
        self.queue_id = queue_id
        self.epoch_id = epoch_id
        self.kicked = asyncio.Event()
        self.has_room = False  # there is memory for a poll that waited for some
        self.wake_at = _FOREVER
        self.waiting: deque[Poll] = deque()
        self._polls = polls
        self._store = polls.store
        self._loop = asyncio.get_running_loop()
        self._waiter = Waiter(queue_id, _News(self))
        polls.store.waker.register(self._waiter)

    async def serve(self) -> None:
        """Until nobody waits any more."""
        try:
            while True:
                # From here on no news is missed.
                self.kicked.clear()
                self._waiter.event.clear()
                self._waiter.receivable = False
                self._waiter.due_at = None
                self._refuse_removed_keys()
                self.has_room = False
                next_at = await self._serve_those_who_wait()
                if not self.waiting:
                    return
                await self._sleep(next_at)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait are told
            for poll in self.waiting:
                if not poll.answer.done():
                    poll.answer.set_exception(error)
        finally:
            self._store.waker.forget(self._waiter)
            self._polls.lines.pop(self.queue_id, None)

    def _refuse_removed_keys(self) -> None:
        """End the polls whose key was removed meanwhile. The removal is a commit, and so it has brought us here."""
        present: set[str] = set()
        for poll in self.waiting:
            if poll.client.key_id in present or poll.answer.done():
                continue
            try:
                poll.client.check_key()
            except SQSQLiteError as error:
                poll.answer.set_exception(error)
            else:
                present.add(poll.client.key_id)

    async def _serve_those_who_wait(self) -> int | None:
        """Claim for one after the other, until one finds nothing. Gives when to try again.

        Those who stand in line for memory are passed over: they are told when they have it.
        """
        at_once = 1
        next_at: int | None = None
        while self._drop_those_gone():
            ready = (poll for poll in self.waiting if not poll.client.share.wanted_bytes)
            first = list(islice(ready, at_once))
            if not first:
                return None
            found = await asyncio.gather(*(self._polls.claim(poll, self) for poll in first))
            is_empty = False
            for poll, (is_served, again_at) in zip(first, found, strict=True):
                if is_served:
                    self.waiting.remove(poll)
                elif not poll.client.share.wanted_bytes:
                    is_empty = True
                    next_at = again_at
            if is_empty:
                for poll in self.waiting:
                    # What they waited for went to others: they may wait for long, and must hold no memory meanwhile.
                    if poll.client.share.held_bytes:
                        poll.client.share.hold(0)
                return next_at
            at_once = min(2 * at_once, _MOST_AT_ONCE)
        return None

    def _drop_those_gone(self) -> bool:
        """Answer those whose time is over, forget those whose client has gone. True: somebody waits."""
        now_ms = self._store.clock.now_ms()
        over = self._store.closed or self._polls.is_closing
        for poll in list(self.waiting):
            if poll.answer.done() or not (over or poll.until <= now_ms):
                pass
            elif poll.client.share.wanted_bytes:
                poll.answer.set_exception(ServiceUnavailable(_NO_ROOM))
            else:
                self._store.transactions.remember_empty_receive(self.epoch_id)
                poll.answer.set_result(ReceiveMessageResponse())
            if poll.answer.done():
                self.waiting.remove(poll)
        return bool(self.waiting)

    async def _sleep(self, next_at: int | None) -> None:
        """Until there is news of something to claim, or it is time for somebody."""
        ends_at = min(poll.until for poll in self.waiting)
        while True:
            due_at = self._waiter.due_at
            instants = [at for at in (next_at, due_at) if at is not None]
            self.wake_at = min([ends_at, *instants])
            if (
                self._waiter.receivable
                or self.has_room
                or self.wake_at <= self._store.clock.now_ms()
                or self._polls.is_closing
            ):
                return
            self._polls.set_alarm()
            await self.kicked.wait()
            self.kicked.clear()
            self._waiter.event.clear()
            if not self.waiting or any(poll.answer.done() for poll in self.waiting):
                return
            ends_at = min(poll.until for poll in self.waiting)

    def call_for_room(self) -> None:
        """Kick the line: a poll has the memory that it has waited for. From any thread."""
        # A loop that has given up the writing thread may have ended without it.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._hear_of_room)

    def _hear_of_room(self) -> None:
        self.has_room = True
        self.kicked.set()


class Polls:
    """All receives of one server.

    Args:
        waiting: told of each poll that begins to wait, as 1, and of each that ends, as -1.

    Attributes:
        lines: by queue id, those that have somebody waiting.
        is_closing: waits end now.
    """

    def __init__(self, store: "Store", commits: "Commits", waiting: Callable[[int], object]) -> None:
        self.store = store
        self.lines: dict[int, _Line] = {}
        self._waiting = waiting
        self.is_closing = False
        self._commits = commits
        self._alarm = Alarm(store.clock, self._ring)
        self._tasks: set[asyncio.Task[None]] = set()

    async def receive(
        self, request: "ReceiveMessage", caller: "Caller", client: HttpClient
    ) -> ReceiveMessageResponse:
        """Receive, waiting as long as the request or its queue says.

        A client that has gone when the claim's turn comes gets no lease. One that goes while the claim is committed, or
        behind it, may be given messages: whoever answers gives them back.

        Where there is no memory for its messages it waits for that as well, in line with the receives of all queues.

        Args:
            client: its connection is watched while it waits, and not for less.

        Raises:
            SQSError: as `service.receive.receive_message`; ServiceUnavailable: there was no memory in time.
        """
        store = self.store
        started_at = store.clock.now_ms()
        wanted_bytes = 0
        if not receive.looks_empty(store, request, caller):
            again_at: int | None = receive.AT_ONCE
            while again_at == receive.AT_ONCE and not self.is_closing:
                claimed = await self._submit(client.is_gone, client.share, request, caller)
                if claimed is None:
                    return ReceiveMessageResponse()
                if isinstance(claimed, NoRoom):
                    wanted_bytes = claimed.size_bytes
                    break
                response, again_at = claimed
                if response.messages:
                    store.found_empty.discard(request.queue_url)
                    return response
        if not wanted_bytes:
            store.found_empty.add(request.queue_url)
        found = receive.look(store, request, caller)
        wait_seconds = max(found.wait_seconds, ROOM_SECONDS if wanted_bytes else 0)
        if not wait_seconds or self.is_closing:
            store.transactions.remember_empty_receive(found.queue.epoch_id)
            return ReceiveMessageResponse()
        poll = Poll(request, caller, client, started_at + wait_seconds * 1000)
        line = self._line(found.queue.id, found.queue.epoch_id)
        line.waiting.append(poll)
        if wanted_bytes:
            client.share.stand_in_line(wanted_bytes, line.call_for_room)
        line.kicked.set()
        client.gone().add_done_callback(lambda _: self._left(line, poll))
        self._waiting(1)
        try:
            return await poll.answer
        finally:
            self._waiting(-1)

    def _line(self, queue_id: int, epoch_id: int) -> _Line:
        line = self.lines.get(queue_id)
        if line is None:
            line = self.lines[queue_id] = _Line(self, queue_id, epoch_id)
            task = asyncio.get_running_loop().create_task(line.serve())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return line

    @staticmethod
    def _left(line: _Line, poll: Poll) -> None:
        if not poll.answer.done():
            poll.answer.set_result(ReceiveMessageResponse())
            line.kicked.set()

    def _submit(
        self, is_over: Callable[[], bool], share: "Share", request: "ReceiveMessage", caller: "Caller"
    ) -> "asyncio.Future[tuple[ReceiveMessageResponse, int | None] | NoRoom | None]":
        return self._commits.submit(_claim_unless, is_over, share, request, caller)

    async def claim(self, poll: Poll, line: _Line) -> tuple[bool, int | None]:
        """Try to answer a poll. Whether it was, with messages or an error; and if not, when to try again."""
        share = poll.client.share
        try:
            # Their key, and what they may do, can have been taken away while they waited.
            poll.client.check_key()
            poll.client.check()
            claimed = await self._submit(poll.is_over, share, poll.request, poll.caller)
        except Exception as error:  # noqa: BLE001 - it is the answer
            if poll.answer.done():
                share.release()
            else:
                poll.answer.set_exception(error)
            return True, None
        if claimed is None:
            if not poll.answer.done():
                poll.answer.set_result(ReceiveMessageResponse())
            return True, None
        if isinstance(claimed, NoRoom):
            if not poll.answer.done():
                share.stand_in_line(claimed.size_bytes, line.call_for_room)
            return False, None
        response, next_at = claimed
        if not response.messages:
            return False, next_at
        self.store.found_empty.discard(poll.request.queue_url)
        if poll.answer.done():
            await self.give_back(response, poll.request, poll.caller)
            # Their request ended before these were claimed, so no other code releases it.
            share.release()
        else:
            poll.answer.set_result(response)
        return True, None

    async def give_back(
        self, response: ReceiveMessageResponse, request: "ReceiveMessage", caller: "Caller"
    ) -> None:
        """The client left while its messages were claimed: they are visible again at once.

        Where that fails they are after their visibility timeout: nobody waits for the error, and others stand in line.
        """
        for message in response.messages or []:
            change = requests.ChangeMessageVisibility(
                queue_url=request.queue_url, receipt_handle=message.receipt_handle, visibility_timeout=0
            )
            with contextlib.suppress(SQSQLiteError):
                await self._commits.submit(visibility.change_message_visibility, change, caller)

    def set_alarm(self) -> None:
        """Ring for the line that is next."""
        self._alarm.set(min((line.wake_at for line in self.lines.values()), default=_FOREVER))

    def _ring(self) -> None:
        now_ms = self.store.clock.now_ms()
        for line in self.lines.values():
            if line.wake_at <= now_ms:
                line.wake_at = _FOREVER
                line.kicked.set()
        self.set_alarm()

    def end_waits(self) -> None:
        """Answer all who wait, with nothing, and let nobody wait any more."""
        self.is_closing = True
        for line in list(self.lines.values()):
            line.kicked.set()

    async def close(self) -> None:
        """`end_waits`, and the end of the thread."""
        self.end_waits()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._alarm.close()


def _claim_unless(
    tx: "Transaction",
    is_over: Callable[[], bool],
    share: "Share",
    request: "ReceiveMessage",
    caller: "Caller",
) -> tuple[ReceiveMessageResponse, int | None] | NoRoom | None:
    """Claim, unless nobody waits for it by now: the write lock may have been long in coming. None: nobody does."""
    if is_over():
        share.hold(0)
        return None
    limits = tx.settings.limits
    longest_bytes = limits.maximum_message_size_bytes.high
    worst_bytes = (request.max_number_of_messages or 1) * longest_bytes
    refused = share.reserve(worst_bytes, lambda: receive.size_ahead(tx, request, caller))
    if refused is not None:
        return refused
    try:
        found, again_at = receive.claim(tx, request, caller)
        response = receive.answer_to(found, request, tx.settings.sealer)
    except BaseException:
        share.hold(0)
        raise
    share.hold_messages(response, longest_bytes)
    return response, again_at
