"""The reporting views: what JDBC, BI tools and `sqlite3` read of a queue file, and may rely on.

Their names and columns stay; the tables behind them may change with the schema's version. Instants are milliseconds
since 1970 UTC. `state` and what ends in `_seconds` go by the machine's clock at the moment of the query, so a program
that needs one instant for all its rows takes the instants themselves.

A computed column has no declared type in SQLite: Spark takes it for decimal(38,18) unless it is told better, which is
what `sqsqlite analytics schema` prints.
"""

_NOW = """
CREATE VIEW sqs_report_now AS
SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS now_ms
"""

_QUEUES = """
CREATE VIEW sqs_report_queues AS
SELECT
    q.name AS queue,
    q.account_id,
    q.id AS queue_id,
    q.fifo,
    q.created_at,
    q.modified_at,
    q.visibility_timeout_seconds,
    q.delay_seconds,
    q.receive_message_wait_time_seconds,
    q.message_retention_period_seconds,
    q.maximum_message_size_bytes,
    q.dead_letter_target_arn,
    q.max_receive_count,
    c.messages,
    c.in_flight - (
        SELECT count(*) FROM sqs_leases AS l
        WHERE l.epoch_id = q.epoch_id AND l.visible_at > 0 AND l.visible_at <= n.now_ms AND l.token IS NOT NULL
    ) AS in_flight,
    c.delayed - (
        SELECT count(*) FROM sqs_leases AS l
        WHERE l.epoch_id = q.epoch_id AND l.visible_at > 0 AND l.visible_at <= n.now_ms AND l.token IS NULL
    ) AS delayed,
    (SELECT min(l.sent_at) FROM sqs_leases AS l WHERE l.epoch_id = q.epoch_id) AS oldest_sent_at
FROM sqs_queues AS q
JOIN sqs_queue_counts AS c ON c.epoch_id = q.epoch_id
CROSS JOIN sqs_report_now AS n
"""

_MESSAGES = """
CREATE VIEW sqs_report_messages AS
SELECT
    l.id,
    q.name AS queue,
    q.account_id,
    q.id AS queue_id,
    CASE
        WHEN l.visible_at <= n.now_ms THEN 'visible'
        WHEN l.token IS NULL THEN 'delayed'
        ELSE 'in flight'
    END AS state,
    (n.now_ms - l.sent_at) / 1000.0 AS age_seconds,
    l.sent_at,
    l.visible_at,
    l.received_at,
    l.first_received_at,
    l.receive_count,
    l.queue_receive_count,
    l.size_bytes,
    l.deduplication_id,
    d.source_arn AS dead_letter_source_arn,
    d.moved_at,
    lower(hex(m.message_id)) AS message_id,
    m.group_id,
    m.sender_id,
    m.attributes,
    m.body
FROM sqs_leases AS l
JOIN sqs_queues AS q ON q.epoch_id = l.epoch_id
LEFT JOIN sqs_dead_letters AS d ON d.id = l.id
LEFT JOIN sqs_messages AS m ON m.id = l.id
CROSS JOIN sqs_report_now AS n
"""

_LEASES = """
CREATE VIEW sqs_report_leases AS
SELECT
    l.id,
    q.name AS queue,
    q.account_id,
    q.id AS queue_id,
    l.received_at,
    l.visible_at AS expires_at,
    (n.now_ms - l.received_at) / 1000.0 AS held_seconds,
    (l.visible_at - n.now_ms) / 1000.0 AS expires_in_seconds,
    l.sent_at,
    l.receive_count,
    m.group_id,
    lower(hex(m.message_id)) AS message_id
FROM sqs_leases AS l
JOIN sqs_queues AS q ON q.epoch_id = l.epoch_id
LEFT JOIN sqs_messages AS m ON m.id = l.id
CROSS JOIN sqs_report_now AS n
WHERE l.visible_at > n.now_ms AND l.token IS NOT NULL
"""

_DEAD_LETTERS = """
CREATE VIEW sqs_report_dead_letters AS
SELECT
    d.id,
    q.name AS queue,
    q.account_id,
    q.id AS queue_id,
    d.source_arn,
    d.source_queue_id,
    d.receive_count,
    d.moved_at,
    (n.now_ms - d.moved_at) / 1000.0 AS dead_seconds,
    l.sent_at,
    l.size_bytes,
    m.group_id,
    lower(hex(m.message_id)) AS message_id
FROM sqs_dead_letters AS d
JOIN sqs_queues AS q ON q.epoch_id = d.epoch_id
JOIN sqs_leases AS l ON l.id = d.id
LEFT JOIN sqs_messages AS m ON m.id = d.id
CROSS JOIN sqs_report_now AS n
"""

_ACTIVITY = """
CREATE VIEW sqs_report_activity AS
SELECT
    q.name AS queue,
    q.account_id,
    a.queue_id,
    a.minute_at,
    a.sent,
    a.received,
    a.deleted,
    a.dead_lettered,
    a.deduplicated,
    a.empty_receives,
    a.sent_bytes
FROM sqs_queue_activity AS a
JOIN sqs_queues AS q ON q.id = a.queue_id
UNION ALL
SELECT
    q.name,
    q.account_id,
    q.id,
    c.minute_at,
    c.sent,
    c.received,
    c.deleted,
    c.dead_lettered,
    c.deduplicated,
    c.empty_receives,
    c.sent_bytes
FROM sqs_queue_counts AS c
JOIN sqs_queues AS q ON q.epoch_id = c.epoch_id
WHERE c.sent + c.received + c.deleted + c.dead_lettered + c.deduplicated + c.empty_receives > 0
"""

_GROUPS = """
CREATE VIEW sqs_report_groups AS
SELECT
    q.name AS queue,
    q.account_id,
    q.id AS queue_id,
    g.group_id,
    g.head_visible_at,
    CASE WHEN g.head_visible_at <= n.now_ms THEN 'ready' ELSE 'waiting' END AS state,
    (SELECT count(*) FROM sqs_leases AS l WHERE l.group_key = g.group_key) AS messages,
    (
        SELECT count(*) FROM sqs_leases AS l
        WHERE l.group_key = g.group_key AND l.visible_at > n.now_ms AND l.token IS NOT NULL
    ) AS in_flight,
    (SELECT min(l.sent_at) FROM sqs_leases AS l WHERE l.group_key = g.group_key) AS oldest_sent_at
FROM sqs_message_groups AS g
JOIN sqs_queues AS q ON q.epoch_id = g.epoch_id
CROSS JOIN sqs_report_now AS n
"""

_TENANTS = """
CREATE VIEW sqs_report_tenants AS
SELECT
    q.name AS queue,
    q.account_id,
    q.id AS queue_id,
    t.group_id,
    t.last_turn,
    c.turn AS queue_turn,
    t.last_sent_at
FROM sqs_tenants AS t
JOIN sqs_queues AS q ON q.epoch_id = t.epoch_id
JOIN sqs_queue_counts AS c ON c.epoch_id = t.epoch_id
"""

VIEWS: tuple[str, ...] = tuple(
    view.strip() for view in (_NOW, _QUEUES, _MESSAGES, _LEASES, _DEAD_LETTERS, _ACTIVITY, _GROUPS, _TENANTS)
)
"""CREATE VIEW of each, in order."""
