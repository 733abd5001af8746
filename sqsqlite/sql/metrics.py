# SPDX-License-Identifier: Apache-2.0
"""The SQL of what operators ask: CloudWatch's metrics, and what died.

The rules of `statements_operations.py` hold here too: these may read whole tables.
"""

# --- metrics ----------------------------------------------------------------------------------------------------

LIST_ACCOUNTS = """
-- Accounts that have queues, by the unique index on (account_id, name).
SELECT DISTINCT account_id FROM sqs_queues ORDER BY account_id
"""

LIST_QUEUES_TO_MEASURE = """
-- Of some accounts, from one name to another: all that begin alike, or one. By the unique index on (account_id, name).
SELECT
    q.account_id, q.name, q.id, q.epoch_id, q.fifo, q.message_retention_period_seconds, q.holds_dead_letters,
    q.has_tenants, c.minute_at, c.sent, c.received, c.deleted, c.dead_lettered, c.empty_receives, c.deduplicated,
    c.sent_bytes
FROM sqs_queues AS q
JOIN sqs_queue_counts AS c ON c.epoch_id = q.epoch_id
WHERE q.account_id IN (SELECT value FROM json_each(:account_ids))
    AND q.name >= :first_name AND q.name <= :last_name
ORDER BY q.account_id, q.name
"""

LIST_OLDEST_MOVES = """
-- Of each pair [epoch_id, expired_at]. By sqs_ix_dead_letters_epoch; passes over what is beyond retention and not yet
-- swept.
SELECT ids.value ->> 0, (
    SELECT d.moved_at
    FROM sqs_dead_letters AS d
    CROSS JOIN sqs_leases AS l ON l.id = d.id
    WHERE d.epoch_id = ids.value ->> 0 AND l.epoch_id = d.epoch_id AND l.sent_at > ids.value ->> 1
    ORDER BY d.moved_at
    LIMIT 1
)
FROM json_each(:queues) AS ids
"""

LIST_OLDEST_UNMOVED = """
-- Of each [epoch_id, expired_at, oldest_move_at]: the oldest message that was sent to the dead-letter queue itself, if
-- it was sent before the oldest move. Dead letters that are older than the oldest move are passed over, 10,000 at most.
-- By sqs_ix_leases_age.
SELECT ids.value ->> 0, (
    SELECT old.sent_at
    FROM (
        SELECT l.id, l.sent_at FROM sqs_leases AS l
        WHERE l.epoch_id = ids.value ->> 0 AND l.sent_at > ids.value ->> 1 AND l.sent_at < ids.value ->> 2
        ORDER BY l.sent_at
        LIMIT 10000
    ) AS old
    WHERE NOT EXISTS (SELECT 1 FROM sqs_dead_letters AS d WHERE d.id = old.id)
    ORDER BY old.sent_at
    LIMIT 1
)
FROM json_each(:queues) AS ids
"""

COUNT_GROUPS_IN_FLIGHT = """
-- FIFO, of each pair [epoch_id, expired_at]. Goes through what is hidden: in flight, 120,000 at most, and delayed.
SELECT ids.value ->> 0, (
    SELECT count(DISTINCT l.group_key)
    FROM sqs_leases AS l
    WHERE l.epoch_id = ids.value ->> 0 AND l.visible_at > 0 AND l.visible_at > :now_ms AND l.token IS NOT NULL
        AND l.sent_at > ids.value ->> 1
)
FROM json_each(:queues) AS ids
"""

LIST_NOISY_GROUPS = """
-- Fair queues, of each [epoch_id, expired_at, in_flight]: the groups, at most nine, that have 30 messages and more than
-- a tenth of all in flight. Goes through what is hidden: in flight, 120,000 at most, and delayed.
SELECT ids.value ->> 0, m.group_id
FROM json_each(:queues) AS ids
CROSS JOIN sqs_leases AS l
CROSS JOIN sqs_messages AS m ON m.id = l.id
WHERE l.epoch_id = ids.value ->> 0 AND l.visible_at > 0 AND l.visible_at > :now_ms AND (l.token IS NOT NULL)
    AND l.sent_at > ids.value ->> 1 AND m.group_id IS NOT NULL
GROUP BY ids.key, m.group_id
HAVING count(*) >= 30 AND count(*) * 10 > ids.value ->> 2
"""

MEASURE_QUIET_GROUPS = """
-- Hidden in flight, hidden by a delay, all, and the oldest, without the noisy groups' messages. Goes through the whole
-- queue: asked only where a group is noisy.
SELECT
    coalesce(sum(l.visible_at > :now_ms AND l.token IS NOT NULL), 0),
    coalesce(sum(l.visible_at > :now_ms AND l.token IS NULL), 0),
    count(*),
    min(coalesce(d.moved_at, l.sent_at))
FROM sqs_leases AS l
JOIN sqs_messages AS m ON m.id = l.id
LEFT JOIN sqs_dead_letters AS d ON d.id = l.id
WHERE l.epoch_id = :epoch_id AND l.sent_at > :expired_at
    AND (m.group_id IS NULL OR m.group_id NOT IN (SELECT value FROM json_each(:noisy_groups)))
"""

