# SPDX-License-Identifier: Apache-2.0
"""Run a command with its CPU cut to a share, and tell how much CPU it used. Linux only.

    python -m tests.slow_machine make test              # a tenth of the CPU
    python -m tests.slow_machine --share 1 make test    # all of it, to measure

Every process that the command starts is stopped (SIGSTOP) for nine tenths of the time and runs (SIGCONT) for one, all
of them together, as on a machine ten times slower. No rights are needed, unlike for a cgroup.
"""

import argparse
import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

RUN = 0.02  # s at a time, at least
LAST = 60  # s for processes that the command leaves running
_SET_CHILD_SUBREAPER = 36
_STOPPED = {"T", "t"}
_DEAD = {"Z", "X"}


def _processes() -> dict[int, list[tuple[int, str]]]:
    """By parent: the ids and states of its children."""
    children = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                children[int(parent)].append((int(folder.name), state))
    return children


def _below(parent: int, children: dict[int, list[tuple[int, str]]]) -> Iterator[tuple[int, str]]:
    for process, state in children.get(parent, []):
        yield process, state
        yield from _below(process, children)


def _signal(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _stop() -> set[int]:
    """Stop every running process below this one. A process that a test stopped stays the test's.

    Repeated until no process is left, because one may start another meanwhile.
    """
    ours: set[int] = set()
    while True:
        running = {
            process
            for process, state in _below(os.getpid(), _processes())
            if state not in _STOPPED | _DEAD and process not in ours
        }
        if not running:
            return ours
        for process in running:
            _signal(process, signal.SIGSTOP)
        ours |= running


def _go_on(stopped: set[int]) -> None:
    for process in stopped:
        _signal(process, signal.SIGCONT)


def _reap() -> dict[int, int]:
    """Collect all ended processes, orphans too: exit statuses by process id."""
    found = {}
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found[ended[0]] = os.waitstatus_to_exitcode(ended[1])
    return found


def run(command: list[str], share: float) -> int:
    """Run the command with `share` (0 to 1) of the CPU, and give its exit status.

    What it leaves running (Spark's Java ends after its Python) is waited for, but not for long.
    """
    # Orphans become children of this process, so that it finds, slows and counts them as well.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    main = subprocess.Popen(command)
    status, ended_at = None, 0.0
    stopped: set[int] = set()
    try:
        while status is None or (
            any(_below(os.getpid(), _processes())) and time.monotonic() < ended_at + LAST
        ):
            began = time.monotonic()
            time.sleep(RUN)
            if share < 1:
                stopped = _stop()
                time.sleep((time.monotonic() - began) * (1 - share) / share)
                _go_on(stopped)
            ended = _reap()
            if main.pid in ended:
                status, ended_at = ended[main.pid], time.monotonic()
    except BaseException:
        main.terminate()
        _go_on(stopped)
        raise
    main.returncode = status
    return status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--share", type=float, default=0.1, help="of the CPU, above 0 and up to 1; 0.1 by default"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if not given.command or not 0 < given.share <= 1:
        parser.error("a command is needed, and a share above 0 and up to 1")
    began = time.monotonic()
    status = run(given.command, given.share)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stderr.write(
        f"{time.monotonic() - began:.0f} s, of which {used.ru_utime + used.ru_stime:.0f} s of CPU "
        f"({used.ru_utime:.0f} user, {used.ru_stime:.0f} system), with {given.share:g} of the CPU\n"
    )
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
