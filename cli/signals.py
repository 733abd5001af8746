# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM as exceptions, so that a run ends with its file closed and its exit code."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

Handler = Callable[[int, "FrameType | None"], None]


class Terminated(KeyboardInterrupt):
    """SIGTERM came. What lets go at Ctrl-C lets go at this too."""


def end(number: int, _frame: "FrameType | None" = None) -> None:
    """Raise what belongs to the signal.

    Raises:
        Terminated: SIGTERM.
        KeyboardInterrupt: SIGINT.
    """
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def handled_by(handler: Handler, *numbers: int) -> Iterator[None]:
    """Let a function handle signals for a while. Signals belong to the main thread: elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def put_off(*numbers: int) -> Iterator[None]:
    """Let a signal wait until what was begun has ended. A second one ends it at once.

    Raises:
        KeyboardInterrupt: at the end of the block, or in it.
    """
    came = 0

    def note(number: int, _frame: "FrameType | None") -> None:
        nonlocal came
        if came:
            end(number)
        came = number

    with handled_by(note, *numbers):
        yield
    if came:
        end(came)
