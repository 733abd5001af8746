# SPDX-License-Identifier: Apache-2.0
"""Only one copy of SQLite may open a file in a process. This module finds another copy, and refuses it.

Two copies (of the standard library and of pysqlite3 or apsw) do not know each other's POSIX locks. When one closes the
file, the other loses its locks, and with them acknowledged commits. So we refuse a file that another copy has open in
this process, and we refuse a later `sqlite3.connect` on a file that is open here.
"""

import contextlib
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqsqlite.errors import CannotOpen, SecondSQLiteCopy, StoreError
from sqsqlite.store import driver
from sqsqlite.store.interrupts import refuse_handlers
from sqsqlite.store.used_up import USED_UP, none_free, refuse_used_up

Identity = tuple[int, int]

_lock = threading.RLock()
# The connections themselves, not their number: so it does no harm to note one twice, or to lose one to an interrupt.
_open_connections: "defaultdict[Identity, WeakSet[Any]]" = defaultdict(WeakSet)
_our_descriptors: dict[Identity, set[int]] = {}
_torn: set[Identity] = set()
_opening = threading.local()
# Files that are being opened, or whose opening was interrupted.
_cut_short: set[Identity] = set()
_hook_installed = False

TORN = (
    "this process was forked while a transaction was open on the file, which leaves SQLite's idea of its locks wrong "
    "here for good. Fork outside of transactions, or use the file in a process that is started anew"
)


def _advice() -> str:
    """Why two copies are refused, which ones they are, and how to use one."""
    others = " or ".join(driver.other_copies()) or "another copy of SQLite"
    return (
        f"SQSQLite uses {driver.PRODUCT}, and the program has also loaded {others}. Two copies of SQLite on one file "
        "break each other's locks and lose commits. Use one: `sqsqlite.dbapi.connect(...)` in place of "
        "`sqlite3.connect(...)`, `create_engine(..., module=sqsqlite.dbapi)` in SQLAlchemy, the engine "
        "`sqsqlite.django` in Django, or take the connection from `sqs.engine`, `sqs.read_engine` or "
        "`sqs.transaction()`"
    )


def identity(path: Path) -> Identity:
    """(device, inode) of a file, which is the same for all paths to it."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def descriptors(wanted: Identity) -> set[int]:
    """This process's descriptors on the file. It uses only fstat, because opening or closing one would drop locks.

    Raises:
        OSError: no descriptor is free, so the system can't list them.
    """
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            names = os.listdir(folder)
        except OSError as error:
            refuse_handlers(error)
            refuse_used_up(error)
            continue
        found = set()
        for name in names:
            try:
                status = os.fstat(int(name))
            except OSError as error:
                # If one of our descriptors counted as closed here, it would later seem to belong to another copy.
                refuse_handlers(error)
                continue  # the descriptor of the listing itself, closed by now
            if (status.st_dev, status.st_ino) == wanted:
                found.add(int(name))
        return found
    return set()


class opening:  # noqa: N801 - used like a function
    """A block around each connect. It refuses a file that another copy has open, and notes which descriptors are ours.

    It holds `no_fork` all the time. If a signal handler interrupts an opening, descriptors may stay that were not
    noted. SQLite closes them when it can, and the next opening counts them as ours. The same happens after an opening
    that took the last descriptor, because then the system could not list them.

    Not a generator: one that an interrupt left unfinished would go on when it is freed, perhaps within another
    thread's opening.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wanted: Identity | None = None

    def __enter__(self) -> None:
        _opening.now = True
        try:
            self._begin()
        except BaseException:
            _opening.now = False
            raise

    def _begin(self) -> None:
        path = self._path
        self._wanted = wanted = identity(path) if path.exists() else None
        if wanted is None:
            return
        if wanted in _torn:
            raise StoreError(f"{path}: {TORN}")
        if wanted not in _cut_short and _found(wanted, path) - _our_descriptors.get(wanted, set()):
            raise SecondSQLiteCopy(f"{path} is already open in this process, not by SQSQLite. {_advice()}.")
        _cut_short.add(wanted)

    def __exit__(self, *_: object) -> None:
        _opening.now = False
        wanted = self._wanted
        if wanted is None and self._path.exists():
            wanted = identity(self._path)
            _cut_short.add(wanted)
        if wanted in _cut_short:
            with contextlib.suppress(CannotOpen):
                _our_descriptors[wanted] = _found(wanted, self._path)
                _cut_short.discard(wanted)


