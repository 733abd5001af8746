# SPDX-License-Identifier: Apache-2.0
"""The two measures for every comparison: plain SQL, on the driver and with the settings that SQSQLite uses.

*bare* is the least a queue with leases can do: a table of bodies, a table of leases, one index, one transaction an
operation. A received message is hidden for 30 s, counted, and gets a random token; a delete compares the token. It
looks up no queue, checks no input, computes no digest and counts nothing.

*full* is bare, and what SQSQLite's design stores and looks up in addition: a 16-byte message id, the body's MD5, the
queue found by its name in each transaction, one row of counts and activity, an index by age, ids that are never used
again (AUTOINCREMENT). It still checks no input and builds no answer.

Both open the file in WAL with SQLite's own defaults otherwise (page size 4096, a checkpoint by the commit that brings
the WAL to 1,000 pages). Ten messages are one transaction, and one statement where SQL allows it.
"""

import os
import time
from hashlib import md5
from pathlib import Path
from typing import Any

from sqsqlite.store.driver import dbapi

TIMEOUT_MS = 30_000
BUSY_TIMEOUT = 60.0  # Seconds. So long that a starved writer shows as a long wait and not as an error.


def connect(path: Path, synchronous: str) -> Any:
    connection = dbapi.connect(
        str(path), isolation_level=None, check_same_thread=False, cached_statements=256, timeout=BUSY_TIMEOUT
    )
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return connection


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Bare:
    """One connection to a bare queue. For one thread at a time."""

    TABLES = """
        CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
        CREATE TABLE IF NOT EXISTS leases (
            id INTEGER PRIMARY KEY, queue_id INT NOT NULL, visible_at INT NOT NULL,
            receive_count INT NOT NULL DEFAULT 0, token BLOB
        ) STRICT;
        CREATE INDEX IF NOT EXISTS leases_by_visibility ON leases (queue_id, visible_at, id);
    """
    INSERT_MESSAGE = "INSERT INTO messages (body) VALUES (?)"
    INSERT_MESSAGE_AT = "INSERT INTO messages (id, body) VALUES (?, ?)"
    INSERT_LEASE = "INSERT INTO leases (id, queue_id, visible_at) VALUES (?, 1, ?)"
    CLAIM = """
        UPDATE leases SET visible_at = ?, receive_count = receive_count + 1, token = randomblob(12)
        WHERE id IN (
            SELECT id FROM leases WHERE queue_id = 1 AND visible_at <= ? ORDER BY visible_at, id LIMIT ?
        )
        RETURNING id, token, receive_count
    """
    SELECT_BODY = "SELECT id, body FROM messages WHERE id = ?"
    SELECT_BODIES = "SELECT id, body FROM messages WHERE id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    DELETE_LEASE = "DELETE FROM leases WHERE id = ? AND token = ?"
    DELETE_MESSAGE = "DELETE FROM messages WHERE id = ?"

    def __init__(self, path: Path, synchronous: str) -> None:
        self._connection = connect(path, synchronous)
        self._execute = self._connection.execute
        self._connection.executescript(self.TABLES)

    def close(self) -> None:
        self._connection.close()

    def send(self, body: str) -> None:
        execute = self._execute
        execute("BEGIN IMMEDIATE")
        row_id = execute(self.INSERT_MESSAGE, (body,)).lastrowid
        execute(self.INSERT_LEASE, (row_id, _now_ms()))
        execute("COMMIT")

    def send_ten(self, bodies: list[str]) -> None:
        now_ms = _now_ms()
        self._execute("BEGIN IMMEDIATE")
        first = self._execute(self.INSERT_MESSAGE, (bodies[0],)).lastrowid
        self._connection.executemany(self.INSERT_MESSAGE_AT, list(enumerate(bodies[1:], first + 1)))
        ids = range(first, first + len(bodies))
        self._connection.executemany(self.INSERT_LEASE, [(row_id, now_ms) for row_id in ids])
        self._execute("COMMIT")

    def receive_and_delete(self) -> str:
        [(row_id, token, body)] = self.receive(1)
        self.delete([(row_id, token)])
        return body

    def receive_and_delete_ten(self) -> list[str]:
        received = self.receive(10)
        self.delete([(row_id, token) for row_id, token, _ in received])
        return [body for _, _, body in received]

    def receive(self, max_messages: int) -> list[tuple[int, bytes, str]]:
        execute = self._execute
        now_ms = _now_ms()
        execute("BEGIN IMMEDIATE")
        claims = execute(self.CLAIM, (now_ms + TIMEOUT_MS, now_ms, max_messages)).fetchall()
        if len(claims) == 1:
            bodies = dict([execute(self.SELECT_BODY, (claims[0][0],)).fetchone()])
        else:
            ids = [claim[0] for claim in claims]
            bodies = dict(execute(self.SELECT_BODIES, ids + ids[:1] * (10 - len(ids))).fetchall())
        execute("COMMIT")
        return [(claim[0], claim[1], bodies[claim[0]]) for claim in claims]

    def delete(self, receipts: list[tuple[int, bytes]]) -> None:
        self._execute("BEGIN IMMEDIATE")
        if len(receipts) == 1:
            self._execute(self.DELETE_LEASE, receipts[0])
            self._execute(self.DELETE_MESSAGE, receipts[0][:1])
        else:
            self._connection.executemany(self.DELETE_LEASE, receipts)
            self._connection.executemany(self.DELETE_MESSAGE, [(row_id,) for row_id, _ in receipts])
        self._execute("COMMIT")


