# SPDX-License-Identifier: Apache-2.0
"""Work that must end even if a signal handler raises in the middle of it."""

import contextlib
import threading
from collections.abc import Callable

# Enough for any number of signals, and an end if the error comes every time.
TRIES = 1_000


def until_done(action: Callable[[], object]) -> None:
    """Call `action` until nothing interrupts it. It must be possible to repeat it after any of its steps.

    Call it where an exception is being raised already, or after the work: it does not pass the interrupt on.
    """
    for _ in range(TRIES - 1):
        try:
            action()
        except BaseException:  # noqa: BLE001, S112 - see above
            continue
        return
    action()


def refuse_handlers(error: OSError) -> None:
    """Raise the error again if a signal handler raised it: its TimeoutError is an OSError too, but has no number.

    For code that takes an error of the system as an answer.
    """
    if error.errno is None:
        raise error


class Signal:
    """A `threading.Event` for one waiting thread, set and cleared by single calls in C.

    An Event uses a Condition in Python code: a signal handler that raises within its `set` leaves it locked for good.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._unset = threading.Lock()
        self._unset.acquire()

    def is_set(self) -> bool:
        """Whether the signal is set."""
        return self._is_set

    def set(self) -> None:
        """Wake the waiting thread, or the next one that waits."""
        self._is_set = True
        with contextlib.suppress(RuntimeError):  # it was set already
            self._unset.release()

    def clear(self) -> None:
        """Undo a `set`."""
        self._is_set = False
        self._unset.acquire(False)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set (True) or `timeout` seconds have passed (False)."""
        if self._unset.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            if self._is_set:
                with contextlib.suppress(RuntimeError):
                    self._unset.release()  # it stays set until it is cleared
            return self._is_set
        return self._is_set