@contextmanager
def noting(path: Path) -> Iterator[None]:
    """A block around a connect by the driver itself, past SQSQLite. The copy is the same, so what it opens is ours."""
    had: set[int] = set()
    with contextlib.suppress(OSError):  # it will be made, or no descriptor is free to list them
        had = descriptors(identity(path))
    yield
    with contextlib.suppress(OSError), _lock:  # it may be gone already
        wanted = identity(path)
        _our_descriptors[wanted] = _our_descriptors.get(wanted, set()) | (descriptors(wanted) - had)


def _found(wanted: Identity, path: Path) -> set[int]:
    """Return `descriptors`. Raise CannotOpen if no descriptor is free to list them."""
    try:
        return descriptors(wanted)
    except OSError as error:
        if error.errno in USED_UP:
            raise none_free(path) from error
        raise


def no_fork() -> AbstractContextManager[bool]:
    """A lock to hold while a connection outside the pools is open.

    A fork waits for it. Otherwise the child could inherit the connection or a locked mutex of SQLite, and hang at its
    own first connection.
    """
    return _lock


def opened(wanted: Identity, connection: Any) -> None:
    """Note a connection of ours to the file."""
    global _hook_installed
    with _lock:
        _open_connections[wanted].add(connection)
        if not _hook_installed and not driver.is_standard_library:
            sys.addaudithook(_refuse_standard_library)
            _hook_installed = True


def closed(wanted: Identity, connection: Any) -> None:
    """Note that a connection is closed, and forget its descriptors. A second call does no harm."""
    with _lock:
        _open_connections[wanted].discard(connection)
        # Even after the last one: an interrupt may have left another one open that was not noted, until it is freed.
        left = _our_descriptors.get(wanted, set())
        try:
            left = left & descriptors(wanted)
        except OSError as error:
            if error.errno not in USED_UP:
                raise
            # No descriptor is free to list them. The next call forgets those that are closed by now.
        if left:
            _our_descriptors[wanted] = left
        else:
            _our_descriptors.pop(wanted, None)
        if not is_open(wanted):
            _open_connections.pop(wanted, None)


def open_count(wanted: Identity) -> int:
    """How many connections of ours to the file are open in this process."""
    # Counted one by one: after an interrupt in a finalizer, the length may include a freed one.
    return sum(1 for _ in _open_connections[wanted]) if wanted in _open_connections else 0


def is_open(wanted: Identity) -> bool:
    """Whether a connection of ours to the file is open in this process."""
    return open_count(wanted) > 0


def is_torn(wanted: Identity) -> bool:
    """Whether this process inherited an open connection to the file by a fork. It can never use the file then."""
    return wanted in _torn


def keep_for_ever(inherited: Collection[Any]) -> None:
    """Never close these connections: even at the interpreter's end that would end a transaction of the parent."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


before_fork: list[Callable[[], None]] = []
"""Called before a fork when no connection can be opened any more: each closes what it can."""


_left_open: set[Identity] = set()


def _before_fork() -> None:
    """See which files stay open through the fork: the pools have closed their idle connections."""
    _lock.acquire()
    for close_idle in before_fork:
        close_idle()
    _left_open.clear()
    # Where no descriptor is free to list them, the noted connections alone decide.
    with contextlib.suppress(OSError):
        _left_open.update(wanted for wanted, ours in _our_descriptors.items() if ours & descriptors(wanted))


def _after_fork_in_child() -> None:
    """Files that are still open belong to the parent."""
    _torn.update(wanted for wanted in list(_open_connections) if is_open(wanted))
    _torn.update(_left_open)
    _opening.now = False
    _lock.release()


if hasattr(os, "register_at_fork"):
    # Hold the lock across the fork, so the child does not inherit it locked by another thread.
    os.register_at_fork(
        before=_before_fork, after_in_parent=_lock.release, after_in_child=_after_fork_in_child
    )


def _refuse_standard_library(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: the standard library's sqlite3 announces each connect. Our module is another one, and does not."""
    if event != "sqlite3.connect" or not _open_connections or getattr(_opening, "now", False):
        return
    path, _ = driver.file_of(arguments[0], uri=True)
    if path is None:
        return
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return
    if is_open((status.st_dev, status.st_ino)):
        raise SecondSQLiteCopy(f"{path} is open by SQSQLite in this process. {_advice()}.")
