"""The end of `sqsqlite serve`: the signals that ask for it, and a file that another program may keep locked."""

import os
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    from sqsqlite.cli.command_line import CommandLine
    from sqsqlite.serve.server import Server

# Seconds that the last writes to the file, which nobody waits for, may wait for others.
CLOSE_SECONDS = 2.0
_LOOK_AGAIN = 0.1


class Stopper:
    """A handler of signals: the first one stops the server, a second one waits for nobody."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._count = 0

    def __call__(self, _number: int, _frame: "FrameType | None") -> None:
        """A signal has come."""
        self._count += 1
        self._server.stop(at_once=self.is_hurried)

    @property
    def is_hurried(self) -> bool:
        """Whether there was a second signal."""
        return self._count > 1


def close(line: "CommandLine", stopper: Stopper) -> None:
    """Close the file, or leave the process at once where another program's lock keeps that from ending.

    What was answered is in the file already; what is not swept or copied from the WAL the next process finds.
    """
    closing = threading.Thread(target=line.close, daemon=True)
    closing.start()
    deadline = time.monotonic() + CLOSE_SECONDS
    closing.join(_LOOK_AGAIN)
    while closing.is_alive():
        if stopper.is_hurried or time.monotonic() > deadline:
            os._exit(0)
        closing.join(_LOOK_AGAIN)
