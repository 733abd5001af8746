"""A file whose descriptor is kept, so that the file can be written when the process may open no more."""

import contextlib
import os
import weakref
from pathlib import Path

from sqsqlite.store.beside import open_beside


class KeptFile:
    """A file beside the database. No locks may be held on it: closing one descriptor drops those of all.

    After a fork the child uses the descriptor too: nothing depends on its offset. It is closed when the object goes, at
    the latest.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # The descriptor and the (device, inode) that it leads to.
        self._kept: list[tuple[int, tuple[int, int]]] = []
        weakref.finalize(self, _close, self._kept).atexit = False

    def descriptor(self) -> int:
        """To write the file that has the name now: opened anew if that is another one than before.

        Raises:
            OSError: it cannot be opened.
        """
        if self._kept:
            descriptor, identity = self._kept[0]
            with contextlib.suppress(FileNotFoundError):
                if _identity(os.stat(self._path)) == identity == _identity_behind(descriptor):
                    return descriptor
        self.close()
        descriptor = open_beside(self._path, os.O_WRONLY)
        self._kept.append((descriptor, _identity(os.fstat(descriptor))))
        return descriptor

    def close(self) -> None:
        """Keep it no more. Using it again opens it again."""
        _close(self._kept)


def _close(kept: list[tuple[int, tuple[int, int]]]) -> None:
    """Close what is kept, unless the program has closed it: by now the number may be another file's."""
    while kept:
        descriptor, identity = kept.pop()
        if _identity_behind(descriptor) == identity:
            os.close(descriptor)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _identity_behind(descriptor: int) -> tuple[int, int] | None:
    """None: it is closed."""
    try:
        return _identity(os.fstat(descriptor))
    except OSError:
        return None
