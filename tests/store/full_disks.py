# SPDX-License-Identifier: Apache-2.0
"""Small file systems, and filling them: with messages, and as another program does."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqsqlite import Queue
from sqsqlite.errors import DiskFull

CHUNK = 4096


@contextlib.contextmanager
def small_disk(folder: Path, size_mib: int) -> Iterator[Path]:
    """A file system of so many MiB in memory, mounted on `folder`, which is made for it."""
    folder.mkdir()
    if os.geteuid() != 0:
        assert not os.environ.get("CI"), "run as root: a small file system has to be mounted"
        pytest.skip("only root can mount a small file system")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "queues", folder], check=True)
    try:
        yield folder
    finally:
        # Lazily: the descriptors of the turns are kept until the process ends.
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill_with_sends(queue: Queue, body: str) -> list[str]:
    """Send until refused: the message ids of what was accepted."""
    sent = []
    try:
        while True:
            sent.append(queue.send(body).message_id)
    except DiskFull:
        return sent


def fill_by_another_program(disk: Path, leave: int = 0) -> None:
    """Take all the space there is, to the last block but `leave` bytes."""
    with (disk / "somebody-elses").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * CHUNK)
        except OSError:
            file.truncate(max(0, file.tell() - leave))


def free_bytes(disk: Path) -> int:
    """What an ordinary user may still take."""
    status = os.statvfs(disk)
    return status.f_bavail * status.f_frsize
