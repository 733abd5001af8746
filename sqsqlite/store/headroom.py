"""Room kept on the disk, so that a full one still lets consumers receive and delete.

Deleting writes too: to the WAL, and at the checkpoint to the file. So sends are refused while there is still a margin,
which covers what the WAL has yet to add to the file. A ballast file beside the database, really allocated, is given up
piece by piece when SQLite finds the disk full for all that (another program filled it), and the WAL begins again in
the space that it has. In pieces, because the WAL would take all of it and leave nothing to the file that it is copied
into. Sends stay refused until the ballast can be laid again.
"""

import os
import threading
import time
from pathlib import Path

from sqsqlite.errors import DiskFull
from sqsqlite.store.connections import Connection

# Bytes. On a small file system a sixteenth of it, but enough for a WAL of some transactions.
BALLAST = 1024 * 1024
SMALLEST_BALLAST = 256 * 1024
BALLAST_PIECES = 4
# Bytes that a small commit adds to the WAL, generously: some ten pages.
COMMIT_BYTES = 48 * 1024
# Seconds between two looks at the file system, at most: other programs fill it too.
LOOK_EVERY_SECONDS = 0.1


class Headroom:
    """The margin of one file's file system.

    Attributes:
        wal_in_the_way: the last refusal may be due to the size of the WAL alone: emptied, it gives the disk room.
    """

    def __init__(self, folder: Path, path: Path) -> None:
        self.wal_in_the_way = False
        self._ballast = folder / "ballast"
        self._path = path
        self._lock = threading.Lock()
        self._looked_at = float("-inf")
        self._budget_bytes = 0

    def require(self, size_bytes: int, connection: Connection) -> None:
        """Refuse a send of `size_bytes`, in the transaction of `connection`, that would eat into the margin.

        Raises:
            DiskFull: receives and deletes still work; sends do again once there is room.
        """
        # Twice for indexes and pages begun.
        grown_bytes = COMMIT_BYTES + 2 * size_bytes
        self._budget_bytes -= 2 * grown_bytes
        if self._budget_bytes > 0 and time.monotonic() - self._looked_at < LOOK_EVERY_SECONDS:
            return
        with self._lock:
            free, total = self._space()
            ballast = max(SMALLEST_BALLAST, min(BALLAST, total // 16))
            owed, unused = self._file(connection)
            needed = ballast + owed + grown_bytes + max(0, grown_bytes - unused)
            laid = self._size(self._ballast)
            if free < needed + max(0, ballast - laid) or not (laid >= ballast or self._lay(ballast)):
                # The next send looks again.
                self._budget_bytes = 0
                self.wal_in_the_way = self._size(Path(f"{self._path}-wal")) > COMMIT_BYTES
                raise DiskFull(
                    f"{self._path}: {free:,} bytes are free on the disk, a send of {size_bytes:,} bytes needs "
                    f"{needed:,} (the rest is kept so that messages can still be received and deleted)"
                )
            # Other processes send too, and see the disk no sooner.
            self._budget_bytes = (free - needed) // 4
            self._looked_at = time.monotonic()

    def release(self) -> bool:
        """Give a piece of the ballast up. True: there was one, so trying again makes sense."""
        with self._lock:
            self._budget_bytes = 0
            size_bytes = self._size(self._ballast)
            if not size_bytes:
                return False
            piece = max(SMALLEST_BALLAST, size_bytes) // BALLAST_PIECES
            os.truncate(self._ballast, max(0, size_bytes - piece))
            return True

    def _file(self, connection: Connection) -> tuple[int, int]:
        """Bytes by which the next checkpoint makes the file longer, and bytes in it that are free for new rows."""
        pages, unused, page_size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return max(0, pages * page_size - self._size(self._path)), unused * page_size

    @staticmethod
    def _size(path: Path) -> int:
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0

    def _space(self) -> tuple[int, int]:
        if not hasattr(os, "statvfs"):  # Windows
            import shutil

            usage = shutil.disk_usage(self._path.parent)
            return usage.free, usage.total
        status = os.statvfs(self._path.parent)
        return status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize

    def _lay(self, size_bytes: int) -> bool:
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        laid = os.fstat(descriptor).st_size
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, size_bytes)
            else:
                os.write(descriptor, b"\0" * size_bytes)
        except OSError:
            os.ftruncate(descriptor, laid)
            return False
        finally:
            os.close(descriptor)
        return True
