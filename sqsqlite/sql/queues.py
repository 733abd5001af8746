# SPDX-License-Identifier: Apache-2.0
"""The SQL of queues: their settings, tags and names, their counts and their activity.

The rules of `statements.py` hold here too.
"""

# --- queues -----------------------------------------------------------------------------------------------------

SELECT_QUEUE = """
-- By the unique index on (account_id, name). Read in each operation's own transaction: no cache to go stale.
SELECT
    id, epoch_id, fifo, delay_seconds, maximum_message_size_bytes, message_retention_period_seconds,
    holds_dead_letters, has_tenants
FROM sqs_queues
WHERE account_id = ? AND name = ?
"""

SELECT_QUEUE_TO_RECEIVE = """
-- The queue, its counts, and when the next hidden message is due: one look at all that a receive depends on.
SELECT
    q.id, q.epoch_id, q.fifo, q.delay_seconds, q.maximum_message_size_bytes, q.message_retention_period_seconds,
    q.holds_dead_letters, q.has_tenants,
    q.receive_message_wait_time_seconds, q.visibility_timeout_seconds, q.dead_letter_target_arn, q.max_receive_count,
    c.messages, c.in_flight, c.delayed, c.turn,
    (
        SELECT min(l.visible_at) FROM sqs_leases AS l
        WHERE l.epoch_id = q.epoch_id AND l.visible_at > 0
    ) AS next_visible_at
FROM sqs_queues AS q
CROSS JOIN sqs_queue_counts AS c ON c.epoch_id = q.epoch_id
WHERE q.account_id = ? AND q.name = ?
"""

SELECT_QUEUE_ATTRIBUTES = """
-- The whole row, for GetQueueAttributes and what compares or changes attributes.
SELECT
    id, account_id, name, epoch_id, fifo, created_at, modified_at, purged_at, delay_seconds,
    maximum_message_size_bytes, message_retention_period_seconds, receive_message_wait_time_seconds,
    visibility_timeout_seconds, dead_letter_target_arn, max_receive_count, redrive_allow_policy, policy,
    kms_master_key_id, kms_data_key_reuse_period_seconds, sqs_managed_sse_enabled, content_based_deduplication,
    deduplication_scope, first_deduplication_scope, fifo_throughput_limit, holds_dead_letters
FROM sqs_queues
WHERE account_id = ? AND name = ?
"""

INSERT_QUEUE = """
INSERT INTO sqs_queues (
    account_id, name, epoch_id, fifo, created_at, modified_at, delay_seconds, maximum_message_size_bytes,
    message_retention_period_seconds, receive_message_wait_time_seconds, visibility_timeout_seconds,
    dead_letter_target_arn, max_receive_count, redrive_allow_policy, policy, kms_master_key_id,
    kms_data_key_reuse_period_seconds, sqs_managed_sse_enabled, content_based_deduplication, deduplication_scope,
    first_deduplication_scope, fifo_throughput_limit
) VALUES (
    :account_id, :name, 0, :fifo, :now_ms, :now_ms, :delay_seconds, :maximum_message_size_bytes,
    :message_retention_period_seconds, :receive_message_wait_time_seconds, :visibility_timeout_seconds,
    :dead_letter_target_arn, :max_receive_count, :redrive_allow_policy, :policy, :kms_master_key_id,
    :kms_data_key_reuse_period_seconds, :sqs_managed_sse_enabled, :content_based_deduplication, :deduplication_scope,
    :deduplication_scope, :fifo_throughput_limit
)
"""

UPDATE_QUEUE_ATTRIBUTES = """
UPDATE sqs_queues
SET
    modified_at = :now_ms,
    delay_seconds = :delay_seconds,
    maximum_message_size_bytes = :maximum_message_size_bytes,
    message_retention_period_seconds = :message_retention_period_seconds,
    receive_message_wait_time_seconds = :receive_message_wait_time_seconds,
    visibility_timeout_seconds = :visibility_timeout_seconds,
    dead_letter_target_arn = :dead_letter_target_arn,
    max_receive_count = :max_receive_count,
    redrive_allow_policy = :redrive_allow_policy,
    policy = :policy,
    kms_master_key_id = :kms_master_key_id,
    kms_data_key_reuse_period_seconds = :kms_data_key_reuse_period_seconds,
    sqs_managed_sse_enabled = :sqs_managed_sse_enabled,
    content_based_deduplication = :content_based_deduplication,
    deduplication_scope = :deduplication_scope,
    fifo_throughput_limit = :fifo_throughput_limit
WHERE id = :id
"""

SET_QUEUE_EPOCH = """
UPDATE sqs_queues
SET epoch_id = :epoch_id, purged_at = :purged_at, holds_dead_letters = 0, has_tenants = 0
WHERE id = :id
"""

INSERT_EPOCH = """
INSERT INTO sqs_epochs (queue_id, created_at) VALUES (:queue_id, :now_ms)
"""