class Full:
    """One connection to a full queue. For one thread at a time."""

    TABLES = """
        CREATE TABLE IF NOT EXISTS queues (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
        CREATE TABLE IF NOT EXISTS messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT, message_id BLOB NOT NULL, body_md5 BLOB NOT NULL, body TEXT NOT NULL
        ) STRICT;
        CREATE TABLE IF NOT EXISTS leases (
            id INTEGER PRIMARY KEY, queue_id INT NOT NULL, sent_at INT NOT NULL, visible_at INT NOT NULL,
            receive_count INT NOT NULL DEFAULT 0, token BLOB, first_received_at INT
        ) STRICT;
        CREATE INDEX IF NOT EXISTS leases_by_visibility ON leases (queue_id, visible_at, id);
        CREATE INDEX IF NOT EXISTS leases_by_age ON leases (queue_id, sent_at);
        CREATE TABLE IF NOT EXISTS counts (
            queue_id INTEGER PRIMARY KEY, messages INT NOT NULL DEFAULT 0, in_flight INT NOT NULL DEFAULT 0,
            sent INT NOT NULL DEFAULT 0, received INT NOT NULL DEFAULT 0, deleted INT NOT NULL DEFAULT 0,
            sent_bytes INT NOT NULL DEFAULT 0
        ) STRICT;
        INSERT OR IGNORE INTO queues (id, name) VALUES (1, 'orders');
        INSERT OR IGNORE INTO counts (queue_id) VALUES (1);
    """
    FIND_QUEUE = "SELECT id FROM queues WHERE name = ?"
    INSERT_MESSAGE = "INSERT INTO messages (message_id, body_md5, body) VALUES (?, ?, ?)"
    INSERT_MESSAGE_AT = "INSERT INTO messages (id, message_id, body_md5, body) VALUES (?, ?, ?, ?)"
    INSERT_LEASE = "INSERT INTO leases (id, queue_id, sent_at, visible_at) VALUES (?, ?, ?, ?)"
    CLAIM = """
        UPDATE leases
        SET visible_at = ?, receive_count = receive_count + 1, token = randomblob(12),
            first_received_at = coalesce(first_received_at, ?)
        WHERE id IN (
            SELECT id FROM leases WHERE queue_id = ? AND visible_at <= ? ORDER BY visible_at, id LIMIT ?
        )
        RETURNING id, token, receive_count, sent_at, first_received_at
    """
    SELECT_MESSAGE = "SELECT id, message_id, body_md5, body FROM messages WHERE id = ?"
    SELECT_MESSAGES = (
        "SELECT id, message_id, body_md5, body FROM messages WHERE id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    DELETE_LEASE = "DELETE FROM leases WHERE id = ? AND queue_id = ? AND token = ?"
    DELETE_MESSAGE = "DELETE FROM messages WHERE id = ?"
    COUNT = """
        UPDATE counts SET messages = messages + ?, in_flight = in_flight + ?, sent = sent + ?,
            received = received + ?, deleted = deleted + ?, sent_bytes = sent_bytes + ?
        WHERE queue_id = ?
    """

    def __init__(self, path: Path, synchronous: str) -> None:
        self._connection = connect(path, synchronous)
        self._execute = self._connection.execute
        self._connection.executescript(self.TABLES)

    def close(self) -> None:
        self._connection.close()

    def _begin(self) -> int:
        self._execute("BEGIN IMMEDIATE")
        queue_id: int = self._execute(self.FIND_QUEUE, ("orders",)).fetchone()[0]
        return queue_id

    def send(self, body: str) -> None:
        execute = self._execute
        encoded = body.encode()
        queue_id = self._begin()
        now_ms = _now_ms()
        row = (os.urandom(16), md5(encoded, usedforsecurity=False).digest(), body)
        row_id = execute(self.INSERT_MESSAGE, row).lastrowid
        execute(self.INSERT_LEASE, (row_id, queue_id, now_ms, now_ms))
        execute(self.COUNT, (1, 0, 1, 0, 0, len(encoded), queue_id))
        execute("COMMIT")

    def send_ten(self, bodies: list[str]) -> None:
        queue_id = self._begin()
        now_ms = _now_ms()
        rows = []
        size_bytes = 0
        for body in bodies:
            encoded = body.encode()
            size_bytes += len(encoded)
            rows.append((os.urandom(16), md5(encoded, usedforsecurity=False).digest(), body))
        first = self._execute(self.INSERT_MESSAGE, rows[0]).lastrowid
        rest = [(row_id, *row) for row_id, row in enumerate(rows[1:], first + 1)]
        self._connection.executemany(self.INSERT_MESSAGE_AT, rest)
        leases = [(row_id, queue_id, now_ms, now_ms) for row_id in range(first, first + len(rows))]
        self._connection.executemany(self.INSERT_LEASE, leases)
        self._execute(self.COUNT, (len(rows), 0, len(rows), 0, 0, size_bytes, queue_id))
        self._execute("COMMIT")

    def receive_and_delete(self) -> str:
        [(row_id, token, body)] = self.receive(1)
        self.delete([(row_id, token)])
        return body

    def receive_and_delete_ten(self) -> list[str]:
        received = self.receive(10)
        self.delete([(row_id, token) for row_id, token, _ in received])
        return [body for _, _, body in received]

    def receive(self, max_messages: int) -> list[tuple[int, bytes, str]]:
        execute = self._execute
        queue_id = self._begin()
        now_ms = _now_ms()
        row = (now_ms + TIMEOUT_MS, now_ms, queue_id, now_ms, max_messages)
        claims = execute(self.CLAIM, row).fetchall()
        if len(claims) == 1:
            messages = {claims[0][0]: execute(self.SELECT_MESSAGE, (claims[0][0],)).fetchone()}
        else:
            ids = [claim[0] for claim in claims]
            found = execute(self.SELECT_MESSAGES, ids + ids[:1] * (10 - len(ids))).fetchall()
            messages = {message[0]: message for message in found}
        execute(self.COUNT, (0, len(claims), 0, len(claims), 0, 0, queue_id))
        execute("COMMIT")
        return [(claim[0], claim[1], messages[claim[0]][3]) for claim in claims]

    def delete(self, receipts: list[tuple[int, bytes]]) -> None:
        queue_id = self._begin()
        if len(receipts) == 1:
            [(row_id, token)] = receipts
            self._execute(self.DELETE_LEASE, (row_id, queue_id, token))
            self._execute(self.DELETE_MESSAGE, (row_id,))
        else:
            leases = [(row_id, queue_id, token) for row_id, token in receipts]
            self._connection.executemany(self.DELETE_LEASE, leases)
            self._connection.executemany(self.DELETE_MESSAGE, [(row_id,) for row_id, _ in receipts])
        self._execute(self.COUNT, (-len(receipts), -len(receipts), 0, 0, len(receipts), 0, queue_id))
        self._execute("COMMIT")
