# SPDX-License-Identifier: Apache-2.0
"""The SQL of FIFO queues and of fair ones: groups, deduplication, receive attempts, turns.

The rules of `statements.py` hold here too. A group's row stands in sqs_message_groups as long as the group has
messages; its `head_visible_at` is the instant from which the group's first message can be received, and not before the
instant at which the group was released, or at which others of it come back from flight. So the next group is found
without looking at its messages, however many are locked.
"""

# --- groups -----------------------------------------------------------------------------------------------------

SELECT_FIFO_SETTINGS = """
SELECT content_based_deduplication, deduplication_scope, first_deduplication_scope FROM sqs_queues WHERE id = ?
"""

SELECT_GROUP = """
-- By the unique index on (epoch_id, group_id).
SELECT group_key FROM sqs_message_groups WHERE epoch_id = ? AND group_id = ?
"""

INSERT_GROUP = """
INSERT INTO sqs_message_groups (epoch_id, group_id, head_visible_at) VALUES (?, ?, ?)
"""

SET_GROUP_HEAD = """
UPDATE sqs_message_groups SET head_visible_at = ? WHERE group_key = ?
"""

DELETE_GROUP = """
DELETE FROM sqs_message_groups WHERE group_key = ?
"""

SELECT_HEAD = """
-- A group's first message. One seek in sqs_ix_leases_group.
SELECT id, visible_at FROM sqs_leases WHERE group_key = ? ORDER BY id LIMIT 1
"""

SELECT_HEAD_AND_LOCK = """
-- The same with the group's instant. And whether any behind it may be in flight although it is visible itself: only
-- where it came back from flight before them, or came from another queue after them.
SELECT
    l.id, l.visible_at, g.head_visible_at,
    l.token IS NOT NULL OR EXISTS (SELECT 1 FROM sqs_dead_letters AS d WHERE d.id = l.id)
FROM sqs_leases AS l
CROSS JOIN sqs_message_groups AS g ON g.group_key = l.group_key
WHERE l.group_key = ?
ORDER BY l.id
LIMIT 1
"""

LATEST_IN_FLIGHT = """
-- When the last message of a group that is in flight comes back. Down sqs_ix_leases_hidden, through at most as many as
-- the queue has in flight.
SELECT l.visible_at
FROM sqs_message_groups AS g
CROSS JOIN sqs_leases AS l
    ON l.epoch_id = g.epoch_id AND l.visible_at > 0 AND l.visible_at > :now_ms AND l.token IS NOT NULL
    AND +l.group_key = g.group_key
WHERE g.group_key = :group_key
ORDER BY l.visible_at DESC
LIMIT 1
"""

NEXT_HEAD = """
-- The instant at which the next group can be received from. One seek in sqs_ix_message_groups_ready.
SELECT min(head_visible_at) FROM sqs_message_groups WHERE epoch_id = ?
"""

# --- send -------------------------------------------------------------------------------------------------------

FIND_DUPLICATE = """
-- What was accepted under this id within five minutes, in whatever group: nearly always nothing, or one.
SELECT deduplication_id, group_id, message_id, sequence FROM sqs_deduplications
WHERE epoch_id = ? AND expires_at > ? AND deduplication_id = ?
"""

FIND_TEN_DUPLICATES = """
-- Ten at a time; places left over repeat an id.
SELECT deduplication_id, group_id, message_id, sequence FROM sqs_deduplications
WHERE epoch_id = ? AND expires_at > ? AND deduplication_id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

FIND_DUPLICATE_IN_GROUP = """
SELECT deduplication_id, group_id, message_id, sequence FROM sqs_deduplications
WHERE epoch_id = ? AND expires_at > ? AND deduplication_id = ? AND group_id = ?
"""

SET_DEDUPLICATION = """
-- In the place of one that is over and not yet swept, if there is one.
INSERT INTO sqs_deduplications (epoch_id, deduplication_id, group_id, message_id, sequence, expires_at)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (epoch_id, deduplication_id, group_id) DO UPDATE SET
    message_id = excluded.message_id,
    sequence = excluded.sequence,
    expires_at = excluded.expires_at
"""

INSERT_FIFO_LEASE = """
INSERT INTO sqs_leases (id, epoch_id, group_key, sent_at, size_bytes, visible_at, deduplication_id)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""

# --- receive ----------------------------------------------------------------------------------------------------

