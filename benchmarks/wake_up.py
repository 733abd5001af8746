# SPDX-License-Identifier: Apache-2.0
"""How soon a waiting consumer in another process gets the message, and the cost of idle waiters."""

import multiprocessing
import random
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from rows import Figure, median, milliseconds, percentile

import sqsqlite
from sqsqlite.store.driver import dbapi

WAITERS = 20


def figures(folder: Path, *, quick: bool) -> list[Figure]:
    latencies = [_latency(folder, synchronous, 10 if quick else 300) for synchronous in ("FULL", "NORMAL")]
    return [*latencies, _idle(folder, 0.3 if quick else 10.0)]


def _latency(folder: Path, synchronous: str, count: int) -> Figure:
    path = folder / f"{synchronous}.db"
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with sqsqlite.client(path, synchronous=synchronous) as client:
        url = client.create_queue(QueueName="orders")["QueueUrl"]
        consumer = context.Process(target=_consume, args=(theirs, path, synchronous, count), daemon=True)
        consumer.start()
        ours.recv()  # it is about to wait
        for _ in range(count):
            # Long enough for the consumer to delete the last message and to wait again.
            time.sleep(random.uniform(0.01, 0.03))
            client.send_message(QueueUrl=url, MessageBody=repr(time.monotonic()))
        found = ours.recv()
        consumer.join(10)
    return Figure(
        "a consumer waiting in another process has the message, from before the send",
        milliseconds(median(found)),
        "ms",
        synchronous,
        dbapi.sqlite_version,
        goal="under 2 ms, median",
        beside=f"p99 {milliseconds(percentile(found, 0.99)):.2f} ms of {count}",
    )


def _consume(pipe: Connection, path: Path, synchronous: str, count: int) -> None:
    found: list[float] = []
    with sqsqlite.client(path, synchronous=synchronous) as client:
        url = client.get_queue_url(QueueName="orders")["QueueUrl"]
        pipe.send("waiting")
        while len(found) < count:
            answer = client.receive_message(QueueUrl=url, WaitTimeSeconds=20)
            now = time.monotonic()
            for message in answer.get("Messages", ()):
                found.append(now - float(message["Body"]))
                client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    pipe.send(found)


def _idle(folder: Path, seconds: float) -> Figure:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_wait, args=(theirs, folder / "idle.db", seconds), daemon=True)
    process.start()
    busy_seconds = ours.recv()
    process.join(30)
    return Figure(
        f"{WAITERS} idle waiters in one process",
        busy_seconds / seconds * 100,
        "% of a core",
        "FULL",
        dbapi.sqlite_version,
        goal="under 2 %",
        beside=f"over {seconds:g} s",
    )


def _wait(pipe: Connection, path: Path, seconds: float) -> None:
    sqs = sqsqlite.connect(path)
    queue = sqs.create_queue("orders")
    # A send and a receive first, so that no first-time work is measured.
    queue.send("x")
    for message in queue.receive():
        message.delete()
    threads = [threading.Thread(target=queue.receive, kwargs={"wait": 20}) for _ in range(WAITERS)]
    for thread in threads:
        thread.start()
    time.sleep(min(1.0, seconds))
    before = time.process_time()
    time.sleep(seconds)
    pipe.send(time.process_time() - before)
    sqs.close()  # ends their waits
    for thread in threads:
        thread.join()
