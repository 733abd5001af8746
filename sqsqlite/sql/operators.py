# SPDX-License-Identifier: Apache-2.0
"""The SQL of the operator's commands: backup, restore, check, dump, load, migrations.

Apart from `statements.py`, because the rule there is the opposite one: these read whole tables, on purpose, and none
of them stands on the way of a message.
"""

# --- schema -----------------------------------------------------------------------------------------------------

LIST_TABLES = r"""
-- Our tables by name: `check` looks at each where the application's can't be looked at.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'sqs\_%' ESCAPE '\' ORDER BY name
"""

LIST_SCHEMA_OBJECTS = r"""
-- Our tables, indexes, views and triggers, and the text each was made by. Automatic indexes have none.
SELECT type, name, sql FROM sqlite_schema WHERE name LIKE 'sqs\_%' ESCAPE '\' ORDER BY type, name
"""

# --- restore: what a copy must not share with its original ------------------------------------------------------

FORGET_BOOT = """
-- The clock's offset belongs to the machine and boot of the original.
DELETE FROM sqs_meta WHERE name = 'boot'
"""

RETURN_IN_FLIGHT = """
-- Their handles died with the secret: no consumer could delete them, so none should have to wait for them.
UPDATE sqs_leases SET visible_at = 0 WHERE visible_at > 0 AND token IS NOT NULL
"""

COUNT_NONE_IN_FLIGHT = """
UPDATE sqs_queue_counts SET in_flight = 0 WHERE in_flight <> 0
"""

REOPEN_GROUPS = """
-- A group waits only for a delay of its first message, by sqs_ix_leases_group.
UPDATE sqs_message_groups AS g
SET head_visible_at = coalesce(
    (SELECT l.visible_at FROM sqs_leases AS l WHERE l.group_key = g.group_key ORDER BY l.id LIMIT 1),
    g.head_visible_at
)
"""

FORGET_RECEIVE_ATTEMPTS = """
-- They would answer a repeated receive with dead handles.
DELETE FROM sqs_receive_attempts
"""

RELEASE_MOVE_TASKS = """
-- The process that ran them goes on in the original.
UPDATE sqs_move_tasks SET leased_until_at = 0, lease_token = NULL WHERE finished_at IS NULL
"""

RENEW_COPY = (
    FORGET_BOOT,
    RETURN_IN_FLIGHT,
    COUNT_NONE_IN_FLIGHT,
    REOPEN_GROUPS,
    FORGET_RECEIVE_ATTEMPTS,
    RELEASE_MOVE_TASKS,
)

# --- check: each finds rows that should not be, at most 20 of a kind --------------------------------------------

FIND_LEASES_WITHOUT_MESSAGE = """
SELECT l.id FROM sqs_leases AS l LEFT JOIN sqs_messages AS m ON m.id = l.id WHERE m.id IS NULL LIMIT 20
"""

FIND_MESSAGES_WITHOUT_LEASE = """
SELECT m.id FROM sqs_messages AS m LEFT JOIN sqs_leases AS l ON l.id = m.id WHERE l.id IS NULL LIMIT 20
"""

FIND_REUSABLE_IDS = """
-- AUTOINCREMENT's memory behind the rows: the next message would get a stale handle's id.
SELECT (SELECT max(id) FROM sqs_messages)
WHERE (SELECT max(id) FROM sqs_messages)
    > coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'sqs_messages'), 0)
"""

FIND_LEASES_WITHOUT_EPOCH = """
SELECT l.epoch_id, count(*)
FROM sqs_leases AS l
LEFT JOIN sqs_epochs AS e ON e.id = l.epoch_id
WHERE e.id IS NULL
GROUP BY l.epoch_id
LIMIT 20
"""

FIND_QUEUES_WITHOUT_EPOCH = """
-- No epoch of its own, or one that is being swept away.
SELECT q.name, q.epoch_id
FROM sqs_queues AS q
LEFT JOIN sqs_epochs AS e ON e.id = q.epoch_id AND e.queue_id = q.id AND e.discarded_at IS NULL
WHERE e.id IS NULL
LIMIT 20
"""

FIND_EPOCHS_WITHOUT_QUEUE = """
-- No queue leads to the rows, and the sweeper does not know that.
SELECT e.id
FROM sqs_epochs AS e
LEFT JOIN sqs_queues AS q ON q.epoch_id = e.id
WHERE e.discarded_at IS NULL AND q.id IS NULL
LIMIT 20
"""

