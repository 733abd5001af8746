# SPDX-License-Identifier: Apache-2.0
"""A file's facts in sqs_meta: its id, its secret, the offset and the jumps of its clock. Also its schema version."""

import time
from pathlib import Path
from typing import Any, NamedTuple

from sqsqlite.errors import Corrupt, SchemaTooNew, SchemaTooOld
from sqsqlite.sql import file as sql
from sqsqlite.sql import schema
from sqsqlite.store.clock import Clock, FileClock, Jumps, WallClock, boot_ns
from sqsqlite.store.driver import Connection
from sqsqlite.store.interrupts import refuse_handlers
from sqsqlite.store.used_up import refuse_used_up


def schema_version(connection: Any, path: Path) -> int:
    """The schema version of a file. 0: the file has none.

    Raises:
        Corrupt: the version is not a number.
    """
    row = connection.execute(sql.SELECT_SCHEMA_VERSION).fetchone()
    version = 0 if row is None else row[0]
    if not isinstance(version, int):
        raise Corrupt(f"{path}: the file is damaged: its schema version is {version!r}: restore a backup")
    return version


def check_version(connection: Any, path: Path) -> None:
    """Refuse a file of another schema version.

    Raises:
        SchemaTooOld: the file needs `sqsqlite db upgrade`.
        SchemaTooNew: a newer SQSQLite wrote the file.
        Corrupt: the version is not a number.
    """
    version = schema_version(connection, path)
    if version < schema.SCHEMA_VERSION:
        raise SchemaTooOld(
            f"{path}: schema version {version}, this SQSQLite needs {schema.SCHEMA_VERSION}: run "
            f"`sqsqlite --db {path} db upgrade` (it makes a backup first; --dry-run shows what it would do)"
        )
    if version > schema.SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{path}: schema version {version}, this SQSQLite knows {schema.SCHEMA_VERSION}: install a newer one"
        )


# If the wall clock's difference changes by more than this, it is noted: the clock was set, or a machine was paused.
DIFFERENCE_NOTED_MS = 1_000
# The year 10000: every instant of the file's clock is earlier, and every jump is shorter.
LAST_MS = 253_402_300_800_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Meta(NamedTuple):
    """The facts in `sqs_meta` that a process needs.

    Attributes:
        boot_id, clock_offset_ms: the boot in which the offset was set, and the offset. None: it was never set.
        jumps: the jumps of the clock, at this boot and at earlier ones.
        difference_ms: how far the wall clock was ahead of the file's clock when the file last noted it.
        noted_at: the instant of that note, by the file's clock. 0: never.
        test: the mark of a test's file, which its test run alone may open. None: an ordinary file.
    """

    file_id: bytes
    secret: bytes
    boot_id: bytes | None
    clock_offset_ms: int | None
    jumps: Jumps
    difference_ms: int
    noted_at: int
    test: bytes | None


def read(connection: Connection) -> Meta:
    """Read `sqs_meta`.

    Raises:
        Corrupt: the file's id or secret is missing, or a row has a value that no clock can show.
    """
    rows = {name: (number, value) for name, number, value in connection.execute(sql.SELECT_META)}
    file_id, secret = (rows.get(name, (None, None))[1] for name in ("file_id", "secret"))
    if not (isinstance(file_id, bytes) and isinstance(secret, bytes)):
        raise Corrupt("the file is damaged: its id or its secret is missing from sqs_meta: restore a backup")
    offset_ms, of_boot = rows.get("boot", (None, None))
    if not (offset_ms is None or _is_ms(offset_ms)):
        raise _damaged_clock("boot")
    difference_ms, noted_at = rows.get("difference", (0, b"0"))
    if not (_is_ms(difference_ms) and isinstance(noted_at, bytes) and noted_at.isdigit()):
        raise _damaged_clock("difference")
    if not _is_ms(int(noted_at)):
        raise _damaged_clock("difference")
    try:
        jumps = Jumps.from_bytes(rows.get("jumps", (None, None))[1])
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged_clock("jumps") from error
    if not all(
        _is_ms(at_ms) and _is_ms(length_ms) and length_ms > 0 for at_ms, length_ms in jumps.newest_first
    ):
        raise _damaged_clock("jumps")
    test = rows.get("test", (None, None))[1]
    return Meta(file_id, secret, of_boot, offset_ms, jumps, difference_ms, int(noted_at), test)


def _is_ms(number: object) -> bool:
    return isinstance(number, int) and abs(number) < LAST_MS


def _damaged_clock(name: str) -> Corrupt:
    return Corrupt(
        f"the file is damaged: the row {name} of sqs_meta holds what its clock can't show: restore a backup"
    )


def boot_id() -> bytes | None:
    """An id that differs at each boot. None: the system has no boot-time clock."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    try:
        return _BOOT_ID.read_bytes().strip()
    except OSError as error:
        refuse_handlers(error)
        refuse_used_up(error)
        return None


def clock_of(meta: Meta) -> Clock | None:
    """The file's clock, if its offset was set after this boot."""
    current = boot_id()
    if current is None:
        return WallClock()
    if meta.boot_id == current and meta.clock_offset_ms is not None:
        return FileClock(meta.clock_offset_ms)
    return None


def now_ms(connection: Connection) -> int:
    """The time of the file's clock, even if it has no offset of this boot: for reading a file that is not open."""
    facts = read(connection)
    clock = clock_of(facts)
    if clock is not None:
        return clock.now_ms()
    return max(time.time_ns() // 1_000_000, last_instant(connection, facts))


def set_clock(connection: Connection) -> Clock:
    """Set the offset of the file's clock, at the first open after a boot. The caller holds the turn.

    The clock goes to wall time, and the file keeps the jump: time that the clock never counted makes no message expire.
    The clock never goes back: after a boot with a wrong wall clock it starts at the last instant that the file knows.
    """
    connection.execute("BEGIN IMMEDIATE")
    facts = read(connection)
    clock = clock_of(facts)
    if clock is not None:  # another process was first
        connection.execute("ROLLBACK")
        return clock
    wall_ms = time.time_ns() // 1_000_000
    now_ms = max(wall_ms, last_instant(connection, facts))
    offset_ms = now_ms - boot_ns() // 1_000_000
    connection.execute(sql.SET_META, {"name": "boot", "number": offset_ms, "bytes": boot_id()})
    jumps = jumps_until(connection, facts, now_ms).to_bytes()
    connection.execute(sql.SET_META, {"name": "jumps", "number": None, "bytes": jumps})
    note_difference(connection, wall_ms - now_ms, now_ms)
    connection.execute("COMMIT")
    return FileClock(offset_ms)


def last_instant(connection: Connection, facts: Meta) -> int:
    """The last known instant of the file's clock, up to a minute too early. 0 in a new file."""
    last_minute: int = connection.execute(sql.SELECT_LAST_MINUTE).fetchone()[0]
    return max(last_minute, facts.noted_at)


def jumps_until(connection: Connection, facts: Meta, now_ms: int) -> Jumps:
    """The clock's jumps, including the jump to `now_ms` at this boot."""
    last_at = last_instant(connection, facts)
    return facts.jumps.after(last_at, now_ms) if last_at else facts.jumps


def note_difference(connection: Connection, difference_ms: int, now_ms: int) -> None:
    """Note how far the wall clock is ahead of the file's clock, and when, in the caller's transaction."""
    row = {"name": "difference", "number": difference_ms, "bytes": b"%d" % now_ms}
    connection.execute(sql.SET_META, row)
