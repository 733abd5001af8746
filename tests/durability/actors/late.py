# SPDX-License-Identifier: Apache-2.0
"""Slow workers with short timeouts: each message's row is written once, however late a worker is."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

import sqsqlite
from sqsqlite import SQS, Message, Queue
from sqsqlite.errors import LeaseLost
from tests.durability.actors.actor import Actor, differences

THREADS = 6
VISIBILITY_TIMEOUT = 1  # s
BACKLOG = 200
SLOWEST = 2.0  # s
INSERT = "INSERT INTO done (message_id, manner) VALUES (?, ?)"


class Late(Actor):
    """Producers and workers on a standard and a FIFO queue; a row with each delete, and a second queue for some."""

    name = "late"
    processes = 4

    def prepare(self) -> None:
        with sqsqlite.connect(self.path()) as sqs:
            sqs.create_queue("work", visibility_timeout=VISIBILITY_TIMEOUT)
            sqs.create_queue("work.fifo", fifo=True, visibility_timeout=VISIBILITY_TIMEOUT)
            sqs.create_queue("next")
            with sqs.transaction() as connection:
                connection.execute("CREATE TABLE sent (message_id TEXT PRIMARY KEY)")
                connection.execute("CREATE TABLE done (message_id TEXT NOT NULL, manner TEXT NOT NULL)")

    def work(self, seed: int) -> None:
        compat = "aws" if seed % 3 == 0 else "docs"
        with sqsqlite.connect(self.path(), compat=compat, busy_timeout=600) as sqs:
            failed: list[BaseException] = []
            threads = [
                threading.Thread(target=self._guarded, args=(sqs, random.Random(f"{seed}.{place}"), failed))
                for place in range(THREADS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if failed:
                raise failed[0]

    def _guarded(self, sqs: SQS, chance: random.Random, failed: list[BaseException]) -> None:
        try:
            while not self.is_over and not failed:
                self._send(sqs, chance)
                self._work_once(sqs, chance)
        except BaseException as error:  # noqa: BLE001 - raised again by the main thread
            failed.append(error)

    def _send(self, sqs: SQS, chance: random.Random) -> None:
        queue = sqs.queue(chance.choice(("work", "work", "work.fifo")))
        if len(queue) > BACKLOG:
            return
        with sqs.transaction() as connection:
            for number in range(chance.choice((1, 5, 10))):
                fifo = {"group_id": f"g{number % 7}", "deduplication_id": f"{chance.getrandbits(64)}"}
                sent = queue.send("work", **fifo if queue.name.endswith(".fifo") else {})
                connection.execute("INSERT INTO sent (message_id) VALUES (?)", (sent.message_id,))

    def _work_once(self, sqs: SQS, chance: random.Random) -> None:
        queue = sqs.queue(chance.choice(("work", "work", "work.fifo")))
        messages = queue.receive(chance.randint(1, 10), wait=1)
        for message in messages:
            self.note("received", message.message_id)
        if chance.random() < 0.4:
            time.sleep(chance.uniform(0, SLOWEST))
        manner = chance.choice(MANNERS)
        for some in [messages] if manner in TOGETHER else [[message] for message in messages]:
            if not some:
                continue
            try:
                manner(sqs, queue, some)
            except LeaseLost as error:
                self.note("late", error.reason, manner.__name__)
            if chance.random() < 0.2:
                time.sleep(chance.uniform(0, SLOWEST) / 4)

    def judge(self) -> list[str]:
        with sqsqlite.connect(self.path()) as sqs:
            for name in ("work", "work.fifo"):
                queue = sqs.queue(name)
                while len(queue):
                    for message in queue.receive(10, wait=1, visibility_timeout=600):
                        delete(sqs, queue, [message])
            with sqs.transaction() as connection:
                sent = Counter(row[0] for row in connection.execute("SELECT message_id FROM sent").fetchall())
                rows = connection.execute("SELECT message_id, manner FROM done").fetchall()
            passed_on = Counter(one.body for one in drained(sqs.queue("next")))
        done = Counter(row[0] for row in rows)
        expected = Counter(message_id for message_id, manner in rows if manner == "pipeline")
        self.totals = {"messages": sent.total(), "rows": done.total(), "passed on": passed_on.total()}
        return [*differences("rows", sent, done), *differences("passed on", expected, passed_on)]

    def figures(self) -> Counter[str]:
        return super().figures() + Counter(self.totals)


def drained(queue: Queue) -> list[Message]:
    """Receive and delete all messages."""
    found: list[Message] = []
    while messages := queue.receive(10, wait=0, visibility_timeout=600):
        found += messages
        queue.delete_many(messages)
    return found


def _insert(connection: Any, messages: Sequence[Message], manner: str) -> None:
    connection.executemany(INSERT, [(message.message_id, manner) for message in messages])


def delete(sqs: SQS, queue: Queue, messages: Sequence[Message]) -> None:
    with sqs.transaction() as connection:
        _insert(connection, messages, "delete")
        messages[0].delete()


def hold_and_delete(sqs: SQS, queue: Queue, messages: Sequence[Message]) -> None:
    with sqs.transaction():
        messages[0].change_visibility(2)
    time.sleep(0.1)
    with sqs.transaction() as connection:
        messages[0].delete()
        _insert(connection, messages, "hold and delete")


def client_delete(sqs: SQS, queue: Queue, messages: Sequence[Message]) -> None:
    with sqs.transaction() as connection:
        _insert(connection, messages, "client")
        sqs.client.delete_message(QueueUrl=queue.url, ReceiptHandle=messages[0].receipt_handle)


def pipeline(sqs: SQS, queue: Queue, messages: Sequence[Message]) -> None:
    with sqs.transaction() as connection:
        sqs.queue("next").send(messages[0].message_id)
        _insert(connection, messages, "pipeline")
        messages[0].delete()


def by_session(sqs: SQS, queue: Queue, messages: Sequence[Message]) -> None:
    with Session(sqs.engine) as session, session.begin():
        session.execute(
            text("INSERT INTO done (message_id, manner) VALUES (:id, 'session')"),
            {"id": messages[0].message_id},
        )
        messages[0].delete(connection=session)


def batch(sqs: SQS, queue: Queue, messages: Sequence[Message]) -> None:
    """The answer is ignored: one late message makes the whole block fail."""
    with sqs.transaction() as connection:
        _insert(connection, messages, "batch")
        _delete_batch(sqs, queue, messages)


def batch_looked_at(sqs: SQS, queue: Queue, messages: Sequence[Message]) -> None:
    with sqs.transaction() as connection:
        answer = _delete_batch(sqs, queue, messages)
        sqs.accept_unsettled()
        deleted = {entry["Id"] for entry in answer.get("Successful", ())}
        _insert(
            connection,
            [message for number, message in enumerate(messages) if str(number) in deleted],
            "looked at",
        )


def _delete_batch(sqs: SQS, queue: Queue, messages: Sequence[Message]) -> Any:
    entries = [
        {"Id": str(number), "ReceiptHandle": one.receipt_handle} for number, one in enumerate(messages)
    ]
    return sqs.client.delete_message_batch(QueueUrl=queue.url, Entries=entries)


def delete_many(sqs: SQS, queue: Queue, messages: Sequence[Message]) -> None:
    with sqs.transaction() as connection:
        _insert(connection, messages, "many")
        queue.delete_many(messages)


Manner = Callable[[SQS, Queue, Sequence[Message]], None]
TOGETHER: tuple[Manner, ...] = (batch, batch_looked_at, delete_many)
MANNERS: tuple[Manner, ...] = (
    delete,
    hold_and_delete,
    client_delete,
    pipeline,
    by_session,
    *TOGETHER,
)
