# SPDX-License-Identifier: Apache-2.0
"""All kinds of programs at once, killed and stopped at random, and sums that must hold in the end.

    python -m tests.durability.long_storm --seconds 3600
    python -m tests.durability.long_storm --seconds 60 --actors late,hops

An actor is a kind of program with queue files of its own (`tests/durability/actors`); its processes are killed by
SIGKILL and started again, and stopped by SIGSTOP for one to three seconds. When the time is over they end by
themselves, each actor judges its sums, and the figures are printed. Exit code 1 if a sum does not hold.
"""

import argparse
import faulthandler
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.durability.actors import ACTORS
from tests.durability.actors.actor import Actor

PATIENCE = 120  # s: a process that is still running so long after the end hangs
CALM = (0.1, 1.0)  # s from one blow to the next
STOP = (1.0, 3.0)  # s


@dataclass
class Process:
    """One process of an actor. `until`: when it continues, if it is stopped."""

    actor: Actor
    until: float | None = None


@dataclass
class Storm:
    """The processes of all actors, by process id."""

    chance: random.Random
    started: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    processes: dict[int, Process] = field(default_factory=dict)

    def start(self, actor: Actor) -> None:
        self.started += 1
        self.happened[f"{actor.name}: processes"] += 1
        number = self.started
        self.processes[_fork(lambda: actor.work(number))] = Process(actor)

    def blow(self) -> None:
        """Kill one, or stop one."""
        pid = self.chance.choice(list(self.processes))
        process = self.processes[pid]
        if process.until is not None:
            return
        if self.chance.random() < 0.5 and process.actor.killed:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            del self.processes[pid]
            self.happened[f"{process.actor.name}: kills"] += 1
            self.start(process.actor)
        elif process.actor.stopped:
            os.kill(pid, signal.SIGSTOP)
            process.until = time.monotonic() + self.chance.uniform(*STOP)
            self.happened[f"{process.actor.name}: stops"] += 1

    def tend(self) -> None:
        """Continue the processes whose stop is over, and note those that have ended by themselves."""
        for pid, process in list(self.processes.items()):
            if process.until is not None and process.until < time.monotonic():
                os.kill(pid, signal.SIGCONT)
                process.until = None
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self.processes[pid]
                if status:
                    self.faults.append(
                        f"{process.actor.name}: a process ended by itself, with {os.waitstatus_to_exitcode(status)}"
                    )

    def end(self, patience: float) -> None:
        """Wait until all have ended by themselves. A process that does not end is killed, and counts as a fault."""
        for process in self.processes.values():
            process.actor.end()
            process.until = process.until and 0
        ends_at = time.monotonic() + patience
        while self.processes and time.monotonic() < ends_at:
            self.tend()
            time.sleep(0.02)
        for pid, process in self.processes.items():
            self.faults.append(f"{process.actor.name}: a process hangs")
            os.kill(pid, signal.SIGUSR1)
        if self.processes:
            time.sleep(1)
        self.clear()

    def clear(self) -> None:
        for pid in self.processes:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.processes.clear()


def _fork(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 70
    # A hanging process must print its stacks before it is killed.
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - the status tells
        traceback.print_exc()
    finally:
        os._exit(status)


def run(
    folder: Path, names: Sequence[str], seconds: float, seed: int, *, calm: tuple[float, float] = CALM
) -> tuple[Counter[str], list[str]]:
    """A storm of `seconds`: the figures, and what does not hold."""
    storm = Storm(random.Random(seed))
    actors = [ACTORS[name](folder) for name in names]
    for actor in actors:
        _, status = os.waitpid(_fork(actor.prepare), 0)
        assert status == 0, f"{actor.name} could not be prepared"
    try:
        for actor in actors:
            for _ in range(actor.processes):
                storm.start(actor)
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at and not storm.faults:
            time.sleep(storm.chance.uniform(*calm))
            storm.tend()
            if storm.processes:
                storm.blow()
        storm.end(PATIENCE)
    finally:
        storm.clear()
    for actor in actors:
        storm.faults += [f"{actor.name}: {fault}" for fault in (*actor.judge(), *actor.unsound())]
        storm.happened.update({f"{actor.name}: {what}": count for what, count in actor.figures().items()})
    return storm.happened, storm.faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--actors", default=",".join(ACTORS), help="some of " + ", ".join(ACTORS))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        happened, faults = run(Path(folder), given.actors.split(","), given.seconds, given.seed)
    for what, count in sorted(happened.items()):
        print(f"{what:40} {count:>12,}")
    print("\n".join(faults) or "All sums hold.")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
