# SPDX-License-Identifier: Apache-2.0
"""Purging a million messages: the time of the call, and the effect of the sweep on another process's sends."""

import time
from pathlib import Path
from typing import Any

from big_file import Fill, make
from producer import Producer
from rows import Figure, milliseconds

import sqsqlite
from sqsqlite.store.driver import dbapi

MILLION = 1_000_000


def figures(folder: Path, *, quick: bool) -> list[Figure]:
    return [figure for level in ("FULL", "NORMAL") for figure in _level(folder, level, quick=quick)]


def _level(folder: Path, synchronous: str, *, quick: bool) -> list[Figure]:
    count = MILLION // 500 if quick else MILLION
    path = folder / f"{synchronous}.db"
    make(path, Fill(count))
    with Producer(path, synchronous) as producer:
        time.sleep(0.1 if quick else 3)  # its sends without a sweep
        with sqsqlite.connect(path, synchronous=synchronous) as sqs:
            queue = sqs.queue("orders")
            _until_swept(
                sqs
            )  # An empty sweep first, so that SQLAlchemy is loaded now and not during the measured sends.
            started = time.monotonic()
            queue.purge()
            purged = time.monotonic()
            _until_swept(sqs)
            swept = time.monotonic()
        sends = producer.stop()
    call = Figure(
        f"purge of {count:,} messages, the call",
        milliseconds(purged - started),
        "ms",
        synchronous,
        dbapi.sqlite_version,
        goal="under 20 ms",
        beside=f"space swept after {swept - started:.1f} s",
    )
    return [call, producer.figure("the sweep", sends, started, swept, "stalls nobody")]


def _until_swept(sqs: sqsqlite.SQS) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with sqs.read_engine.connect() as connection:
            left: Any = connection.exec_driver_sql(
                "SELECT count(*) FROM sqs_epochs WHERE discarded_at IS NOT NULL"
            ).scalar()
        if not left:
            return
        time.sleep(0.01)
    raise TimeoutError("the sweep did not end within 120 s")
