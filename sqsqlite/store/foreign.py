# SPDX-License-Identifier: Apache-2.0
"""One copy of SQLite a process and file: finding another one, and keeping it out.

Two copies (the standard library's and pysqlite3's, or apsw's) don't know of each other's POSIX locks: when one closes
the file, the other's locks are gone, and acknowledged commits with them. So a file that this process already has open
elsewhere is refused, and so is a later `sqlite3.connect` on a file that is open here.
"""

import contextlib
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
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
# Connections, not a count of them: one noted twice, or lost to an interrupt and freed, makes no difference.
_open_connections: "defaultdict[Identity, WeakSet[Any]]" = defaultdict(WeakSet)
_our_descriptors: dict[Identity, set[int]] = {}
_torn: set[Identity] = set()
_opening = threading.local()
# Files whose opening is under way, or was interrupted.
_cut_short: set[Identity] = set()
_hook_installed = False

TORN = (
    "this process was forked while a transaction was open on the file, which leaves SQLite's idea of its locks wrong "
    "here for good. Fork outside of transactions, or use the file in a process that is started anew"
)
_ADVICE = (
    "Two copies of SQLite on one file break each other's locks and lose commits. "
    "Take the connection from `sqs.engine`, `sqs.read_engine` or `sqs.transaction()` instead"
)


def identity(path: Path) -> Identity:
    """(device, inode) of a file, which names it whatever path leads there."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def descriptors(wanted: Identity) -> set[int]:
    """This process's descriptors on the file. Looked at by fstat alone: opening or closing one would drop locks.

    Raises:
        OSError: no descriptor is free, so that the system lists none.
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
                # Taken for a closed one, a descriptor of ours would be missed, and from then on be another copy's.
                refuse_handlers(error)
                continue  # the descriptor of the listing itself, closed by now
            if (status.st_dev, status.st_ino) == wanted:
                found.add(int(name))
        return found
    return set()


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """Around each connect: refuses a file that another copy has open, and learns which descriptors are ours.

    Held by `no_fork` as a whole. An opening that a signal handler cut short may leave descriptors that were not noted:
    SQLite closes them when it can. The next one takes them for ours. So it does after one that took the last
    descriptor, when none was left to list them with.
    """
    _opening.now = True
    wanted = identity(path) if path.exists() else None
    try:
        if wanted is not None:
            if wanted in _torn:
                raise StoreError(f"{path}: {TORN}")
            if wanted not in _cut_short and _found(wanted, path) - _our_descriptors.get(wanted, set()):
                raise SecondSQLiteCopy(f"{path} is already open in this process, not by SQSQLite. {_ADVICE}.")
            _cut_short.add(wanted)
        yield
    finally:
        _opening.now = False
        if wanted is None and path.exists():
            wanted = identity(path)
            _cut_short.add(wanted)
        if wanted in _cut_short:
            with contextlib.suppress(CannotOpen):
                _our_descriptors[wanted] = _found(wanted, path)
                _cut_short.discard(wanted)


def _found(wanted: Identity, path: Path) -> set[int]:
    """`descriptors`, or CannotOpen where none is free to list them with."""
    try:
        return descriptors(wanted)
    except OSError as error:
        if error.errno in USED_UP:
            raise none_free(path) from error
        raise


def no_fork() -> AbstractContextManager[bool]:
    """A lock to hold while a connection that no pool knows of is open.

    A fork waits for it. Otherwise the child could inherit the connection, or one of SQLite's mutexes at work, and hang
    at its own first connection.
    """
    return _lock


def opened(wanted: Identity, connection: Any) -> None:
    """Note one more connection of ours on the file."""
    global _hook_installed
    with _lock:
        _open_connections[wanted].add(connection)
        if not _hook_installed and not driver.is_standard_library:
            sys.addaudithook(_refuse_standard_library)
            _hook_installed = True


def closed(wanted: Identity, connection: Any) -> None:
    """Note that a connection of ours is closed; forget the descriptors that went with it. Once more does no harm."""
    with _lock:
        _open_connections[wanted].discard(connection)
        # Also behind the last one: an interrupt may have left another open that is not noted, until it is freed.
        left = _our_descriptors.get(wanted, set())
        try:
            left = left & descriptors(wanted)
        except OSError as error:
            if error.errno not in USED_UP:
                raise
            # No descriptor is free to list them with. The next time forgets those closed by now.
        if left:
            _our_descriptors[wanted] = left
        else:
            _our_descriptors.pop(wanted, None)
        if not is_open(wanted):
            _open_connections.pop(wanted, None)


def open_count(wanted: Identity) -> int:
    """How many connections of ours to the file are open in this process."""
    # Gone through, not asked for its length: an interrupt in a finalizer may leave a reference to what was freed.
    return sum(1 for _ in _open_connections[wanted]) if wanted in _open_connections else 0


def is_open(wanted: Identity) -> bool:
    """Whether a connection of ours to the file is open in this process."""
    return open_count(wanted) > 0


def is_torn(wanted: Identity) -> bool:
    """Whether this process inherited an open connection to the file by a fork: it can never use the file."""
    return wanted in _torn


def _after_fork_in_child() -> None:
    """What is still counted as open was open in the parent: pools closed their idle connections before."""
    _torn.update(wanted for wanted in list(_open_connections) if is_open(wanted))
    _opening.now = False
    _lock.release()


if hasattr(os, "register_at_fork"):
    # Held across the fork, so that no other thread's hold on it is inherited.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork_in_child
    )


def _refuse_standard_library(event: str, arguments: tuple[object, ...]) -> None:
    """Audit hook: the standard library's sqlite3 announces each connect; ours, another module, does not."""
    if event != "sqlite3.connect" or not _open_connections or getattr(_opening, "now", False):
        return
    database = arguments[0]
    if isinstance(database, bytes):
        database = os.fsdecode(database)
    if not isinstance(database, (str, os.PathLike)):
        return
    name = os.fspath(database)
    if isinstance(name, str) and name.startswith("file:"):
        from urllib.parse import unquote_to_bytes, urlsplit

        name = os.fsdecode(unquote_to_bytes(urlsplit(name).path))
    try:
        status = os.stat(name)
    except (OSError, ValueError):
        return
    if is_open((status.st_dev, status.st_ino)):
        raise SecondSQLiteCopy(f"{name} is open by SQSQLite in this process. {_ADVICE}.")
