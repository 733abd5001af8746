# SPDX-License-Identifier: Apache-2.0
"""The reports again, in plain SQL on the queue's own tables: no facts, no views, no Spark."""

from sqsqlite.store.connections import uri
from sqsqlite.store.driver import dbapi

MESSAGES = """
WITH m AS (
    SELECT
        q.name AS queue, q.max_receive_count, q.fifo, q.message_retention_period_seconds, l.*, s.group_id,
        substr(lower(hex(s.message_id)), 1, 8) || '-' || substr(lower(hex(s.message_id)), 9, 4) || '-'
            || substr(lower(hex(s.message_id)), 13, 4) || '-' || substr(lower(hex(s.message_id)), 17, 4) || '-'
            || substr(lower(hex(s.message_id)), 21) AS message_id,
        (:now_ms - l.sent_at) / 1000 AS age,
        CASE WHEN l.visible_at <= :now_ms THEN 'visible' WHEN l.token IS NULL THEN 'delayed' ELSE 'in flight' END
            AS state
    FROM sqs_leases AS l
    JOIN sqs_queues AS q ON q.epoch_id = l.epoch_id
    JOIN sqs_messages AS s ON s.id = l.id
    WHERE l.sent_at > :now_ms - 1000 * q.message_retention_period_seconds
)
"""

ACTIVITY = """
WITH a AS (
    SELECT q.name AS queue, q.created_at, b.minute_at, b.sent, b.received, b.deleted, b.empty_receives,
        b.dead_lettered, b.deduplicated, b.sent_bytes
    FROM sqs_queue_activity AS b JOIN sqs_queues AS q ON q.id = b.queue_id
    UNION ALL
    SELECT q.name, q.created_at, c.minute_at, c.sent, c.received, c.deleted, c.empty_receives, c.dead_lettered,
        c.deduplicated, c.sent_bytes
    FROM sqs_queue_counts AS c JOIN sqs_queues AS q ON q.epoch_id = c.epoch_id
)
"""

COUNTS = """
    count(*) AS messages, sum(state = 'visible') AS visible, sum(state = 'in flight') AS in_flight,
    sum(state = 'delayed') AS delayed
"""

