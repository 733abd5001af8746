# SPDX-License-Identifier: Apache-2.0
"""A reserve of disk space, so that consumers can still receive and delete on a full disk.

Deleting also writes: to the WAL, and at the checkpoint to the file. So sends are refused while a margin is still free.
It covers what the WAL will add to the file. Another program may fill the disk nevertheless. Then SQLite finds it full,
we give up a ballast file next to the database piece by piece, and the WAL begins again in its own space. The ballast
has pieces because the WAL would otherwise take all of it, and leave nothing for the file. Sends stay refused until the
ballast can be laid again. A quota is handled in the same way, but only laying the ballast shows whether it is used up.

If a process has a limit on the size of files (`ulimit -f`), it limits the WAL and the file separately: the WAL must be
able to begin again, and a checkpoint makes the file longer.

A long reader keeps the WAL from beginning again, so receives and deletes make it longer too. They may use the ballast,
but never the space that the next checkpoint needs: without it, that checkpoint could never run.
"""

import math
import os
import threading
import time
from pathlib import Path

from sqsqlite.errors import DiskFull
from sqsqlite.store.beside import KeptFile, make_folder
from sqsqlite.store.driver import Connection
from sqsqlite.store.interrupts import refuse_handlers
from sqsqlite.store.used_up import cut_back, size_limit

# Bytes. On a small file system it is a sixteenth of its size, but enough for a WAL of some transactions.
BALLAST = 1024 * 1024
SMALLEST_BALLAST = 256 * 1024
BALLAST_PIECES = 4
# Bytes that a small commit adds to the WAL, about ten pages rounded up. And bytes for each further changed row.
COMMIT_BYTES = 48 * 1024
CHANGE_BYTES = 6 * 1024
# The most seconds between two looks at the file system: other programs fill it too.
LOOK_EVERY_SECONDS = 0.1


