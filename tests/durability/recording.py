# SPDX-License-Identifier: Apache-2.0
"""Writes and syncs of a process, recorded by strace, and the disks that a loss of power could have left.
 Until a file is synced, its writes are uncertain: after a cut each one is present, missing, or present in part, sector
by sector, and a later one may be present without an earlier one. The creation and removal of files count as on the disk
at once, because file systems with a journal write them with the next sync of any file.
"""

import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512  # bytes that a disk writes whole
DROPPED, TORN = 0.4, 0.3  # chances that a write without a sync is missing, or torn

_CALL = re.compile(
    r"(?P<pid>\d+) +(?P<name>pwrite64|write|ftruncate|fsync|fdatasync)"
    r'\((?P<descriptor>\d+)<(?P<path>[^>]*)>(?:, (?:"(?P<data>[^"]*)", \d+(?:, (?P<at>\d+))?|(?P<size>\d+)))?'
)
_REMOVED = re.compile(r'\d+ +unlink(?:at\([^,]*, |\()"(?P<path>[^"]*)".* = 0')
_RESUMED = re.compile(r"(?P<pid>\d+) +<\.\.\. (?:fsync|fdatasync) resumed>\) += 0")


@dataclass(frozen=True)
class Write:
    """`data` at an offset, or with no data a cut of the file to that length."""

    file: str
    at: int
    data: bytes | None


@dataclass(frozen=True)
class Sync:
    """All writes to the file before the event numbered `since` are on the disk."""

    file: str
    since: int


@dataclass(frozen=True)
class Said:
    """A line that the process wrote to its standard output."""

    line: str


@dataclass(frozen=True)
class Removal:
    """The file was removed."""

    file: str


Event = Write | Sync | Removal | Said


def record(command: list[str], log: Path) -> list[Event]:
    """Record a command under strace: its writes to files, their syncs and its output, in order.

    Raises:
        AssertionError: strace is not installed, or the command failed.
    """
    strace = shutil.which("strace")
    assert strace is not None, "strace is missing: apt-get install strace"
    traced = "trace=pwrite64,write,ftruncate,fsync,fdatasync,unlink,unlinkat"
    run = subprocess.run(
        [strace, "-f", "-y", "-xx", "-s", "1000000", "-e", traced, "-o", log, *command],
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()
    return _parse(log)


def _parse(log: Path) -> list[Event]:
    events: list[Event] = []
    syncing: dict[str, Sync] = {}
    with log.open(encoding="ascii") as lines:
        for line in lines:
            if resumed := _RESUMED.match(line):
                events.append(syncing.pop(resumed["pid"]))
            elif removed := _REMOVED.match(line):
                events.append(Removal(_name(removed["path"])))
            elif call := _CALL.match(line):
                event = _event(call, len(events))
                if isinstance(event, Sync) and "unfinished" in line:
                    syncing[call["pid"]] = event
                else:
                    events.append(event)
    return events


def _event(call: re.Match[str], number: int) -> Event:
    file = _name(call["path"])
    match call["name"]:
        case "fsync" | "fdatasync":
            return Sync(file, number)
        case "ftruncate":
            return Write(file, int(call["size"]), None)
        case "write" if call["descriptor"] == "1":
            return Said(_bytes(call["data"]).decode().strip())
        case "pwrite64":
            return Write(file, int(call["at"]), _bytes(call["data"]))
    return Said("")


def _name(path: str) -> str:
    return Path(_bytes(path).decode()).name


def _bytes(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal.replace("\\x", ""))


@dataclass
class _File:
    synced: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, Write]] = field(default_factory=list)


class Disk:
    """The files as they stand on the disk while a recording is played."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}

    def play(self, number: int, event: Event) -> None:
        """Let one event happen."""
        if isinstance(event, Write):
            self._files.setdefault(event.file, _File()).pending.append((number, event))
        elif isinstance(event, Removal):
            self._files.pop(event.file, None)
        elif isinstance(event, Sync) and event.file in self._files:
            file = self._files[event.file]
            for _, write in (each for each in file.pending if each[0] < event.since):
                _apply(file.synced, write)
            file.pending = [each for each in file.pending if each[0] >= event.since]

    def lose_power(self, chance: random.Random, folder: Path) -> None:
        """Write into `folder` a state that a loss of power at this instant could leave."""
        for name, file in self._files.items():
            left = bytearray(file.synced)
            for _, write in file.pending:
                for part in _survivors(write, chance):
                    _apply(left, part)
            (folder / name).write_bytes(left)


def _survivors(write: Write, chance: random.Random) -> Iterator[Write]:
    fate = chance.random()
    if fate < DROPPED:
        return
    if write.data is None or fate > DROPPED + TORN:
        yield write
        return
    for start in range(0, len(write.data), SECTOR):
        if chance.random() < 0.5:
            yield Write(write.file, write.at + start, write.data[start : start + SECTOR])


def _apply(content: bytearray, write: Write) -> None:
    if write.data is None:
        del content[write.at :]
        content.extend(bytes(write.at - len(content)))
    else:
        content.extend(bytes(max(0, write.at - len(content))))
        content[write.at : write.at + len(write.data)] = write.data
