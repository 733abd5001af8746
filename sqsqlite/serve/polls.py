# SPDX-License-Identifier: Apache-2.0
"""Receiving in the event loop: thousands of idle long polls, without a thread for each.

The polls of one queue wait in one line. News of the queue wakes the line, not each poll. The line serves polls from its
front until a claim finds nothing. A poll whose client has disconnected claims nothing.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from sqsqlite.access.exchange import ServiceUnavailable
from sqsqlite.actions import receive, visibility
from sqsqlite.actions.queue_rows import Caller
from sqsqlite.contract import requests
from sqsqlite.contract.requests import ReceiveMessage
from sqsqlite.contract.responses import ReceiveMessageResponse
from sqsqlite.errors import SQSQLiteError
from sqsqlite.serve.alarm import Alarm
from sqsqlite.serve.budget import NoRoom, Share
from sqsqlite.serve.client import HttpClient
from sqsqlite.serve.commits import Commits
from sqsqlite.store.wake import Waiter

if TYPE_CHECKING:
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction

_FOREVER = 1 << 62
# The most claims at once for one line. Their number doubles while claims find messages: an empty claim is waste.
_MOST_AT_ONCE = 32
# The shortest time that a receive waits for the memory of its messages before it is refused.
ROOM_SECONDS = 20
_NO_ROOM = (
    "Too many long answers are being sent. Nothing was done. You can send the same request again later."
)


class Poll:
    """One ReceiveMessage that waits until the instant `until`, in milliseconds since 1970 UTC."""

    def __init__(self, request: ReceiveMessage, caller: Caller, client: HttpClient, until: int) -> None:
        self.request = request
        self.caller = caller
        self.client = client
        self.until = until
        self.answer: asyncio.Future[ReceiveMessageResponse] = asyncio.get_running_loop().create_future()

    def is_over(self) -> bool:
        """Whether the poll has its answer or its client has disconnected. May be called from any thread."""
        return self.answer.done() or self.client.is_gone()


class _LineEvent:
    """The event that the waker sets, on its own thread. It wakes the line in the loop."""

    def __init__(self, line: "_PollLine") -> None:
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

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - never called: the loop is woken instead
        return self._is_set


class _PollLine:
    """The polls of one queue, served in the order in which they came."""

    def __init__(self, polls: "Polls", queue_id: int, epoch_id: int) -> None:
        self.queue_id = queue_id
        self.epoch_id = epoch_id
        self.kicked = asyncio.Event()
        self.has_room = False  # a poll that waited for memory has it now
        self.wake_at = _FOREVER
        self.waiting: deque[Poll] = deque()
        self._polls = polls
        self._store = polls.store
        self._loop = asyncio.get_running_loop()
        self._waiter = Waiter(queue_id, _LineEvent(self))
        polls.store.waker.register(self._waiter)

    async def serve(self) -> None:
        """Serve the polls until none waits."""
        try:
            while True:
                # From here on the line misses no news.
                self.kicked.clear()
                self._waiter.event.clear()
                self._waiter.receivable = False
                self._waiter.due_at = None
                self._refuse_removed_keys()
                self.has_room = False
                next_at = await self._serve_waiting()
                if not self.waiting:
                    return
                await self._sleep(next_at)
        except Exception as error:  # noqa: BLE001 - the polls are answered with any error
            for poll in self.waiting:
                if not poll.answer.done():
                    poll.answer.set_exception(error)
        finally:
            self._store.waker.forget(self._waiter)
            self._polls.lines.pop(self.queue_id, None)

    def _refuse_removed_keys(self) -> None:
        """End the polls whose access key has been removed. The removal is a commit, so it has woken this line."""
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

    async def _serve_waiting(self) -> int | None:
        """Claim for the polls in order, until a claim finds nothing.

        Polls that wait for memory are skipped. `call_for_memory` wakes the line when they have it.

        Returns:
            The instant at which to try again, if the claim knows one.
        """
        at_once = 1
        next_at: int | None = None
        while self._drop_ended():
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
                    # Other polls got the messages. This one may wait for long, and must not hold memory meanwhile.
                    if poll.client.share.held_bytes:
                        poll.client.share.hold(0)
                return next_at
            at_once = min(2 * at_once, _MOST_AT_ONCE)
        return None

    def _drop_ended(self) -> bool:
        """Answer the polls whose time is over, and drop the answered ones. Returns whether any poll still waits."""
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
        """Wait for news of messages, or until a poll's time is over."""
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

    def call_for_memory(self) -> None:
        """Wake the line: a poll has the memory for which it waited. May be called from any thread."""
        # After a stop at once, the loop may have ended before the writing thread.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._note_memory)

    def _note_memory(self) -> None:
        self.has_room = True
        self.kicked.set()


