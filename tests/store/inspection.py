# SPDX-License-Identifier: Apache-2.0
"""Checks of a file from outside: it is sound, and its counts equal its rows."""

from typing import Any

import sqsqlite

_COUNTED = """
SELECT
    q.name,
    count(l.id),
    coalesce(sum(l.visible_at > 0 AND l.token IS NOT NULL), 0),
    coalesce(sum(l.visible_at > 0 AND l.token IS NULL), 0)
FROM sqs_queues AS q
LEFT JOIN sqs_leases AS l ON l.epoch_id = q.epoch_id
GROUP BY q.name ORDER BY q.name
"""
_KEPT = """
SELECT q.name, c.messages, c.in_flight, c.delayed
FROM sqs_queues AS q JOIN sqs_queue_counts AS c ON c.epoch_id = q.epoch_id
ORDER BY q.name
"""
_STRAYS = """
SELECT
    (SELECT count(*) FROM sqs_messages WHERE id NOT IN (SELECT id FROM sqs_leases)),
    (SELECT count(*) FROM sqs_leases WHERE id NOT IN (SELECT id FROM sqs_messages))
"""


def rows(sqs: sqsqlite.SQS, statement: str) -> list[tuple[Any, ...]]:
    """The rows that a statement finds, read by a connection that cannot write."""
    with sqs.read_engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(statement)]


def assert_whole(sqs: sqsqlite.SQS) -> None:
    """SQLite finds the file sound, kept counts equal counted rows, and messages and leases match one to one."""
    assert rows(sqs, "PRAGMA integrity_check") == [("ok",)]
    assert rows(sqs, _STRAYS) == [(0, 0)]
    assert rows(sqs, _KEPT) == rows(sqs, _COUNTED)


def bodies(queue: sqsqlite.Queue) -> list[str]:
    """The bodies of all visible messages. Receives them (for 12 hours) and deletes them."""
    found = []
    while messages := queue.receive(10, wait=0, visibility_timeout=43_200):
        for message in messages:
            found.append(message.body)
            message.delete()
    return found
