"""The file's own facts: its id, its secret, and the offset of its clock."""

import time
from dataclasses import dataclass
from pathlib import Path

from sqsqlite import statements_file as sql
from sqsqlite.store.clock import Clock, FileClock, WallClock
from sqsqlite.store.connections import Connection

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Meta:
    """What `sqs_meta` holds that a process needs."""

    file_id: bytes
    secret: bytes
    boot_id: bytes | None
    clock_offset_ms: int | None


def read(connection: Connection) -> Meta:
    """Read `sqs_meta`."""
    rows = {name: (number, value) for name, number, value in connection.execute(sql.SELECT_META)}
    boot = rows.get("boot", (None, None))
    return Meta(rows["file_id"][1], rows["secret"][1], boot[1], boot[0])


def boot_id() -> bytes | None:
    """What tells this boot from others; None where there is no boot-time clock to go with it."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    try:
        return _BOOT_ID.read_bytes().strip()
    except OSError:
        return None


def clock_of(meta: Meta) -> Clock | None:
    """The file's clock, if its offset was set since this boot."""
    current = boot_id()
    if current is None:
        return WallClock()
    if meta.boot_id == current and meta.clock_offset_ms is not None:
        return FileClock(meta.clock_offset_ms)
    return None


def set_clock(connection: Connection) -> Clock:
    """Set the offset of the file's clock, at the first open after a boot. The caller holds the turn.

    The clock never runs behind an instant the file has seen: after a boot with a wrong wall clock it starts at the
    last minute in which the queue was used.
    """
    connection.execute("BEGIN IMMEDIATE")
    clock = clock_of(read(connection))
    if clock is not None:  # another process was first
        connection.execute("ROLLBACK")
        return clock
    last_at: int = connection.execute(sql.SELECT_LAST_MINUTE).fetchone()[0]
    wall_ms = max(time.time_ns() // 1_000_000, last_at)
    offset_ms = wall_ms - time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    connection.execute(sql.SET_META, {"name": "boot", "number": offset_ms, "bytes": boot_id()})
    connection.execute("COMMIT")
    return FileClock(offset_ms)
