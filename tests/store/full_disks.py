# SPDX-License-Identifier: Apache-2.0
"""Small file systems, and two ways to fill them: with messages, and by another program."""

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
    """Mount a file system of `size_mib` MiB in memory on `folder`, and create that folder."""
    folder.mkdir()
    if os.geteuid() != 0:
        assert not os.environ.get("CI"), "run as root: a small file system has to be mounted"
        pytest.skip("only root can mount a small file system")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "queues", folder], check=True)
    try:
        yield folder
    finally:
        # A lazy unmount: the process keeps the descriptors of the turns until it ends.
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill_with_sends(queue: Queue, body: str) -> list[str]:
    """Send until a send is refused. Returns the message ids of the accepted sends."""
    sent = []
    try:
        while True:
            sent.append(queue.send(body).message_id)
    except DiskFull:
        return sent


def fill_by_another_program(disk: Path, leave: int = 0) -> None:
    """Take all free space, to the last block but `leave` bytes."""
    with (disk / "somebody-elses").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * CHUNK)
        except OSError:
            file.truncate(max(0, file.tell() - leave))


def free_bytes(disk: Path) -> int:
    """The bytes that an ordinary user can still write."""
    status = os.statvfs(disk)
    return status.f_bavail * status.f_frsize
