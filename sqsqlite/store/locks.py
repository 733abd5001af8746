# SPDX-License-Identifier: Apache-2.0
"""POSIX record locks on small files, with a timeout for waiting. And the processes that hold SQLite's own locks.

The kernel wakes a blocked process at once and in order, but no system call waits for a record lock with a timeout. So a
helper thread blocks instead of the writer, and the writer waits for the helper. Polling instead cost half the
throughput of 8 processes.

The locks only make waiting fair. If a lock fails, the writer goes on without it: the kernel may refuse to block
(EDEADLK, also for two processes that only use two files; ENOLCK), the system may have no thread left, and the process
that holds the lock may be stopped.
"""

import errno
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqsqlite.store import foreign
from sqsqlite.store.beside import open_beside
from sqsqlite.store.interrupts import Signal, refuse_handlers

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: only SQLite's busy handler
    fcntl = None

# Seconds that the next writer polls before it sleeps: two or three turns at NORMAL.
SPIN = 0.0002
# Seconds behind the same holder after which a writer goes on without the lock. LONG_PATIENCE holds if the line is seen
# to move: the process that has the turn runs a long transaction.
PATIENCE, LONG_PATIENCE = 1.0, 5.0
# Seconds between two tries if no call can block.
LOOK_AGAIN = 0.001
# Seconds after which a helper without work ends.
HELPER_STAYS = 5.0
_LOCK = 0 if fcntl is None else fcntl.LOCK_EX
_TRY = 0 if fcntl is None else fcntl.LOCK_EX | fcntl.LOCK_NB
_UNLOCK = 0 if fcntl is None else fcntl.LOCK_UN
_HELD = (errno.EACCES, errno.EAGAIN)
# struct flock: type, whence, start, length, process. macOS has another order.
_FLOCK = struct.Struct("@qqihh" if sys.platform == "darwin" else "@hhqqi4x")


def holder_of(descriptor: int, start: int = 0, length: int = 0) -> int | None:
    """The process that holds a lock on these bytes of an open file. None: no other process does.

    It neither takes nor drops a lock. 0: a process of another container.
    """
    if fcntl is None:
        return None
    asked = (fcntl.F_WRLCK, os.SEEK_SET)
    try:
        if sys.platform == "darwin":
            flock = fcntl.fcntl(descriptor, fcntl.F_GETLK, _FLOCK.pack(start, length, 0, *asked))
            _, _, pid, kind, _ = _FLOCK.unpack(flock)
        else:
            flock = fcntl.fcntl(descriptor, fcntl.F_GETLK, _FLOCK.pack(*asked, start, length, 0))
            kind, _, _, _, pid = _FLOCK.unpack(flock)
    except OSError:
        return None
    return None if kind == fcntl.F_UNLCK else max(0, int(pid))


