"""Many queues measured by a few statements: what `stats` and `metrics` have in common."""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqsqlite.sql import queues as sql
from sqsqlite.store.transaction import Snapshot


class Counts(NamedTuple):
    """A queue's messages by state, and when the oldest was sent: milliseconds since 1970 UTC, None in an empty one."""

    visible: int
    in_flight: int
    delayed: int
    oldest_sent_at: int | None


class Activity(NamedTuple):
    """What a queue did in some minutes."""

    sent: int = 0
    received: int = 0
    deleted: int = 0
    dead_lettered: int = 0
    empty_receives: int = 0
    deduplicated: int = 0
    sent_bytes: int = 0


def counts(snapshot: Snapshot, queues: Iterable[tuple[int, int]], now_ms: int) -> dict[int, Counts]:
    """The exact counts of queues at this instant, by epoch id.

    The kept counts, corrected by what has become due and not been promoted, and by what has expired and not been
    swept: both are usually nothing.

    Args:
        queues: of each queue the epoch id, and the instant at or before which what was sent is beyond its retention.
    """
    expired_at = dict(queues)
    found = {}
    rows = snapshot.execute(
        sql.MEASURE_QUEUES, {"queues": json.dumps([*expired_at.items()]), "now_ms": now_ms}
    ).fetchall()
    for epoch_id, messages, in_flight, delayed, due, due_in_flight, oldest_at, oldest_kept_at in rows:
        gone = gone_in_flight = gone_delayed = 0
        if oldest_at is not None and oldest_at <= expired_at[epoch_id]:
            bounds = {"epoch_id": epoch_id, "expired_at": expired_at[epoch_id], "now_ms": now_ms}
            gone, gone_in_flight, gone_delayed = snapshot.execute(sql.COUNT_EXPIRED, bounds).fetchone()
        held = in_flight - due_in_flight - gone_in_flight
        waiting = delayed - (due - due_in_flight) - gone_delayed
        found[epoch_id] = Counts(messages - gone - held - waiting, held, waiting, oldest_kept_at)
    return found


def activity(
    snapshot: Snapshot, open_minutes: Sequence[tuple[int, int, Activity]], since_at: int
) -> dict[int, Activity]:
    """What queues did from an instant on, by queue id: in closed minutes, and in the one that is still open.

    Args:
        open_minutes: of each queue the id, where its open minute begins, and what it did in it.
        since_at: the beginning of a minute. This and `open_minutes`: milliseconds since 1970 UTC.
    """
    found = {id_: now if minute_at >= since_at else Activity() for id_, minute_at, now in open_minutes}
    asked = {"queue_ids": json.dumps([*found]), "since_at": since_at}
    for id_, *minute in snapshot.execute(sql.LIST_ACTIVITY, asked).fetchall():
        found[id_] = Activity(*(before + more for before, more in zip(found[id_], minute, strict=True)))
    return found
