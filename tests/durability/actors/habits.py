# SPDX-License-Identifier: Apache-2.0
"""Habits of programs that a library must endure: countless openings, open cursors, settings, asyncio."""

import asyncio
import os
import random
import threading
import time
from collections import Counter
from typing import Any

import sqsqlite
from sqsqlite import SQS
from sqsqlite.errors import SQSQLiteError
from sqsqlite.store.driver import dbapi
from tests.durability.actors.actor import Actor, differences
from tests.durability.actors.late import drained

SOON = 20  # s until closed resources must be gone


class Openings(Actor):
    """Opens and closes a file over and over while others write to it: no thread and no descriptor is left."""

    name = "openings"
    processes = 2

    def prepare(self) -> None:
        sqsqlite.connect(self.path()).create_queue("jobs")

    def work(self, seed: int) -> None:
        self._open_and_close()
        before = _kept()
        while not self.is_over:
            for _ in range(50):
                self._open_and_close()
            ends_at = time.monotonic() + SOON
            while any(one > other for one, other in zip(_kept(), before, strict=True)):
                if time.monotonic() > ends_at:
                    raise AssertionError(
                        f"{before} threads and descriptors before 50 openings, {_kept()} after"
                    )
                time.sleep(0.1)

    def _open_and_close(self) -> None:
        with sqsqlite.connect(self.path(), busy_timeout=600) as sqs:
            sqs.queue("jobs").send("sent")
            self.note("sent")

    def judge(self) -> list[str]:
        with sqsqlite.connect(self.path()) as sqs:
            self.found = len(sqs.queue("jobs"))
        sent = sum(1 for _ in self.notes("sent"))
        return [f"{sent:,} sent, {self.found:,} found"] if sent > self.found else []


def _kept() -> tuple[int, int]:
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


class Cursors(Actor):
    """Leaves cursors open in its blocks, and changes the connection's settings."""

    name = "cursors"

    def prepare(self) -> None:
        with sqsqlite.connect(self.path()) as sqs:
            sqs.create_queue("jobs")
            with sqs.transaction() as connection:
                connection.execute("CREATE TABLE outbox (body TEXT PRIMARY KEY)")

    def work(self, seed: int) -> None:
        chance = random.Random(seed)
        with sqsqlite.connect(self.path(), busy_timeout=600) as sqs:
            number = 0
            left: list[Any] = []
            while not self.is_over:
                number += 1
                try:
                    with sqs.transaction() as connection:
                        chance.choice(HABITS)(connection)
                        bodies = [f"{seed}.{number}.{place}" for place in range(10)]
                        connection.executemany("INSERT INTO outbox VALUES (?)", [(body,) for body in bodies])
                        rows = connection.execute("SELECT body FROM outbox ORDER BY rowid DESC")
                        left = [rows, next(rows)]
                        for body in bodies:
                            sqs.queue("jobs").send(body)
                        if chance.random() < 0.2:
                            raise _Cancelled
                except _Cancelled:
                    self.note("undone")
                else:
                    self.note("committed")
                sqs.queue("jobs").peek(1)
            del left

    def judge(self) -> list[str]:
        with sqsqlite.connect(self.path()) as sqs:
            with sqs.transaction() as connection:
                rows = Counter(row[0] for row in connection.execute("SELECT body FROM outbox").fetchall())
            return differences("messages", rows, Counter(one.body for one in drained(sqs.queue("jobs"))))


class _Cancelled(Exception):
    """The caller's own reason to roll back."""


def _plain(connection: Any) -> None:
    """Do nothing special."""


def _rows_by_name(connection: Any) -> None:
    connection.row_factory = dbapi.Row


def _as_bytes(connection: Any) -> None:
    connection.text_factory = bytes


def _own_timeout(connection: Any) -> None:
    connection.execute("PRAGMA busy_timeout = 1")


def _temporary_files(connection: Any) -> None:
    connection.execute("PRAGMA temp_store = MEMORY")


HABITS = (_plain, _plain, _rows_by_name, _as_bytes, _own_timeout, _temporary_files)


class Tasks(Actor):
    """Two asyncio tasks on one thread: an acknowledged send of one is not lost with the rollback of the other."""

    name = "tasks"

    def prepare(self) -> None:
        sqsqlite.connect(self.path()).create_queue("jobs")

    def work(self, seed: int) -> None:
        with sqsqlite.connect(self.path(), busy_timeout=600) as sqs:
            asyncio.run(self._both(sqs, random.Random(seed), seed))

    async def _both(self, sqs: SQS, chance: random.Random, seed: int) -> None:
        await asyncio.gather(self._roll_back(sqs, chance), self._send(sqs, seed))

    async def _roll_back(self, sqs: SQS, chance: random.Random) -> None:
        while not self.is_over:
            try:
                with sqs.transaction():
                    sqs.queue("jobs").send("never")
                    await asyncio.sleep(chance.uniform(0, 0.01))
                    raise _Cancelled
            except _Cancelled:
                self.note("undone")
            await asyncio.sleep(0.002)

    async def _send(self, sqs: SQS, seed: int) -> None:
        number = 0
        while not self.is_over:
            number += 1
            key = f"{seed}.{number}"
            try:
                sqs.queue("jobs").send(key)
            except SQSQLiteError:
                self.note("refused")
            else:
                self.note("acknowledged", key)
            await asyncio.sleep(0.001)

    def judge(self) -> list[str]:
        acknowledged = Counter(words[0] for words in self.notes("acknowledged"))
        with sqsqlite.connect(self.path()) as sqs:
            found = Counter(message.body for message in drained(sqs.queue("jobs")))
        lost = acknowledged - found
        faults = [f"{lost.total():,} acknowledged and lost"] if lost else []
        return [*faults, *(["a message that was rolled back was sent"] if found["never"] else [])]
