# SPDX-License-Identifier: Apache-2.0
"""Files with a million messages in groups, in seconds: SQL writes the rows that the engine would have written.

As in `big_file.py`, a first message is sent the ordinary way and the others are copies of its rows. They were sent ten
minutes ago: the five minutes of their deduplication are over. Message by message the groups take turns, so that those
of one group lie far apart in the file.
"""

import time
from pathlib import Path
from typing import Any

import sqsqlite
from sqsqlite import ManualClock

# Rows a transaction, few enough to keep the WAL small.
CHUNK = 100_000
AGE_MS = 600_000
# A day: messages sent ten minutes ago are far from expiry.
RETENTION = 86_400

# Message `number`, from 0, is of the group `number` modulo the count of groups.
_COPY_MESSAGES = """
INSERT INTO sqs_messages (message_id, body_md5, sender_id, group_id, body)
WITH RECURSIVE copies (number) AS (
    SELECT :from_number UNION ALL SELECT number + 1 FROM copies WHERE number + 1 < :to_number
)
SELECT randomblob(16), m.body_md5, m.sender_id, :prefix || (number % :groups), m.body
FROM copies
CROSS JOIN (SELECT body_md5, sender_id, body FROM sqs_messages WHERE id = :first_id) AS m
"""
_COPY_FIFO_LEASES = """
INSERT INTO sqs_leases (id, epoch_id, group_key, sent_at, size_bytes, visible_at, deduplication_id)
SELECT m.id, g.epoch_id, g.group_key, l.sent_at, l.size_bytes, 0, 'deduplication-' || m.id
FROM (SELECT epoch_id, sent_at, size_bytes FROM sqs_leases WHERE id = :first_id) AS l
CROSS JOIN sqs_messages AS m
CROSS JOIN sqs_message_groups AS g
WHERE m.id > :last_id AND g.epoch_id = l.epoch_id AND g.group_id = m.group_id
"""
_COPY_TENANTS_LEASES = """
INSERT INTO sqs_leases (id, epoch_id, turn, sent_at, size_bytes, visible_at)
SELECT m.id, l.epoch_id, (:from_number + m.id - :last_id - 1) / :groups, l.sent_at, l.size_bytes, 0
FROM (SELECT epoch_id, sent_at, size_bytes FROM sqs_leases WHERE id = :first_id) AS l
CROSS JOIN sqs_messages AS m
WHERE m.id > :last_id
"""
_INSERT_GROUPS = """
INSERT INTO sqs_message_groups (epoch_id, group_id, head_visible_at)
WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < :groups)
SELECT l.epoch_id, :prefix || number, l.sent_at
FROM numbers
CROSS JOIN (SELECT epoch_id, sent_at FROM sqs_leases WHERE id = :first_id) AS l
"""
_INSERT_TENANTS = """
INSERT INTO sqs_tenants (epoch_id, group_id, last_turn, last_sent_at)
WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < :groups)
SELECT l.epoch_id, :prefix || number, :each - 1, l.sent_at
FROM numbers
CROSS JOIN (SELECT epoch_id, sent_at FROM sqs_leases WHERE id = :first_id) AS l
"""
_ADD_COUNTS = """
UPDATE sqs_queue_counts SET messages = messages + :count
WHERE epoch_id = (SELECT epoch_id FROM sqs_leases WHERE id = :first_id)
"""

# The copies replace it.
_TAKE_FIRST_AWAY = (
    """
    UPDATE sqs_queue_counts SET messages = messages - 1
    WHERE epoch_id = (SELECT epoch_id FROM sqs_leases WHERE id = :first_id)
    """,
    "DELETE FROM sqs_deduplications",
    "DELETE FROM sqs_message_groups WHERE group_id = 'first'",
    "DELETE FROM sqs_tenants WHERE group_id = 'first'",
    "DELETE FROM sqs_leases WHERE id = :first_id",
    "DELETE FROM sqs_messages WHERE id = :first_id",
)


def make_fifo(path: Path, groups: int, each: int, *, ahead: int = 0, body_bytes: int = 200) -> None:
    """Create a file with the queue `orders.fifo`: `groups` groups with an equal number of messages each.

    Args:
        ahead: groups of two messages that are received from before those.
    """
    with _connect(path) as sqs:
        queue = sqs.create_queue("orders.fifo", fifo=True, message_retention_period=RETENTION)
        queue.send("x" * body_bytes, group_id="first", deduplication_id="first")
        if ahead:
            _copy(sqs, _INSERT_GROUPS, _COPY_FIFO_LEASES, "ahead-", ahead, 2)
        _copy(sqs, _INSERT_GROUPS, _COPY_FIFO_LEASES, "group-", groups, each)
        _finish(sqs, queue, 2 * ahead + groups * each)


def make_fair(path: Path, tenants: int, each: int, *, body_bytes: int = 200) -> None:
    """Create a file with the standard queue `orders`, whose tenants have an equal number of messages each."""
    with _connect(path) as sqs:
        queue = sqs.create_queue("orders", message_retention_period=RETENTION)
        queue.send("x" * body_bytes, group_id="first")
        _copy(sqs, _INSERT_TENANTS, _COPY_TENANTS_LEASES, "tenant-", tenants, each)
        _finish(sqs, queue, tenants * each)


def _connect(path: Path) -> sqsqlite.SQS:
    return sqsqlite.connect(path, synchronous="OFF", clock=ManualClock(time.time_ns() // 1_000_000 - AGE_MS))


def _copy(
    sqs: sqsqlite.SQS, insert_groups: str, copy_leases: str, prefix: str, groups: int, each: int
) -> None:
    row: dict[str, Any] = {"first_id": 1, "prefix": prefix, "groups": groups, "each": each}
    with sqs.transaction() as connection:
        connection.execute(insert_groups, row)
    for start in range(0, groups * each, CHUNK):
        end = min(start + CHUNK, groups * each)
        with sqs.transaction() as connection:
            last_id = connection.execute("SELECT max(id) FROM sqs_messages").fetchone()[0]
            row |= {"from_number": start, "to_number": end, "count": end - start, "last_id": last_id}
            for statement in (_COPY_MESSAGES, copy_leases, _ADD_COUNTS):
                connection.execute(statement, row)


def _finish(sqs: sqsqlite.SQS, queue: sqsqlite.Queue, expected: int) -> None:
    with sqs.transaction() as connection:
        for statement in _TAKE_FIRST_AWAY:
            connection.execute(statement, {"first_id": 1} if ":first_id" in statement else {})
    if len(queue) != expected:
        raise AssertionError(f"{len(queue)} messages were made, not {expected}")
