# SPDX-License-Identifier: Apache-2.0
"""The folder of a snapshot: locked while its process lives, so that the next one can remove what a killed one left."""

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: folders are not locked there, and not swept
    fcntl = None

PREFIX = "sqsqlite-facts-"
_OWNER = "owner"  # a locked file with the process id and the name of the machine


@contextmanager
def snapshot_folder(parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """A new folder for the length of the block. Folders in `parent` whose processes were killed are removed first.

    Args:
        parent: by default, the system's folder for temporary files.
    """
    where = Path(parent or tempfile.gettempdir())
    if fcntl is not None:
        _sweep(where)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=where) as name, _owned(Path(name)):
        yield Path(name)


@contextmanager
def _owned(folder: Path) -> Iterator[None]:
    """Hold a lock in the folder, which ends with this process, however that ends."""
    if fcntl is None:
        yield
        return
    draft = folder / f"{_OWNER}.new"
    with draft.open("w", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {platform.node()}")
        file.flush()
        with suppress(OSError):  # a file system without locks: this folder is never swept
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.rename(folder / _OWNER)  # only now, so that other processes see it locked
        yield


def _sweep(parent: Path) -> None:
    """Remove this user's snapshot folders of this machine whose owners have ended. In doubt a folder stays."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.geteuid() and _has_no_owner(folder / _OWNER):
                shutil.rmtree(folder, ignore_errors=True)


def _has_no_owner(owner: Path) -> bool:
    with owner.open(encoding="utf-8") as file:
        if file.read().partition(" ")[2] != platform.node():
            return False  # in a shared folder; not every file system shows the locks of another machine
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
