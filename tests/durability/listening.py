# SPDX-License-Identifier: Apache-2.0
"""Reads the events of a storm, from another process."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


class Listener(Protocol):
    """A judge."""

    def hear(self, line: str) -> None:
        """Take one event."""


def listen(judge: Listener, program: str, *arguments: object) -> None:
    """Run a program of this folder; the judge hears every event.

    Raises:
        AssertionError: it failed, or a line came in pieces.
    """
    command = [sys.executable, HERE / program, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as storm:
        for line in storm.stdout or ():
            assert line.endswith(b"\n"), "an event was torn"
            judge.hear(line.decode())
        errors = storm.stderr.read().decode() if storm.stderr else ""
    assert (storm.returncode, errors) == (0, ""), f"exit status {storm.returncode}: {errors}"