ORACLES = {
    "ages": f"""{MESSAGES}, c(low, high) AS (
        VALUES (0, 60), (60, 300), (300, 900), (900, 3600), (3600, 21600), (21600, 86400), (86400, 345600),
            (345600, NULL)
    )
    SELECT queue, low AS from_seconds, high AS to_seconds, {COUNTS}
    FROM m JOIN c ON age >= low AND (high IS NULL OR age < high) GROUP BY queue, low ORDER BY queue, low""",
    "receives": f"""{MESSAGES}
    SELECT queue, receive_count, count(*) AS messages,
        sum(queue_receive_count >= min(3, coalesce(max_receive_count, 3))) AS poison_candidates,
        max(age) AS oldest_age_seconds, max_receive_count
    FROM m WHERE sent_at >= :since GROUP BY queue, receive_count ORDER BY queue, receive_count""",
    "poison": f"""{MESSAGES}
    SELECT queue, message_id, receive_count, max_receive_count, state, age AS age_seconds, group_id
    FROM m WHERE sent_at >= :since AND queue_receive_count >= min(3, coalesce(max_receive_count, 3))
    ORDER BY receive_count DESC, age DESC, queue, message_id LIMIT 20""",
    "dead-letters": f"""{MESSAGES}
    SELECT m.queue, s.name AS source, d.receive_count, count(*) AS messages, max(m.age) AS oldest_age_seconds,
        min(d.moved_at) AS first_moved_at, max(d.moved_at) AS last_moved_at, sum(m.size_bytes) AS bytes, d.source_arn
    FROM m JOIN sqs_dead_letters AS d ON d.id = m.id JOIN sqs_queues AS s ON s.id = d.source_queue_id
    WHERE d.moved_at >= :since GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
    "throughput": f"""{ACTIVITY}
    SELECT queue, minute_at / 3600000 * 3600000 AS at, sum(sent) AS sent, sum(received) AS received,
        sum(deleted) AS deleted, sum(empty_receives) AS empty_receives, sum(dead_lettered) AS dead_lettered,
        sum(deduplicated) AS deduplicated, sum(sent_bytes) AS sent_bytes
    FROM a WHERE minute_at >= :since / 60000 * 60000
    GROUP BY 1, 2 HAVING sum(sent + received + deleted + empty_receives + dead_lettered + deduplicated) > 0
    ORDER BY 1, 2""",
    "groups": f"""{MESSAGES}
    SELECT m.queue, m.group_id, iif(m.fifo, 'fifo', 'tenant') AS kind, {COUNTS},
        iif(g.head_visible_at > :now_ms, sum(
            state = 'visible' OR state = 'delayed' AND m.id > (
                SELECT min(l.id) FROM sqs_leases AS l WHERE l.group_key = m.group_key
            )
        ), 0) AS blocked,
        iif(g.head_visible_at > :now_ms, (g.head_visible_at - :now_ms + 999) / 1000, NULL) AS blocked_seconds,
        max(0, t.last_turn - c.turn) AS turns_ahead, max(age) AS oldest_age_seconds, sum(size_bytes) AS bytes
    FROM m JOIN sqs_queue_counts AS c ON c.epoch_id = m.epoch_id
    LEFT JOIN sqs_message_groups AS g ON g.group_key = m.group_key
    LEFT JOIN sqs_tenants AS t ON t.epoch_id = m.epoch_id AND t.group_id = m.group_id
    WHERE m.group_id IS NOT NULL GROUP BY m.queue, m.group_id ORDER BY blocked DESC, 4 DESC, 1, 2 LIMIT 20""",
    "leases": f"""{MESSAGES}
    SELECT queue, count(*) AS in_flight, avg((:now_ms - received_at) / 1000) / 1 AS held_mean_seconds,
        max((:now_ms - received_at) / 1000) AS held_longest_seconds,
        min((visible_at - :now_ms + 999) / 1000) AS next_expires_in_seconds,
        sum((visible_at - :now_ms + 999) / 1000 <= 60) AS expiring_within_minute,
        max(receive_count) AS highest_receive_count
    FROM m WHERE state = 'in flight' AND received_at >= :since GROUP BY queue ORDER BY queue""",
    "expiring": f"""{MESSAGES}
    SELECT queue, message_id, (visible_at - :now_ms + 999) / 1000 AS expires_in_seconds,
        (:now_ms - received_at) / 1000 AS held_seconds, receive_count, group_id, visible_at AS expires_at
    FROM m WHERE state = 'in flight' AND received_at >= :since ORDER BY visible_at, queue, message_id LIMIT 20""",
    "fleet": f"""{MESSAGES}
    SELECT (SELECT count(*) FROM sqs_queues) AS queues, {COUNTS}, max(age) AS oldest_age_seconds,
        sum(size_bytes) AS bytes, NULL AS problem
    FROM m""",
}


def rows(path, statement, **values):
    """The rows of a statement, by name, read by the one SQLite of this process."""
    connection = dbapi.connect(uri(path, "ro"), uri=True)
    connection.row_factory = dbapi.Row
    try:
        return [dict(row) for row in connection.execute(statement, values)]
    finally:
        connection.close()


def backlog(path, *, now_ms, since):
    """Counted message by message, in Python where SQL would need a window."""
    counted = {
        queue["name"]: {**queue, "ages": [], "bytes": 0, "visible": 0, "in flight": 0, "delayed": 0}
        for queue in rows(path, "SELECT name, created_at FROM sqs_queues ORDER BY name")
    }
    for message in rows(
        path, f"{MESSAGES} SELECT queue, age, state, size_bytes FROM m ORDER BY age", now_ms=now_ms
    ):
        queue = counted[message["queue"]]
        queue["ages"].append(message["age"])
        queue["bytes"] += message["size_bytes"]
        queue[message["state"]] += 1
    totals = f"""{ACTIVITY}
    SELECT sum(sent) AS sent, sum(deleted) AS deleted FROM a WHERE queue = :queue AND minute_at >= :begin"""
    found = []
    for name, queue in counted.items():
        [total] = rows(path, totals, queue=name, begin=since // 60_000 * 60_000)
        begin = max(since // 60_000, queue["created_at"] // 60_000) * 60_000
        minutes = max(1.0, (now_ms - begin) / 60_000)
        sent, deleted = (total["sent"] or 0) / minutes, (total["deleted"] or 0) / minutes
        waiting = queue["ages"]
        found.append(
            {
                "queue": name,
                "visible": queue["visible"],
                "in_flight": queue["in flight"],
                "delayed": queue["delayed"],
                "oldest_age_seconds": max(waiting, default=None),
                "age_p50_seconds": waiting[-(-len(waiting) // 2) - 1] if waiting else None,
                "age_p95_seconds": waiting[-(-len(waiting) * 95 // 100) - 1] if waiting else None,
                "bytes": queue["bytes"],
                "sent_per_minute": round(sent, 3),
                "deleted_per_minute": round(deleted, 3),
                "drain_seconds": 0
                if not waiting
                else -(-len(waiting) * 60 // (deleted - sent))
                if deleted > sent
                else None,
            }
        )
    return found
