# SPDX-License-Identifier: Apache-2.0
"""Dead letters, and the message move tasks that bring them back, so that a test reads as sentences."""

from typing import Any

from tests.behaviour.bound_queue import BoundQueue
from tests.store.waiting import until


def policy(dead: BoundQueue) -> dict[str, Any]:
    """A redrive policy: the second receive makes a message a dead letter."""
    return {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1}


def let_die(queue: BoundQueue, *bodies: str, **params: Any) -> None:
    """Send each body, receive it, and see the second receive move it."""
    for body in bodies:
        queue.send(body, **params)
    received = [queue.receive_one(VisibilityTimeout=0) for _ in bodies]
    assert sorted(message["Body"] for message in received) == sorted(bodies)
    assert queue.receive(10) == []


def start(source: BoundQueue, destination: str | None = None, rate: int | None = None) -> str:
    """Start a task. Returns its handle."""
    params = {"DestinationArn": destination, "MaxNumberOfMessagesPerSecond": rate}
    given = {name: value for name, value in params.items() if value is not None}
    handle: str = source.client.start_message_move_task(SourceArn=source.arn, **given)["TaskHandle"]
    return handle


def tasks(source: BoundQueue, **params: Any) -> list[dict[str, Any]]:
    """The latest tasks."""
    found: list[dict[str, Any]] = source.client.list_message_move_tasks(SourceArn=source.arn, **params)[
        "Results"
    ]
    return found


def cancel(source: BoundQueue, handle: str) -> int:
    """Cancel a task. Returns the number of messages moved before."""
    answer = source.client.cancel_message_move_task(TaskHandle=handle)
    return int(answer["ApproximateNumberOfMessagesMoved"])


def moved(source: BoundQueue) -> int:
    """The number of messages that the latest task has moved."""
    return int(tasks(source)[0]["ApproximateNumberOfMessagesMoved"])


def ended(source: BoundQueue) -> dict[str, Any]:
    """The latest task, once it is over."""
    until(lambda: tasks(source)[0]["Status"] != "RUNNING")
    return tasks(source)[0]
