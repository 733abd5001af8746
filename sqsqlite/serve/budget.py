# SPDX-License-Identifier: Apache-2.0
"""The memory for answers: one budget for all receives of a server, from the claim until the client has read the answer.

A receive reserves memory before it claims, and waits in line while the budget is used up. Claims run one after the
other on one thread, so each can reserve the most that it may bring, and then keep what it did bring.

Parsed requests with long bodies have their own budget, so unread answers hold up no request.
"""

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

from sqsqlite.contract.message_attributes import MessageAttributeValue
from sqsqlite.contract.responses import ReceivedMessage, ReceiveMessageResponse

SHORT_BYTES = 256 * 1024
"""Shares up to this size are short. Some of the budget is for short shares only."""

# A message's ids, digests and system attributes, and the objects that hold them.
_AROUND_BYTES = 2_048


class Budget:
    """Bytes that all shares may hold together. Any thread may call its methods.

    Args:
        limit_bytes: the size. An eighth is for short shares only, so they do not wait for long ones.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.long_bytes = limit_bytes - limit_bytes // 8
        self._held_bytes = 0
        self._short_line: deque[Share] = deque()
        self._long_line: deque[Share] = deque()
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        """What all shares hold now."""
        return self._held_bytes

    @property
    def is_scarce(self) -> bool:
        """Whether a share waits in line."""
        return bool(self._short_line or self._long_line)

    def reserve(self, share: "Share", size_bytes: int) -> bool:
        """Let the share hold exactly this much. False: no room, or others wait for it; nothing changes."""
        is_short = size_bytes <= SHORT_BYTES
        line, limit = self._line_of(size_bytes)
        with self._lock:
            others_bytes = self._held_bytes - share.held_bytes
            has_turn = is_short or share.held_bytes > 0 or not line
            fits = has_turn and others_bytes + size_bytes <= limit
            if fits:
                self._set(share, size_bytes)
            return fits

    def hold(self, share: "Share", size_bytes: int) -> None:
        """Let the share hold exactly this much, even beyond the limit, because it already takes it."""
        with self._lock:
            self._set(share, size_bytes)

    def stand_in_line(self, share: "Share", size_bytes: int) -> None:
        """Let the share wait for this much. It goes to the end of the line, or to the front if it has waited before."""
        line, _ = self._line_of(size_bytes)
        with self._lock:
            if share.has_waited:
                line.appendleft(share)
            else:
                line.append(share)
            share.wanted_bytes, share.has_waited = size_bytes, True
            self._serve_lines()

    def leave(self, share: "Share") -> None:
        """Take the share out of its line, and free what it holds."""
        with self._lock:
            if share.wanted_bytes:
                self._line_of(share.wanted_bytes)[0].remove(share)
                share.wanted_bytes = 0
            self._set(share, 0)

    def _line_of(self, size_bytes: int) -> "tuple[deque[Share], int]":
        """The line for a share of this size, and how much all shares may hold with it."""
        if size_bytes <= SHORT_BYTES:
            return self._short_line, self._limit_bytes
        return self._long_line, self.long_bytes

    def _set(self, share: "Share", size_bytes: int) -> None:
        self._held_bytes += size_bytes - share.held_bytes
        share.held_bytes = size_bytes
        self._serve_lines()

    def _serve_lines(self) -> None:
        for line, limit in ((self._short_line, self._limit_bytes), (self._long_line, self.long_bytes)):
            while line and self._held_bytes + line[0].wanted_bytes <= limit:
                share = line.popleft()
                share.held_bytes, share.wanted_bytes = share.wanted_bytes, 0
                self._held_bytes += share.held_bytes
                share.on_room()


class NoRoom(NamedTuple):
    """Nothing was claimed, because other answers take the memory. `size_bytes`: how much to wait for."""

    size_bytes: int


class Share:
    """What one request holds of a budget. A context manager: leaving the block releases it.

    Attributes:
        copies: bytes of memory per byte of a message, including the answer made of it.
        held_bytes: what it holds.
        wanted_bytes: what it waits for in line. 0: it does not wait.
        has_waited: whether it has waited in line.
        on_room: called on any thread when it holds what it waited for.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.copies = 1
        self.held_bytes = 0
        self.wanted_bytes = 0
        self.has_waited = False
        self.on_room: Callable[[], object] = _ignore

    def __enter__(self) -> "Share":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def reserve(self, worst_bytes: int, estimate: Callable[[], int]) -> NoRoom | None:
        """Reserve memory for the messages of a claim.

        Args:
            worst_bytes: the longest that they can be together.
            estimate: returns how long they will probably be. Called only if there is no room for the longest.

        Returns:
            None: the memory is reserved.
        """
        if self._budget.reserve(self, self.copies * worst_bytes):
            return None
        size_bytes = self.copies * min(worst_bytes, estimate())
        # More than the whole budget would wait for ever. Such an answer is made alone.
        size_bytes = min(max(size_bytes, SHORT_BYTES), self._budget.long_bytes)
        if self._budget.reserve(self, size_bytes):
            return None
        self.hold(0)
        return NoRoom(size_bytes)

    def hold_messages(self, response: ReceiveMessageResponse, longest_bytes: int) -> None:
        """Hold what the claimed messages take until their answer is made.

        Args:
            longest_bytes: the longest message, as SQS counts. Python may take four times as much for its text.
        """
        sizes = [_size_of(message) for message in response.messages]
        self.hold(sum(size + (self.copies - 1) * min(size, longest_bytes) for size in sizes))

    def hold_answer(self, size_bytes: int) -> None:
        """Hold only the answer, if it has messages: it contains them now."""
        if self.held_bytes:
            self.hold(size_bytes)

    def hold(self, size_bytes: int) -> None:
        """Hold exactly this much from now on."""
        self._budget.hold(self, size_bytes)

    async def until_held(self, size_bytes: int, gone: Callable[[], asyncio.Future[None]]) -> bool:
        """Hold this much, but at most the whole budget. Wait for it if necessary.

        Args:
            gone: makes a future that ends when the client disconnects. Called only if this method must wait.

        Returns:
            False: the client disconnected first.
        """
        # More than the whole budget would wait for ever. Such a request is alone.
        size_bytes = min(size_bytes, self._budget.long_bytes)
        if self._budget.reserve(self, size_bytes):
            return True
        loop = asyncio.get_running_loop()
        has_room: asyncio.Future[None] = loop.create_future()
        self.stand_in_line(size_bytes, lambda: loop.call_soon_threadsafe(_end, has_room))
        try:
            await asyncio.wait((has_room, gone()), return_when=asyncio.FIRST_COMPLETED)
            return has_room.done()
        finally:
            has_room.cancel()

    def stand_in_line(self, size_bytes: int, on_room: Callable[[], object]) -> None:
        """Wait in line, and call `on_room` when the share holds this much."""
        self.on_room = on_room
        self._budget.stand_in_line(self, size_bytes)

    def release(self) -> None:
        """Hold nothing, and leave the line."""
        self._budget.leave(self)


def _ignore() -> None:
    pass


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def _size_of(message: ReceivedMessage) -> int:
    """Bytes in Python's memory: a text with a character beyond Latin-1 takes two or four bytes per character."""
    size = sys.getsizeof(message.body) + _AROUND_BYTES
    attributes = message.message_attributes
    return size if attributes is None else size + sum(map(_size_of_attribute, attributes.values()))


def _size_of_attribute(value: MessageAttributeValue) -> int:
    return _AROUND_BYTES + sys.getsizeof(value.string_value) + sys.getsizeof(value.binary_value)