LIST_READY_GROUPS = """
-- The groups that have waited longest first. By sqs_ix_message_groups_ready.
SELECT group_key FROM sqs_message_groups
WHERE epoch_id = ? AND head_visible_at <= ?
ORDER BY head_visible_at, group_key
LIMIT ? + 0
"""

LIST_SIZES_AHEAD_IN_GROUPS = """
-- The bytes of what a claim would bring, from one group as much as it has, then from the next. By
-- sqs_ix_message_groups_ready and sqs_ix_leases_group.
SELECT l.size_bytes
FROM sqs_message_groups AS g
CROSS JOIN sqs_leases AS l ON l.group_key = g.group_key
WHERE g.epoch_id = :epoch_id AND g.head_visible_at <= :now_ms
ORDER BY g.head_visible_at, g.group_key, l.id
LIMIT :max_messages + 0
"""

LIST_GROUP = """
-- The first messages of a group, in order. By sqs_ix_leases_group.
SELECT id, visible_at, token IS NOT NULL, receive_count, queue_receive_count, sent_at
FROM sqs_leases
WHERE group_key = ?
ORDER BY id
LIMIT ? + 0
"""

CLAIM_GROUP = """
-- The first messages of a group, up to one: all of them visible, as LIST_GROUP has shown. By sqs_ix_leases_group.
UPDATE sqs_leases
SET
    visible_at = ?1,
    receive_count = receive_count + 1,
    queue_receive_count = queue_receive_count + 1,
    token = randomblob(12),
    received_at = ?2,
    first_received_at = coalesce(first_received_at, ?2)
WHERE group_key = ?3 AND id <= ?4
RETURNING turn, id, token, receive_count, queue_receive_count, sent_at, first_received_at, deduplication_id
"""

UNDO_CLAIM = """
-- Messages that were claimed behind a damaged one of their group: they wait for it as if this receive had not been.
UPDATE sqs_leases
SET
    visible_at = 0,
    receive_count = receive_count - 1,
    queue_receive_count = queue_receive_count - 1,
    token = CASE WHEN queue_receive_count > 1 THEN token END,
    received_at = CASE WHEN queue_receive_count > 1 THEN received_at END,
    first_received_at = CASE WHEN receive_count > 1 THEN first_received_at END
WHERE id = ?
"""

SELECT_RECEIVE_ATTEMPT = """
SELECT leases, expires_at FROM sqs_receive_attempts WHERE epoch_id = ? AND attempt_id = ? AND expires_at > ?
"""

SET_RECEIVE_ATTEMPT = """
INSERT INTO sqs_receive_attempts (epoch_id, attempt_id, leases, expires_at)
VALUES (?, ?, ?, ?)
ON CONFLICT (epoch_id, attempt_id) DO UPDATE SET leases = excluded.leases, expires_at = excluded.expires_at
"""

SELECT_ATTEMPTED_LEASE = """
-- A message as an earlier receive left it. By the row id.
SELECT
    turn, id, token, receive_count, queue_receive_count, sent_at, first_received_at, deduplication_id, visible_at,
    received_at
FROM sqs_leases
WHERE id = ? AND epoch_id = ?
"""

HIDE_AGAIN = """
UPDATE sqs_leases SET visible_at = ? WHERE id = ?
"""

# --- settle -----------------------------------------------------------------------------------------------------

SELECT_GROUP_KEY = """
-- The group whose next message may be receivable once this one went. By the row id.
SELECT id, group_key FROM sqs_leases WHERE +epoch_id = ? AND id = ?
"""

SELECT_TEN_GROUP_KEYS = """
-- Ten at a time; places left over repeat an id.
SELECT id, group_key FROM sqs_leases WHERE +epoch_id = ? AND id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

SET_HEAD_OF_CHANGED = """
-- After a change of visibility: the group waits for its first message, and for no other.
UPDATE sqs_message_groups
SET head_visible_at = :head_visible_at
WHERE group_key = (SELECT l.group_key FROM sqs_leases AS l WHERE l.id = :id)
    AND NOT EXISTS (
        SELECT 1 FROM sqs_leases AS l WHERE l.group_key = sqs_message_groups.group_key AND l.id < :id
    )
