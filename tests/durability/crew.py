# SPDX-License-Identifier: Apache-2.0
"""The workers of a storm: forked, killed by SIGKILL at random, and started again.

They are forked from a process that has opened no queue, which starts them in milliseconds; each opens the file itself.
All of them write their events to the standard output, one line and one write an event, which a pipe takes whole or not
at all.
"""

import os
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Self

# The ways in which a worker ends by itself: its work is done, a planned crash, or a failure.
DONE, CRASHED, FAILED = 0, 69, 70

Work = Callable[[str, int], None]


def now() -> int:
    """Nanoseconds of the clock by which queues on this machine measure leases too."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def tell(kind: str, *words: str | int) -> None:
    """Write one event of this thread."""
    who = f"{os.getpid()}.{threading.get_ident()}"
    os.write(1, " ".join((kind, who, *map(str, words))).encode() + b"\n")


def slowness() -> float:
    """How many times longer work takes than its processor time: 1, or more where others share the machine.

    Pauses between deaths are longer by as much, so that workers come as far as they would on an idle machine.
    """
    began, used = time.monotonic(), time.process_time()
    while time.process_time() < used + 0.1:
        pass
    return max(1.0, (time.monotonic() - began) / 0.1)


class Crew:
    """The workers alive, by process id. A context manager that leaves none behind."""

    def __init__(self, path: str, chance: random.Random) -> None:
        self.deaths = 0  # killed or crashed
        self._path = path
        self._chance = chance
        self._started = 0
        self._alive: dict[int, Work] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self._alive:
            os.kill(pid, signal.SIGKILL)

    def __len__(self) -> int:
        return len(self._alive)

    def start(self, work: Work) -> None:
        """Fork a worker, and give it the path and the number of its start."""
        self._started += 1
        pid = os.fork()
        if not pid:
            _work_and_exit(work, self._path, self._started)
        self._alive[pid] = work

    def kill_some(self) -> int:
        """Kill one worker, or sometimes all at once, and replace each."""
        everybody = list(self._alive)
        victims = everybody if self._chance.random() < 0.03 else [self._chance.choice(everybody)]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        self._replace(self._bury(victims, 0))
        return len(victims)

    def replace_crashed(self) -> None:
        """Replace the workers that have crashed by themselves. Finished workers are not replaced."""
        self._replace(self._bury(list(self._alive), os.WNOHANG))

    def _replace(self, works: Iterable[Work]) -> None:
        for work in works:
            self.start(work)

    def _bury(self, pids: list[int], options: int) -> list[Work]:
        """Remove the workers that have ended. Returns those with work left."""
        undone = []
        for pid in pids:
            ended, status = os.waitpid(pid, options)
            if not ended:
                continue
            work = self._alive.pop(pid)
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) == DONE:
                continue
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) != CRASHED:
                raise RuntimeError(f"a worker ended by itself, with {os.WEXITSTATUS(status)}")
            self.deaths += 1
            undone.append(work)
        return undone


def _work_and_exit(work: Work, path: str, number: int) -> None:
    status = FAILED
    try:
        work(path, number)
        status = DONE
    except BaseException:  # noqa: BLE001 - the status tells
        traceback.print_exc()
    finally:
        os._exit(status)
