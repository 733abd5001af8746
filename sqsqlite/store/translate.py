# SPDX-License-Identifier: Apache-2.0
"""SQLite's errors, translated once. The cause is always kept."""

from pathlib import Path
from typing import Any

from sqsqlite.errors import (
    Busy,
    CannotOpen,
    CommitInDoubt,
    Corrupt,
    DiskFull,
    InputOutputError,
    NotADatabase,
    ReadOnlyFile,
    SchemaTooOld,
    StoreClosed,
    StoreError,
)
from sqsqlite.store import used_up, wal_files
from sqsqlite.store.locks import who_keeps_readers_out, writer_of

# Primary result codes of SQLite (the low byte of an extended one).
BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL, NOTADB = 5, 6, 8, 10, 11, 13, 14, 15, 26
ERROR, CONSTRAINT = 1, 19
# Extended ones: a write failed, for another reason than that there is no space on the disk; or the -shm could not grow,
# for whatever reason.
IOERR_WRITE, IOERR_SHMSIZE = IOERR | 3 << 8, IOERR | 19 << 8

# The driver's own words, without a code: it found a TEXT whose bytes are no UTF-8. The text itself follows.
_UNDECODABLE = "Could not decode to UTF-8 column"

_TEXTS: dict[int, tuple[type[StoreError], str]] = {
    BUSY: (Busy, "another connection kept the write lock for the whole busy_timeout"),
    LOCKED: (Busy, "another connection of this process holds a lock on a table"),
    PROTOCOL: (
        Busy,
        "SQLite tried for 10 s to get a lock on the -shm that another program keeps or the system does not give",
    ),
    READONLY: (ReadOnlyFile, "the file, its folder or its file system does not allow writing"),
    IOERR: (InputOutputError, "reading or writing the file failed"),
    CORRUPT: (Corrupt, "the file is damaged: run `sqsqlite check`, or restore a backup"),
    FULL: (
        DiskFull,
        "there is no room: the disk is full, or a quota or a limit on the size of files is reached",
    ),
    CANTOPEN: (CannotOpen, "SQLite cannot open the file"),
    NOTADB: (NotADatabase, "the file is not a SQLite database"),
}


# The driver raises what failed in `Connection.backup` without a code: SQLite's words for it are all there is.
_CODES_OF_BACKUP = {
    "database or disk is full": FULL,
    "disk I/O error": IOERR,
    "database is locked": BUSY,
    "database table is locked": LOCKED,
    "database disk image is malformed": CORRUPT,
    "attempt to write a readonly database": READONLY,
    "unable to open database file": CANTOPEN,
}


def primary_code(error: BaseException) -> int:
    """SQLite's primary result code, 0 for an error that has none."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else _CODES_OF_BACKUP.get(str(error), 0)


def is_undecodable(error: BaseException) -> bool:
    """Whether the driver gave up a row because of a TEXT that is not UTF-8."""
    return str(error).startswith(_UNDECODABLE)


def is_full(error: BaseException, path: Path) -> bool:
    """Whether a write to the database at `path` found no room. A quota and `ulimit -f` count: see `full`."""
    # pysqlite3 tells no extended code: there, each IOERR is asked about.
    if getattr(error, "sqlite_errorcode", None) in (IOERR, IOERR_WRITE, IOERR_SHMSIZE):
        return used_up.is_out_of_room(path)
    return primary_code(error) == FULL


def translate(error: Exception, path: Path) -> Exception:
    """The typed error to raise from one of the driver's; errors that are bugs of ours come back unchanged."""
    if isinstance(error, UnicodeError):
        return Corrupt(f"{path}: the file is damaged: a name in its schema is not UTF-8: restore a backup")
    found = _TEXTS.get(FULL if is_full(error, path) else primary_code(error))
    if found is not None:
        kind, text = found
        if kind is CannotOpen and used_up.are_used_up():
            return used_up.none_free(path)
        if kind is Busy:
            is_kept_out = primary_code(error) == PROTOCOL
            text += who_keeps_readers_out(path) if is_kept_out else writer_of(path)
        return kind(f"{path}: {text} ({getattr(error, 'sqlite_errorname', 'SQLITE')}: {error})")
    text = str(error)
    if is_undecodable(error):
        column = text.removeprefix(_UNDECODABLE).partition(" with text ")[0].strip()
        return Corrupt(
            f"{path}: the file is damaged: a text of column {column} is not UTF-8: run `sqsqlite check`"
        )
    if text.startswith(("no such table: sqs_", "no such column: ")) or "has no column named" in text:
        return SchemaTooOld(
            f"{path}: the schema changed under this process ({text}): open the file again, "
            "or run `sqsqlite db upgrade`"
        )
    if text == "unsupported file format":
        return Corrupt(
            f"{path}: the file's header is damaged, or names a format of a newer SQLite ({text}): restore a backup"
        )
    if "closed database" in text:
        return StoreClosed(f"{path}: closed")
    return error


def commit_error(error: Exception, path: Path, connection: Any) -> Exception:
    """The typed error to raise from a failed COMMIT of `connection`.

    A full disk left nothing behind: SQLite says FULL only before the last frame, without which there is no commit. At a
    quota or a limit on the size of files, the WAL is read to see that this frame is missing. Every other failure, above
    all a failed sync, leaves the commit in doubt.
    """
    if primary_code(error) == FULL or (
        is_full(error, path) and not wal_files.hold_unfinished_commit(path, connection)
    ):
        return translate(error, path)
    return CommitInDoubt(
        f"{path}: the commit failed ({error}); whether it is in the file shows only when it is opened again"
    )
