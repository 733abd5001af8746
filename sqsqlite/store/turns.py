# SPDX-License-Identifier: Apache-2.0
"""Taking turns at writing: a turnstile of two locks on small files next to the database.

SQLite's own busy handler sleeps and starves: of 8 processes at FULL one waited 900 ms. Here a writer takes the
waiting room, then the turn, leaves the waiting room, writes, leaves the turn. The process in the waiting room is
next, because the process that just wrote has to go through the waiting room again.

Fairness only: SQLite's lock gives correctness. A writer that the turnstile keeps too long, or fails, goes past it to
SQLite's own lock. So nothing that happens to these locks can stop all writers.

POSIX record locks are used because a forked child doesn't inherit them (`flock` stays held by the child). They belong
to the process, not to a thread, and closing any descriptor of a file drops the process's locks on it: so one object
and one descriptor a file and process, kept until its last user closes.
"""

import gc
import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from weakref import ref

from sqsqlite.errors import Busy, StoreError, TransactionInProgress
from sqsqlite.store.interrupts import Signal, refuse_handlers, until_done
from sqsqlite.store.locks import RecordLock, fcntl, is_stopped, is_writer, writer_of

# Seconds after which a thread that waits for another's turn looks again, should the word have been lost.
LOOK_AGAIN = 0.05
# Seconds after which it lets the garbage be collected, once.
COLLECT_AFTER = 0.5
# Seconds for which a process that met no other writer takes its next turns past the waiting room. Each turn costs two
# calls of the system less, and another process that comes meanwhile waits for that much longer, once.
ALONE_FOR = 0.002
_TURN = "turn"


class Holder(Protocol):
    """Who takes a turn: a group commit's entry, or an application's connection."""

    @property
    def thread(self) -> int:
        """The thread it is for, by `threading.get_ident()`."""


