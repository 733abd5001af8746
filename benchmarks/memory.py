# SPDX-License-Identifier: Apache-2.0
"""Memory of a consumer after a hundred thousand messages. Linux only."""

import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

from big_file import Fill, make
from rows import Figure

import sqsqlite
from sqsqlite.api.client import Client
from sqsqlite.store.driver import dbapi


def figures(folder: Path, *, quick: bool) -> list[Figure]:
    if not Path("/proc/self/statm").exists():
        return []
    warm, count = (100, 1000) if quick else (10_000, 100_000)
    path = folder / "queue.db"
    make(path, Fill(warm + count))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    consumer = context.Process(target=_consume, args=(theirs, path, warm, count), daemon=True)
    consumer.start()
    early, late = ours.recv()
    consumer.join(10)
    return [
        Figure(
            f"a consumer's growth over {count:,} messages",
            (late - early) / 2**20,
            "MiB",
            "NORMAL",
            dbapi.sqlite_version,
            goal="constant",
            beside=f"resident: {late / 2**20:.1f} MiB at the end",
        )
    ]


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _consume(pipe: Connection, path: Path, warm: int, count: int) -> None:
    with sqsqlite.client(path, synchronous="NORMAL") as client:
        url = client.get_queue_url(QueueName="orders")["QueueUrl"]
        _receive_and_delete(client, url, warm)
        early = _resident_bytes()
        _receive_and_delete(client, url, count)
        pipe.send((early, _resident_bytes()))


def _receive_and_delete(client: Client, url: str, count: int) -> None:
    for _ in range(count // 10):
        messages = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        entries = [
            {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
            for place, message in enumerate(messages)
        ]
        client.delete_message_batch(QueueUrl=url, Entries=entries)
