# SPDX-License-Identifier: Apache-2.0
"""Ways for a test to wait for other threads and processes."""

import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0  # s: for what hangs, not for what is slow


def until(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    """Look again and again until `condition` holds.

    Raises:
        AssertionError: it does not, after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"not so after {patience:g} s"
        time.sleep(0.001)


class Task(threading.Thread):
    """A function on a thread of its own. `outcome()` returns its result, or raises its error."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        super().__init__(daemon=True)
        self._function, self._arguments = function, arguments
        self._result: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._function(*self._arguments)
        except BaseException as error:  # noqa: BLE001 - whatever it is, `outcome` raises it
            self._error = error

    def outcome(self, patience: float = PATIENCE) -> Any:
        self.join(patience)
        assert not self.is_alive(), f"not done after {patience:g} s"
        if self._error is not None:
            raise self._error
        return self._result
