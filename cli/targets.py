# SPDX-License-Identifier: Apache-2.0
"""What --out may write: nothing that holds queues, and nothing that can't be written."""

import os
from collections.abc import Sequence
from pathlib import Path

from sqsqlite.cli.failures import FAILED, Failure

_HEADER = b"SQLite format 3\x00"  # the first bytes of each SQLite database
_BESIDE = ("-wal", "-shm", "-journal")


def check_target(target: str, inputs: Sequence[Path] = ()) -> None:
    """Refuse a file that must not, or can't be written. Changes nothing.

    Args:
        inputs: what the command reads: none of them is a target, by whatever name.

    Raises:
        Failure: it is one of them, or another SQLite database or its WAL; or it can't be written.
    """
    path = Path(target)
    if any(_is_same(path, given) for given in inputs):
        raise Failure(f"--out {target}: it is the file that is read, and would be overwritten", FAILED)
    for database in (path, *_databases_of(path)):
        if _is_database(database):
            raise Failure(f"--out {target}: belongs to a SQLite database, which is not overwritten", FAILED)
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise Failure(f"--out {target}: Is a directory", FAILED)
        return  # a pipe or a device: opening it could not be undone
    was_there = os.path.lexists(path)
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise Failure(f"--out {target}: {error.strerror}", FAILED) from error
    if not was_there:
        path.unlink()


def check_folder(flag: str, folder: Path) -> None:
    """Refuse a folder that can't be written to, or made.

    Raises:
        Failure: says which folder, there already, does not allow it.
    """
    there = next((found for found in (folder, *folder.absolute().parents) if found.exists()), Path("/"))
    if not there.is_dir():
        raise Failure(f"{flag} {folder}: {there} is not a folder", FAILED)
    if not os.access(there, os.W_OK | os.X_OK):
        raise Failure(f"{flag} {folder}: {there} can't be written to", FAILED)


def _is_same(target: Path, given: Path) -> bool:
    """Two names of one file; of a file that is not there yet, the one name."""
    try:
        return os.path.samefile(target, given)
    except OSError:
        return os.path.realpath(target) == os.path.realpath(given)


def _databases_of(path: Path) -> list[Path]:
    """The database whose WAL, index or journal has this name."""
    return [Path(str(path).removesuffix(suffix)) for suffix in _BESIDE if path.name.endswith(suffix)]


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False  # the next check tells whether it can be written
