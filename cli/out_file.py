# SPDX-License-Identifier: Apache-2.0
"""The file that --out names: checked before the command, written beside the old one, put in its place at the end."""

import contextlib
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from sqsqlite.cli.failures import FAILED, Failure

_HEADER = b"SQLite format 3\x00"  # the first bytes of each SQLite database
_BESIDE = ("-wal", "-shm", "-journal")


def check_target(target: str, inputs: Sequence[Path] = ()) -> None:
    """Refuse a file that must not be overwritten or can't be written. Changes nothing.

    Args:
        inputs: the files that the command reads. The target must not be one of them, by any name.

    Raises:
        Failure: the target is an input, a SQLite database or its WAL, or can't be written.
    """
    path = Path(target)
    if any(_is_same(path, given) for given in inputs):
        raise Failure(f"--out {target}: the command reads this file and would overwrite it", FAILED)
    # The file itself, and the databases whose WAL, index or journal would have this name.
    databases = [path, *(Path(target.removesuffix(end)) for end in _BESIDE if path.name.endswith(end))]
    for database in databases:
        if _is_database(database):
            raise Failure(
                f"--out {target}: this file belongs to a SQLite database and must not be overwritten", FAILED
            )
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise Failure(f"--out {target}: Is a directory", FAILED)
        return  # a pipe or a device, which opening would change
    was_there = os.path.lexists(path)
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise Failure(f"--out {target}: {error.strerror}", FAILED) from error
    if not was_there:
        path.unlink()


def check_folder(flag: str, folder: Path) -> None:
    """Refuse a folder that can't be made or written to.

    Raises:
        Failure: names the nearest existing folder, which does not allow it.
    """
    there = next((found for found in (folder, *folder.absolute().parents) if found.exists()), Path("/"))
    if not there.is_dir():
        raise Failure(f"{flag} {folder}: {there} is not a folder", FAILED)
    if not os.access(there, os.W_OK | os.X_OK):
        raise Failure(f"{flag} {folder}: {there} is not writable", FAILED)


def _is_same(target: Path, given: Path) -> bool:
    """Whether both paths name one file. The file may be missing still."""
    try:
        return os.path.samefile(target, given)
    except OSError:
        return os.path.realpath(target) == os.path.realpath(given)


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False  # the next check tells whether it can be written


class Target:
    """The file that --out names. A new one is written next to it and takes its place when it is complete.

    So a command that fails leaves the old file as it was.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = Path(os.path.realpath(name))  # a link stays a link
        self._part: Path | None = None

    def open(self) -> IO[str]:
        """Open the new file, or a pipe or device itself.

        Raises:
            Failure: it can't be written.
        """
        try:
            given = Path(self.name)
            # /dev/stdout may be a file, which the shell has open.
            if given.is_absolute() and given.parts[1:2] in (("dev",), ("proc",)):
                return given.open("w", encoding="utf-8")
            if not self._path.exists() or self._path.is_file():
                part = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}.part")
                # A folder may be closed to this user, a name very long: then the file itself is written.
                with contextlib.suppress(OSError):
                    file = part.open("x", encoding="utf-8")
                    self._part = part
                    with contextlib.suppress(FileNotFoundError):
                        part.chmod(stat.S_IMODE(self._path.stat().st_mode))
                    return file
            return self._path.open("w", encoding="utf-8")
        except OSError as error:
            raise Failure(f"--out {self.name}: {error.strerror}") from error

    def put_in_place(self) -> None:
        """Let the new file take the old one's place. A second call does nothing."""
        if self._part is not None:
            self._part.replace(self._path)
            self._part = None

    def drop(self) -> None:
        """Remove the new file, unless it is in its place."""
        if self._part is not None:
            self._part.unlink(missing_ok=True)
            self._part = None