class Headroom:
    """The free space that is kept on one file's file system.

    Attributes:
        ballast_bytes: the wanted size of the ballast, on a disk of this size.
        wal_in_the_way: perhaps only the size of the WAL caused the last refusal. Emptying it would make room.
    """

    def __init__(self, folder: Path, path: Path) -> None:
        self.ballast_bytes = SMALLEST_BALLAST
        self.wal_in_the_way = False
        self._ballast = folder / "ballast"
        self._ballast_file = KeptFile(self._ballast)
        self._path = path
        self._lock = threading.Lock()
        self._looked_at = float("-inf")
        self._budget_bytes: float = 0
        # The limit at the last look: a process may lower its own limit at any time.
        self._limit = math.inf
        # The time of the last look at the WAL, which every commit makes longer.
        self._wal_looked_at = float("-inf")
        self._wal_budget_bytes: float = 0
        # At the beginning of the current transaction: its connection's changes, and the pages of the file.
        self._watched: tuple[int, int] | None = None

    def open(self) -> None:
        """Open the ballast's file and keep it open: sends must be able to lay it when no descriptor is left.

        Raises:
            OSError: the file cannot be opened.
        """
        self._ballast_file.descriptor()

    def close(self) -> None:
        """Close the ballast's file. The ballast stays."""
        self._ballast_file.close()

    def is_measure_due(self) -> bool:
        """Whether a transaction should `measure` before it begins: now and then, or always if little is left."""
        self._wal_budget_bytes -= COMMIT_BYTES
        is_old = time.monotonic() - self._wal_looked_at >= LOOK_EVERY_SECONDS
        return self._wal_budget_bytes <= 0 or is_old or size_limit() != self._limit

    def measure(self, connection: Connection) -> bool:
        """Whether the WAL can grow for the next transactions, even if a reader keeps it from beginning again.

        The caller holds the turn.
        """
        self._watched = None
        if size_limit() != self._limit:
            self._limit, self._budget_bytes = size_limit(), 0  # so the next send measures too
        free, total = self._space()
        owed, _ = self._file(connection)
        self.ballast_bytes = self._ballast_bytes(total)
        self._let_wal_grow(min(free - owed - self.ballast_bytes, self._wal_room()) // 4)
        return self._wal_budget_bytes > 0

    def wal_began_again(self) -> None:
        """Note that the WAL began again: transactions use its space and the free space. The file needs none of it."""
        free, _ = self._space()
        self._let_wal_grow(min(free + self._wal_bytes(), size_limit()) // 4)

    def _let_wal_grow(self, size_bytes: float) -> None:
        self._wal_budget_bytes = size_bytes
        self._wal_looked_at = time.monotonic()

    def has_margin(self, connection: Connection) -> bool:
        """Whether a small commit leaves what the next checkpoint adds to the file."""
        free, _ = self._space()
        owed, _ = self._file(connection)
        return free >= owed + COMMIT_BYTES and self._wal_room() >= COMMIT_BYTES

    def watch(self, connection: Connection) -> None:
        """Measure the transaction that `connection` is about to begin: see `require_margin`."""
        self._watched = connection.total_changes, self._page_count(connection)

    def require_margin(self, connection: Connection) -> None:
        """Refuse to commit a watched transaction that would leave less space than the next checkpoint needs.

        Raises:
            DiskFull: the caller must roll the transaction back.
        """
        if self._watched is None:
            return
        changes, pages = self._watched
        self._watched = None
        new_pages = max(0, self._page_count(connection) - pages)
        grown = COMMIT_BYTES + CHANGE_BYTES * (connection.total_changes - changes)
        grown += new_pages * connection.execute("PRAGMA page_size").fetchone()[0]
        free, _ = self._space()
        owed, _ = self._file(connection)
        if free < owed + grown or self._wal_room() < grown:
            raise self.kept_by_reader(connection)

    def kept_by_reader(self, connection: Connection) -> DiskFull:
        """The error for every transaction while the WAL can neither grow nor begin again."""
        free, _ = self._space()
        owed, _ = self._file(connection)
        return DiskFull(
            f"{self._path}: {free:,} bytes are free on the disk, and copying the WAL into the file takes {owed:,} of "
            "them. A long reader keeps the WAL from beginning again: end it (a read transaction left open, an export), "
            "or make room on the disk"
        )

    def require(self, size_bytes: int, connection: Connection) -> None:
        """Refuse a send of `size_bytes`, in the transaction of `connection`, that would eat into the margin.

        Raises:
            DiskFull: receives and deletes still work. Sends work again when there is room.
        """
        # Twice the size, for indexes and for pages that are not full.
        grown_bytes = COMMIT_BYTES + 2 * size_bytes
        self._budget_bytes -= 2 * grown_bytes
        # The beginning of the transaction has checked whether the process's limit has changed.
        if self._budget_bytes > 0 and time.monotonic() - self._looked_at < LOOK_EVERY_SECONDS:
            return
        with self._lock:
            self._limit = size_limit()
            free, total = self._space()
            ballast = self._ballast_bytes(total)
            owed, unused = self._file(connection)
            needed = ballast + owed + grown_bytes + max(0, grown_bytes - unused)
            laid = self._size(self._ballast)
            self._require_file_size(size_bytes, grown_bytes, ballast + owed + max(0, grown_bytes - unused))
            if free < needed + max(0, ballast - laid) or not (laid >= ballast or self._lay(ballast)):
                # The next send looks again.
                self._budget_bytes = 0
                self.wal_in_the_way = self._wal_bytes() > COMMIT_BYTES
                raise DiskFull(
                    f"{self._path}: {free:,} bytes are free on the disk, a send of {size_bytes:,} bytes needs "
                    f"{needed:,} (the rest is kept so that messages can still be received and deleted)"
                )
            # A quarter of it: other processes send too, and do not look at the disk more often.
            self._budget_bytes = min(free - needed, self._wal_room()) // 4
            self._looked_at = time.monotonic()

    def _require_file_size(self, size_bytes: int, grown_bytes: int, file_bytes: int) -> None:
        """Refuse a send that would bring the WAL or the file to the limit on the size of files."""
        limit = size_limit()
        if self._size(self._path) + file_bytes <= limit and grown_bytes <= self._wal_room():
            return
        self._budget_bytes = 0
        self.wal_in_the_way = self._wal_bytes() > COMMIT_BYTES
        raise DiskFull(
            f"{self._path}: files of this process may have {limit:,} bytes (ulimit -f), and a send of {size_bytes:,} "
            "bytes would bring the file or its WAL too near (the rest is kept so that messages can still be received "
            "and deleted)"
        )

    def release(self) -> bool:
        """Give up a piece of the ballast. True: there was one, so trying again makes sense."""
        with self._lock:
            self._budget_bytes = self._wal_budget_bytes = 0
            size_bytes = self._size(self._ballast)
            if not size_bytes:
                return False
            piece = max(SMALLEST_BALLAST, size_bytes) // BALLAST_PIECES
            return cut_back(self._ballast_file.descriptor(), max(0, size_bytes - piece))

    @staticmethod
    def _ballast_bytes(total: int) -> int:
        return max(SMALLEST_BALLAST, int(min(BALLAST, total // 16, size_limit() / 16)))

    @staticmethod
    def _page_count(connection: Connection) -> int:
        pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
        return pages

    def _file(self, connection: Connection) -> tuple[int, int]:
        """Bytes that the next checkpoint adds to the file, and bytes in the file that are free for new rows."""
        pages, unused, page_size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return max(0, pages * page_size - self._size(self._path)), unused * page_size

    def _wal_bytes(self) -> int:
        return self._size(Path(f"{self._path}-wal"))

    def _wal_room(self) -> float:
        """Bytes that the WAL can grow until it reaches the limit on the size of files."""
        return size_limit() - self._wal_bytes()

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
        if not self._ballast.exists():
            make_folder(self._ballast.parent)  # a program that deletes old files may have removed it
        descriptor = self._ballast_file.descriptor()
        laid = os.fstat(descriptor).st_size
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, size_bytes)
            else:
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, b"\0" * size_bytes)
        except OSError as error:
            cut_back(descriptor, laid)
            refuse_handlers(error)
            return False
        return True
