# SPDX-License-Identifier: Apache-2.0
"""A command on a machine ten times slower: stopped for nine tenths of the time, with every process it starts."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

RUN, STOP = 0.02, 0.18  # seconds, in turn


def run_slowly(
    command: Sequence[str | Path], *, folder: Path, hang_seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end by tenths: SIGSTOP and SIGCONT, in turn, to its whole process group.

    Args:
        hang_seconds: after which it is killed.

    Raises:
        subprocess.TimeoutExpired: it was.
    """
    out, errors = folder / "stdout", folder / "stderr"
    with (
        out.open("w") as stdout,
        errors.open("w") as stderr,
        subprocess.Popen(
            command, cwd=folder, stdout=stdout, stderr=stderr, start_new_session=True
        ) as process,
    ):
        group = process.pid
        ends_at = time.monotonic() + hang_seconds
        try:
            while process.poll() is None:
                for number, seconds in ((signal.SIGSTOP, STOP), (signal.SIGCONT, RUN)):
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(group, number)
                    time.sleep(seconds)
                if time.monotonic() > ends_at:
                    raise subprocess.TimeoutExpired(
                        command, hang_seconds, out.read_text(), errors.read_text()
                    )
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, out.read_text(), errors.read_text())
