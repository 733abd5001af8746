"""When no file descriptor is free: a process may have so many (`ulimit -n`), and so may the machine.

The error says nothing about the file that was to be opened. So what is missing then must not be taken for absent.
"""

import errno
import os
from pathlib import Path

from sqsqlite.errors import CannotOpen

USED_UP = frozenset({errno.EMFILE, errno.ENFILE})


def refuse_used_up(error: OSError) -> None:
    """Pass on an error that came from a want of descriptors. For where other errors mean that something is absent."""
    if error.errno in USED_UP:
        raise error


def raise_used_up(error: OSError, path: Path) -> None:
    """The same, typed: raise CannotOpen for the database at `path` if that is what the error came from."""
    if error.errno in USED_UP:
        raise none_free(path) from error


def are_used_up() -> bool:
    """Whether none is free at this moment."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in USED_UP
    return False


def none_free(path: Path) -> CannotOpen:
    """What is raised then, by whatever works with the database at `path`."""
    return CannotOpen(
        f"{path}: no file descriptor is free: close files or connections of this process, or raise its limit "
        "(`ulimit -n`)"
    )