DISCARD_EPOCH = """
-- From here on no statement finds the epoch's rows; the sweeper takes them away.
UPDATE sqs_epochs SET discarded_at = :now_ms WHERE id = :epoch_id
"""

DELETE_QUEUE = """
DELETE FROM sqs_queues WHERE id = :id
"""

INSERT_TOMBSTONE = """
INSERT INTO sqs_queue_tombstones (account_id, name, deleted_at) VALUES (:account_id, :name, :now_ms)
ON CONFLICT (account_id, name) DO UPDATE SET deleted_at = excluded.deleted_at
"""

SELECT_TOMBSTONE = """
SELECT deleted_at FROM sqs_queue_tombstones WHERE account_id = :account_id AND name = :name
"""

DELETE_TOMBSTONES = """
-- A handful of rows at most: the names deleted in the last minute.
DELETE FROM sqs_queue_tombstones WHERE deleted_at <= :before_ms
"""

LIST_QUEUES = """
-- By the unique index on (account_id, name), from a name on. upper_name bounds the prefix from above.
SELECT name FROM sqs_queues
WHERE account_id = :account_id AND name > :after_name AND name >= :prefix AND name < :upper_name
ORDER BY name
LIMIT :max_results + 0
"""

LIST_DEAD_LETTER_SOURCE_QUEUES = """
-- By sqs_ix_queues_dead_letter_target; the few queues that name this target are sorted. The + keeps SQLite from going
-- through all of the account's queues by name instead.
SELECT name FROM sqs_queues
WHERE dead_letter_target_arn = :target_arn AND dead_letter_target_arn IS NOT NULL
    AND +account_id = :account_id AND +name > :after_name
ORDER BY name
LIMIT :max_results + 0
"""

SELECT_TAGS = """
SELECT key, value FROM sqs_queue_tags WHERE queue_id = :queue_id ORDER BY key
"""

SET_TAG = """
INSERT INTO sqs_queue_tags (queue_id, key, value) VALUES (:queue_id, :key, :value)
ON CONFLICT (queue_id, key) DO UPDATE SET value = excluded.value
"""

DELETE_TAG = """
DELETE FROM sqs_queue_tags WHERE queue_id = :queue_id AND key = :key
"""

DELETE_TAGS = """
DELETE FROM sqs_queue_tags WHERE queue_id = :queue_id
"""

# --- counts and activity ----------------------------------------------------------------------------------------

INSERT_COUNTS = """
INSERT INTO sqs_queue_counts (epoch_id, minute_at) VALUES (:epoch_id, :minute_at)
"""

ADD_COUNTS = """
-- Once a queue and transaction. No row: the open minute is over (CLOSE_MINUTE), or the epoch is gone.
UPDATE sqs_queue_counts
SET
    messages = messages + ?,
    in_flight = in_flight + ?,
    delayed = delayed + ?,
    turn = max(turn, ?),
    sent = sent + ?,
    received = received + ?,
    deleted = deleted + ?,
    dead_lettered = dead_lettered + ?,
    deduplicated = deduplicated + ?,
    empty_receives = empty_receives + ?,
    sent_bytes = sent_bytes + ?
WHERE epoch_id = ? AND minute_at = ?
"""

CLOSE_MINUTE = """
-- The open minute becomes history under the queue's lasting id. Idle minutes leave no row. A minute may be closed
-- twice, by a purge and by the next message.
INSERT INTO sqs_queue_activity (
    queue_id, minute_at, sent, received, deleted, dead_lettered, deduplicated, empty_receives, sent_bytes
)
SELECT
    e.queue_id, c.minute_at, c.sent, c.received, c.deleted, c.dead_lettered, c.deduplicated, c.empty_receives,
    c.sent_bytes
FROM sqs_queue_counts AS c
JOIN sqs_epochs AS e ON e.id = c.epoch_id
WHERE c.epoch_id = :epoch_id
    AND c.sent + c.received + c.deleted + c.dead_lettered + c.deduplicated + c.empty_receives > 0
ON CONFLICT (queue_id, minute_at) DO UPDATE SET
    sent = sent + excluded.sent,
    received = received + excluded.received,
    deleted = deleted + excluded.deleted,
    dead_lettered = dead_lettered + excluded.dead_lettered,
    deduplicated = deduplicated + excluded.deduplicated,
    empty_receives = empty_receives + excluded.empty_receives,
    sent_bytes = sent_bytes + excluded.sent_bytes
"""

OPEN_MINUTE = """
UPDATE sqs_queue_counts
SET
    minute_at = :minute_at, sent = 0, received = 0, deleted = 0, dead_lettered = 0, deduplicated = 0,
    empty_receives = 0, sent_bytes = 0
WHERE epoch_id = :epoch_id
"""

DELETE_COUNTS = """
DELETE FROM sqs_queue_counts WHERE epoch_id = :epoch_id
"""

