# SPDX-License-Identifier: Apache-2.0
"""Files for tests: copies of one new file, which cost a tenth of making a schema, in a folder that goes away."""

import contextlib
import os
import secrets
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import IO

from sqsqlite.actions.opening import open_store
from sqsqlite.sql import file as sql
from sqsqlite.store.clock import ManualClock
from sqsqlite.store.meta import Meta, read

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PREFIX = "sqsqlite-test-"
_ALIVE = "alive"
_MARK = bytes(range(16))


@cache
def _template(*, marked: bool) -> tuple[bytes, Meta]:
    """A new file as SQSQLite makes it, and its facts: some must differ in each copy."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        store = open_store(path, clock=ManualClock(), synchronous="OFF")
        with store.transaction() as tx:
            if marked:
                tx.connection.execute(sql.SET_META, {"name": "test", "number": None, "bytes": _MARK})
            facts = read(tx.connection)
        store.close()
        return path.read_bytes(), facts


def lay(path: Path, mark: bytes | None = None) -> Path:
    """Put a new file there, with an id and a secret of its own. An existing file stays as it is.

    Args:
        path: in a folder that exists.
        mark: 16 bytes: only `open_store(test=mark)` opens the file. None: anything does.

    Raises:
        OSError: the system refuses to write the file.
    """
    if not path.exists():
        image, facts = _template(marked=mark is not None)
        own = {facts.file_id: secrets.token_bytes(16), facts.secret: secrets.token_bytes(32)}
        if mark is not None:
            own[_MARK] = mark
        for text, other in own.items():
            if image.count(text) != 1 or len(text) != len(other):
                raise ValueError(f"{other!r}: a mark of {len(text)} bytes is allowed")
            image = image.replace(text, other)
        path.write_bytes(image)
    return path


class Folder:
    """A folder for a test's files. `remove` takes it away; if the process is killed, the next test run does.

    Attributes:
        path: the folder.
    """

    def __init__(self) -> None:
        _remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._alive = _locked(self.path / _ALIVE)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._alive is not None:
            self._alive.close()


@cache
def _remove_abandoned() -> None:
    """Remove the folders of killed processes, once a process: their lock is free."""
    if fcntl is None:
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Another user's folder, or one that another process removes at this moment, is none of ours.
        with contextlib.suppress(OSError):
            if folder.stat().st_uid != os.getuid() or not (folder / _ALIVE).exists():
                continue
            lock = _locked(folder / _ALIVE)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                lock.close()


def _locked(path: Path) -> IO[bytes] | None:
    """The file, open and locked for as long as this process, or a child that it forked, has it open.

    Returns:
        None: another process holds the lock, or the system has no such locks.
    """
    if fcntl is None:
        return None
    file = path.open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
