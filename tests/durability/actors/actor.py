# SPDX-License-Identifier: Apache-2.0
"""An actor of the long storm: programs that run in processes of their own, and the sums that must hold."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import sqsqlite
from tests.store.inspection import assert_whole

Work = Callable[[int], None]


class Actor:
    """One kind of program, with files of its own in its folder. Subclasses are the actors.

    Attributes:
        processes: how many run at once.
        killed, stopped: whether the storm kills (SIGKILL) and stops (SIGSTOP, 1 to 3 s) them at random.
        files: the queue files it makes, which are to be sound in the end.
    """

    name = ""
    processes = 3
    killed = stopped = True
    files: tuple[str, ...] = ("queues.db",)

    def __init__(self, folder: Path) -> None:
        self.folder = folder / self.name
        self.folder.mkdir()
        self._notes = self.folder / "notes"
        self._notes.touch()

    def path(self, file: str = "queues.db") -> Path:
        return self.folder / file

    def prepare(self) -> None:
        """Make the files in a process of its own: a process that has opened a queue must not fork others."""

    def work(self, seed: int) -> None:
        """What each process does until `is_over`."""
        raise NotImplementedError

    def judge(self) -> list[str]:
        """Check the sums after all processes have ended. Returns a sentence for each that does not hold."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        return (self.folder / "over").exists()

    def end(self) -> None:
        (self.folder / "over").touch()

    def note(self, *words: object) -> None:
        """Write a line at once: SIGKILL cannot tear it."""
        descriptor = os.open(self._notes, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, " ".join(map(str, words)).encode() + b"\n")
        finally:
            os.close(descriptor)

    def notes(self, kind: str) -> Iterator[list[str]]:
        """The other words of each line that begins with `kind`."""
        with self._notes.open() as lines:
            for line in lines:
                first, *words = line.split()
                if first == kind:
                    yield words

    def figures(self) -> Counter[str]:
        """How often each kind was noted; `late` by its reason."""
        found: Counter[str] = Counter()
        with self._notes.open() as lines:
            for line in lines:
                words = line.split()
                found[" ".join(words[:2]) if words[0] == "late" else words[0]] += 1
        return found

    def unsound(self) -> list[str]:
        """The faults of the files themselves."""
        faults = []
        for file in self.files:
            try:
                with sqsqlite.connect(self.path(file)) as sqs:
                    assert_whole(sqs)
            except AssertionError as error:
                faults.append(f"{file}: {error}")
        return faults


def differences(what: str, expected: Counter[str], found: Counter[str]) -> list[str]:
    """Expected items that are missing or doubled, as sentences."""
    missing, surplus = expected - found, found - expected
    faults = []
    if missing:
        faults.append(f"{what}: {missing.total():,} missing, such as {next(iter(missing))}")
    if surplus:
        faults.append(f"{what}: {surplus.total():,} too many, such as {next(iter(surplus))}")
    return faults
