# SPDX-License-Identifier: Apache-2.0
"""Opening a file: the options every door offers, checked once."""

import os
import re
from typing import TypedDict, Unpack

from sqsqlite.contract import limits as quotas
from sqsqlite.contract.names import DEFAULT_REGION
from sqsqlite.sql.moves import LIST_UNFINISHED_MOVE_TASKS
from sqsqlite.store.clock import Clock
from sqsqlite.store.store import Store
from sqsqlite.store.transaction import Snapshot, Transaction
from sqsqlite.store.upkeep import Chores

COMPAT = ("docs", "aws")

# Each chore loads its module when there is something to do: most commands end before.


def _sweep_chunk(tx: Transaction, place: int) -> int | None:
    from sqsqlite.actions.sweep import sweep_chunk

    return sweep_chunk(tx, place)


def _next_move_at(at: Snapshot, worker: bytes) -> int | None:
    if at.execute(LIST_UNFINISHED_MOVE_TASKS).fetchone() is None:
        return None
    from sqsqlite.actions.moving import next_move_at

    return next_move_at(at, worker)


def _move_chunk(tx: Transaction, worker: bytes) -> None:
    from sqsqlite.actions.moving import move_chunk

    move_chunk(tx, worker)


def _leave_moves(tx: Transaction, worker: bytes) -> None:
    from sqsqlite.actions.moving import leave_moves

    leave_moves(tx, worker)


CHORES = Chores(_sweep_chunk, _next_move_at, _move_chunk, _leave_moves)
LIMITS = {"sqs": quotas.SQS, "native": quotas.NATIVE}


def check_region(region: object) -> None:
    """Refuse a region that could not be read again from a queue's ARN (names.py).

    Raises:
        ValueError: says what is allowed.
    """
    if not (isinstance(region, str) and re.fullmatch(r"[a-z0-9-]+", region)):
        raise ValueError(
            f"region={region!r}: lower-case letters, digits and hyphens are allowed, as in {DEFAULT_REGION}"
        )


class OpenOptions(TypedDict, total=False):
    """The options of a file, at every door; `sqsqlite.connect` says what they mean."""

    synchronous: str
    compat: str
    limits: str
    busy_timeout: float
    adopt: bool
    clock: Clock | None
    region: str
    cooldowns: bool


DEFAULTS: OpenOptions = {
    "synchronous": "FULL",
    "compat": "docs",
    "limits": "sqs",
    "busy_timeout": 30.0,
    "adopt": False,
    "clock": None,
    "region": DEFAULT_REGION,
    "cooldowns": True,
}


def check_names(function: str, options: OpenOptions) -> None:
    """Refuse an option that does not exist, before its file is opened or created.

    Raises:
        TypeError: names the options that exist.
    """
    for name in options:
        if name not in DEFAULTS:
            raise TypeError(
                f"{function}() got an unexpected keyword argument {name!r}: the options of a file are "
                + ", ".join(DEFAULTS)
            )


def open_store(
    path: str | os.PathLike[str], *, test: bytes | None = None, **options: Unpack[OpenOptions]
) -> Store:
    """Open a file of queues; `sqsqlite.connect` says what the options mean.

    Args:
        test: the mark of a test's file. Only who knows it opens the file.

    Raises:
        ValueError: an option has a value that is not allowed.
        StoreError: the file can't be used as it is.
    """
    chosen: OpenOptions = {**DEFAULTS, **options}
    compat, limits, region = chosen["compat"], chosen["limits"], chosen["region"]
    if compat not in COMPAT:
        raise ValueError(f"compat={compat!r}: one of {', '.join(COMPAT)} is allowed")
    if limits not in LIMITS:
        raise ValueError(f"limits={limits!r}: one of {', '.join(LIMITS)} is allowed")
    busy_timeout, longest = chosen["busy_timeout"], quotas.BUSY_TIMEOUT_SECONDS.high
    if not 0 <= busy_timeout <= longest:  # false for NaN as well
        raise ValueError(f"busy_timeout={busy_timeout!r}: 0 to {longest:,} seconds (a day) are allowed")
    check_region(region)
    table = LIMITS[limits]
    if compat == "aws":
        table = table._replace(fifo_in_flight_count=table.fifo_in_flight_aws_count)
    if not chosen["cooldowns"]:
        table = table._replace(deleted_name_seconds=0, purge_interval_seconds=0)
    return Store(
        path,
        synchronous=chosen["synchronous"],
        busy_timeout=busy_timeout,
        adopt=chosen["adopt"],
        clock=chosen["clock"],
        limits=table,
        compat=compat,
        region=region,
        chores=CHORES,
        test=test,
    )
