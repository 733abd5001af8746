# SPDX-License-Identifier: Apache-2.0
"""How a run ends: exit codes, errors as one line on standard error, and Ctrl-C and SIGTERM as exceptions."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sqsqlite.cli.table import on_screen
from sqsqlite.errors import Busy, ParamValidationError, SchemaTooOld, SQSError, SQSQLiteError, by_query_code

if TYPE_CHECKING:
    from types import FrameType


Handler = Callable[[int, "FrameType | None"], None]


class Terminated(KeyboardInterrupt):
    """SIGTERM came. Code that cleans up after Ctrl-C cleans up after SIGTERM too."""


def end(number: int, _frame: "FrameType | None" = None) -> None:
    """Raise the exception of a signal.

    Raises:
        Terminated: SIGTERM.
        KeyboardInterrupt: SIGINT.
    """
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def handled_by(handler: Handler, *numbers: int) -> Iterator[None]:
    """Let a function handle signals for a while. Only the main thread can: in another one, nothing changes."""
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
    """Hold a signal back until the block has ended. A second signal ends the block at once.

    Raises:
        KeyboardInterrupt: a signal came; raised at the end of the block, or in it at the second signal.
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


FAILED = 1
USAGE = 2
EMPTY = 3
PARTIAL = 4
BUSY = 5
UPGRADE = 6
INTERRUPTED = 130
PIPE_CLOSED = 141
TERMINATED = 143

EXIT_CODES = {
    0: "done",
    FAILED: "an error of SQS or of the file; `code: message` on standard error",
    USAGE: "the command line is wrong, or a parameter has the wrong form",
    EMPTY: "nothing was received (only with --fail-empty)",
    PARTIAL: "a part failed: entries of a batch, messages of a send, a receive --exec, a redrive or a dump; "
    "or receive --delete kept messages that --query did not print",
    BUSY: "other writers held the file longer than --busy-timeout",
    UPGRADE: "the file's schema is too old: sqsqlite db upgrade",
    INTERRUPTED: "interrupted by Ctrl-C (128 + SIGINT)",
    PIPE_CLOSED: "the reader of standard output closed it (128 + SIGPIPE)",
    TERMINATED: "ended by SIGTERM (128 + SIGTERM)",
}


class Failure(click.ClickException):
    """Ends the run with an exit code and, if there is a text, a line on standard error."""

    coloured = True

    def __init__(self, text: str, exit_code: int = FAILED) -> None:
        super().__init__(text)
        self.exit_code = exit_code  # type: ignore[misc] # a class variable to Click, which reads it from the instance

    def show(self, file: object = None) -> None:  # noqa: ARG002 - Click's signature
        if self.message:
            text = on_screen(self.message)
            click.echo(click.style(text, fg="red") if self.coloured else text, err=True)


def failure_of(error: SQSQLiteError) -> Failure:
    """Turn an error of ours into a failure.

    Its code is the name of the error's class, such as QueueDoesNotExist, InvalidParameterValue or Busy. An SQS error
    keeps SQS's own words.
    """
    if isinstance(error, SQSError):
        return Failure(f"{code_of(error.query_code)}: {error.message}", FAILED)
    if isinstance(error, ParamValidationError):
        return Failure(str(error), USAGE)
    exit_code = BUSY if isinstance(error, Busy) else UPGRADE if isinstance(error, SchemaTooOld) else FAILED
    return Failure(f"{type(error).__name__}: {error}", exit_code)


def code_of(query_code: str) -> str:
    """The code that this command prints for a `Code` in a batch's answer. An unknown one stays as it is."""
    kind = by_query_code.get(query_code)
    return query_code if kind is None else kind.__name__


def leave_quietly() -> None:
    """Send the interpreter's last flush to the null device: the reader of standard output has closed it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
