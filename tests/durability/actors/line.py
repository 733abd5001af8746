# SPDX-License-Identifier: Apache-2.0
"""Processes that stop in the line of writers: the others continue, and no acknowledged message is lost."""

import os
import time
from collections import Counter

import sqsqlite
from tests.durability.actors.actor import Actor, differences
from tests.durability.actors.late import drained

WAITING = 4  # writers


class Line(Actor):
    """Writers that hold the turn for a while, so that the others stand in line when they are stopped or killed."""

    name = "line"
    processes = WAITING

    def prepare(self) -> None:
        with sqsqlite.connect(self.path()) as sqs:
            sqs.create_queue("jobs")
            with sqs.transaction() as connection:
                connection.execute("CREATE TABLE sent (body TEXT PRIMARY KEY)")

    def work(self, seed: int) -> None:
        with sqsqlite.connect(self.path(), busy_timeout=600) as sqs:
            number = 0
            while not self.is_over:
                key = f"{seed}.{os.getpid()}.{number}"
                number += 1
                with sqs.transaction() as connection:
                    connection.execute("INSERT INTO sent VALUES (?)", (key,))
                    sqs.queue("jobs").send(key)
                    time.sleep(0.01)
                self.note("acknowledged", key)

    def judge(self) -> list[str]:
        acknowledged = Counter(words[0] for words in self.notes("acknowledged"))
        with sqsqlite.connect(self.path()) as sqs:
            with sqs.transaction() as connection:
                rows = Counter(row[0] for row in connection.execute("SELECT body FROM sent").fetchall())
            found = Counter(message.body for message in drained(sqs.queue("jobs")))
        lost = acknowledged - rows
        return [
            *differences("messages", rows, found),
            *([f"{lost.total():,} acknowledged and lost"] if lost else []),
        ]
