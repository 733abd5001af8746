"""Taking turns at writing: a turnstile of two locks on small files beside the database.

SQLite's own busy handler sleeps and starves: of 8 processes at FULL one waited 900 ms. Here a writer takes the
waiting room, then the turn, leaves the waiting room, writes, leaves the turn. Whoever stands in the waiting room is
next, because the process that just wrote has to go through the waiting room again. Fairness only: SQLite's lock gives
correctness.

POSIX record locks are used because a forked child doesn't inherit them (`flock` stays held by the child). They belong
to the process, not to a thread, and closing any descriptor of a file drops the process's locks on it: so one object
and one descriptor a file and process, kept until its last user closes.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from sqsqlite.errors import Busy, TransactionInProgress
from sqsqlite.store.interrupts import Signal

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: SQLite's busy handler alone
    fcntl = None

# Seconds that the next in turn looks again and again before it sleeps: two or three turns at NORMAL.
SPIN = 0.0002
# Seconds after which a thread that waits for another's turn looks again, should the word have been lost.
LOOK_AGAIN = 0.05
_TURN = "turn"
_LOCK = 0 if fcntl is None else fcntl.LOCK_EX
_TRY = 0 if fcntl is None else fcntl.LOCK_EX | fcntl.LOCK_NB
_UNLOCK = 0 if fcntl is None else fcntl.LOCK_UN


class Holder(Protocol):
    """Who takes a turn: a group commit's entry, or an application's connection."""

    @property
    def thread(self) -> int:
        """The thread it is for, by `threading.get_ident()`."""


class ThreadHolder:
    """A turn for a piece of work in this thread that is nobody's entry or connection."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class Turnstile:
    """The turn to write to one file. One object a file and process (`turnstile_for`).

    Within the process the turn is an entry of a dict that names its holder. `setdefault` takes it in one step, so
    whatever a signal handler raises, and wherever, it can be told afterwards who has the turn.
    """

    def __init__(self, folder: Path) -> None:
        self.user_count = 0
        self._held: dict[str, Holder] = {}
        self._waiting: list[Signal] = []
        self._waiting_room = self._descriptor(folder / "waiting-room")
        self._turn = self._descriptor(folder / "turn")
        self._room_sleeper = _Sleeper(self._waiting_room)
        self._turn_sleeper = _Sleeper(self._turn)

    @staticmethod
    def _descriptor(path: Path) -> int:
        if fcntl is None:
            return -1
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def is_stale(self) -> bool:
        """Whether the lock files were deleted, as with the database they stood beside (its inode may be used again)."""
        return self._turn >= 0 and os.fstat(self._turn).st_nlink == 0

    def close(self) -> None:
        """Close the lock files, unless somebody is still at work: then they stay open."""
        if self._turn < 0 or self._held or self._room_sleeper.is_out or self._turn_sleeper.is_out:
            return
        os.close(self._waiting_room)
        os.close(self._turn)
        self._waiting_room = self._turn = -1

    def take(self, holder: Holder, timeout: float) -> None:
        """Wait for the turn. The caller gives it up by `leave`, whatever happens.

        Args:
            timeout: seconds.

        Raises:
            Busy: others kept the turn for all of `timeout`.
            TransactionInProgress: this thread already has it.
        """
        try:
            if self._held.setdefault(_TURN, holder) is not holder:
                timeout = self._wait_inside(holder, timeout)
            if fcntl is not None:
                self._pass(timeout)
        except BaseException:
            self.leave(holder)
            raise

    @contextmanager
    def taken(self, timeout: float) -> Iterator[None]:
        """`take` and `leave` around a block."""
        holder = ThreadHolder()
        self.take(holder, timeout)
        try:
            yield
        finally:
            self.leave(holder)

    def _wait_inside(self, holder: Holder, timeout: float) -> float:
        """For the turn of another thread of this process. Gives what is left of the timeout."""
        self.refuse_holder()
        started = time.monotonic()
        left = Signal()
        self._waiting.append(left)
        try:
            while self._held.setdefault(_TURN, holder) is not holder:
                remaining = timeout - (time.monotonic() - started)
                if remaining <= 0:
                    raise Busy(f"another thread has been writing for {timeout:g} s (busy_timeout)")
                left.wait(min(remaining, LOOK_AGAIN))
                left.clear()
        finally:
            self._waiting.remove(left)
        return timeout - (time.monotonic() - started)

    def _pass(self, timeout: float) -> None:
        """Through the waiting room to the turn: where nobody else is, three calls."""
        started = 0.0
        try:
            if not self._room_sleeper.try_lock():
                started = time.monotonic()
                self._room_sleeper.wait(timeout)
            if not (self._turn_sleeper.try_lock() or self._turn_sleeper.spin()):
                if started:
                    timeout -= time.monotonic() - started
                self._turn_sleeper.wait(timeout)
        finally:
            fcntl.lockf(self._waiting_room, _UNLOCK)

    def refuse_holder(self) -> None:
        """Refuse a second write on a thread that holds the turn: it would wait for itself.

        Raises:
            TransactionInProgress: this is such a thread.
        """
        if self.is_held_here:
            raise TransactionInProgress(
                "this thread already holds a write transaction on the file: pass it as `connection=`, or leave it first"
            )

    @property
    def is_held_here(self) -> bool:
        """Whether this thread has the turn: until it gives it up, nobody writes."""
        holder = self._held.get(_TURN)
        return holder is not None and holder.thread == threading.get_ident()

    def leave(self, holder: Holder) -> None:
        """Give the turn up, if `holder` has it; once more does no harm."""
        if self._held.get(_TURN) is not holder:
            return
        if fcntl is not None:
            fcntl.lockf(self._turn, _UNLOCK)
        self._held.pop(_TURN, None)
        if self._waiting:
            for left in list(self._waiting):
                left.set()

    def after_fork_in_child(self) -> None:
        """The parent's threads are gone, and their hold on the turn with them."""
        self._held = {}
        self._waiting = []
        self._room_sleeper = _Sleeper(self._waiting_room)
        self._turn_sleeper = _Sleeper(self._turn)


