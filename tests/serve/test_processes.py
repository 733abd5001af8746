# SPDX-License-Identifier: Apache-2.0
"""The parent of several processes: what it does if a process can't start."""

import os
import re
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks are POSIX's")

PROGRAM = """
import os, signal, sys
from sqsqlite.serve.processes import supervise


def work(place, ready):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    {work}
    signal.pause()

def say(text):
    print(text, flush=True)

def started():
    # Each start of a process adds a byte to a file, whose length counts them.
    with open(sys.argv[1], "ab") as file:
        file.write(b".")
        return file.tell()

sys.exit(supervise({count}, work, lambda: say("serving"), say))
"""


class Supervised:
    """A parent with its processes and its output."""

    def __init__(self, tmp_path, work, count):
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(work=work, count=count), tmp_path / "starts"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def pause(self, what):
        """The pause in seconds that the parent reports after this end of a process."""
        said = self.line()
        found = re.fullmatch(rf"process \d+ {what}: replacing it in ([\d.]+) s", said)
        assert found, said
        return float(found[1])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(300)


FIRST_ALONE_STARTS = "ready(lambda: os._exit(0)) if started() == 1 else os._exit(7)"


def test_process_that_cannot_start_is_retried_after_growing_pauses(tmp_path):
    with Supervised(tmp_path, FIRST_ALONE_STARTS, 1) as supervised:
        assert supervised.line() == "serving"
        [pid] = children(supervised.process.pid)
        os.kill(pid, signal.SIGKILL)
        assert supervised.pause(r"ended \(signal 9\)") == 0.1
        pauses = [supervised.pause(r"could not start \(exit code 7\)") for _ in range(3)]
        assert pauses == [0.2, 0.4, 0.8]
        assert supervised.end() == 0


def test_healthy_processes_keep_running_while_another_cannot_start(tmp_path):
    work = "ready(lambda: os._exit(0)) if started() <= 2 else os._exit(7)"
    with Supervised(tmp_path, work, 2) as supervised:
        assert supervised.line() == "serving"
        while len(pids := children(supervised.process.pid)) < 2 or (tmp_path / "starts").stat().st_size < 2:
            pass
        os.kill(pids[0], signal.SIGKILL)
        supervised.pause(r"(?:ended|could not start) \(signal 9\)")
        assert supervised.pause(r"could not start \(exit code 7\)") == 0.2
        assert pids[1] in children(supervised.process.pid)
        assert supervised.end() == 0


def test_process_that_ends_right_after_it_was_ready_is_replaced_after_growing_pauses(tmp_path):
    with Supervised(tmp_path, "ready(lambda: os._exit(0)); os._exit(3)", 1) as supervised:
        assert supervised.line() == "serving"
        assert [supervised.pause(r"ended \(exit code 3\)") for _ in range(3)] == [0.1, 0.2, 0.4]
        assert supervised.end() == 0


def test_signal_ends_a_parent_that_has_no_process_at_the_moment(tmp_path):
    with Supervised(tmp_path, "ready(lambda: os._exit(0)); os._exit(3)", 1) as supervised:
        assert supervised.line() == "serving"
        while supervised.pause(r"ended \(exit code 3\)") < 0.8:
            pass
        assert children(supervised.process.pid) == []
        assert supervised.end() == 0


def children(pid):
    """The parent's processes, if the system can list them."""
    listed = f"/proc/{pid}/task/{pid}/children"
    if not os.path.exists(listed):
        pytest.skip("the children are found in /proc")
    with open(listed) as file:
        return [int(word) for word in file.read().split()]
