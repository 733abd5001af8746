"""Every SQL statement that runs, named: what it is for, the index it goes by, and what surprises.

Parameters are named and so are columns, time comes as `:now_ms` alone, and each statement runs in the sqlite3 shell as
it stands. Partial indexes serve a WHERE clause only when it repeats their terms literally. And a bare parameter after
LIMIT makes SQLite prepare the statement again at each run (it plans by the value), 7 to 25 us: hence `LIMIT :n + 0`.
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

SELECT_LAST_MINUTE = """
-- The latest instant of which the file knows: the clock must not run behind it after a boot.
SELECT coalesce(max(minute_at), 0) FROM sqs_queue_counts
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

NEXT_ROOM = """
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

SELECT_OLDEST = """
-- One seek in sqs_ix_leases_age.
SELECT min(sent_at) FROM sqs_leases WHERE epoch_id = :epoch_id AND sent_at > :expired_at
"""

STATS = """
-- One row a queue of the account, for `stats`, `queues` and `top`: configuration, counts and the open minute.
SELECT
    q.name, q.id, q.epoch_id, q.fifo, q.visibility_timeout_seconds, q.message_retention_period_seconds,
    q.dead_letter_target_arn, c.messages, c.in_flight, c.delayed, c.minute_at, c.sent, c.received, c.deleted,
    c.dead_lettered, c.empty_receives
FROM sqs_queues AS q
JOIN sqs_queue_counts AS c ON c.epoch_id = q.epoch_id
WHERE q.account_id = :account_id AND q.name >= :prefix AND q.name < :upper_name
ORDER BY q.name
"""

SELECT_ACTIVITY = """
-- A queue's closed minutes of late, newest first. By the primary key.
SELECT minute_at, sent, received, deleted, dead_lettered, empty_receives, sent_bytes
FROM sqs_queue_activity
WHERE queue_id = :queue_id AND minute_at >= :since_at
ORDER BY minute_at DESC
"""

# --- send -------------------------------------------------------------------------------------------------------

INSERT_PLAIN_MESSAGE = """
-- A message without attributes, group or trace header, from the queue's own account: nearly all of them.
INSERT INTO sqs_messages (message_id, body_md5, body)
VALUES (?, ?, ?)
"""

INSERT_TEN_PLAIN_MESSAGES = """
-- Ten plain messages in one statement: AUTOINCREMENT's own row is then written once.
INSERT INTO sqs_messages (message_id, body_md5, body)
VALUES
    (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?)
"""

INSERT_MESSAGE = """
-- sender_id NULL: the account of the queue.
INSERT INTO sqs_messages (message_id, body_md5, sender_id, group_id, trace_header, attributes, body)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""

INSERT_GROUPED_MESSAGE = """
-- INSERT_PLAIN_MESSAGE for a message of a group.
INSERT INTO sqs_messages (message_id, body_md5, group_id, body)
VALUES (?, ?, ?, ?)
"""

INSERT_LEASE = """
INSERT INTO sqs_leases (id, epoch_id, sent_at, size_bytes, visible_at)
VALUES (?, ?, ?, ?, ?)
"""

INSERT_LEASE_WITH_TURN = """
-- On a standard queue that knows tenants.
INSERT INTO sqs_leases (id, epoch_id, sent_at, size_bytes, visible_at, turn)
VALUES (?, ?, ?, ?, ?, ?)
"""

# --- receive ----------------------------------------------------------------------------------------------------

PROMOTE = """
-- A timeout or delay that has ended is rewritten to 0, 100 at most, oldest first: so the ready index holds all that
-- is visible in order of age. RETURNING tells what each was: in flight (1) or delayed (0).
UPDATE sqs_leases
SET visible_at = 0
WHERE id IN (
    SELECT id FROM sqs_leases
    WHERE epoch_id = :epoch_id AND visible_at > 0 AND visible_at <= :now_ms
    ORDER BY visible_at
    LIMIT 100
)
RETURNING token IS NOT NULL
"""

CLAIM = """
-- Hide the first max_messages visible messages, count the receive, turn the token. By sqs_ix_leases_ready. A timeout
-- of 0 leaves them visible. RETURNING promises no order: the caller sorts by (turn, id).
UPDATE sqs_leases
SET
    visible_at = ?1,
    receive_count = receive_count + 1,
    queue_receive_count = queue_receive_count + 1,
    token = randomblob(12),
    received_at = ?2,
    first_received_at = coalesce(first_received_at, ?2)
WHERE id IN (
    SELECT id FROM sqs_leases
    WHERE epoch_id = ?3 AND visible_at = 0 AND group_key IS NULL
    ORDER BY turn, id
    LIMIT ?4 + 0
)
RETURNING turn, id, token, receive_count, queue_receive_count, sent_at, first_received_at
"""