class Polls:
    """All receives of one server.

    Args:
        waiting: called with 1 when a poll begins to wait, and with -1 when it ends.

    Attributes:
        lines: by queue id, the lines in which polls wait.
        is_closing: no poll waits any more.
    """

    def __init__(self, store: "Store", commits: Commits, waiting: Callable[[int], object]) -> None:
        self.store = store
        self.lines: dict[int, _PollLine] = {}
        self._waiting = waiting
        self.is_closing = False
        self._commits = commits
        self._alarm = Alarm(store.clock, self._ring)
        self._tasks: set[asyncio.Task[None]] = set()

    async def receive(
        self, request: ReceiveMessage, caller: Caller, client: HttpClient
    ) -> ReceiveMessageResponse:
        """Receive messages, and wait for them as long as the request or its queue says.

        A client that has disconnected before the claim runs gets no lease. If it disconnects later, it may get
        messages, which the caller must pass to `give_back`.

        If there is no memory for the messages, the receive waits for that too, in line with receives of all queues.

        Args:
            client: its connection is watched only while it waits.

        Raises:
            ServiceUnavailable: there was no memory in time.
            SQSError: what SQS answers.
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
            client.share.stand_in_line(wanted_bytes, line.call_for_memory)
        line.kicked.set()
        client.gone().add_done_callback(lambda _: self._left(line, poll))
        self._waiting(1)
        try:
            return await poll.answer
        finally:
            self._waiting(-1)

    def _line(self, queue_id: int, epoch_id: int) -> _PollLine:
        line = self.lines.get(queue_id)
        if line is None:
            line = self.lines[queue_id] = _PollLine(self, queue_id, epoch_id)
            task = asyncio.get_running_loop().create_task(line.serve())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return line

    @staticmethod
    def _left(line: _PollLine, poll: Poll) -> None:
        if not poll.answer.done():
            poll.answer.set_result(ReceiveMessageResponse())
            line.kicked.set()

    def _submit(
        self, is_over: Callable[[], bool], share: Share, request: ReceiveMessage, caller: Caller
    ) -> asyncio.Future[tuple[ReceiveMessageResponse, int | None] | NoRoom | None]:
        return self._commits.submit(_claim_unless, is_over, share, request, caller)

    async def claim(self, poll: Poll, line: _PollLine) -> tuple[bool, int | None]:
        """Try to answer a poll.

        Returns:
            Whether it has an answer, messages or an error. If not: the instant at which to try again, if known.
        """
        share = poll.client.share
        try:
            # The key, or the right to receive, may have been removed while the poll waited.
            poll.client.check_key()
            poll.client.check()
            claimed = await self._submit(poll.is_over, share, poll.request, poll.caller)
        except Exception as error:  # noqa: BLE001 - the error is the answer
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
                share.stand_in_line(claimed.size_bytes, line.call_for_memory)
            return False, None
        response, next_at = claimed
        if not response.messages:
            return False, next_at
        self.store.found_empty.discard(poll.request.queue_url)
        if poll.answer.done():
            await self.give_back(response, poll.request, poll.caller)
            # The request ended before this claim, so no other code releases its memory.
            share.release()
        else:
            poll.answer.set_result(response)
        return True, None

    async def give_back(
        self, response: ReceiveMessageResponse, request: ReceiveMessage, caller: Caller
    ) -> None:
        """Make messages visible again whose client disconnected while they were claimed.

        Errors are ignored: after such an error, the messages become visible when their visibility timeout ends.
        """
        for message in response.messages or []:
            change = requests.ChangeMessageVisibility(
                queue_url=request.queue_url, receipt_handle=message.receipt_handle, visibility_timeout=0
            )
            with contextlib.suppress(SQSQLiteError):
                await self._commits.submit(visibility.change_message_visibility, change, caller)

    def set_alarm(self) -> None:
        """Set the alarm for the earliest line."""
        self._alarm.set(min((line.wake_at for line in self.lines.values()), default=_FOREVER))

    def _ring(self) -> None:
        now_ms = self.store.clock.now_ms()
        for line in self.lines.values():
            if line.wake_at <= now_ms:
                line.wake_at = _FOREVER
                line.kicked.set()
        self.set_alarm()

    def end_waits(self) -> None:
        """Answer all polls without messages. New ones do not wait."""
        self.is_closing = True
        for line in list(self.lines.values()):
            line.kicked.set()

    async def close(self) -> None:
        """End the waits, and stop the alarm's thread."""
        self.end_waits()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._alarm.close()


def _claim_unless(
    tx: "Transaction",
    is_over: Callable[[], bool],
    share: Share,
    request: ReceiveMessage,
    caller: Caller,
) -> tuple[ReceiveMessageResponse, int | None] | NoRoom | None:
    """Claim messages in a transaction, whose write lock may have taken long.

    Returns:
        The response and when to try again; `NoRoom` if there is no memory; None if the poll is over.
    """
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
