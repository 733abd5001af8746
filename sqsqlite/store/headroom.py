"""Room kept on the disk, so that a full one still lets consumers receive and delete.

Deleting writes too: to the WAL, and at the checkpoint to the file. So sends are refused while there is still a margin,
and a ballast file beside the database, really allocated, is given up the first time SQLite finds the disk full for all
that (another program filled it). Sends stay refused until the ballast can be laid again.
"""

import os
import threading
import time
from pathlib import Path

from sqsqlite.errors import DiskFull

# Bytes. On a small file system a sixteenth of it, but enough for a WAL of some transactions.
BALLAST = 1024 * 1024
SMALLEST_BALLAST = 128 * 1024
# Between two looks at the file system pass at most this many seconds and bytes of sends.
LOOK_EVERY_SECONDS = 0.1
LOOK_EVERY_BYTES = 64 * 1024


class Headroom:
    """The margin of one file's file system."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._ballast = folder / "ballast"
        self._path = path
        self._lock = threading.Lock()
        self._looked_at = float("-inf")
        self._sent_bytes = 0

    def require(self, size_bytes: int) -> None:
        """Refuse a send of `size_bytes` that would eat into the margin.

        Raises:
            DiskFull: receives and deletes still work; sends do again once there is room.
        """
        self._sent_bytes += size_bytes
        if self._sent_bytes < LOOK_EVERY_BYTES and time.monotonic() - self._looked_at < LOOK_EVERY_SECONDS:
            return
        with self._lock:
            # Looked at again for the next send when this one is refused.
            self._looked_at = float("-inf")
            free, total = self._space()
            ballast = max(SMALLEST_BALLAST, min(BALLAST, total // 16))
            # Once in the WAL, once in the file, and as much again for indexes and pages begun.
            needed = ballast + 4 * self._sent_bytes
            laid = self._ballast.exists()
            if free < needed + (0 if laid else ballast) or not (laid or self._lay(ballast)):
                self._sent_bytes = 0
                raise DiskFull(
                    f"{self._path}: {free:,} bytes are free on the disk, a send of {size_bytes:,} bytes needs "
                    f"{needed:,} (the rest is kept so that messages can still be received and deleted)"
                )
            self._sent_bytes = 0
            self._looked_at = time.monotonic()

    def release(self) -> bool:
        """Give the ballast up. True: there was one, so trying again makes sense."""
        with self._lock:
            self._looked_at = float("-inf")
            try:
                os.unlink(self._ballast)
            except FileNotFoundError:
                return False
            return True

    def _space(self) -> tuple[int, int]:
        if not hasattr(os, "statvfs"):  # Windows
            import shutil

            usage = shutil.disk_usage(self._path.parent)
            return usage.free, usage.total
        status = os.statvfs(self._path.parent)
        return status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize

    def _lay(self, size_bytes: int) -> bool:
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, size_bytes)
            else:
                os.write(descriptor, b"\0" * size_bytes)
        except OSError:
            os.unlink(self._ballast)
            return False
        finally:
            os.close(descriptor)
        return True
