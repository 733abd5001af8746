# SPDX-License-Identifier: Apache-2.0
"""Quiet tenants and a few workers, by the real clock: how long each quiet message waits for a worker.

One process sends for all quiet tenants: a message a second each, at some instant of that second. Workers, a process
each, receive one message, work on it for some milliseconds (asleep, as if they waited for another service), delete it
and come back. All other messages in the queue at the beginning are the noisy neighbour's.
"""

import multiprocessing
import random
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import sqsqlite

QUIET = "quiet "
QUEUE = "orders"
# Seconds after the last send by which every quiet message must have been received.
PATIENCE = 60


@dataclass(frozen=True)
class Load:
    """The senders and workers of a load, in rounds of a second. The messages of the first `warm_up` do not count."""

    tenants: int
    workers: int
    work_seconds: float
    rounds: int
    warm_up: int
    synchronous: str = "FULL"


@dataclass(frozen=True)
class Waits:
    """The result of a load.

    Attributes:
        seconds: of each quiet message, from before its send to when a worker has it.
        per_second: messages that the workers received, anybody's, while there were sends.
    """

    seconds: list[float]
    per_second: float


def run(path: Path, load: Load) -> Waits:
    """Put the load on the queue `orders` of the file.

    Raises:
        AssertionError: a quiet message was not received, a minute after the last send.
    """
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    received = context.Value("i", 0)
    members: list[tuple[Any, Connection]] = []
    for target in (_send, *[_work] * load.workers):
        ours, theirs = context.Pipe()
        process = context.Process(target=target, args=(theirs, path, load, stop, received), daemon=True)
        process.start()
        members.append((process, ours))
    for _, pipe in members:
        pipe.recv()  # it has opened the file
    for _, pipe in members:
        pipe.send("start")
    [_, sender], *_ = members
    started, ended = sender.recv()
    expected = load.tenants * load.rounds
    deadline = time.monotonic() + PATIENCE
    while received.value < expected and time.monotonic() < deadline:
        time.sleep(0.05)
    stop.set()
    receives = [receive for _, pipe in members[1:] for receive in pipe.recv()]
    for process, _ in members:
        process.join(10)
    if received.value != expected:
        raise AssertionError(f"{received.value} of {expected} quiet messages were received")
    counted = started + load.warm_up
    return Waits(
        [at - sent_at for at, sent_at in receives if sent_at is not None and sent_at >= counted],
        sum(1 for at, _ in receives if started <= at < ended) / (ended - started),
    )


def _send(pipe: Connection, path: Path, load: Load, *_: object) -> None:
    """Send for all tenants. Returns when the sends began and ended."""
    instants = random.Random(1)  # the same ones each time
    with sqsqlite.client(path, synchronous=load.synchronous) as client:
        url = client.get_queue_url(QueueName=QUEUE)["QueueUrl"]
        pipe.send("open")
        pipe.recv()
        started = time.monotonic()
        for second in range(load.rounds):
            due = sorted((second + instants.random(), tenant) for tenant in range(load.tenants))
            for instant, tenant in due:
                time.sleep(max(0.0, started + instant - time.monotonic()))
                body = f"{QUIET}{time.monotonic()!r}"
                client.send_message(
                    QueueUrl=url, MessageBody=body, MessageGroupId=f"{QUIET.strip()}-{tenant}"
                )
        pipe.send((started, time.monotonic()))


def _work(pipe: Connection, path: Path, load: Load, stop: Any, received: Any) -> None:
    """Receive, work and delete until told to stop.

    Returns when each message came, and when the quiet ones were sent.
    """
    receives: list[tuple[float, float | None]] = []
    with sqsqlite.client(path, synchronous=load.synchronous) as client:
        url = client.get_queue_url(QueueName=QUEUE)["QueueUrl"]
        pipe.send("open")
        pipe.recv()
        while not stop.is_set():
            for message in client.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages", ()):
                at = time.monotonic()
                body: str = message["Body"]
                quiet = body.startswith(QUIET)
                receives.append((at, float(body.removeprefix(QUIET)) if quiet else None))
                time.sleep(load.work_seconds)
                client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                if quiet:
                    with received.get_lock():
                        received.value += 1
    pipe.send(receives)