SELECT_COUNTS = """
SELECT messages, in_flight, delayed, turn FROM sqs_queue_counts WHERE epoch_id = :epoch_id
"""

COUNT_DUE = """
-- Hidden by their rows, visible by the clock, not yet promoted: what the counts are corrected by. One covering range
-- of sqs_ix_leases_hidden.
SELECT coalesce(sum(token IS NOT NULL), 0), coalesce(sum(token IS NULL), 0)
FROM sqs_leases
WHERE epoch_id = :epoch_id AND visible_at > 0 AND visible_at <= :now_ms
"""

NEXT_PLACE_IN_FLIGHT = """
-- When the next message in flight comes back. By sqs_ix_leases_hidden.
SELECT visible_at FROM sqs_leases
WHERE epoch_id = :epoch_id AND visible_at > 0 AND visible_at > :now_ms AND (token IS NOT NULL)
ORDER BY visible_at
LIMIT 1
"""

NEXT_EXPIRY = """
-- The oldest message's send: where its retention ends, a group or a place in flight may come free. One seek in
-- sqs_ix_leases_age.
SELECT min(sent_at) FROM sqs_leases WHERE epoch_id = ?
"""

FIND_EXPIRED = """
-- Is there anything beyond its retention? One seek in sqs_ix_leases_age.
SELECT 1 FROM sqs_leases WHERE epoch_id = :epoch_id AND sent_at <= :expired_at LIMIT 1
"""

COUNT_EXPIRED = """
-- Beyond retention and not yet swept, by state: only where FIND_EXPIRED found one.
SELECT
    count(*),
    coalesce(sum(visible_at > :now_ms AND token IS NOT NULL), 0),
    coalesce(sum(visible_at > :now_ms AND token IS NULL), 0)
FROM sqs_leases
WHERE epoch_id = :epoch_id AND sent_at <= :expired_at
"""

LIST_QUEUE_NAMES = """
-- All of them, for `queues`: by the unique index on (account_id, name).
SELECT name FROM sqs_queues
WHERE account_id = :account_id AND name >= :prefix AND name < :upper_name
ORDER BY name
"""

COUNT_MESSAGES = """
-- For `len(queue)`: the kept count, and the oldest message's send, by which it is seen whether some have expired.
SELECT
    q.epoch_id, q.message_retention_period_seconds, c.messages,
    (SELECT min(sent_at) FROM sqs_leases WHERE epoch_id = q.epoch_id)
FROM sqs_queues AS q
JOIN sqs_queue_counts AS c ON c.epoch_id = q.epoch_id
WHERE q.account_id = ? AND q.name = ?
"""

STATS = """
-- One row a queue of the account, for `stats` and `top`: configuration and the open minute.
SELECT
    q.name, q.id, q.epoch_id, q.fifo, q.message_retention_period_seconds, q.dead_letter_target_arn,
    c.minute_at, c.sent, c.received, c.deleted, c.dead_lettered, c.empty_receives, c.deduplicated, c.sent_bytes
FROM sqs_queues AS q
JOIN sqs_queue_counts AS c ON c.epoch_id = q.epoch_id
WHERE q.account_id = :account_id AND q.name >= :prefix AND q.name < :upper_name
ORDER BY q.name
"""

MEASURE_QUEUES = """
-- Of each pair [epoch_id, expired_at]: the kept counts; what they are corrected by, hidden by its row and visible by
-- the clock, all of it and in flight: a range each of sqs_ix_leases_hidden; the oldest message, and the oldest within
-- its retention: a seek each in sqs_ix_leases_age.
SELECT
    c.epoch_id, c.messages, c.in_flight, c.delayed,
    (SELECT count(*) FROM sqs_leases AS due
        WHERE due.epoch_id = c.epoch_id AND due.visible_at > 0 AND due.visible_at <= :now_ms),
    (SELECT count(*) FROM sqs_leases AS due
        WHERE due.epoch_id = c.epoch_id AND due.visible_at > 0 AND due.visible_at <= :now_ms
            AND (due.token IS NOT NULL)),
    (SELECT min(sent_at) FROM sqs_leases AS l WHERE l.epoch_id = c.epoch_id),
    (SELECT min(sent_at) FROM sqs_leases AS l WHERE l.epoch_id = c.epoch_id AND l.sent_at > ids.value ->> 1)
FROM json_each(:queues) AS ids
CROSS JOIN sqs_queue_counts AS c ON c.epoch_id = ids.value ->> 0
"""

LIST_ACTIVITY = """
-- Closed minutes of late of some queues. By the primary key.
SELECT
    a.queue_id, a.sent, a.received, a.deleted, a.dead_lettered, a.empty_receives, a.deduplicated, a.sent_bytes
FROM json_each(:queue_ids) AS ids
CROSS JOIN sqs_queue_activity AS a ON a.queue_id = ids.value AND a.minute_at >= :since_at
"""
