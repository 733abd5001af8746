# SPDX-License-Identifier: Apache-2.0
"""What must end although a signal handler raises in the midst of it."""

import contextlib
import threading
from collections.abc import Callable

# Enough for any storm of signals, and an end for an error that would come every time.
TRIES = 1_000


def until_done(action: Callable[[], object]) -> None:
    """Do `action` again until nothing interrupts it. It must take being done again after any of its steps.

    Called where an exception is on its way already, or after the work: what interrupts it is not passed on.
    """
    for _ in range(TRIES - 1):
        try:
            action()
        except BaseException:  # noqa: BLE001, S112 - see above
            continue
        return
    action()


def refuse_handlers(error: OSError) -> None:
    """Pass on what a signal handler raised: its TimeoutError is an OSError too, but has no number.

    For where the system's own errors are an answer.
    """
    if error.errno is None:
        raise error


class Signal:
    """A `threading.Event` for one waiting thread, set and cleared by single calls in C.

    An Event is made of a Condition in Python: a signal handler that raises within its `set` leaves it locked for good.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._unset = threading.Lock()
        self._unset.acquire()

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Wake the thread that waits, or the next to wait."""
        self._is_set = True
        with contextlib.suppress(RuntimeError):  # it was set already
            self._unset.release()

    def clear(self) -> None:
        """Take a `set` back."""
        self._is_set = False
        self._unset.acquire(False)

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is set (True), or `timeout` seconds have passed."""
        if self._unset.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            if self._is_set:
                with contextlib.suppress(RuntimeError):
                    self._unset.release()  # it stays set until it is cleared
            return self._is_set
        return self._is_set
