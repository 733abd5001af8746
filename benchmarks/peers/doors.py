# SPDX-License-Identifier: Apache-2.0
"""SQSQLite's doors as contestants: the client (the promises are about it), the Queue object, and boto3 in process."""

from pathlib import Path
from typing import Any

import sqsqlite
from sqsqlite.store.transaction import write_counts
from sqsqlite.store.turns import ThreadHolder

BUSY_TIMEOUT = 60.0


class Client:
    """`sqsqlite.client`, called as boto3 is. One for all threads of a process."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._client: Any = self._open(path, synchronous)
        self._url: str = self._client.create_queue(QueueName="orders")["QueueUrl"]

    @staticmethod
    def _open(path: Path, synchronous: str) -> Any:
        return sqsqlite.client(path, synchronous=synchronous, busy_timeout=BUSY_TIMEOUT)

    def close(self) -> None:
        self._client.close()

    def send(self, body: str) -> None:
        self._client.send_message(QueueUrl=self._url, MessageBody=body)

    def send_ten(self, bodies: list[str]) -> None:
        entries = [{"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies)]
        answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        assert len(answer["Successful"]) == len(bodies), answer

    def receive_and_delete(self) -> str:
        [message] = self._client.receive_message(QueueUrl=self._url)["Messages"]
        self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
        body: str = message["Body"]
        return body

    def receive_and_delete_ten(self) -> list[str]:
        messages = self._client.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10)["Messages"]
        entries = [
            {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
            for place, message in enumerate(messages)
        ]
        answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
        assert len(answer["Successful"]) == len(messages), answer
        return [message["Body"] for message in messages]


class Queue:
    """`sqsqlite.connect(...).create_queue(...)`. Its messages have all their attributes, the client's only bodies.

    It has no batch delete of its own: ten messages are deleted in one transaction of the caller's.
    """

    def __init__(self, path: Path, synchronous: str) -> None:
        self._sqs = sqsqlite.connect(path, synchronous=synchronous, busy_timeout=BUSY_TIMEOUT)
        self._queue = self._sqs.create_queue("orders")

    def close(self) -> None:
        self._sqs.close()

    def send(self, body: str) -> None:
        self._queue.send(body)

    def send_ten(self, bodies: list[str]) -> None:
        self._queue.send_many(bodies)

    def receive_and_delete(self) -> str:
        [message] = self._queue.receive()
        message.delete()
        body: str = message.body
        return body

    def receive_and_delete_ten(self) -> list[str]:
        messages = self._queue.receive(10)
        with self._sqs.transaction():
            for message in messages:
                message.delete()
        return [message.body for message in messages]


class Fifo(Client):
    """The client on a FIFO queue: messages of 100 groups in rotation, each with a deduplication id of its own."""

    GROUPS = 100

    def __init__(self, path: Path, synchronous: str) -> None:
        self._client = self._open(path, synchronous)
        attributes = {"FifoQueue": "true"}
        created = self._client.create_queue(QueueName="orders.fifo", Attributes=attributes)
        self._url = created["QueueUrl"]

    def send(self, body: str) -> None:
        self._client.send_message(QueueUrl=self._url, MessageBody=body, **self._identifiers(body))

    def send_ten(self, bodies: list[str]) -> None:
        entries = [
            {"Id": str(place), "MessageBody": body, **self._identifiers(body)}
            for place, body in enumerate(bodies)
        ]
        answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        assert len(answer["Successful"]) == len(bodies), answer

    def _identifiers(self, body: str) -> dict[str, str]:
        number = body[:10]
        return {
            "MessageGroupId": f"group-{int(number) % self.GROUPS}",
            "MessageDeduplicationId": number,
        }


class FifoSingles(Fifo):
    """Each message in a group of its own: every send makes a group, every delete ends one."""

    GROUPS = 10**10


class Boto3(Client):
    """A real boto3 client that `sqsqlite.boto` answers in process."""

    @staticmethod
    def _open(path: Path, synchronous: str) -> Any:
        from sqsqlite import boto

        return boto.client(path, synchronous=synchronous, busy_timeout=BUSY_TIMEOUT)


class Ungrouped(Client):
    """The client without group commit: a turn, a transaction and a commit for each operation alone."""

    def __init__(self, path: Path, synchronous: str) -> None:
        super().__init__(path, synchronous)
        store = self._client._store
        store._group_commit = _NoGroups(store)


class _NoGroups:
    """`sqsqlite.store.commit.GroupCommit` without threads that share a commit, and without errors."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def run(self, operation: Any, *arguments: Any) -> Any:
        store = self._store
        holder = ThreadHolder()
        store.turnstile.take(holder, store.busy_timeout)
        try:
            connection = store.writers.take()
            tx = store.begin(connection, store.busy_timeout)
            result = operation(tx, *arguments)
            store.drain_empty_receives(tx)
            write_counts(tx)
            connection.execute("COMMIT")
            store.writers.give_back(connection)
        finally:
            store.turnstile.leave(holder)
        store.committed(tx)
        return result
