"""A key at the terminal while something else goes on."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Wait = Callable[[float], bool]


@contextmanager
def quit_key() -> Iterator[Wait]:
    """Take keys as they are pressed; yields a function that waits so many seconds, or until q: True.

    Where standard input is no terminal, or the system has no such terminals, it waits only.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield _sleep
        return
    if not sys.stdin.isatty():
        yield _sleep
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)  # Ctrl-C still interrupts
    try:
        yield lambda seconds: _waited_for_q(terminal, seconds)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _waited_for_q(terminal: int, seconds: float) -> bool:
    import select

    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            keys = os.read(terminal, 64)
            if not keys:
                return True  # the terminal is gone
            if keys.lower().startswith(b"q"):
                return True
    return False