FIND_WRONG_COUNTS = """
-- The counts that are kept, and those of the rows: messages, in flight, delayed, by the state of the rows.
SELECT
    q.name, c.messages, c.in_flight, c.delayed,
    coalesce(l.messages, 0), coalesce(l.in_flight, 0), coalesce(l.delayed, 0)
FROM sqs_queues AS q
LEFT JOIN sqs_queue_counts AS c ON c.epoch_id = q.epoch_id
LEFT JOIN (
    SELECT
        epoch_id, count(*) AS messages, sum(visible_at > 0 AND token IS NOT NULL) AS in_flight,
        sum(visible_at > 0 AND token IS NULL) AS delayed
    FROM sqs_leases
    GROUP BY epoch_id
) AS l ON l.epoch_id = q.epoch_id
WHERE c.messages IS NOT coalesce(l.messages, 0)
    OR c.in_flight IS NOT coalesce(l.in_flight, 0)
    OR c.delayed IS NOT coalesce(l.delayed, 0)
LIMIT 20
"""

FIND_ODD_LEASES = """
-- States that no operation leads to. 43,200,000 ms are the 12 h that a receive may hold a message.
SELECT id, visible_at, receive_count, queue_receive_count, received_at
FROM sqs_leases
WHERE visible_at < 0
    OR size_bytes < 0
    OR queue_receive_count < 0
    OR receive_count < queue_receive_count
    OR (token IS NULL) <> (received_at IS NULL)
    OR (token IS NOT NULL AND visible_at > received_at + 43200000)
LIMIT 20
"""

FIND_MESSAGES_FROM_THE_FUTURE = """
-- A minute is allowed for machines whose clocks are not the file's.
SELECT id, sent_at - :now_ms FROM sqs_leases WHERE sent_at > :now_ms + 60000 LIMIT 20
"""

FIND_LEASES_WITHOUT_GROUP = """
-- FIFO.
SELECT l.id, l.group_key
FROM sqs_leases AS l
LEFT JOIN sqs_message_groups AS g ON g.group_key = l.group_key AND g.epoch_id = l.epoch_id
WHERE l.group_key IS NOT NULL AND g.group_key IS NULL
LIMIT 20
"""

FIND_GROUPS_WITHOUT_LEASE = """
-- FIFO. In an epoch that is being swept away the groups go last.
SELECT g.group_id, q.name
FROM sqs_message_groups AS g
JOIN sqs_queues AS q ON q.epoch_id = g.epoch_id
WHERE NOT EXISTS (SELECT 1 FROM sqs_leases AS l WHERE l.group_key = g.group_key)
LIMIT 20
"""

FIND_WRONG_GROUP_HEADS = """
-- FIFO: a group is receivable from the instant at which its first message is visible; or, where that came first, from
-- the one at which it was released, or at which another of its messages comes back from flight. A minute is allowed for
-- machines whose clocks are not the file's.
SELECT head.group_id, head.name, head.head_visible_at, head.visible_at
FROM (
    SELECT
        g.group_key, g.group_id, q.name, g.head_visible_at,
        (SELECT l.visible_at FROM sqs_leases AS l WHERE l.group_key = g.group_key ORDER BY l.id LIMIT 1) AS visible_at
    FROM sqs_message_groups AS g
    JOIN sqs_queues AS q ON q.epoch_id = g.epoch_id
) AS head
WHERE head.head_visible_at < head.visible_at
    OR head.head_visible_at > max(head.visible_at, :now_ms + 60000)
        AND NOT EXISTS (
            SELECT 1 FROM sqs_leases AS l
            WHERE l.group_key = head.group_key AND l.visible_at = head.head_visible_at AND l.token IS NOT NULL
        )
LIMIT 20
"""

FIND_UNMARKED_TENANTS = """
-- Fair queues: where no tenant draws turns all messages have the turn 0.
SELECT DISTINCT q.name
FROM sqs_queues AS q
JOIN sqs_leases AS l ON l.epoch_id = q.epoch_id
WHERE q.fifo = 0 AND q.has_tenants = 0 AND l.turn <> 0
LIMIT 20
"""

