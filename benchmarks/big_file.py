# SPDX-License-Identifier: Apache-2.0
"""Files with a million messages in seconds: SQL writes the rows that the engine would have written.

A first message is sent the ordinary way; the others are copies of its rows, each with an id of its own. The counts
are brought in step.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import sqsqlite
from sqsqlite import ManualClock

# Rows a transaction, few enough to keep the WAL small.
CHUNK = 100_000

_COPY_MESSAGES = """
INSERT INTO sqs_messages (message_id, body_md5, sender_id, body)
WITH RECURSIVE copies (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < :count)
SELECT randomblob(16), m.body_md5, m.sender_id, m.body
FROM copies
CROSS JOIN (SELECT body_md5, sender_id, body FROM sqs_messages WHERE id = :first_id) AS m
"""
_COPY_LEASES = """
INSERT INTO sqs_leases (
    id, epoch_id, turn, sent_at, size_bytes, visible_at, receive_count, queue_receive_count, token, received_at,
    first_received_at
)
SELECT
    m.id, l.epoch_id, l.turn, l.sent_at + :sent_ms, l.size_bytes,
    CASE WHEN :in_flight_ms <> 0 THEN l.sent_at + :in_flight_ms ELSE 0 END,
    :in_flight_ms <> 0, :in_flight_ms <> 0,
    CASE WHEN :in_flight_ms <> 0 THEN randomblob(12) END,
    CASE WHEN :in_flight_ms <> 0 THEN l.sent_at END, CASE WHEN :in_flight_ms <> 0 THEN l.sent_at END
FROM sqs_messages AS m
CROSS JOIN (SELECT epoch_id, turn, sent_at, size_bytes FROM sqs_leases WHERE id = :first_id) AS l
WHERE m.id > :last_id
"""
_ADD_COUNTS = """
UPDATE sqs_queue_counts
SET messages = messages + :count, in_flight = in_flight + CASE WHEN :in_flight_ms <> 0 THEN :count ELSE 0 END
WHERE epoch_id = (SELECT epoch_id FROM sqs_leases WHERE id = :first_id)
"""


# The copies replace it.
_TAKE_FIRST_FROM_COUNTS = """
UPDATE sqs_queue_counts SET messages = messages - 1
WHERE epoch_id = (SELECT epoch_id FROM sqs_leases WHERE id = :first_id)
"""
_DELETE_FIRST_LEASE = "DELETE FROM sqs_leases WHERE id = :first_id"
_DELETE_FIRST_MESSAGE = "DELETE FROM sqs_messages WHERE id = :first_id"

# A dead message was received before. Except for its count and its first receive, its rows are as if it had not been.
_MARK_RECEIVED = "UPDATE sqs_leases SET receive_count = 1, first_received_at = sent_at"
_INSERT_DEAD_LETTERS = """
INSERT INTO sqs_dead_letters (id, epoch_id, source_queue_id, source_arn, receive_count, moved_at)
SELECT l.id, l.epoch_id, q.id, :source_arn, l.receive_count, l.sent_at
FROM (SELECT id FROM sqs_queues WHERE name = 'orders') AS q
CROSS JOIN sqs_leases AS l
"""
_MARK_DEAD_LETTERS = "UPDATE sqs_queues SET holds_dead_letters = 1 WHERE name = 'dead'"


@dataclass(frozen=True)
class Fill:
    """Messages of one kind, and their number.

    Attributes:
        sent_ms: when they were sent, in milliseconds from the file's making.
        in_flight_ms: when their visibility timeout ends, likewise; 0: they were never received.
    """

    count: int
    sent_ms: int = 0
    in_flight_ms: int = 0


def make(
    path: Path,
    *fills: Fill,
    name: str = "orders",
    age_ms: int = 0,
    retention_seconds: int = 345_600,
    body_bytes: int = 200,
) -> None:
    """Create a file with a queue and these messages in it, as if it had been created `age_ms` ago."""
    clock = ManualClock(time.time_ns() // 1_000_000 - age_ms)
    with sqsqlite.connect(path, synchronous="OFF", clock=clock) as sqs:
        queue = sqs.create_queue(name, message_retention_period=retention_seconds)
        queue.send("x" * body_bytes)
        first = {"first_id": 1}
        for fill in fills:
            for done in range(0, fill.count, CHUNK):
                with sqs.transaction() as connection:
                    row = {
                        **first,
                        "count": min(CHUNK, fill.count - done),
                        "sent_ms": fill.sent_ms,
                        "in_flight_ms": fill.in_flight_ms,
                        "last_id": connection.execute("SELECT max(id) FROM sqs_messages").fetchone()[0],
                    }
                    for statement in (_COPY_MESSAGES, _COPY_LEASES, _ADD_COUNTS):
                        connection.execute(statement, row)
        with sqs.transaction() as connection:
            for statement in (_TAKE_FIRST_FROM_COUNTS, _DELETE_FIRST_LEASE, _DELETE_FIRST_MESSAGE):
                connection.execute(statement, first)
        expected = sum(fill.count for fill in fills)
        if len(queue) != expected:
            raise AssertionError(f"{len(queue)} messages in {path}, not {expected}")


def make_dead_letters(path: Path, count: int) -> None:
    """Create a file with the queue `orders` and, in its dead-letter queue `dead`, messages that came from it."""
    make(path, Fill(count), name="dead")
    with sqsqlite.connect(path, synchronous="OFF") as sqs:
        orders = sqs.create_queue("orders", dead_letter_queue="dead", max_receive_count=1)
        with sqs.transaction() as connection:
            connection.execute(_MARK_RECEIVED)
            connection.execute(_INSERT_DEAD_LETTERS, {"source_arn": orders.arn})
            connection.execute(_MARK_DEAD_LETTERS)