class ThreadHolder:
    """A turn for a piece of work in this thread that has neither entry nor connection."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class Turnstile:
    """The turn to write to one file. One object a file and process (`turnstile_for`).

    Within the process the turn is an entry of a dict that names its holder. `setdefault` takes it in one step, so
    whatever a signal handler raises, and wherever, it is known afterwards who has the turn. The reference is weak: a
    holder that signals kept from leaving, each in the clean-up of the one before it, has the turn until it is freed.
    """

    def __init__(self, folder: Path) -> None:
        self.user_count = 0
        self._path = folder.with_name(folder.name.removesuffix("-sqs"))
        self._held: dict[str, ref[Holder]] = {}
        self._freeing = threading.Lock()
        self._keeps_room = False
        self._alone_until = 0.0
        self._waiting: list[Signal] = []
        self._waiting_room = RecordLock(folder / "waiting-room", _close_unused)
        try:
            self._turn = RecordLock(folder / "turn", _close_unused)
        except (OSError, StoreError):
            self._waiting_room.close()
            raise

    def is_stale(self) -> bool:
        """Whether the lock files were deleted, perhaps with their database (its inode may be used again)."""
        return self._turn.is_deleted

    def close(self) -> bool:
        """Close the lock files. False: they are in use, and stay open."""
        if self._held or self._waiting_room.is_out or self._turn.is_out:
            return False
        self._waiting_room.close()
        self._turn.close()
        return True

    def take(self, holder: Holder, timeout: float) -> float:
        """Wait for the turn, or for the moment to go past it. The caller gives it up by `leave`, whatever happens.

        Args:
            timeout: seconds.

        Returns:
            What is left of the timeout, for SQLite's own lock.

        Raises:
            Busy: another thread of this process kept the turn for all of `timeout`.
            TransactionInProgress: this thread already has it.
        """
        try:
            if self._held.setdefault(_TURN, mine := ref(holder)) is not mine:
                timeout = self._wait_inside(holder, timeout)
            return timeout if fcntl is None or self._takes_again() else self._pass(timeout)
        except BaseException:
            try:
                until_done(lambda: self.leave(holder))
            finally:
                # Another signal may come before `until_done` has begun.
                until_done(lambda: self.leave(holder))
            raise

    @contextmanager
    def taken(self, timeout: float) -> Iterator[None]:
        """`take` and `leave` around a block."""
        holder = ThreadHolder()
        try:
            self.take(holder, timeout)
            yield
        finally:
            until_done(lambda: self.leave(holder))

    def _wait_inside(self, holder: Holder, timeout: float) -> float:
        """For the turn of another thread of this process. Gives what is left of the timeout."""
        self.refuse_holder()
        started = time.monotonic()
        left = Signal()
        self._waiting.append(left)
        collect_at = started + COLLECT_AFTER
        try:
            mine = ref(holder)
            while self._held.setdefault(_TURN, mine) is not mine:
                now = time.monotonic()
                remaining = timeout - (now - started)
                if now >= collect_at:
                    # Only a cycle may refer to the holder any more, the traceback of an interrupt perhaps.
                    collect_at = math.inf
                    gc.collect()
                if self._is_freed():
                    continue
                if remaining <= 0:
                    raise Busy(
                        f"{self._path}: another thread has been writing for the whole busy_timeout"
                        f"{writer_of(self._path)}"
                    )
                left.wait(min(remaining, LOOK_AGAIN))
                left.clear()
        finally:
            self._waiting.remove(left)
        return timeout - (time.monotonic() - started)

    def _takes_again(self) -> bool:
        """Take the turn past the waiting room, where no other process stood a moment ago."""
        try:
            return time.monotonic() < self._alone_until and self._turn.try_lock()
        except OSError as error:
            refuse_handlers(error)
            return False

    def _pass(self, timeout: float) -> float:
        """Through the waiting room to the turn: three calls where no other writer is.

        A writer that goes past the turn keeps the waiting room instead: others stand behind it all the same.
        """
        started = 0.0
        has_turn = is_alone = False
        try:
            if not self._waiting_room.try_lock():
                started = time.monotonic()
                self._waiting_room.wait(timeout, self._moves)
            has_turn = self._turn.try_lock()
            is_alone = has_turn and not started
            has_turn = has_turn or self._turn.spin()
            if not has_turn:
                now = time.monotonic()
                started = started or now
                has_turn = self._turn.wait(timeout - (now - started), self._moves)
        except OSError as error:
            refuse_handlers(error)
            # The system does not lock: SQLite's own lock alone.
        finally:
            if has_turn:
                self._waiting_room.unlock()
            else:
                self._keeps_room = True
        now = time.monotonic()
        self._alone_until = now + ALONE_FOR if is_alone else 0.0
        return max(0.0, timeout - (now - started)) if started else timeout

    def _moves(self, holder: int) -> bool:
        """Whether it is worth waiting behind `holder`: SQLite's lock is taken by the process whose turn it is."""
        writer = self._turn.holder()
        return writer is not None and is_writer(writer, self._path) and not is_stopped(holder)

    def refuse_holder(self, but: Holder | None = None) -> None:
        """Refuse a second write on a thread that holds the turn: it would wait for itself.

        Args:
            but: a holder that may go on.

        Raises:
            TransactionInProgress: this is such a thread.
        """
        if self._held and not self._is_held_by(but) and self.is_held_here:
            raise TransactionInProgress(
                "this thread already holds a write transaction on the file: pass it as `connection=`, or leave it first"
            )

    def _is_held_by(self, holder: Holder | None) -> bool:
        found = self._held.get(_TURN)
        return holder is not None and found is not None and found() is holder

    @property
    def is_held_here(self) -> bool:
        """Whether this thread has the turn: until it gives it up, no other thread writes."""
        if not self._is_of_this_thread():
            return False
        # About to be an error: a holder that nothing refers to any more may be part of a cycle.
        gc.collect()
        return self._is_of_this_thread()

    def _is_of_this_thread(self) -> bool:
        found = self._held.get(_TURN)
        holder = None if found is None else found()
        return holder is not None and holder.thread == threading.get_ident()

    def _is_freed(self) -> bool:
        """Take the turn from a holder that has been freed without leaving, if that is so."""
        with self._freeing:
            found = self._held.get(_TURN)
            if found is None or found() is not None:
                return False
            self._give_up()
            return True

    def leave(self, holder: Holder) -> None:
        """Give the turn up, if `holder` has it; once more does no harm."""
        found = self._held.get(_TURN)
        if found is None or found() is not holder:
            return
        self._give_up()
        if self._waiting:
            for left in list(self._waiting):
                left.set()

    def _give_up(self) -> None:
        if fcntl is not None:
            self._turn.unlock()
            if self._keeps_room:
                self._keeps_room = False
                self._waiting_room.unlock()
        self._held.pop(_TURN, None)

    def after_fork_in_child(self) -> None:
        """The parent's threads are gone, and their hold on the turn with them."""
        self._held = {}
        self._freeing = threading.Lock()
        self._keeps_room = False
        self._alone_until = 0.0
        self._waiting = []
        self._waiting_room.after_fork_in_child()
        self._turn.after_fork_in_child()


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


def known(identity: tuple[int, int]) -> Turnstile | None:
    """The turnstile of a file that is open as a queue's in this process, if it is."""
    found = _turnstiles.get(identity)
    return found if found is not None and found.user_count > 0 and not found.is_stale() else None


def let_go(turnstile: Turnstile) -> None:
    """One user less; the last one closes the lock files."""
    with _turnstiles_lock:
        turnstile.user_count -= 1
        if turnstile.user_count <= 0 and turnstile not in _turnstiles.values():
            turnstile.close()
    _close_unused()


def _close_unused() -> None:
    """Close what has no user. A turnstile whose helper still blocks stays, until the helper has come back."""
    with _turnstiles_lock:
        for identity, turnstile in list(_turnstiles.items()):
            if turnstile.user_count <= 0 and turnstile.close():
                del _turnstiles[identity]


def _after_fork_in_child() -> None:
    global _turnstiles_lock
    _turnstiles_lock = threading.Lock()
    for turnstile in _turnstiles.values():
        turnstile.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
