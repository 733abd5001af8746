# SPDX-License-Identifier: Apache-2.0
"""A file that may not grow: send until it is full, then receive and delete, and begin again."""

import random
import resource
import signal
from collections import Counter

import sqsqlite
from sqsqlite.errors import DiskFull, LeaseLost
from tests.durability.actors.actor import Actor

LIMIT_BYTES = 3 * 1024 * 1024


class Room(Actor):
    """Each process has a limit on the size of files (EFBIG): acknowledged messages can still be received."""

    name = "room"
    processes = 2

    def prepare(self) -> None:
        with sqsqlite.connect(self.path()) as sqs:
            sqs.create_queue("jobs", visibility_timeout=20)

    def work(self, seed: int) -> None:
        chance = random.Random(seed)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))
        number = 0
        with sqsqlite.connect(self.path(), busy_timeout=600) as sqs:
            queue = sqs.queue("jobs")
            while not self.is_over:
                try:
                    queue.send(f"{seed}.{number} " + "x" * chance.randrange(200, 40_000))
                    self.note("sent", f"{seed}.{number}")
                except DiskFull:
                    self.note("full")
                    self._make_room(queue)
                number += 1

    def _make_room(self, queue: sqsqlite.Queue) -> None:
        for _ in range(10):
            for message in queue.receive(10):
                self.note("received", message.body.partition(" ")[0])
                try:
                    message.delete()
                except LeaseLost as error:
                    self.note("late", error.reason)

    def judge(self) -> list[str]:
        sent = {key for (key,) in self.notes("sent")}
        found = {key for (key,) in self.notes("received")}
        with sqsqlite.connect(self.path()) as sqs:
            queue = sqs.queue("jobs")
            while messages := queue.receive(10, wait=20 if len(queue) else 0, visibility_timeout=600):
                found.update(message.body.partition(" ")[0] for message in messages)
                queue.delete_many(messages)
        self.totals = Counter({"messages": len(sent)})
        return [f"{len(lost):,} lost, such as {min(lost)}"] if (lost := sent - found) else []

    def figures(self) -> Counter[str]:
        return super().figures() + self.totals
