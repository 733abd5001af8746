"""Taking turns at writing: a turnstile of two locks on small files beside the database.

SQLite's own busy handler sleeps and starves: of 8 processes at FULL one waited 630 ms. Here a writer takes the
waiting room, then the turn, leaves the waiting room, writes, leaves the turn. Whoever stands in the waiting room is
next, because the process that just wrote has to go through the waiting room again. Fairness only: SQLite's lock gives
correctness.

POSIX record locks are used because a forked child doesn't inherit them (`flock` stays held by the child), and they
are polled because a blocking one can't be bounded by `busy_timeout`. Closing any descriptor of a file drops a
process's record locks on it: so one descriptor a file and process, kept until the process ends.
"""

import os
import threading
import time
from pathlib import Path

from sqsqlite.errors import Busy, TransactionInProgress

try:
    import fcntl
except ImportError:  # Windows: SQLite's busy handler alone
    fcntl = None  # type: ignore[assignment]

# Seconds between two looks at a lock that somebody else holds. The longer it waits, the more often it looks.
POLL_PATIENT = 0.0002
POLL_PRESSING = 0.00004
PRESSING_AFTER = 0.003


_TRY = 0 if fcntl is None else fcntl.LOCK_EX | fcntl.LOCK_NB
_UNLOCK = 0 if fcntl is None else fcntl.LOCK_UN


class Turnstile:
    """The turn to write to one file. One object a file and process (`turnstile_for`)."""

    def __init__(self, folder: Path) -> None:
        self._inside = threading.Lock()
        self._owner: int | None = None
        self._waiting_room = self._descriptor(folder / "waiting-room")
        self._turn = self._descriptor(folder / "turn")

    @staticmethod
    def _descriptor(path: Path) -> int:
        if fcntl is None:
            return -1
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def is_stale(self) -> bool:
        """Whether the lock files were deleted, as with the database they stood beside (its inode may be used again)."""
        return self._turn >= 0 and os.fstat(self._turn).st_nlink == 0

    def take(self, timeout: float) -> None:
        """Wait for the turn.

        Args:
            timeout: seconds.

        Raises:
            Busy: others kept the turn for all of `timeout`.
            TransactionInProgress: this thread already has it.
        """
        if not self._inside.acquire(False):
            timeout = self._wait_inside(timeout)
        if fcntl is not None:
            try:
                self._pass(timeout)
            except BaseException:
                self._inside.release()
                raise
        self._owner = threading.get_ident()

    def _wait_inside(self, timeout: float) -> float:
        """For the turn of another thread of this process. Gives what is left of the timeout."""
        if self._owner == threading.get_ident():
            raise TransactionInProgress(
                "this thread already holds a write transaction on the file: pass it as `connection=`, or leave it first"
            )
        started = time.monotonic()
        if not self._inside.acquire(True, timeout):
            raise Busy(f"another thread has been writing for {timeout:g} s (busy_timeout)")
        return timeout - (time.monotonic() - started)

    def _pass(self, timeout: float) -> None:
        """Through the waiting room to the turn: where nobody else is, three calls."""
        waiting_room, turn, lock = self._waiting_room, self._turn, fcntl.lockf
        deadline = 0.0
        try:
            lock(waiting_room, _TRY)
        except (BlockingIOError, PermissionError):
            deadline = time.monotonic() + timeout
            _poll(waiting_room, deadline, timeout)
        try:
            try:
                lock(turn, _TRY)
            except (BlockingIOError, PermissionError):
                _poll(turn, deadline or time.monotonic() + timeout, timeout, pressing=True)
        finally:
            lock(waiting_room, _UNLOCK)

    def leave(self) -> None:
        """Give the turn up."""
        self._owner = None
        if fcntl is not None:
            fcntl.lockf(self._turn, _UNLOCK)
        self._inside.release()

    def after_fork_in_child(self) -> None:
        """The parent's threads are gone, and their hold on the turn with them."""
        self._inside = threading.Lock()
        self._owner = None


def _lock(descriptor: int) -> bool:
    try:
        fcntl.lockf(descriptor, _TRY)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _poll(descriptor: int, deadline: float, timeout: float, *, pressing: bool = False) -> None:
    pressing_at = time.monotonic() + PRESSING_AFTER
    while not _lock(descriptor):
        now = time.monotonic()
        if now >= deadline:
            raise Busy(f"another process has been writing for {timeout:g} s (busy_timeout)")
        time.sleep(POLL_PRESSING if pressing or now >= pressing_at else POLL_PATIENT)


_turnstiles: dict[tuple[int, int], Turnstile] = {}
_turnstiles_lock = threading.Lock()


def turnstile_for(identity: tuple[int, int], folder: Path) -> Turnstile:
    """The process's one turnstile for the file with this (device, inode)."""
    with _turnstiles_lock:
        found = _turnstiles.get(identity)
        if found is None or found.is_stale():
            found = _turnstiles[identity] = Turnstile(folder)
        return found


def _after_fork_in_child() -> None:
    global _turnstiles_lock
    _turnstiles_lock = threading.Lock()
    for turnstile in _turnstiles.values():
        turnstile.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