FIND_DEAD_LETTERS_WITHOUT_LEASE = """
-- Provenance lives as long as its message, in the queue that the message is in.
SELECT d.id
FROM sqs_dead_letters AS d
LEFT JOIN sqs_leases AS l ON l.id = d.id AND l.epoch_id = d.epoch_id
WHERE l.id IS NULL
LIMIT 20
"""

FIND_ODD_PROVENANCE = """
-- Earlier moves are a list, in JSON.
SELECT id
FROM sqs_dead_letters
WHERE earlier IS NOT NULL AND json_type(iif(json_valid(earlier), earlier, '0')) <> 'array'
LIMIT 20
"""

FIND_UNMARKED_DEAD_LETTER_QUEUES = """
SELECT DISTINCT q.name
FROM sqs_dead_letters AS d
JOIN sqs_queues AS q ON q.epoch_id = d.epoch_id
WHERE q.holds_dead_letters = 0
LIMIT 20
"""

FIND_ODD_MESSAGES = """
-- Ids and digests have their lengths, and attributes are JSON.
SELECT id
FROM sqs_messages
WHERE length(message_id) <> 16 OR length(body_md5) <> 16 OR NOT json_valid(coalesce(attributes, '[]'))
LIMIT 20
"""

FIND_ODD_COUNTS = """
-- So large that adding one changes nothing. 2 to the power of 53 is beyond what any file can count.
SELECT epoch_id
FROM sqs_queue_counts
WHERE max(
    messages, in_flight, delayed, turn, minute_at, sent, received, deleted, dead_lettered, deduplicated, empty_receives,
    sent_bytes
) > 9007199254740992
LIMIT 20
"""

FIND_ODD_QUEUES = """
-- What no CreateQueue accepts.
SELECT name
FROM sqs_queues
WHERE typeof(name) <> 'text'
    OR delay_seconds NOT BETWEEN 0 AND 1209600
    OR message_retention_period_seconds NOT BETWEEN 60 AND 1209600
    OR visibility_timeout_seconds NOT BETWEEN 0 AND 43200
    OR receive_message_wait_time_seconds NOT BETWEEN 0 AND 20
    OR maximum_message_size_bytes < 1024
    OR fifo NOT IN (0, 1)
LIMIT 20
"""

LIST_BODIES = """
-- The body's bytes as they are, so that bytes that are no UTF-8 are a finding and not an error.
SELECT id, body_md5, CAST(body AS BLOB) FROM sqs_messages
"""

LIST_BODIES_WITH = """
-- The bodies that hold a text: pointers to payloads name the file's id. Reads all messages, purged ones too until they
-- are swept.
SELECT body FROM sqs_messages WHERE instr(body, :text) > 0
"""

LIST_STORED_MESSAGES = """
-- The leases of all queues with their messages, or without. What was purged is the sweeper's.
SELECT
    l.id, m.id AS stored_id, m.message_id, m.body_md5, m.body, m.sender_id, m.group_id, m.trace_header, m.attributes,
    q.name AS queue, l.sent_at, l.receive_count, l.first_received_at, l.deduplication_id
FROM sqs_leases AS l
CROSS JOIN sqs_epochs AS e ON e.id = l.epoch_id
CROSS JOIN sqs_queues AS q ON q.id = e.queue_id AND q.epoch_id = e.id
LEFT JOIN sqs_messages AS m ON m.id = l.id
ORDER BY l.id
"""

SELECT_LEASE_AND_QUEUE = """
-- By row ids; no queue where it was purged meanwhile.
SELECT l.epoch_id, l.group_key, q.id
FROM sqs_leases AS l
LEFT JOIN sqs_epochs AS e ON e.id = l.epoch_id
LEFT JOIN sqs_queues AS q ON q.id = e.queue_id AND q.epoch_id = e.id
WHERE l.id = :id
"""

# --- dump and load ----------------------------------------------------------------------------------------------

LIST_EVERY_NAME = """
-- Without bounds, unlike LIST_QUEUE_NAMES: a damaged row's name may be a BLOB, which no bound of text lets in.
SELECT name FROM sqs_queues WHERE account_id = :account_id ORDER BY name
"""

