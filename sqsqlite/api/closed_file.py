# SPDX-License-Identifier: Apache-2.0
"""Files that are not open: restoring, upgrading and checking them; dumps and key files."""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from sqsqlite.access.key_file import KeyFile
from sqsqlite.access.keys import Session, make_session
from sqsqlite.actions.opening import LIMITS
from sqsqlite.api.file import Line
from sqsqlite.operators import backup as backups
from sqsqlite.operators.check import Finding, check_closed
from sqsqlite.operators.load import Loaded, examine
from sqsqlite.sql import schema
from sqsqlite.store import migrate
from sqsqlite.store.create import named


@dataclass(frozen=True, slots=True)
class SchemaState:
    """A file's schema compared with the one that this SQSQLite needs.

    Attributes:
        version: the file's schema version.
        needed: the version that this SQSQLite needs.
        differences: tables, indexes, views and triggers that differ from a new file's, a sentence each; of another
            version, one sentence that says so.
    """

    path: Path
    version: int
    needed: int
    differences: tuple[str, ...]


def restore(backup: str | os.PathLike[str], path: str | os.PathLike[str]) -> int:
    """Make a file of queues from a backup, with an id of its own.

    Receipt handles that the original issued are not valid in it, so messages that were in flight are visible at once.
    Receive counts and delays stay. A backup of an older schema version is upgraded on the way. The backup is only read.

    Args:
        path: nothing may exist there.

    Returns:
        The new file's size in bytes.

    Raises:
        TargetExists, FileInUse: something is at `path` already.
        Corrupt: the backup is damaged.
        NotAdopted, NotADatabase, CannotOpen: `backup` is not a file of queues.
        SchemaTooNew: a newer SQSQLite made the backup.
    """
    return backups.restore(backup, path)


def upgrade(
    path: str | os.PathLike[str], *, dry_run: bool = False, backup: bool = True, busy_timeout: float = 30.0
) -> migrate.Upgrade:
    """Bring a file to the newest schema version. Each step is one transaction.

    Args:
        dry_run: return the steps and change nothing; other processes may use the file.
        backup: copy the file to `FILE.v1-20300131T120000Z.backup` before the first step.
        busy_timeout: seconds to wait for the turn to write.

    Raises:
        FileInUse: another process has the file open.
        SchemaTooNew: a newer SQSQLite made it.
        NotAdopted: it has no queues.
        TargetExists, DiskFull: the backup could not be made, and nothing was changed.
    """
    return migrate.upgrade(named(path), dry_run=dry_run, backup=backup, busy_timeout=busy_timeout)


def schema_state(path: str | os.PathLike[str]) -> SchemaState:
    """Compare a file's schema with the one that is needed. Works for files that `connect` refuses by their version.

    Raises:
        NotAdopted: it has no queues.
        StoreError: it can't be opened.
    """
    path = named(path)
    version = migrate.current(path)
    return SchemaState(path, version, schema.SCHEMA_VERSION, tuple(migrate.check(path)))


def check(
    path: str | os.PathLike[str],
    *,
    quick: bool = False,
    bodies: bool = False,
    progress: Callable[[str], None] | None = None,
) -> list[Finding]:
    """Check a file for damage, also one that is too damaged to be opened: that is a finding too.

    The file is only read, so a backup stays as it is, and you need not be able to write it.

    Args: as `SQS.check`.

    Raises:
        CannotOpen: the file does not exist, or the system refuses to open it.
        ReadOnlyFile: the file is in use or was, and you may not write the folder; a backup has no such need.
        NotAdopted: a SQLite database without queues.
        SchemaTooOld, SchemaTooNew: the file is of another version's schema.
    """
    return check_closed(path, quick=quick, bodies=bodies, progress=progress or (lambda _: None))


def check_dump(lines: Iterable[Line], *, limits: str = "sqs") -> Loaded:
    """Read a dump to its end and check each message, without a file.

    Args:
        limits: "sqs" or "native", as for `connect`.

    Raises:
        BadDump, SQSError: as `SQS.load`. Whether the queues' attributes are allowed shows when it is loaded.
        ValueError: `limits` is another text.
    """
    if limits not in LIMITS:
        raise ValueError(f"limits={limits!r}: one of {', '.join(LIMITS)} is allowed")
    return examine(lines, limits=limits)


def key_file_session(
    key_file: str | os.PathLike[str], access_key_id: str, duration_seconds: int = 3_600
) -> Session | None:
    """Temporary credentials of a key that a file names, as `serve --keys FILE` reads it.

    Args:
        key_file: in the form of the AWS CLI's credentials.
        duration_seconds: 900 to 129,600 (15 minutes to 36 hours).

    Returns:
        None where the file does not name the key.

    Raises:
        BadKeyFile: the file can't be read, or a section lacks something.
        InvalidParameterValue: the time is out of its range.
    """
    parent = KeyFile(Path(key_file)).find(access_key_id)
    return None if parent is None else make_session(access_key_id, parent, duration_seconds, time.time())
