# SPDX-License-Identifier: Apache-2.0
"""Another process's sends, one after the other with a short pause, during other work on the file."""

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from rows import Figure, milliseconds, percentile

import sqsqlite
from sqsqlite.store.driver import dbapi

PAUSE = 0.0005


@dataclass(frozen=True)
class Send:
    """The start of a send, by the machine's monotonic clock, and its duration. In seconds."""

    started: float
    seconds: float


class Producer:
    """Sends to the queue `orders` of a file until it is stopped. A context manager."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._synchronous = synchronous
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_send, args=(theirs, path, synchronous), daemon=True)

    def __enter__(self) -> "Producer":
        self._process.start()
        self._pipe.recv()  # it is sending
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join(10)

    def stop(self) -> list[Send]:
        """Stop it. Returns all its sends."""
        self._pipe.send("stop")
        sends: list[Send] = self._pipe.recv()
        return sends

    def figure(self, during: str, sends: Sequence[Send], started: float, ended: float, goal: str) -> Figure:
        """The p99 of the sends that began between two instants, compared with earlier ones."""
        before = [send.seconds for send in sends if send.started < started]
        meanwhile = [send.seconds for send in sends if started <= send.started <= ended]
        return Figure(
            f"another process's p99 send during {during}",
            milliseconds(percentile(meanwhile, 0.99)),
            "ms",
            self._synchronous,
            dbapi.sqlite_version,
            goal,
            f"before it {milliseconds(percentile(before, 0.99)):.2f} ms; longest "
            f"{milliseconds(max(meanwhile)):.1f} ms, before it {milliseconds(max(before)):.1f} ms",
        )


def _send(pipe: Connection, path: Path, synchronous: str) -> None:
    sends: list[Send] = []
    with sqsqlite.client(path, synchronous=synchronous) as client:
        url = client.get_queue_url(QueueName="orders")["QueueUrl"]
        body = "x" * 200
        pipe.send("sending")
        while not pipe.poll():
            for _ in range(10):
                started = time.monotonic()
                client.send_message(QueueUrl=url, MessageBody=body)
                sends.append(Send(started, time.monotonic() - started))
                time.sleep(PAUSE)
    pipe.recv()
    pipe.send(sends)
