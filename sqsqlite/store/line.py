# SPDX-License-Identifier: Apache-2.0
"""The threads of one store that want to write: one leads, the others stand in line behind it.

A signal handler may raise between any two steps of the main thread. So a thread takes the leadership by one
`setdefault` on a dict, its entry keeps all that a leader holds, and `settle` ends all that was begun. `settle` may run
twice.
"""

import contextlib
import enum
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from sqsqlite.errors import Busy, CommitInDoubt
from sqsqlite.store.file import File
from sqsqlite.store.locks import writer_of
from sqsqlite.store.transaction import Transaction

# The most operations in one transaction. This limits how long the first one waits for its answer.
GROUP_LIMIT = 256
# Seconds between two tests of an interrupted follower whether its leader is done.
SETTLE_EVERY = 0.0005
_LEADER, _FATE, _LEADS, _GAVE_UP = "leader", "fate", "leads", "gave up"


Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""An operation, and its arguments after the transaction."""


class Commit(enum.Enum):
    """The progress of a leader's transaction, for the case that it is interrupted."""

    OPEN = "nothing of it is in the file"
    BEGUN = "COMMIT runs, or has run"
    FAILED = "COMMIT failed, and the file may hold it or not"
    DONE = "it is in the file"


class Entry:
    """One operation and its outcome. While its thread leads, also all that the leader holds.

    Attributes:
        companions: entries of the same thread that run in the same transaction, before this one.
        thread: its identifier from `threading.get_ident()`.
        is_decided: `result` or `error` is the outcome.
        is_to_repeat: its leader was interrupted, and nothing was done.
        is_told: its thread knows the outcome, or is about to read it.
        waiting: the lock on which its thread waits while it stands in line.
        queued_at: the time by `time.monotonic()`. 0: it never stood in line.
        fate: set once, by `setdefault`: the leader that runs the entry, or _LEADS or _GAVE_UP.
        group: the entries of the leader's transaction, including the leader. Empty: only the leader.
        committing: the group for which COMMIT runs. After a failure, one entry of the group.
        committed: the transactions that have been committed.
    """

    # These are defaults of the class, because an operation that is alone sets few of them.
    companions: "Sequence[Entry]" = ()
    result: Any = None
    error: BaseException | None = None
    is_decided = is_to_repeat = is_told = is_woken = False
    waiting: "threading.Lock | None" = None
    queued_at = 0.0
    fate: dict[str, Any] | None = None
    group: "Sequence[Entry]" = ()
    connection: Any = None
    commit = Commit.OPEN
    committing: "Sequence[Entry]" = ()
    committed: tuple[Transaction, ...] = ()

    def __init__(self, operation: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.operation = operation
        self.arguments = arguments
        self.thread = threading.get_ident()

    def outcome(self) -> Any:
        """Return the result, or raise the error. Call it once.

        The entry may be in its own group, and an error refers to frames that refer to the entry. Both are cycles. They
        would keep the result and the arguments, perhaps 10 MiB, until they are collected.
        """
        self.group = self.committing = ()
        error, self.error = self.error, None
        if error is None:
            return self.result
        try:
            raise error
        finally:
            del error


class Line:
    """The leader of one store and the entries that wait behind it."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._leader: dict[str, Entry] = {}
        self._waiting: deque[Entry] = deque()

    def leads(self, entry: Entry) -> bool:
        """Whether the entry leads now: at once if the line has no leader, otherwise after a wait.

        False: a leader has run the entry.

        Raises:
            Busy: no leader began to run it within busy_timeout. Nothing was done.
        """
        return self._leader.setdefault(_LEADER, entry) is entry or self._wait(entry)

    @property
    def has_followers(self) -> bool:
        """Whether others wait for the next transaction."""
        return bool(self._waiting)

    def _wait(self, entry: Entry) -> bool:
        entry.fate = {}
        entry.queued_at = time.monotonic()
        entry.waiting = waiting = threading.Lock()
        waiting.acquire()
        self._waiting.append(entry)
        # The leader may have left between our test and the append. Then no other leader will see the entry.
        if self._leader.setdefault(_LEADER, entry) is entry:
            self._hand_over(entry)
        timeout = self._file.busy_timeout
        if waiting.acquire(timeout=timeout):
            return self._comes_to_lead(entry)
        if entry.fate.setdefault(_FATE, _GAVE_UP) is _GAVE_UP:
            self._leave(entry)
            raise Busy(
                f"{self._file.path}: other threads have been writing for {timeout:g} s (busy_timeout)"
                f"{writer_of(self._file.path)}"
            )
        # A leader is running it and decides the outcome, so only the outcome may be reported.
        waiting.acquire()
        return self._comes_to_lead(entry)

    def _leave(self, entry: Entry) -> None:
        with contextlib.suppress(ValueError):
            self._waiting.remove(entry)

    def gather(self, leader: Entry) -> None:
        """Move the waiting entries to the leader's group. Each leaves the line last, so none is lost."""
        group = leader.group = list(leader.group) or [leader]
        while self._waiting and len(group) < GROUP_LIMIT:
            follower = self._waiting[0]
            assert follower.fate is not None
            if follower.fate.setdefault(_FATE, leader) is leader:
                # Add its companions first: when it is woken, its thread reads their outcomes.
                group += (*follower.companions, follower)
            self._leave(follower)

    def settle(self, entry: Entry) -> None:
        """Give up all that others wait for: the connection, the turn, the followers, the leadership."""
        if self._leader.get(_LEADER) is not entry and not self._comes_to_lead(entry):
            return
        if entry.fate is not None:
            # From now on it can't become the leader from the line either.
            entry.fate.setdefault(_FATE, _GAVE_UP)
            self._leave(entry)
        if entry.connection is not None:
            # It was interrupted during its transaction. Closing the connection rolls that back.
            if entry.commit is Commit.BEGUN:
                entry.commit = Commit.OPEN if entry.connection.in_transaction else Commit.DONE
            self._file.writers.discard(entry.connection)
            entry.connection = None
        self._file.turnstile.leave(entry)
        if entry.group or self._waiting:
            taken = [other for other in list(self._waiting) if other.fate and other.fate.get(_FATE) is entry]
            for follower in (*entry.group, *taken):
                for each in (*follower.companions, follower):
                    if each is not entry:
                        self._release(each, entry)
        entry.is_told = True  # it is settled: a second call has nothing to wait for
        self._hand_over(entry)

    def _release(self, follower: Entry, leader: Entry) -> None:
        """Release a follower. If its leader was interrupted, it has no outcome yet."""
        self._leave(follower)
        if not follower.is_decided:
            if leader.commit is Commit.OPEN or follower not in leader.committing:
                follower.is_to_repeat = True
            elif leader.commit is Commit.FAILED:
                follower.error = CommitInDoubt(
                    f"{self._file.path}: the thread that committed for this one was interrupted"
                )
            follower.is_decided = True
        if not follower.is_told:
            follower.is_told = True
            if follower.waiting is not None:  # the thread of a companion waits on another entry
                follower.waiting.release()

    def _comes_to_lead(self, entry: Entry) -> bool:
        """Whether a follower leads now that was woken, or interrupted while it waited."""
        if entry.fate is None or entry.is_told:
            return False
        if entry.fate.setdefault(_FATE, _GAVE_UP) is _GAVE_UP:
            self._leave(entry)
            return False
        # A leader is running it, or is about to make it the leader. Both are done within one commit.
        while not entry.is_told:
            if self._leader.get(_LEADER) is entry:
                self._leave(entry)
                return True
            time.sleep(SETTLE_EVERY)
        return False

    def _hand_over(self, entry: Entry) -> None:
        """Make the first waiting entry the leader. If none waits, the next thread that comes leads."""
        while self._leader.get(_LEADER) is entry:
            if not self._waiting:
                self._leader.pop(_LEADER, None)
                # Another entry may have joined the line in between, and found the old leader still there.
                if not self._waiting or self._leader.setdefault(_LEADER, entry) is not entry:
                    return
            with contextlib.suppress(IndexError):
                successor = self._waiting[0]
                if self._appoint(successor):
                    return

    def _appoint(self, successor: Entry) -> bool:
        """Wake an entry, then make it the leader. After an interrupt this is repeated, and the entry waits for it."""
        assert successor.fate is not None
        assert successor.waiting is not None
        if successor.fate.setdefault(_FATE, _LEADS) is not _LEADS:
            self._leave(successor)
            return False
        if not successor.is_woken:
            successor.is_woken = True
            successor.waiting.release()
        self._leader[_LEADER] = successor
        return True
