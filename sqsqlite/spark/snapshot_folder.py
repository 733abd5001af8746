"""The folder of a snapshot: locked as long as its process lives, so that what a killed one left can be removed."""

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
except ImportError:  # Windows: nothing is locked there, and nothing swept
    fcntl = None

PREFIX = "sqsqlite-facts-"
_OWNER = "owner"  # holds the process id and the machine, and is locked


@contextmanager
def snapshot_folder(parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """A new folder for the length of the block; those in `parent` whose processes were killed are removed first.

    Args:
        parent: the system's folder for temporary files unless said.
    """
    where = Path(parent or tempfile.gettempdir())
    if fcntl is not None:
        sweep(where)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=where) as name, _owned(Path(name)):
        yield Path(name)


@contextmanager
def _owned(folder: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    draft = folder / f"{_OWNER}.new"
    with draft.open("w", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {platform.node()}")
        file.flush()
        with suppress(OSError):  # a file system without locks: nobody sweeps this one
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.rename(folder / _OWNER)  # nobody sees it unlocked
        yield


def sweep(parent: Path) -> None:
    """Remove our folders of this machine whose owners are gone. What can't be told apart stays."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.geteuid() and _is_left(folder / _OWNER):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(owner: Path) -> bool:
    with owner.open(encoding="utf-8") as file:
        if file.read().partition(" ")[2] != platform.node():
            return False  # on a shared folder; not every file system shows another machine's locks
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