class _Sleeper:
    """One of the locks, and a thread that blocks on it in place of a writer, who waits for that with a timeout.

    The kernel wakes a blocked process at once and in order, but no call blocks on a record lock for so many seconds and
    no longer. Looking again and again instead cost half the throughput of 8 processes.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked = Signal()
        self._granted = threading.Lock()
        self._granted.acquire()
        self._wanted = False
        # From the request until the lock came: longer than the writer waited, if that gave up. Meanwhile the lock may
        # become the process's at any moment, so nobody else in it may touch the lock.
        self.is_out = False

    def try_lock(self) -> bool:
        """Take the lock if nobody has it."""
        if self.is_out:
            return False
        try:
            fcntl.lockf(self._descriptor, _TRY)
        except OSError:
            return False
        return True

    def spin(self) -> bool:
        """Look again and again, giving way to others, for the length of a short turn."""
        until = time.monotonic() + SPIN
        while time.monotonic() < until:
            os.sched_yield()
            if self.try_lock():
                return True
        return False

    def wait(self, timeout: float) -> None:
        """Sleep until the lock is ours.

        Raises:
            Busy: it wasn't within `timeout` seconds.
        """
        with self._mutex:
            self._wanted = True
            if not self.is_out:
                self.is_out = True
                self._ask()
        came = False
        try:
            came = self._granted.acquire(timeout=max(0.0, timeout))
        finally:
            if not came:
                self._give_up()
        if not came:
            raise Busy(f"another process has been writing for {timeout:g} s (busy_timeout)")

    def _ask(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sqsqlite-turn", daemon=True)
            self._thread.start()
        self._asked.set()

    def _give_up(self) -> None:
        with self._mutex:
            if self._wanted:
                self._wanted = False
                return
        # It came in the same instant, and is not used.
        self._granted.acquire()
        fcntl.lockf(self._descriptor, _UNLOCK)

    def _run(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            fcntl.lockf(self._descriptor, _LOCK)
            with self._mutex:
                self.is_out = False
                if self._wanted:
                    self._wanted = False
                    self._granted.release()
                else:
                    fcntl.lockf(self._descriptor, _UNLOCK)


_turnstiles: dict[tuple[int, int], Turnstile] = {}
_turnstiles_lock = threading.Lock()


def turnstile_for(identity: tuple[int, int], folder: Path) -> Turnstile:
    """The process's one turnstile for the file with this (device, inode). Each call is followed by a `let_go`."""
    with _turnstiles_lock:
        found = _turnstiles.get(identity)
        if found is None or found.is_stale():
            found = _turnstiles[identity] = Turnstile(folder)
        found.user_count += 1
        return found


def let_go(turnstile: Turnstile) -> None:
    """One user less; the last one closes the lock files."""
    with _turnstiles_lock:
        turnstile.user_count -= 1
        if turnstile.user_count > 0:
            return
        for identity, other in list(_turnstiles.items()):
            if other is turnstile:
                del _turnstiles[identity]
        turnstile.close()


def _after_fork_in_child() -> None:
    global _turnstiles_lock
    _turnstiles_lock = threading.Lock()
    for turnstile in _turnstiles.values():
        turnstile.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