CLAIM_AFTER = """
-- CLAIM from a place in the order on: past expired or exhausted messages, however many, at one seek each of
-- sqs_ix_leases_ready. One range (turn, id) > (?5, ?6) would seek by turn alone, and walk.
UPDATE sqs_leases
SET
    visible_at = ?1,
    receive_count = receive_count + 1,
    queue_receive_count = queue_receive_count + 1,
    token = randomblob(12),
    received_at = ?2,
    first_received_at = coalesce(first_received_at, ?2)
WHERE id IN (
    SELECT id FROM (
        SELECT turn, id FROM sqs_leases
        WHERE epoch_id = ?3 AND visible_at = 0 AND group_key IS NULL AND turn = ?5 AND id > ?6
        UNION ALL
        SELECT turn, id FROM sqs_leases
        WHERE epoch_id = ?3 AND visible_at = 0 AND group_key IS NULL AND turn > ?5
        ORDER BY turn, id
        LIMIT ?4 + 0
    ) AS claimable
)
RETURNING turn, id, token, receive_count, queue_receive_count, sent_at, first_received_at
"""

FIND_FIRST_LIVE = """
-- The first message not beyond its retention: where a claim goes on that met expired ones. By sqs_ix_leases_age.
SELECT id FROM sqs_leases
WHERE epoch_id = :epoch_id AND sent_at > :expired_at
ORDER BY sent_at, id
LIMIT 1
"""

SELECT_MESSAGE = """
SELECT id, message_id, body_md5, body, sender_id, group_id, trace_header, attributes
FROM sqs_messages
WHERE id = ?
"""

SELECT_TEN_MESSAGES = """
-- Ten at a time; places left over repeat an id.
SELECT id, message_id, body_md5, body, sender_id, group_id, trace_header, attributes
FROM sqs_messages
WHERE id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

SELECT_TEN_BODIES = """
-- SELECT_TEN_MESSAGES for a receive that asked for no attributes: half the columns, half the time.
SELECT id, message_id, body_md5, body
FROM sqs_messages
WHERE id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

PEEK = """
-- What a receive would bring next, without a lease or a count. Visible ones in order of service, by
-- sqs_ix_leases_ready: the + keeps the age index out, which would have all of them sorted.
SELECT
    m.id, m.message_id, m.body_md5, m.body, m.sender_id, m.group_id, m.trace_header, m.attributes,
    l.sent_at, l.receive_count, l.first_received_at, l.visible_at, l.token IS NOT NULL,
    l.turn, l.group_key IS NOT NULL, l.deduplication_id
FROM sqs_leases AS l
JOIN sqs_messages AS m ON m.id = l.id
WHERE l.epoch_id = :epoch_id AND l.visible_at = 0 AND l.group_key IS NULL AND +l.sent_at > :expired_at
ORDER BY l.turn, l.id
LIMIT :max_messages + 0
"""

PEEK_HIDDEN = """
-- The hidden ones, those next to return first: delayed, in flight, and due but not yet promoted.
SELECT
    m.id, m.message_id, m.body_md5, m.body, m.sender_id, m.group_id, m.trace_header, m.attributes,
    l.sent_at, l.receive_count, l.first_received_at, l.visible_at, l.token IS NOT NULL,
    l.turn, l.group_key IS NOT NULL, l.deduplication_id
FROM sqs_leases AS l
JOIN sqs_messages AS m ON m.id = l.id
WHERE l.epoch_id = :epoch_id AND l.visible_at > 0 AND l.sent_at > :expired_at
ORDER BY l.visible_at
LIMIT :max_messages + 0
"""

LIST_MESSAGES = """
-- In order of sending, from a row on: `tail -f`. Two ranges of sqs_ix_leases_age, merged: one range
-- (sent_at, id) > (after_sent_at, after_id) would seek by sent_at alone, and walk over all of one instant.
SELECT
    l.id AS id, m.message_id, m.body_md5, m.body, m.sender_id, m.group_id, m.trace_header, m.attributes,
    l.sent_at, l.receive_count, l.first_received_at, l.visible_at, l.token IS NOT NULL,
    l.turn, l.group_key IS NOT NULL, l.deduplication_id
FROM sqs_leases AS l
CROSS JOIN sqs_messages AS m ON m.id = l.id
WHERE l.epoch_id = :epoch_id AND l.sent_at = :after_sent_at AND l.id > :after_id
UNION ALL
SELECT
    l.id, m.message_id, m.body_md5, m.body, m.sender_id, m.group_id, m.trace_header, m.attributes,
    l.sent_at, l.receive_count, l.first_received_at, l.visible_at, l.token IS NOT NULL,
    l.turn, l.group_key IS NOT NULL, l.deduplication_id
FROM sqs_leases AS l
CROSS JOIN sqs_messages AS m ON m.id = l.id
WHERE l.epoch_id = :epoch_id AND l.sent_at > :after_sent_at
ORDER BY sent_at, id
LIMIT :max_messages + 0
"""

