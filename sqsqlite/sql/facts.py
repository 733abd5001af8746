# SPDX-License-Identifier: Apache-2.0
"""The SQL of the facts file that Spark's reports read: its tables, and the statements that fill them.

A facts file holds the values that reports count, of one queue file or of hundreds, without the bodies. One connection
has the queue file as `main` and the facts file as `facts`, and copies each queue file in one read transaction.

The statements read whole tables on purpose; none of them runs when a message is sent or received. They read tables
and not views, because the views join the table of bodies, which reports do not need.

Columns have the names and types of the tables and views they come from. `queue_key` numbers the queues of all files.
"""

CREATE_FACTS = (
    """
    CREATE TABLE facts.sqs_fact_files (
        file_id INTEGER PRIMARY KEY NOT NULL,
        file TEXT NOT NULL,
        taken_at INT,
        schema_version INT,
        messages INT NOT NULL,
        problem TEXT
    ) STRICT
    """,
    """
    CREATE TABLE facts.sqs_fact_queues (
        queue_key INTEGER PRIMARY KEY NOT NULL,
        file_id INT NOT NULL,
        file TEXT NOT NULL,
        taken_at INT NOT NULL,
        account_id TEXT NOT NULL,
        queue_id INT NOT NULL,
        queue TEXT NOT NULL,
        epoch_id INT NOT NULL,
        fifo INT NOT NULL,
        has_tenants INT NOT NULL,
        created_at INT NOT NULL,
        message_retention_period_seconds INT NOT NULL,
        dead_letter_target_arn TEXT,
        max_receive_count INT
    ) STRICT
    """,
    """
    CREATE TABLE facts.sqs_facts (
        seq INTEGER PRIMARY KEY NOT NULL,
        queue_key INT NOT NULL,
        id INT NOT NULL,
        sent_at INT NOT NULL,
        visible_at INT NOT NULL,
        received INT NOT NULL,
        received_at INT,
        first_received_at INT,
        receive_count INT NOT NULL,
        queue_receive_count INT NOT NULL,
        size_bytes INT NOT NULL,
        group_id TEXT,
        message_id TEXT
    ) STRICT
    """,
    """
    CREATE TABLE facts.sqs_fact_activity (
        queue_key INT NOT NULL,
        minute_at INT NOT NULL,
        sent INT NOT NULL,
        received INT NOT NULL,
        deleted INT NOT NULL,
        dead_lettered INT NOT NULL,
        deduplicated INT NOT NULL,
        empty_receives INT NOT NULL,
        sent_bytes INT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE facts.sqs_fact_groups (
        queue_key INT NOT NULL,
        group_id TEXT NOT NULL,
        head_visible_at INT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE facts.sqs_fact_tenants (
        queue_key INT NOT NULL,
        group_id TEXT NOT NULL,
        last_turn INT NOT NULL,
        queue_turn INT NOT NULL,
        last_sent_at INT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE facts.sqs_fact_dead_letters (
        queue_key INT NOT NULL,
        id INT NOT NULL,
        source_arn TEXT NOT NULL,
        receive_count INT NOT NULL,
        moved_at INT NOT NULL,
        sent_at INT NOT NULL,
        size_bytes INT NOT NULL
    ) STRICT
    """,
)

CREATE_READING = """
-- The queues of the file that is being read. A message finds its queue by the primary key of this small table, so
-- SQLite reads the messages in the order of their row ids. Without the table SQLite walks an index by queues and looks
-- up each row.
CREATE TABLE temp.reading (
    epoch_id INTEGER PRIMARY KEY NOT NULL,
    queue_key INT NOT NULL,
    queue_id INT NOT NULL,
    expired_at INT NOT NULL,
    has_groups INT NOT NULL,
    suspicious_receives INT NOT NULL
)
"""

INSERT_QUEUES = """
-- Every queue, with the next free key.
INSERT INTO facts.sqs_fact_queues (
    file_id, file, taken_at, account_id, queue_id, queue, epoch_id, fifo, has_tenants, created_at,
    message_retention_period_seconds, dead_letter_target_arn, max_receive_count
)
SELECT
    :file_id, :file, :now_ms, account_id, id, name, epoch_id, fifo, has_tenants, created_at,
    message_retention_period_seconds, dead_letter_target_arn, max_receive_count
FROM main.sqs_queues
ORDER BY id
"""

INSERT_READING = """
-- A forward jump of the clock within the retention period does not shorten it (store/clock.py).
-- A dead letter keeps its group, so a dead-letter queue can have groups although it has no tenants.
INSERT INTO temp.reading (epoch_id, queue_key, queue_id, expired_at, has_groups, suspicious_receives)
SELECT
    f.epoch_id,
    f.queue_key,
    f.queue_id,
    f.taken_at - f.message_retention_period_seconds * 1000 - (
        SELECT coalesce(sum(j.value ->> 1), 0) FROM json_each(:jumps) AS j
        WHERE f.message_retention_period_seconds * 1000 > j.value ->> 0
    ),
    q.has_tenants OR q.holds_dead_letters, min(3, coalesce(f.max_receive_count, 3))
FROM facts.sqs_fact_queues AS f
CROSS JOIN main.sqs_queues AS q ON q.id = f.queue_id
WHERE f.file_id = :file_id
"""

