# SPDX-License-Identifier: Apache-2.0
"""A storm on a FIFO queue: every process is killed at random, and consumers crash by themselves in mid-work.

Run as a program, with the file, the numbers of consumers, of groups and of messages a group, and a seed. It ends when
every message was sent, received and deleted, and says how many processes died on the way.
"""

import functools
import os
import random
import signal
import sys
import time
from pathlib import Path

import sqsqlite
from sqsqlite.errors import InvalidParameterValue, MessageNotInflight
from tests.durability.crew import CRASHED, Crew, now, slowness, tell

VISIBILITY_TIMEOUT = 1  # s
# Each producer sends a part of the groups; two processes send each part.
PRODUCERS = TWINS = 2
QUEUE = "storm.fifo"
# How many sends a new producer repeats: it cannot know its predecessor's last send, or its twin's.
SENT_AGAIN = 12


def produce(path: str, start: int, *, place: int, groups: int, messages: int) -> None:
    """Send to the groups in rotation.

    A journal holds what was acknowledged; the twin and the next process continue from it.
    """
    chance = random.Random(start)
    queue = sqsqlite.connect(path).queue(QUEUE)
    keys = [f"{group}:{number}" for number in range(messages) for group in range(place, groups, PRODUCERS)]
    journal = _Journal(path, place)
    at = 0
    while at < len(keys):
        at = max(at, journal.read() - SENT_AGAIN)
        some = keys[at : at + chance.choice((1, 1, 1, 3, 10))]
        for key in some:
            tell("send-attempt", key)
        sent = queue.send_many([_message(key) for key in some]) if len(some) > 1 else [_send(queue, some[0])]
        for key, one in zip(some, sent, strict=True):
            tell("send-ack", key, f"{one.message_id}/{one.sequence_number}")
        at += len(some)
        journal.write(at)
    _done(path, place).touch()


def _done(path: str, place: int) -> Path:
    """A file that exists when this producer has sent everything."""
    return Path(f"{path}.done-{place}")


class _Journal:
    """The progress of a producer: eight digits, written at once."""

    def __init__(self, path: str, place: int) -> None:
        self._file = os.open(f"{path}.journal-{place}", os.O_RDWR | os.O_CREAT)

    def read(self) -> int:
        return int(os.pread(self._file, 8, 0) or 0)

    def write(self, at: int) -> None:
        """Write the number, unless the twin is ahead."""
        if at > self.read():
            os.pwrite(self._file, b"%08d" % at, 0)


def _message(key: str) -> dict[str, str]:
    return {"body": key, "group_id": key.partition(":")[0], "deduplication_id": key}


def _send(queue: sqsqlite.Queue, key: str) -> sqsqlite.SentMessage:
    return queue.send(**_message(key))


def consume(path: str, start: int, *, longest_life: int) -> None:
    """Consume until the queue is empty, or until a life of at most `longest_life` messages ends in mid-work."""
    chance = random.Random(start)
    consumer = _Consumer(path, chance, chance.randint(1, longest_life))
    while not consumer.is_done():
        consumer.receive()


class _Consumer:
    def __init__(self, path: str, chance: random.Random, life: int) -> None:
        self._chance = chance
        self._life = life
        self._sqs = sqsqlite.connect(path)
        self._client = sqsqlite.client(path)
        self._queue = self._sqs.queue(QUEUE)
        self._done = [_done(path, place) for place in range(PRODUCERS)]

    def is_done(self) -> bool:
        return all(path.exists() for path in self._done) and not len(self._queue)

    def receive(self) -> None:
        called = now()
        messages = self._queue.receive(self._chance.randint(1, 10), wait=1)
        returned = now()
        if not messages:
            return
        found = [f"{each.body}={each.message_id}/{each.sequence_number}" for each in messages]
        tell("receive", called, returned, VISIBILITY_TIMEOUT * 1_000_000_000, *found)
        fate = self._chance.random()
        if fate < 0.5:
            self._delete_each(messages)
        elif fate < 0.65:
            self._delete_all(messages)
        elif fate < 0.8:
            self._delete_batch(messages)
        elif fate < 0.92:
            kept = self._chance.randint(0, len(messages) - 1)
            self._delete_each(messages[:kept])
            self._give_back(messages[kept:])
        elif fate < 0.97:
            # Often too late: another consumer holds them by then.
            time.sleep(VISIBILITY_TIMEOUT * self._chance.uniform(0.9, 1.3))
            self._delete_each(messages)
        # The others are abandoned.

    def _crash_now_and_then(self) -> None:
        self._life -= 1
        if self._life <= 0:
            if self._chance.random() < 0.5:
                os._exit(CRASHED)
            os.kill(os.getpid(), signal.SIGKILL)

    def _delete_each(self, messages: list[sqsqlite.Message]) -> None:
        for message in messages:
            self._crash_now_and_then()
            tell("delete-attempt", message.body, now())
            try:
                message.delete()
            except InvalidParameterValue:
                tell("delete-refused", message.body)
                return  # too late, and so are the others
            tell("delete-ack", message.body, now())

    def _delete_all(self, messages: list[sqsqlite.Message]) -> None:
        """Delete all of them or none."""
        for message in messages:
            tell("delete-attempt", message.body, now())
        try:
            with self._sqs.transaction():
                for message in messages:
                    message.delete()
                    self._crash_now_and_then()
        except InvalidParameterValue:
            for message in messages:
                tell("delete-refused", message.body)
            return
        for message in messages:
            tell("delete-ack", message.body, now())

    def _delete_batch(self, messages: list[sqsqlite.Message]) -> None:
        """Delete by one call, which may refuse some of them."""
        self._crash_now_and_then()
        for message in messages:
            tell("delete-attempt", message.body, now())
        entries = [
            {"Id": str(place), "ReceiptHandle": each.receipt_handle} for place, each in enumerate(messages)
        ]
        answer = self._client.delete_message_batch(QueueUrl=QUEUE, Entries=entries)
        for deleted in answer.get("Successful", ()):
            tell("delete-ack", messages[int(deleted["Id"])].body, now())
        for refused in answer.get("Failed", ()):
            tell("delete-refused", messages[int(refused["Id"])].body)

    def _give_back(self, messages: list[sqsqlite.Message]) -> None:
        """Give back from the end: otherwise another consumer could get the first before the last is free."""
        for message in reversed(messages):
            tell("return-attempt", message.body, now())
            try:
                message.change_visibility(0)
            except (InvalidParameterValue, MessageNotInflight):
                return  # too late, as above


def main(path: str, consumers: int, groups: int, messages: int, seed: int) -> None:
    chance = random.Random(seed)
    with Crew(path, chance) as crew:
        for place in [*range(PRODUCERS)] * TWINS:
            crew.start(functools.partial(produce, place=place, groups=groups, messages=messages))
        for _ in range(consumers):
            crew.start(functools.partial(consume, longest_life=messages))
        slower = slowness()
        while len(crew):
            crew.kill_some()
            time.sleep(chance.uniform(0.01, 0.25) * slower)
            crew.replace_crashed()
        tell("deaths", crew.deaths)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
