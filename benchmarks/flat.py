# SPDX-License-Identifier: Apache-2.0
"""Work that must not grow with the file: a receive, the counts, opening, a claim behind expired messages."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from big_file import Fill, make
from receives import compare
from rows import Figure, median, milliseconds

import sqsqlite
from sqsqlite.store.driver import dbapi

MILLION = 1_000_000
IN_FLIGHT = 120_000
HOUR_MS = 3_600_000
LEVEL = "NORMAL"  # the cheaper commit hides less


def figures(folder: Path, *, quick: bool) -> list[Figure]:
    scale = 500 if quick else 1
    many, few, in_flight = MILLION // scale, 1000, IN_FLIGHT // scale
    make(folder / "many.db", Fill(many))
    make(folder / "few.db", Fill(few))
    make(folder / "in-flight.db", Fill(in_flight, in_flight_ms=HOUR_MS))
    # Received an hour ago for a minute, and never settled: their rows do not show the end of the timeout yet.
    make(folder / "ended.db", Fill(in_flight, in_flight_ms=60_000), age_ms=HOUR_MS)
    make(folder / "expired.db", Fill(many), Fill(10, sent_ms=HOUR_MS), age_ms=HOUR_MS, retention_seconds=60)
    return [
        _opening(folder / "many.db", many),
        _receive(folder, many, few, blocks=2 if quick else 20),
        _counts(folder / "many.db", f"{many:,} waiting", "under 2 ms"),
        _counts(folder / "in-flight.db", f"{in_flight:,} in flight", "under 5 ms"),
        _counts(folder / "ended.db", f"{in_flight:,} timeouts ended and not yet swept", ""),
        _behind_expired(folder / "expired.db", many),
    ]


def _open(path: Path) -> tuple[Any, str]:
    client = sqsqlite.client(path, synchronous=LEVEL)
    return client, client.get_queue_url(QueueName="orders")["QueueUrl"]


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _figure(name: str, value: float, unit: str, goal: str, beside: str = "") -> Figure:
    return Figure(name, value, unit, LEVEL, dbapi.sqlite_version, goal, beside)


def _opening(path: Path, many: int) -> Figure:
    found = []
    for _ in range(10):
        started = time.perf_counter()
        client = sqsqlite.client(path, synchronous=LEVEL)
        found.append(time.perf_counter() - started)
        client.close()
    return _figure(
        f"opening a file with {many:,} messages",
        milliseconds(median(found)),
        "ms",
        "under 50 ms",
        f"longest of {len(found)}: {milliseconds(max(found)):.1f} ms",
    )


def _receive(folder: Path, many: int, few: int, blocks: int) -> Figure:
    found = compare(folder / "many.db", folder / "few.db", synchronous=LEVEL, blocks=blocks)
    return _figure(
        f"median receive with {many:,} waiting to that with {few:,}",
        found.ratio,
        "times",
        "at most 1.3",
        found.beside,
    )


def _counts(path: Path, what: str, goal: str) -> Figure:
    client, url = _open(path)
    ask = {"QueueUrl": url, "AttributeNames": ["All"]}
    found = [_seconds(lambda: client.get_queue_attributes(**ask)) for _ in range(51)]
    client.close()
    return _figure(
        f"all attributes and counts of a queue, {what}",
        milliseconds(median(found)),
        "ms",
        goal,
        f"longest of {len(found)}: {milliseconds(max(found)):.2f} ms",
    )


def _behind_expired(path: Path, many: int) -> Figure:
    client, url = _open(path)
    started = time.perf_counter()
    messages = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    seconds = time.perf_counter() - started
    client.close()
    if len(messages) != 10:
        raise AssertionError(f"{len(messages)} of the ten live messages were received")
    return _figure(
        f"receive of ten behind {many:,} expired messages", milliseconds(seconds), "ms", "under 10 ms"
    )
