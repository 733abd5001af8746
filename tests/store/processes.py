# SPDX-License-Identifier: Apache-2.0
"""Other processes of a test: Python programs that exchange lines of text with it."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
# Seconds to wait for a line. A slow machine under load may need many; a test that uses up all of them has failed.
PATIENCE = 300.0


class Program:
    """A Python program in a process of its own. A context manager that leaves no process behind.

    Args:
        source: the program; its arguments are in `sys.argv[1:]`, `say(...)` prints a line at once.
        before: a command that runs it: `("unshare", "--mount")`, say.
    """

    def __init__(self, source: str, *arguments: object, before: tuple[str, ...] = ()) -> None:
        prelude = "import functools, sys\nsay = functools.partial(print, flush=True)\n"
        texts = [
            os.fsdecode(argument) if isinstance(argument, bytes) else str(argument) for argument in arguments
        ]
        self._process = subprocess.Popen(
            [*before, sys.executable, "-c", prelude + source, *texts],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self._heard = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def hear(self, patience: float = PATIENCE) -> str:
        """The next line it says, without its end.

        Raises:
            AssertionError: it ended, or said nothing for `patience` seconds.
        """
        stdout = self._process.stdout
        assert stdout is not None
        while b"\n" not in self._heard:
            ready, _, _ = select.select([stdout], [], [], patience)
            piece = os.read(stdout.fileno(), 65536) if ready else b""
            if not piece:
                self._process.kill()
                _, errors = self._process.communicate()
                raise AssertionError(f"not another line in {patience:g} s; it wrote: {errors.decode()}")
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def is_silent(self, seconds: float) -> bool:
        """Whether the program prints nothing for this time."""
        return not self._heard and not select.select([self._process.stdout], [], [], seconds)[0]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def tell(self, line: str = "") -> None:
        """Give it a line of input."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    def kill(self) -> None:
        """Kill the program with SIGKILL."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Wait for its end.

        Raises:
            AssertionError: it did not end well.
        """
        _, errors = self._process.communicate(timeout=PATIENCE)
        assert self._process.returncode == 0, errors.decode()


HOLD_WRITE_LOCK = """
from sqsqlite.store.driver import dbapi
connection = dbapi.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
say("held")
input()
connection.execute("ROLLBACK")
say("free")
input()
"""
"""Holds SQLite's own write lock from "held" to a line of input, past all turns: a program that knows nothing of us."""


class Child:
    """A forked child that runs a function and ends. Its result or error comes back as text."""

    def __init__(self, function: Callable[[], object]) -> None:
        read, write = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            text = "nothing"
            try:
                text = str(function())
            except BaseException as error:  # noqa: BLE001 - reported to the parent
                text = f"{type(error).__name__}: {error}"
            finally:
                os.write(write, text.encode()[:4096])
                os._exit(0)
        os.close(write)
        self._read = read

    def outcome(self, patience: float = PATIENCE) -> str:
        """Wait for its end.

        Raises:
            AssertionError: it did not end in time.
        """
        deadline = time.monotonic() + patience
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f"the child was not done after {patience:g} s")
            time.sleep(0.002)
        with os.fdopen(self._read, "rb") as pipe:
            return pipe.read().decode()
