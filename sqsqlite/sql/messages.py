# SPDX-License-Identifier: Apache-2.0
"""Every SQL statement that runs, named: what it is for, the index it goes by, and what surprises.

Parameters are named and so are columns, time comes as `:now_ms` alone, and each statement runs in the sqlite3 shell as
it stands. Partial indexes serve a WHERE clause only when it repeats their terms literally. And a bare parameter after
LIMIT makes SQLite prepare the statement again at each run (it plans by the value), 7 to 25 us: hence `LIMIT :n + 0`.
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
-- A timeout or delay that has ended is rewritten to 0: so the ready index holds all that
-- is visible in order of age. RETURNING tells what each was: in flight (1) or delayed (0).
UPDATE sqs_leases
SET visible_at = 0
WHERE id IN (
    SELECT id FROM sqs_leases
    WHERE epoch_id = :epoch_id AND visible_at > 0 AND visible_at <= :now_ms
    ORDER BY visible_at
    LIMIT :limit + 0
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

LIST_SIZES_AHEAD = """
-- The bytes of what CLAIM would bring. By sqs_ix_leases_ready.
SELECT size_bytes FROM sqs_leases
WHERE epoch_id = :epoch_id AND visible_at = 0 AND group_key IS NULL
ORDER BY turn, id
LIMIT :max_messages + 0
"""

LIST_SIZES_DUE = """
-- The bytes of what PROMOTE may put before that. By sqs_ix_leases_hidden.
SELECT size_bytes FROM sqs_leases
WHERE epoch_id = :epoch_id AND visible_at > 0 AND visible_at <= :now_ms
ORDER BY visible_at
LIMIT :max_messages + 0
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
-- Moved again, from one dead-letter queue to the next: the last move counts, and those before it are kept, the eight
-- latest of them. What is there and can't be read is given up.
INSERT INTO sqs_dead_letters (id, epoch_id, source_queue_id, source_arn, receive_count, moved_at)
VALUES (:id, :epoch_id, :source_queue_id, :source_arn, :receive_count, :now_ms)
ON CONFLICT (id) DO UPDATE SET
    epoch_id = excluded.epoch_id,
    source_queue_id = excluded.source_queue_id,
    source_arn = excluded.source_arn,
    receive_count = excluded.receive_count,
    moved_at = excluded.moved_at,
    earlier = json_remove(
        json_insert(
            iif(json_valid(earlier), earlier, '[]'),
            '$[#]',
            json_array(source_queue_id, source_arn, receive_count, moved_at)
        ),
        '$[#-9]'
    )
"""

INSERT_PROVENANCE = """
-- Of a message that has a new row: it came from another file, or one step back from a dead-letter queue.
INSERT INTO sqs_dead_letters (id, epoch_id, source_queue_id, source_arn, receive_count, moved_at, earlier)
VALUES (:id, :epoch_id, :source_queue_id, :source_arn, :receive_count, :moved_at, :earlier)
"""

MARK_DEAD_LETTERS = """
UPDATE sqs_queues SET holds_dead_letters = 1 WHERE id = :id AND holds_dead_letters = 0
"""

SELECT_DEAD_LETTER = """
SELECT source_arn, source_queue_id, receive_count, moved_at FROM sqs_dead_letters WHERE id = ?
"""
