# SPDX-License-Identifier: Apache-2.0
"""Other queues on SQLite, each used as its documentation shows, in WAL, at the given `synchronous` level.

They differ in the guarantees for a received message: `leaves_out` in contestants.py says how, and the tables show it. A
peer without a call for ten messages makes ten calls. `tidy` removes a peer's remains of finished messages, outside the
clock, so that old messages do not slow it down.
"""

import sqlite3
from pathlib import Path
from typing import Any

BUSY_TIMEOUT = 60.0


def _set_level(connection: Any, synchronous: str) -> None:
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    found = connection.execute("PRAGMA synchronous").fetchone()[0]
    expected = {"NORMAL": 1, "FULL": 2}[synchronous]
    if found != expected:
        raise AssertionError(f"synchronous is {found}, not {synchronous}")


class OneByOne:
    """Ten messages are ten calls."""

    sqlite_version = sqlite3.sqlite_version

    def send(self, body: str) -> None:
        raise NotImplementedError

    def receive_and_delete(self) -> str:
        raise NotImplementedError

    def send_ten(self, bodies: list[str]) -> None:
        for body in bodies:
            self.send(body)

    def receive_and_delete_ten(self) -> list[str]:
        return [self.receive_and_delete() for _ in range(10)]


class LiteQueue(OneByOne):
    def __init__(self, path: Path, synchronous: str) -> None:
        import litequeue

        self._queue = litequeue.LiteQueue(path, timeout=BUSY_TIMEOUT)
        _set_level(self._queue.conn, synchronous)

    def close(self) -> None:
        self._queue.close()

    def tidy(self) -> None:
        self._queue.prune()

    def send(self, body: str) -> None:
        self._queue.put(body)

    def send_ten(self, bodies: list[str]) -> None:
        with self._queue.transaction(mode="IMMEDIATE"):
            for body in bodies:
                self._queue.put(body)

    def receive_and_delete(self) -> str:
        message = self._queue.pop()
        self._queue.done(message.message_id)
        body: str = message.data
        return body

    def receive_and_delete_ten(self) -> list[str]:
        # pop() is a transaction of its own, and done() need not be one.
        messages = [self._queue.pop() for _ in range(10)]
        with self._queue.transaction(mode="IMMEDIATE"):
            for message in messages:
                self._queue.done(message.message_id)
        return [message.data for message in messages]


class PersistQueue(OneByOne):
    def __init__(self, path: Path, synchronous: str) -> None:
        import persistqueue

        self._queue = persistqueue.SQLiteAckQueue(
            str(path.parent), db_file_name=path.name, multithreading=True, timeout=BUSY_TIMEOUT
        )
        # Two connections: one puts and marks, one gets.
        _set_level(self._queue._putter, synchronous)
        _set_level(self._queue._getter, synchronous)

    def close(self) -> None:
        self._queue.close()

    def tidy(self) -> None:
        self._queue.clear_acked_data(max_delete=1_000_000, keep_latest=0)

    def send(self, body: str) -> None:
        self._queue.put(body)

    def receive_and_delete(self) -> str:
        found = self._queue.get(block=False, raw=True)
        self._queue.ack(id=found["pqid"])
        body: str = found["data"]
        return body


class Huey(OneByOne):
    """The storage beneath huey's tasks. The body replaces what huey would pickle."""

    def __init__(self, path: Path, synchronous: str) -> None:
        from huey.storage import SqliteStorage

        self._storage = SqliteStorage(filename=str(path), timeout=BUSY_TIMEOUT)
        _set_level(self._storage.conn, synchronous)

    def close(self) -> None:
        self._storage.close()

    def send(self, body: str) -> None:
        self._storage.enqueue(body.encode())

    def receive_and_delete(self) -> str:
        body: bytes = self._storage.dequeue()
        return body.decode()


class Honker:
    def __init__(self, path: Path, synchronous: str) -> None:
        import honker

        if synchronous != "NORMAL":
            raise ValueError(f"honker has no {synchronous}")
        self._database = honker.open(str(path))
        self._queue = self._database.queue("orders")
        self.sqlite_version: str = self._database.query("SELECT sqlite_version() AS version")[0]["version"]

    def close(self) -> None:
        self._database.close()

    def send(self, body: str) -> None:
        self._queue.enqueue(body)

    def send_ten(self, bodies: list[str]) -> None:
        with self._database.transaction() as transaction:
            for body in bodies:
                self._queue.enqueue(body, tx=transaction)

    def receive_and_delete(self) -> str:
        job = self._queue.claim_one("worker")
        job.ack()
        body: str = job.payload
        return body

    def receive_and_delete_ten(self) -> list[str]:
        jobs = self._queue.claim_batch("worker", 10)
        self._queue.ack_batch([job.id for job in jobs], "worker")
        return [job.payload for job in jobs]


class Kombu(OneByOne):
    """kombu's SQLAlchemy transport.

    It leaves the journal mode to SQLite; the benchmark sets WAL, to kombu's advantage.
    """

    def __init__(self, path: Path, synchronous: str) -> None:
        from kombu import Connection
        from sqlalchemy import Engine, event

        @event.listens_for(Engine, "connect")
        def set_up(connection: Any, _: object) -> None:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            _set_level(connection, synchronous)

        self._connection = Connection(f"sqla+sqlite:///{path}")
        self._queue = self._connection.SimpleQueue("orders")

    def close(self) -> None:
        self._queue.close()
        self._connection.close()

    def tidy(self) -> None:
        self._queue.clear()

    def send(self, body: str) -> None:
        self._queue.put(body)

    def receive_and_delete(self) -> str:
        message = self._queue.get(block=False)
        message.ack()
        body: str = message.payload
        return body