DUMP_MESSAGES = """
-- The next messages of some epochs, oldest row first, by the leases' row ids: the plus keeps the planner from an index,
-- after which it would sort whole bodies. A lease without a message is among them.
SELECT
    l.id, l.epoch_id, m.id, m.message_id, m.body_md5, m.body, m.sender_id, m.group_id, m.trace_header, m.attributes,
    l.deduplication_id, l.sent_at, l.first_received_at, l.receive_count, l.queue_receive_count,
    l.visible_at, l.token IS NOT NULL, d.source_arn, d.receive_count, d.moved_at, d.earlier
FROM sqs_leases AS l
LEFT JOIN sqs_messages AS m ON m.id = l.id
LEFT JOIN sqs_dead_letters AS d ON d.id = l.id
WHERE +l.epoch_id IN (SELECT value FROM json_each(:epoch_ids)) AND l.id > :after_id
ORDER BY l.id
LIMIT :max_messages + 0
"""

DUMP_MESSAGE = """
-- DUMP_MESSAGES for one row, where damage keeps several from being read.
SELECT
    l.id, l.epoch_id, m.id, m.message_id, m.body_md5, m.body, m.sender_id, m.group_id, m.trace_header, m.attributes,
    l.deduplication_id, l.sent_at, l.first_received_at, l.receive_count, l.queue_receive_count,
    l.visible_at, l.token IS NOT NULL, d.source_arn, d.receive_count, d.moved_at, d.earlier
FROM sqs_leases AS l
LEFT JOIN sqs_messages AS m ON m.id = l.id
LEFT JOIN sqs_dead_letters AS d ON d.id = l.id
WHERE l.id = :id
"""

NEXT_LEASE = """
SELECT id FROM sqs_leases WHERE id > :after_id ORDER BY id LIMIT 1
"""

LIST_LEASES_BY_INDEX = """
-- What the index alone knows of the leases of an epoch, where their own pages can't be read.
SELECT id, epoch_id, sent_at
FROM sqs_leases INDEXED BY sqs_ix_leases_age
WHERE epoch_id = :epoch_id AND id > :after_id AND id < :before_id
ORDER BY id
"""

DUMP_DEDUPLICATIONS = """
-- What some epochs remember of their sends. Goes through what is remembered: five minutes' worth of each.
SELECT epoch_id, deduplication_id, group_id, message_id, sequence, expires_at
FROM sqs_deduplications
WHERE epoch_id IN (SELECT value FROM json_each(:epoch_ids)) AND expires_at > :now_ms
"""

RESTORE_DEDUPLICATION = """
-- What another file remembered. What this one remembers itself stays, unless it is over and not yet swept.
INSERT INTO sqs_deduplications (epoch_id, deduplication_id, group_id, message_id, sequence, expires_at)
VALUES (:epoch_id, :deduplication_id, :group_id, :message_id, :sequence, :expires_at)
ON CONFLICT (epoch_id, deduplication_id, group_id) DO UPDATE SET
    message_id = excluded.message_id,
    sequence = excluded.sequence,
    expires_at = excluded.expires_at
WHERE sqs_deduplications.expires_at <= :now_ms
"""

INSERT_LOADED_LEASE = """
-- Never received here, with the past it had elsewhere.
INSERT INTO sqs_leases (
    id, epoch_id, sent_at, size_bytes, visible_at, receive_count, queue_receive_count, first_received_at, turn,
    group_key, deduplication_id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

BEGIN_SEQUENCE = """
-- The row that SQLite makes with the first message.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'sqs_messages', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'sqs_messages')
"""

RAISE_SEQUENCE = """
-- FIFO: sequence numbers go on above the messages' numbers in another file.
UPDATE sqlite_sequence SET seq = max(seq, :sequence) WHERE name = 'sqs_messages'
"""

PEEK_FIFO = """
-- A FIFO queue's visible messages in order of sending, those behind one in flight too. Walks over the hidden ones.
SELECT
    m.id, m.message_id, m.body_md5, m.body, m.sender_id, m.group_id, m.trace_header, m.attributes,
    l.sent_at, l.receive_count, l.first_received_at, l.visible_at, l.token IS NOT NULL,
    l.turn, l.group_key IS NOT NULL, l.deduplication_id
FROM sqs_leases AS l
JOIN sqs_messages AS m ON m.id = l.id
WHERE l.epoch_id = :epoch_id AND l.sent_at > :expired_at AND l.visible_at = 0
ORDER BY l.sent_at, l.id
LIMIT :max_messages
"""

SELECT_BOOKMARK = """
-- How many messages of a dump this file has taken in.
SELECT number FROM sqs_meta WHERE name = :name
"""