INSERT_MESSAGES = """
-- Every message that has not expired, in one walk over the leases. Each message id and each group id costs a search in
-- another table. So unless all ids are asked for, only messages in flight or received suspiciously often get an id.
INSERT INTO facts.sqs_facts (
    queue_key, id, sent_at, visible_at, received, received_at, first_received_at, receive_count, queue_receive_count,
    size_bytes, group_id, message_id
)
SELECT
    r.queue_key,
    l.id,
    l.sent_at,
    l.visible_at,
    l.token IS NOT NULL,
    l.received_at,
    l.first_received_at,
    l.receive_count,
    l.queue_receive_count,
    l.size_bytes,
    CASE
        WHEN l.group_key IS NOT NULL
            THEN (SELECT g.group_id FROM main.sqs_message_groups AS g WHERE g.group_key = l.group_key)
        WHEN r.has_groups
            THEN (SELECT m.group_id FROM main.sqs_messages AS m WHERE m.id = l.id)
    END,
    CASE
        WHEN
            :all_message_ids
            OR l.queue_receive_count >= r.suspicious_receives
            OR (l.visible_at > :now_ms AND l.token IS NOT NULL)
            THEN (SELECT lower(hex(m.message_id)) FROM main.sqs_messages AS m WHERE m.id = l.id)
    END
FROM main.sqs_leases AS l
CROSS JOIN temp.reading AS r ON r.epoch_id = l.epoch_id
WHERE l.sent_at > r.expired_at
"""

INSERT_ACTIVITY = """
-- The closed minutes, and the minute that is still open.
INSERT INTO facts.sqs_fact_activity (
    queue_key, minute_at, sent, received, deleted, dead_lettered, deduplicated, empty_receives, sent_bytes
)
SELECT
    r.queue_key, a.minute_at, a.sent, a.received, a.deleted, a.dead_lettered, a.deduplicated, a.empty_receives,
    a.sent_bytes
FROM temp.reading AS r
CROSS JOIN main.sqs_queue_activity AS a ON a.queue_id = r.queue_id
UNION ALL
SELECT
    r.queue_key, c.minute_at, c.sent, c.received, c.deleted, c.dead_lettered, c.deduplicated, c.empty_receives,
    c.sent_bytes
FROM temp.reading AS r
CROSS JOIN main.sqs_queue_counts AS c ON c.epoch_id = r.epoch_id
WHERE c.sent + c.received + c.deleted + c.dead_lettered + c.deduplicated + c.empty_receives > 0
"""

INSERT_GROUPS = """
-- Every FIFO group that has messages.
INSERT INTO facts.sqs_fact_groups (queue_key, group_id, head_visible_at)
SELECT r.queue_key, g.group_id, g.head_visible_at
FROM temp.reading AS r
CROSS JOIN main.sqs_message_groups AS g ON g.epoch_id = r.epoch_id
"""

INSERT_TENANTS = """
-- Every tenant of a fair queue, with the queue's own turn.
INSERT INTO facts.sqs_fact_tenants (queue_key, group_id, last_turn, queue_turn, last_sent_at)
SELECT r.queue_key, t.group_id, t.last_turn, c.turn, t.last_sent_at
FROM temp.reading AS r
CROSS JOIN main.sqs_tenants AS t ON t.epoch_id = r.epoch_id
CROSS JOIN main.sqs_queue_counts AS c ON c.epoch_id = r.epoch_id
"""

INSERT_DEAD_LETTERS = """
-- In the order of row ids, which is the order of the leases. The index of moves would make each search a random read.
INSERT INTO facts.sqs_fact_dead_letters (
    queue_key, id, source_arn, receive_count, moved_at, sent_at, size_bytes
)
SELECT r.queue_key, d.id, d.source_arn, d.receive_count, d.moved_at, l.sent_at, l.size_bytes
FROM main.sqs_dead_letters AS d
CROSS JOIN temp.reading AS r ON r.epoch_id = d.epoch_id
CROSS JOIN main.sqs_leases AS l ON l.id = d.id
WHERE l.sent_at > r.expired_at
"""

FILL = (
    INSERT_QUEUES,
    INSERT_READING,
    INSERT_MESSAGES,
    INSERT_ACTIVITY,
    INSERT_GROUPS,
    INSERT_TENANTS,
    INSERT_DEAD_LETTERS,
)
"""Run in this order, with :file_id, :file, :now_ms, :all_message_ids and :jumps (`Jumps.steps` as JSON)."""

COUNT_MESSAGES = """
-- The number of messages in the facts file: seq is dense.
SELECT coalesce(max(seq), 0) FROM facts.sqs_facts
"""

INSERT_FILE = """
-- One row a queue file, also for a file that could not be read.
INSERT INTO facts.sqs_fact_files (file_id, file, taken_at, schema_version, messages, problem)
VALUES (:file_id, :file, :taken_at, :schema_version, :messages, :problem)
"""
