"""The memory that answers take: one budget for all receives of a server, from the claim until the answer is read.

A receive reserves room before it claims, and stands in line while the budget is used up. Claims are made one after the
other, on one thread, so each may reserve the longest that it can bring and keep what it did bring.

Requests have a budget of their own, for the texts that are read from long bodies: unread answers hold up
no request.
"""

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import TracebackType

    from sqsqlite.contract.message_attributes import MessageAttributeValue
    from sqsqlite.contract.responses import Message, ReceiveMessageResponse

SHORT_BYTES = 256 * 1024
"""A share of up to this is a short one: the long ones leave some room to these."""

# A message's ids, digests, system attributes and the objects around them.
_AROUND_BYTES = 2_048


class Budget:
    """Bytes that may be held at once. Its methods may be called from any thread.

    Args:
        limit_bytes: of all shares. An eighth of it is for short ones alone, so that they wait for no long one.
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
        """What all shares hold at this moment."""
        return self._held_bytes

    @property
    def is_scarce(self) -> bool:
        """Whether somebody stands in line."""
        return bool(self._short_line or self._long_line)

    def reserve(self, share: "Share", size_bytes: int) -> bool:
        """Let the share hold exactly so much. False: there is no room, or others wait for it; then nothing changes."""
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
        """Let the share hold exactly so much, whether it fits or not: that is what it takes."""
        with self._lock:
            self._set(share, size_bytes)

    def stand_in_line(self, share: "Share", size_bytes: int) -> None:
        """Let the share wait for so much room: behind those that wait already, or before them if it did before."""
        line, _ = self._line_of(size_bytes)
        with self._lock:
            if share.has_waited:
                line.appendleft(share)
            else:
                line.append(share)
            share.wanted_bytes, share.has_waited = size_bytes, True
            self._serve_lines()

    def leave(self, share: "Share") -> None:
        """Take the share out of its line, and what it holds."""
        with self._lock:
            if share.wanted_bytes:
                self._line_of(share.wanted_bytes)[0].remove(share)
                share.wanted_bytes = 0
            self._set(share, 0)

    def _line_of(self, size_bytes: int) -> "tuple[deque[Share], int]":
        """Where a share of this size waits, and how much may be held when it has its turn."""
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
    """Nothing was claimed: other answers take the memory. `size_bytes`: what to wait for."""

    size_bytes: int


class Share:
    """What one request holds of a budget. A context manager: at its end it holds nothing.

    Attributes:
        copies: how often the length of its messages it takes, with the answer that is made of them.
        held_bytes: what it holds.
        wanted_bytes: what it stands in line for; 0: it does not.
        has_waited: it has stood in line.
        on_room: called, on any thread, when it holds what it stood in line for.
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
        trace: "TracebackType | None",
    ) -> None:
        self.release()

    def reserve(self, worst_bytes: int, tell_bytes: Callable[[], int]) -> NoRoom | None:
        """Make sure of room for the messages of a claim that is about to be made.

        Args:
            worst_bytes: how long they can be.
            tell_bytes: tells how long they will be, as far as is known; asked where there is no room for the worst.
        """
        if self._budget.reserve(self, self.copies * worst_bytes):
            return None
        size_bytes = self.copies * min(worst_bytes, tell_bytes())
        # Beyond the whole budget it would wait for ever: that one is made alone.
        size_bytes = min(max(size_bytes, SHORT_BYTES), self._budget.long_bytes)
        if self._budget.reserve(self, size_bytes):
            return None
        self.hold(0)
        return NoRoom(size_bytes)

    def hold_messages(self, response: "ReceiveMessageResponse", longest_bytes: int) -> None:
        """Hold what the claimed messages take until the answer is made of them.

        Args:
            longest_bytes: what one of them has at most, as SQS counts. A text takes up to four times as much in Python.
        """
        sizes = [_size_of(message) for message in response.messages]
        self.hold(sum(size + (self.copies - 1) * min(size, longest_bytes) for size in sizes))

    def hold_answer(self, size_bytes: int) -> None:
        """Hold the answer alone, if it has messages: they are part of it now."""
        if self.held_bytes:
            self.hold(size_bytes)

    def hold(self, size_bytes: int) -> None:
        """Hold so much from here on."""
        self._budget.hold(self, size_bytes)

    async def until_held(self, size_bytes: int, gone: "Callable[[], asyncio.Future[None]]") -> bool:
        """Hold so much, or the whole budget, and wait for it if need be.

        Args:
            gone: makes a future that ends when the client no longer waits for the answer; called only if this
                must wait.

        Returns:
            False: that came first.
        """
        # Beyond the whole budget it would wait for ever: that one is alone.
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
        """Wait for room: see `on_room`."""
        self.on_room = on_room
        self._budget.stand_in_line(self, size_bytes)

    def release(self) -> None:
        """Hold nothing, and wait no more."""
        self._budget.leave(self)


def _ignore() -> None:
    pass


def _end(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)


def _size_of(message: "Message") -> int:
    """In bytes, as Python has it: a text with one character beyond Latin-1 takes two or four for each."""
    size = sys.getsizeof(message.body) + _AROUND_BYTES
    attributes = message.message_attributes
    return size if attributes is None else size + sum(map(_size_of_attribute, attributes.values()))


def _size_of_attribute(value: "MessageAttributeValue") -> int:
    return _AROUND_BYTES + sys.getsizeof(value.string_value) + sys.getsizeof(value.binary_value)
