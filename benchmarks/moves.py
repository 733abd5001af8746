# SPDX-License-Identifier: Apache-2.0
"""A move task of a million dead letters: its speed, and its effect on another process's sends."""

import time
from pathlib import Path
from typing import Any

from big_file import make_dead_letters
from producer import Producer
from rows import Figure

import sqsqlite
from sqsqlite.store.driver import dbapi

MILLION = 1_000_000
# seconds until a task counts as stuck
PATIENCE = 600


def figures(folder: Path, *, quick: bool) -> list[Figure]:
    return [figure for level in ("FULL", "NORMAL") for figure in _level(folder, level, quick=quick)]


def _level(folder: Path, synchronous: str, *, quick: bool) -> list[Figure]:
    count = MILLION // 500 if quick else MILLION
    path = folder / f"{synchronous}.db"
    make_dead_letters(path, count)
    with Producer(path, synchronous) as producer:
        time.sleep(0.1 if quick else 3)  # its sends without a move
        with sqsqlite.client(path, synchronous=synchronous) as client:
            started = time.monotonic()
            _move_all(client, count)
            moved = time.monotonic()
        sends = producer.stop()
    rate = Figure(
        f"move task of {count:,} messages to where they came from",
        count / (moved - started),
        "/s",
        synchronous,
        dbapi.sqlite_version,
        goal="at least 20,000/s",
        beside=f"{moved - started:.1f} s, while another process sends",
    )
    return [rate, producer.figure("the move", sends, started, moved, "under 50 ms")]


def _move_all(client: Any, count: int) -> None:
    url = client.get_queue_url(QueueName="dead")["QueueUrl"]
    attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    arn = attributes["QueueArn"]
    client.start_message_move_task(SourceArn=arn)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        [task] = client.list_message_move_tasks(SourceArn=arn)["Results"]
        if task["Status"] != "RUNNING":
            if task["Status"] != "COMPLETED" or task["ApproximateNumberOfMessagesMoved"] != count:
                raise AssertionError(f"not all of {count} messages were moved: {task}")
            return
        time.sleep(0.01)
    raise TimeoutError(f"the task did not end within {PATIENCE} s")
