# SPDX-License-Identifier: Apache-2.0
"""The SQL of the file as a whole: its own facts, and its upkeep.

The rules of `statements.py` hold here too.
"""

# --- the file ---------------------------------------------------------------------------------------------------

FIND_META_TABLE = """
-- Is this a queue's file? An application's own table of the name has other columns.
SELECT 1 FROM sqlite_schema
WHERE
    type = 'table' AND name = 'sqs_meta'
    AND (SELECT count(*) FROM pragma_table_info('sqs_meta') WHERE name IN ('name', 'number', 'bytes')) = 3
"""

COUNT_SCHEMA_OBJECTS = """
SELECT count(*) FROM sqlite_schema
"""

SELECT_SCHEMA_VERSION = """
SELECT number FROM sqs_meta WHERE name = 'schema_version'
"""

SELECT_META = """
-- All of the file's own facts; a handful of rows.
SELECT name, number, bytes FROM sqs_meta
"""

SET_META = """
INSERT INTO sqs_meta (name, number, bytes) VALUES (:name, :number, :bytes)
ON CONFLICT (name) DO UPDATE SET number = excluded.number, bytes = excluded.bytes
"""

INSERT_ALEMBIC_VERSION = """
INSERT INTO sqs_alembic_version (version_num) VALUES (:version)
"""

SELECT_ALEMBIC_VERSION = """
SELECT version_num FROM sqs_alembic_version
"""

TAKE_WRITE_LOCK = """
-- Changes nothing, and takes the write lock as every change does. By the primary key: no row has this name.
UPDATE sqs_meta SET number = number WHERE name = ''
"""

SELECT_LAST_MINUTE = """
-- The latest instant of which the file knows: the clock must not run behind it after a boot. A damaged row must not
-- set it for ever: nothing counts that is beyond the year 10000, nor a text, to SQLite later than any number.
SELECT coalesce(max(minute_at), 0) FROM sqs_queue_counts WHERE minute_at < 253402300800000
"""

# --- upkeep -----------------------------------------------------------------------------------------------------

FIND_DISCARDED_EPOCH = """
-- By sqs_ix_epochs_discarded.
SELECT id FROM sqs_epochs WHERE discarded_at IS NOT NULL ORDER BY discarded_at LIMIT 1
"""

SWEEP_LEASES = """
-- A chunk of what is gone: a discarded epoch's rows, or those beyond retention. By sqs_ix_leases_age.
DELETE FROM sqs_leases
WHERE id IN (
    SELECT id FROM sqs_leases
    WHERE epoch_id = :epoch_id AND sent_at <= :expired_at
    ORDER BY sent_at, id
    LIMIT :limit + 0
)
RETURNING id, visible_at > 0, token IS NOT NULL, group_key
"""

SWEEP_GROUPS = """
DELETE FROM sqs_message_groups
WHERE group_key IN (SELECT group_key FROM sqs_message_groups WHERE epoch_id = :epoch_id LIMIT :limit + 0)
"""

SWEEP_TENANTS = """
DELETE FROM sqs_tenants
WHERE epoch_id = :epoch_id
    AND group_id IN (SELECT group_id FROM sqs_tenants WHERE epoch_id = :epoch_id LIMIT :limit + 0)
"""

SWEEP_DEDUPLICATIONS = """
DELETE FROM sqs_deduplications
WHERE (epoch_id, deduplication_id, group_id) IN (
    SELECT epoch_id, deduplication_id, group_id FROM sqs_deduplications WHERE epoch_id = :epoch_id LIMIT :limit + 0
)
"""

SWEEP_RECEIVE_ATTEMPTS = """
DELETE FROM sqs_receive_attempts
WHERE (epoch_id, attempt_id) IN (
    SELECT epoch_id, attempt_id FROM sqs_receive_attempts WHERE epoch_id = :epoch_id LIMIT :limit + 0
)
"""

FORGET_DEDUPLICATIONS = """
-- A chunk of what is older than five minutes, of any queue. By sqs_ix_deduplications_expiry.
DELETE FROM sqs_deduplications
WHERE (epoch_id, deduplication_id, group_id) IN (
    SELECT epoch_id, deduplication_id, group_id FROM sqs_deduplications
    WHERE expires_at <= :now_ms
    ORDER BY expires_at
    LIMIT :limit + 0
)
"""

FORGET_RECEIVE_ATTEMPTS = """
-- By sqs_ix_receive_attempts_expiry.
DELETE FROM sqs_receive_attempts
WHERE (epoch_id, attempt_id) IN (
    SELECT epoch_id, attempt_id FROM sqs_receive_attempts
    WHERE expires_at <= :now_ms
    ORDER BY expires_at
    LIMIT :limit + 0
)
"""

FORGET_TENANTS = """
-- A row says nothing any more once its tenant has sent nothing for five minutes and the clock has passed its turns: a
-- message that comes back then draws the same turn without it. By sqs_ix_tenants_quiet.
DELETE FROM sqs_tenants
WHERE (epoch_id, group_id) IN (
    SELECT t.epoch_id, t.group_id FROM sqs_tenants AS t
    WHERE t.last_sent_at < :before_ms
        AND t.last_turn < (SELECT c.turn FROM sqs_queue_counts AS c WHERE c.epoch_id = t.epoch_id)
    ORDER BY t.last_sent_at
    LIMIT :limit + 0
)
"""

DELETE_EPOCH = """
DELETE FROM sqs_epochs WHERE id = :epoch_id
"""

LIST_RETENTIONS = """
-- A page of queues with their retention: upkeep asks FIND_EXPIRED of each. By the row id.
SELECT id, epoch_id, message_retention_period_seconds FROM sqs_queues
WHERE id > :after_id
ORDER BY id
LIMIT :limit + 0
"""

FIND_DEAD_LETTER = """
-- Does the epoch hold moved messages at all? One seek in sqs_ix_dead_letters_epoch.
SELECT 1 FROM sqs_dead_letters WHERE epoch_id = :epoch_id LIMIT 1
"""

COUNT_FREE_PAGES = """
PRAGMA freelist_count
"""

COUNT_PAGES = """
PRAGMA page_count
"""

GIVE_BACK_PAGES = """
-- 500 pages: a millisecond or two. Each is moved from the file's end, so the file gets shorter with the checkpoint.
PRAGMA incremental_vacuum(500)
"""

DELETE_OLD_ACTIVITY = """
-- A chunk of the history that is too old. By the primary key, queue by queue: the recursion finds the queue ids that
-- have history by one seek each, deleted queues' too. A scan would read all minutes of all queues, each time.
DELETE FROM sqs_queue_activity
WHERE (queue_id, minute_at) IN (
    WITH RECURSIVE ids (queue_id) AS (
        SELECT min(queue_id) FROM sqs_queue_activity
        UNION ALL
        SELECT (SELECT min(a.queue_id) FROM sqs_queue_activity AS a WHERE a.queue_id > ids.queue_id)
        FROM ids
        WHERE ids.queue_id IS NOT NULL
    )
    SELECT a.queue_id, a.minute_at
    FROM ids
    CROSS JOIN sqs_queue_activity AS a ON a.queue_id = ids.queue_id
    WHERE a.minute_at < :before_ms
    LIMIT :limit + 0
)
"""
