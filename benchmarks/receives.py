# SPDX-License-Identifier: Apache-2.0
"""Single receives from two files, alternately: the effect of a queue's shape on a receive, and nothing else."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rows import median, milliseconds

import sqsqlite

IN_A_BLOCK = 25


@dataclass(frozen=True)
class Compared:
    """Median receives in seconds."""

    one: float
    other: float

    @property
    def ratio(self) -> float:
        return self.one / self.other

    @property
    def beside(self) -> str:
        return f"{milliseconds(self.one):.3f} ms to {milliseconds(self.other):.3f} ms"


def compare(
    one: Path,
    other: Path,
    *,
    queue: str = "orders",
    synchronous: str = "NORMAL",
    max_messages: int = 1,
    blocks: int = 20,
) -> Compared:
    """Blocks of receives from one file and the other, alternately. Messages are deleted outside the clock."""
    clients = [sqsqlite.client(path, synchronous=synchronous) for path in (one, other)]
    latencies: tuple[list[float], list[float]] = ([], [])
    for _ in range(blocks):
        for client, found in zip(clients, latencies, strict=True):
            url = client.get_queue_url(QueueName=queue)["QueueUrl"]
            for _ in range(IN_A_BLOCK):
                started = time.perf_counter()
                messages = client.receive_message(QueueUrl=url, MaxNumberOfMessages=max_messages)["Messages"]
                found.append(time.perf_counter() - started)
                if len(messages) != max_messages:
                    raise AssertionError(f"{len(messages)} of {max_messages} messages were received")
                _delete(client, url, messages)
    for client in clients:
        client.close()
    return Compared(*map(median, latencies))


def lock_groups(path: Path, queue: str, groups: int) -> None:
    """Receive a message of each of the first `groups` groups, for 12 hours."""
    with sqsqlite.client(path, synchronous="OFF") as client:
        url = client.get_queue_url(QueueName=queue)["QueueUrl"]
        for _ in range(groups):
            [_] = client.receive_message(QueueUrl=url, VisibilityTimeout=43_200)["Messages"]


def _delete(client: Any, url: str, messages: list[dict[str, Any]]) -> None:
    entries = [
        {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
        for place, message in enumerate(messages)
    ]
    answer = client.delete_message_batch(QueueUrl=url, Entries=entries)
    if len(answer["Successful"]) != len(messages):
        raise AssertionError(f"not every message was deleted: {answer}")