# --- dead letters -----------------------------------------------------------------------------------------------

LIST_REDRIVE_POLICIES = """
-- Each queue that has a dead-letter queue, and which.
SELECT name, dead_letter_target_arn FROM sqs_queues
WHERE account_id = :account_id AND dead_letter_target_arn IS NOT NULL
ORDER BY name
"""

COUNT_DEAD_LETTERS = """
-- By the queue they are in and the one they came from. The instant at which each queue's retention begins is computed
-- once a queue: `:jumps` is what `Jumps.steps` gives, as JSON.
WITH q AS MATERIALIZED (
    SELECT
        name,
        epoch_id,
        :now_ms - message_retention_period_seconds * 1000 - (
            SELECT coalesce(sum(j.value ->> 1), 0) FROM json_each(:jumps) AS j
            WHERE message_retention_period_seconds * 1000 > j.value ->> 0
        ) AS expired_at
    FROM sqs_queues
    WHERE account_id = :account_id
)
SELECT q.name, d.source_arn, count(*), min(d.moved_at), max(d.moved_at)
FROM q
JOIN sqs_dead_letters AS d ON d.epoch_id = q.epoch_id
JOIN sqs_leases AS l ON l.id = d.id AND l.epoch_id = d.epoch_id
WHERE l.sent_at > q.expired_at
GROUP BY q.name, d.source_arn
"""

LIST_DEAD_LETTERS = """
-- Those of one queue, moved last first, from all queues or from one: source_end is the end of its ARN, or nothing.
-- Backwards by sqs_ix_dead_letters_epoch.
SELECT
    m.id, m.message_id, m.body_md5, m.body, m.sender_id, m.group_id, m.trace_header, m.attributes,
    l.sent_at, l.receive_count, l.first_received_at, l.visible_at, l.token IS NOT NULL,
    l.turn, l.group_key IS NOT NULL, l.deduplication_id, d.source_arn, d.receive_count, d.moved_at
FROM sqs_dead_letters AS d
CROSS JOIN sqs_leases AS l ON l.id = d.id
CROSS JOIN sqs_messages AS m ON m.id = d.id
WHERE d.epoch_id = :epoch_id AND l.epoch_id = :epoch_id AND l.sent_at > :expired_at
    AND (:source_end = '' OR substr(d.source_arn, -length(:source_end)) = :source_end)
ORDER BY d.moved_at DESC, d.id DESC
LIMIT :max_messages + 0
"""

COUNT_REDRIVABLE = """
-- What a move task of these conditions would meet now, by origin and by what keeps it: nothing, a delay, a receive, or
-- FIFO another of its group. NULL: no condition. Goes through the whole queue, and its bodies where one is asked for.
WITH hidden (group_key, id) AS MATERIALIZED (
    SELECT h.group_key, min(h.id)
    FROM sqs_leases AS h
    WHERE h.epoch_id = :epoch_id AND h.visible_at > 0 AND h.visible_at > :now_ms AND h.group_key IS NOT NULL
    GROUP BY h.group_key
)
SELECT
    d.source_arn,
    CASE
        WHEN l.visible_at > :now_ms AND l.token IS NOT NULL THEN 'in flight'
        WHEN l.visible_at > :now_ms THEN 'delayed'
        WHEN EXISTS (
            SELECT 1 FROM sqs_message_groups AS g
            WHERE g.group_key = l.group_key AND g.head_visible_at > :now_ms
        ) OR hidden.id < l.id THEN 'behind a hidden one of its group'
    END AS kept_by,
    count(*)
FROM sqs_leases AS l
LEFT JOIN sqs_dead_letters AS d ON d.id = l.id
LEFT JOIN hidden ON hidden.group_key = l.group_key
WHERE l.epoch_id = :epoch_id AND l.sent_at > :expired_at
    AND (:source_arn IS NULL OR d.source_arn = :source_arn)
    AND (:minimum_receive_count IS NULL OR d.receive_count >= :minimum_receive_count)
    AND (:moved_from IS NULL OR d.moved_at >= :moved_from)
    AND (:moved_before IS NULL OR d.moved_at < :moved_before)
    AND (:body IS NULL OR instr((SELECT m.body FROM sqs_messages AS m WHERE m.id = l.id), :body) > 0)
GROUP BY d.source_arn, kept_by
ORDER BY d.source_arn, kept_by
"""