class RecordLock:
    """One lock. Only one thread of this process uses it at a time (see `Turnstile`).

    Args:
        came_back: called on the helper's thread when it stops blocking after its writer has given up.

    Attributes:
        is_out: the helper blocks, even if its writer has given up. Meanwhile this process may get the lock at any
            moment, so no other thread may touch it.
    """

    def __init__(self, path: Path, came_back: Callable[[], None]) -> None:
        self._came_back = came_back
        self._path = path
        self._descriptor = -1
        if fcntl is not None:
            self._open()
        self._closing = False
        self._reset()

    def _open(self) -> None:
        self._descriptor = open_beside(self._path, os.O_RDWR)

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._helper: threading.Thread | None = None
        self._asked = Signal()
        self._granted = threading.Lock()
        self._granted.acquire()
        self._wanted = False
        self.is_out = False
        # The process behind which writers gave up, and how many seconds they waited in all: a busy_timeout may be
        # shorter than PATIENCE.
        self._kept_by: int | None = None
        self._in_vain = 0.0
        # The process that kept the lock for all of PATIENCE. No writer waits behind it again.
        self._stuck: int | None = None

    @property
    def is_deleted(self) -> bool:
        """Whether its file was deleted, for example together with the database."""
        return self._descriptor >= 0 and os.fstat(self._descriptor).st_nlink == 0

    def try_lock(self) -> bool:
        """Take the lock if no other process has it.

        Raises:
            OSError: the system does not lock (ENOLCK, an input/output error), or the file can't be opened after a fork.
            CannotOpen: the file can't be opened, because it can't be trusted any more.
        """
        if self.is_out:
            return False
        if self._descriptor < 0:
            self._open()
        try:
            fcntl.lockf(self._descriptor, _TRY)
        except OSError as error:
            if error.errno not in _HELD:
                raise
            return False
        return True

    def spin(self) -> bool:
        """Poll for the length of a short turn, and let other threads run in between."""
        until = time.monotonic() + SPIN
        while time.monotonic() < until:
            os.sched_yield()
            if self.try_lock():
                return True
        return False

    def unlock(self) -> None:
        """Release the lock. Does no harm if the process does not have it."""
        if self._descriptor < 0:
            return
        try:
            fcntl.lockf(self._descriptor, _UNLOCK)
        except OSError:
            return  # the end of the process releases it; until then writers go past it

    def holder(self) -> int | None:
        """The other process that has the lock: see `holder_of`."""
        return None if self._descriptor < 0 else holder_of(self._descriptor)

    def wait(self, timeout: float, moves: Callable[[int], bool]) -> bool:
        """Sleep until the lock is ours (True), or until waiting makes no more sense (False).

        Waiting ends after `timeout` seconds, after PATIENCE behind the same holder, and when the system fails.

        Args:
            moves: whether the line moves although this process keeps the lock. If so, LONG_PATIENCE holds.
        """
        holder = self.holder()
        if timeout <= 0 or (holder is not None and holder == self._stuck):
            return False
        self._stuck = None
        self._note_holder(holder)
        started = time.monotonic()
        came = False
        try:
            if not self._ask():
                return self._poll(min(timeout, PATIENCE))
            while not came and (left := started + timeout - time.monotonic()) > 0:
                patience = PATIENCE - self._in_vain
                came = self._granted.acquire(timeout=min(left, patience))
                if came:
                    self._note_holder(None)
                elif self._note_holder(holder := self.holder()) and holder is not None:
                    self._in_vain += min(left, patience)
                    if left < patience:
                        continue
                    self._in_vain = 0.0
                    if time.monotonic() - started >= LONG_PATIENCE or not moves(holder):
                        self._stuck = holder
                        break
        finally:
            if not came:
                came = self._withdraw()
        return came

    def _note_holder(self, holder: int | None) -> bool:
        """Whether the last writer waited behind the same holder. If not, the waiting time starts again."""
        if holder is not None and holder == self._kept_by:
            return True
        self._kept_by, self._in_vain = holder, 0.0
        return False

    def _ask(self) -> bool:
        """Send the helper. False: the system has no thread left."""
        with self._mutex:
            self._wanted = True
            if self._helper is None or not self._helper.is_alive():
                self._helper = threading.Thread(target=self._run, name="sqsqlite-turn", daemon=True)
                try:
                    self._helper.start()
                except RuntimeError:
                    self._helper = None
                    self._wanted = self.is_out = False
                    return False
                self.is_out = False
            if not self.is_out:
                self._asked.set()
                self.is_out = True
            return True

    def _poll(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.try_lock():
                return True
            time.sleep(LOOK_AGAIN)
        return False

    def _withdraw(self) -> bool:
        """Stop waiting. True: the lock came at the same moment, and the caller must unlock it."""
        with self._mutex:
            if self._wanted:
                self._wanted = False
                return False
        return self._granted.acquire(timeout=0)

    def _run(self) -> None:
        while self._is_asked():
            came = self._block()
            with self._mutex:
                self.is_out = False
                is_wanted = self._wanted
                if is_wanted:
                    # Also if the system failed: the writer goes on without the lock.
                    self._wanted = False
                    self._granted.release()
                elif came:
                    self.unlock()
            if not is_wanted:
                self._came_back()

    def _is_asked(self) -> bool:
        """Wait for work. False: the helper ends."""
        if not self._asked.wait(HELPER_STAYS):
            with self._mutex:
                if not self._asked.is_set():
                    self._helper = None
                    return False
        self._asked.clear()
        return not self._closing

    def _block(self) -> bool:
        """Block until the process has the lock. False: the system refuses it."""
        while True:
            try:
                fcntl.lockf(self._descriptor, _LOCK)
            except OSError as error:
                if error.errno != errno.EDEADLK or not self._wanted:
                    return False
            else:
                return True
            # This is no deadlock: only this thread blocks. The thread that holds the other file's lock goes on.
            time.sleep(LOOK_AGAIN)

    def close(self) -> None:
        """Close the file and end the helper, which must not be out."""
        if self._descriptor < 0:
            return
        self._closing = True
        self._asked.set()
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    def after_fork_in_child(self) -> None:
        """Forget the helper and the lock, which stay in the parent.

        The next use opens the file again, because a daemon closes all descriptors that it inherited. SQLite may get the
        same number later, and unlocking it would drop SQLite's locks.
        """
        self._reset()
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


# SQLite's WAL-index format: its locks are bytes of -shm from 120 on. The first one is the writer's. Five are for
# readers.
_WRITE_LOCK_BYTE = 120
_READ_LOCK_BYTES = (123, 5)
# Its locks on the database itself (os.h, SHARED_FIRST): who has it to itself has them all.
_FILE_LOCK_BYTES = (0x40000002, 510)


def writer_of(path: Path) -> str:
    """The process that writes, as the end of a sentence. Empty if the system does not show it."""
    descriptors = _descriptors(path)
    if not descriptors:
        return _sole_user_of(path)
    pid = _writer(descriptors)
    if pid is None:
        return "; no other process has it now"
    return "; a process of another container has it" if pid == 0 else _named(pid)


def _sole_user_of(path: Path) -> str:
    """Who may have the database to itself, as `writer_of`: SQLite did not get as far as its -shm."""
    descriptors = _descriptors(path, "")
    if not descriptors:
        return ""
    pid = next((pid for each in descriptors if (pid := holder_of(each, *_FILE_LOCK_BYTES)) is not None), None)
    who = (
        "a connection of this process"
        if pid is None
        else _process(pid)
        if pid
        else "a process of another container"
    )
    return f"; perhaps {who} has the file to itself (PRAGMA locking_mode = EXCLUSIVE)"


def who_keeps_readers_out(path: Path) -> str:
    """The process that holds the readers' locks, as `writer_of`. SQLite itself never keeps all of them for long."""
    descriptors = _descriptors(path)
    pid = next((pid for each in descriptors if (pid := holder_of(each, *_READ_LOCK_BYTES)) is not None), None)
    return "" if pid is None else "; a process of another container has it" if pid == 0 else _named(pid)


def is_writer(pid: int, path: Path) -> bool:
    """Whether this process has the write lock. The number of a process of another container is 0."""
    return pid > 0 and _writer(_descriptors(path)) == pid


def is_stopped(pid: int) -> bool:
    """Whether the system shows that the process is stopped: by SIGSTOP, Ctrl-Z or a debugger."""
    return _status(pid)[1] in ("T", "t")


def _descriptors(path: Path, suffix: str = "-shm") -> set[int]:
    """SQLite's own descriptors of the -shm in this process. Closing another one would drop SQLite's locks."""
    try:
        return foreign.descriptors(foreign.identity(Path(f"{path}{suffix}")))
    except OSError as error:
        refuse_handlers(error)
        return set()


def _writer(descriptors: set[int]) -> int | None:
    return next(
        (pid for each in descriptors if (pid := holder_of(each, _WRITE_LOCK_BYTE, 1)) is not None), None
    )


def _status(pid: int) -> tuple[str, str]:
    """A process's name and state. Both are empty if the system does not show them."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # "123 (name) T ...": the name may contain anything, brackets too.
            name, _, rest = file.read().decode(errors="replace").partition("(")[2].rpartition(")")
    except OSError as error:
        refuse_handlers(error)
        return "", ""
    return name, rest.split()[0] if rest.split() else ""


def _process(pid: int) -> str:
    name, _ = _status(pid)
    return f"process {pid} ({name})" if name else f"process {pid}"


def _named(pid: int) -> str:
    stopped = ", which is stopped (SIGSTOP, Ctrl-Z or a debugger)" if is_stopped(pid) else ""
    return f"; {_process(pid)} has it{stopped}"