LIST_LAST_MESSAGES = """
-- Those sent last, newest first: `tail`. Backwards by sqs_ix_leases_age.
SELECT
    l.id, m.message_id, m.body_md5, m.body, m.sender_id, m.group_id, m.trace_header, m.attributes,
    l.sent_at, l.receive_count, l.first_received_at, l.visible_at, l.token IS NOT NULL,
    l.turn, l.group_key IS NOT NULL, l.deduplication_id
FROM sqs_leases AS l
CROSS JOIN sqs_messages AS m ON m.id = l.id
WHERE l.epoch_id = :epoch_id AND l.sent_at > :expired_at
ORDER BY l.sent_at DESC, l.id DESC
LIMIT :max_messages + 0
"""

# --- settle: delete and change visibility -----------------------------------------------------------------------

DELETE_LEASE = """
-- Fenced: only the latest receive's token, only while its timeout runs. By the row id.
DELETE FROM sqs_leases
WHERE id = ? AND epoch_id = ? AND token = ? AND visible_at > ?
"""

DELETE_ANY_LEASE = """
-- compat="aws": any handle of the message deletes it, in flight or not. Tells what it was, for the counts.
DELETE FROM sqs_leases
WHERE id = :id AND epoch_id = :epoch_id
RETURNING visible_at > 0, token IS NOT NULL
"""

DELETE_MESSAGE = """
DELETE FROM sqs_messages WHERE id = ?
"""

DELETE_MESSAGE_WITHOUT_LEASE = """
-- Where some leases of a batch were deleted and others not.
DELETE FROM sqs_messages WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM sqs_leases WHERE id = ?1)
"""

DELETE_DEAD_LETTER_WITHOUT_LEASE = """
DELETE FROM sqs_dead_letters WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM sqs_leases WHERE id = ?1)
"""

DELETE_DEAD_LETTER = """
DELETE FROM sqs_dead_letters WHERE id = ?
"""

CHANGE_VISIBILITY = """
-- Fenced as DELETE_LEASE; a message beyond its retention is gone.
UPDATE sqs_leases
SET visible_at = :visible_at
WHERE id = :id AND epoch_id = :epoch_id AND token = :token AND visible_at > :now_ms AND sent_at > :expired_at
"""

CHANGE_ANY_VISIBILITY = """
-- compat="aws": any handle of a message that is in flight.
UPDATE sqs_leases
SET visible_at = :visible_at
WHERE id = :id AND epoch_id = :epoch_id AND token IS NOT NULL AND visible_at > :now_ms AND sent_at > :expired_at
"""

CLASSIFY_LEASE = """
-- Why a handle matched nothing: gone, another queue's by now, replaced, or ended. By the row id.
SELECT
    l.epoch_id, l.token, l.visible_at, l.sent_at, l.received_at, e.discarded_at, q.message_retention_period_seconds
FROM sqs_leases AS l
JOIN sqs_epochs AS e ON e.id = l.epoch_id
LEFT JOIN sqs_queues AS q ON q.id = e.queue_id
WHERE l.id = :id
"""

# --- dead letters -----------------------------------------------------------------------------------------------

MOVE_TO_DEAD_LETTER_QUEUE = """
-- The lease alone moves, under the same id: order and retention there go by the original sending. The receive that
-- found it exhausted is taken back from the count.
UPDATE sqs_leases
SET
    epoch_id = :dead_letter_epoch_id,
    turn = (SELECT turn FROM sqs_queue_counts WHERE epoch_id = :dead_letter_epoch_id),
    visible_at = 0,
    token = NULL,
    received_at = NULL,
    receive_count = receive_count - 1,
    queue_receive_count = 0
WHERE id = :id
"""

INSERT_DEAD_LETTER = """
-- Moved again, from one dead-letter queue to the next: the last move counts.
INSERT INTO sqs_dead_letters (id, epoch_id, source_queue_id, source_arn, receive_count, moved_at)
VALUES (:id, :epoch_id, :source_queue_id, :source_arn, :receive_count, :now_ms)
ON CONFLICT (id) DO UPDATE SET
    epoch_id = excluded.epoch_id,
    source_queue_id = excluded.source_queue_id,
    source_arn = excluded.source_arn,
    receive_count = excluded.receive_count,
    moved_at = excluded.moved_at
"""

MARK_DEAD_LETTERS = """
UPDATE sqs_queues SET holds_dead_letters = 1 WHERE id = :id AND holds_dead_letters = 0
"""

SELECT_DEAD_LETTER = """
SELECT source_arn, source_queue_id, receive_count, moved_at FROM sqs_dead_letters WHERE id = ?
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
-- Each queue with its retention: upkeep asks FIND_EXPIRED of each. As many rows as there are queues.
SELECT id, epoch_id, message_retention_period_seconds FROM sqs_queues
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
