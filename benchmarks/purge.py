"""Purging a million messages: how long the call takes, and what another process's sends notice of the sweep."""

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from big_file import Fill, make
from rows import Figure, milliseconds, percentile

import sqsqlite
from sqsqlite.store.driver import dbapi

MILLION = 1_000_000


def figures(folder: Path, *, quick: bool) -> list[Figure]:
    return [figure for level in ("FULL", "NORMAL") for figure in _level(folder, level, quick=quick)]


def _level(folder: Path, synchronous: str, *, quick: bool) -> list[Figure]:
    count = MILLION // 500 if quick else MILLION
    path = folder / f"{synchronous}.db"
    make(path, Fill(count))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    producer = context.Process(target=_produce, args=(theirs, path, synchronous), daemon=True)
    producer.start()
    ours.recv()  # it is sending
    time.sleep(0.1 if quick else 3)  # its sends without a sweep
    with sqsqlite.connect(path, synchronous=synchronous) as sqs:
        queue = sqs.queue("orders")
        _until_swept(sqs)  # nothing to sweep: SQLAlchemy is loaded now, and not beside the producer later
        started = time.monotonic()
        queue.purge()
        purged = time.monotonic()
        _until_swept(sqs)
        swept = time.monotonic()
    ours.send("stop")
    sends = ours.recv()
    producer.join(10)
    before = [latency for at, latency in sends if at < started]
    during = [latency for at, latency in sends if started <= at <= swept]
    version = dbapi.sqlite_version
    return [
        Figure(
            f"purge of {count:,} messages, the call",
            milliseconds(purged - started),
            "ms",
            synchronous,
            version,
            goal="under 20 ms",
            beside=f"space swept after {swept - started:.1f} s",
        ),
        Figure(
            "another process's p99 send during the sweep",
            milliseconds(percentile(during, 0.99)),
            "ms",
            synchronous,
            version,
            goal="stalls nobody",
            beside=f"before it {milliseconds(percentile(before, 0.99)):.2f} ms; longest "
            f"{milliseconds(max(during)):.1f} ms, before it {milliseconds(max(before)):.1f} ms",
        ),
    ]


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


def _produce(pipe: Connection, path: Path, synchronous: str) -> None:
    """Send until told to stop; every send with its instant and how long it took."""
    sends: list[tuple[float, float]] = []
    with sqsqlite.client(path, synchronous=synchronous) as client:
        url = client.get_queue_url(QueueName="orders")["QueueUrl"]
        body = "x" * 200
        pipe.send("sending")
        while not pipe.poll():
            for _ in range(10):
                started = time.monotonic()
                client.send_message(QueueUrl=url, MessageBody=body)
                sends.append((started, time.monotonic() - started))
                time.sleep(0.0005)
    pipe.recv()
    pipe.send(sends)