"""

# --- the queue's delay, which on FIFO queues also holds for messages sent before it was changed ------------------

COUNT_DELAYED_SINCE = """
-- By sqs_ix_leases_age: the + keeps it from all that is hidden, in flight too.
SELECT count(*) FROM sqs_leases
WHERE epoch_id = :epoch_id AND sent_at > :since AND first_received_at IS NULL AND +visible_at > 0
"""

DELAY_AGAIN = """
-- Never received ones alone, and of them those for which the new delay makes a difference. What is visible although its
-- delay would not have ended was moved here, and has none. By sqs_ix_leases_age.
UPDATE sqs_leases
SET visible_at = CASE WHEN sent_at + :delay_ms > :now_ms THEN sent_at + :delay_ms ELSE 0 END
WHERE epoch_id = :epoch_id AND sent_at > :since AND first_received_at IS NULL
    AND CASE WHEN sent_at + :delay_ms > :now_ms THEN sent_at + :delay_ms ELSE 0 END
        <> CASE WHEN visible_at > :now_ms THEN visible_at ELSE 0 END
    AND (visible_at > :now_ms OR sent_at + :old_delay_ms <= :now_ms)
RETURNING id, group_key
"""

# --- dead letters -----------------------------------------------------------------------------------------------

SELECT_GROUP_OF_MESSAGE = """
SELECT message_id, group_id FROM sqs_messages WHERE id = ?
"""

SELECT_GROUP_OF_LEASE = """
-- Where the message itself can't be read. Nothing for a message of a standard queue.
SELECT g.group_id
FROM sqs_leases AS l
CROSS JOIN sqs_message_groups AS g ON g.group_key = l.group_key
WHERE l.id = ?
"""

MOVE_TO_FIFO_DEAD_LETTER_QUEUE = """
-- Under the same id, so in order of the original sending. Found exhausted before it was claimed: its count stands.
UPDATE sqs_leases
SET
    epoch_id = :dead_letter_epoch_id,
    group_key = :group_key,
    sent_at = :sent_at,
    visible_at = 0,
    token = NULL,
    received_at = NULL,
    queue_receive_count = 0,
    deduplication_id = coalesce(:deduplication_id, deduplication_id)
WHERE id = :id
"""

# --- fair queues ------------------------------------------------------------------------------------------------

MARK_TENANTS = """
UPDATE sqs_queues SET has_tenants = 1 WHERE id = ? AND has_tenants = 0
"""

SELECT_TURN = """
-- The queue's clock: the highest turn ever claimed.
SELECT turn FROM sqs_queue_counts WHERE epoch_id = ?
"""

DRAW_TURN = """
-- A message of a group is sent. The group's turns follow one another, and never lie behind the clock; after five
-- minutes without a send its debt is forgotten.
INSERT INTO sqs_tenants (epoch_id, group_id, last_turn, last_sent_at)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (epoch_id, group_id) DO UPDATE SET
    last_turn = CASE WHEN last_sent_at < ?4 - 300000 THEN ?3 ELSE max(last_turn + 1, ?3) END,
    last_sent_at = ?4
RETURNING last_turn
"""

NOTE_DELAYED_SEND = """
-- A delayed message of a group is sent: it draws no turn yet, and is a send for the five minutes all the same.
INSERT INTO sqs_tenants (epoch_id, group_id, last_turn, last_sent_at)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (epoch_id, group_id) DO UPDATE SET
    last_turn = CASE WHEN last_sent_at < ?4 - 300000 THEN ?3 ELSE last_turn END,
    last_sent_at = ?4
"""

DRAW_TURN_AGAIN = """
-- A message of a group comes back: from a delay, or from flight. That is not a send, and no debt is forgotten: else the
-- messages of a tenant whose handler fails would come back before everybody else's, again and again.
INSERT INTO sqs_tenants (epoch_id, group_id, last_turn, last_sent_at)
VALUES (?1, ?2, ?3, 0)
ON CONFLICT (epoch_id, group_id) DO UPDATE SET last_turn = max(last_turn + 1, ?3)
RETURNING last_turn
"""

PROMOTE_TENANTS = """
-- PROMOTE where each message of a group draws a turn: fewer at a time.
UPDATE sqs_leases
SET visible_at = 0
WHERE id IN (
    SELECT id FROM sqs_leases
    WHERE epoch_id = :epoch_id AND visible_at > 0 AND visible_at <= :now_ms
    ORDER BY visible_at
    LIMIT 1000
)
RETURNING token IS NOT NULL, id
"""

SET_TURN = """
UPDATE sqs_leases SET turn = ? WHERE id = ?
"""
