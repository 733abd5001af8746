# SPDX-License-Identifier: Apache-2.0
"""The SQL of message move tasks, by the rules of `statements.py`: the tasks, and the chunks that carry them out."""

# --- tasks ------------------------------------------------------------------------------------------------------

FIND_SOURCE_OF_DEAD_LETTERS = """
-- Is the queue a dead-letter queue of any other? By sqs_ix_queues_dead_letter_target.
SELECT 1 FROM sqs_queues
WHERE dead_letter_target_arn = :arn AND dead_letter_target_arn IS NOT NULL
LIMIT 1
"""

FIND_ACTIVE_MOVE_TASK = """
-- Of one source. By sqs_ix_move_tasks_source, which holds the latest few of each.
SELECT 1 FROM sqs_move_tasks WHERE source_arn = :source_arn AND finished_at IS NULL LIMIT 1
"""

COUNT_ACTIVE_MOVE_TASKS = """
-- Of an account. By sqs_ix_move_tasks_due, which holds the unfinished ones alone.
SELECT count(*) FROM sqs_move_tasks WHERE account_id = :account_id AND finished_at IS NULL
"""

SELECT_LAST_MESSAGE_ID = """
-- The highest row id that any message ever had, by AUTOINCREMENT's own memory.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'sqs_messages'
"""

INSERT_MOVE_TASK = """
INSERT INTO sqs_move_tasks (
    task_id, account_id, source_arn, source_epoch_id, destination_arn, filter, max_messages_per_second, status,
    started_at, last_message_id, to_move_count, due_at
) VALUES (
    :task_id, :account_id, :source_arn, :source_epoch_id, :destination_arn, :filter, :max_messages_per_second,
    'RUNNING', :now_ms, :last_message_id, :to_move_count, :due_at
)
"""

DELETE_OLD_MOVE_TASKS = """
-- Those before a source's latest few. By sqs_ix_move_tasks_source.
DELETE FROM sqs_move_tasks
WHERE source_arn = :source_arn AND finished_at IS NOT NULL
    AND started_at < (
        SELECT latest.started_at FROM sqs_move_tasks AS latest
        WHERE latest.source_arn = :source_arn
        ORDER BY latest.started_at DESC
        LIMIT 1 OFFSET :kept - 1
    )
"""

LIST_MOVE_TASKS = """
-- A source's tasks, the latest first. By sqs_ix_move_tasks_source.
SELECT
    task_id, status, source_arn, destination_arn, max_messages_per_second, moved_count, to_move_count, failure_reason,
    started_at
FROM sqs_move_tasks
WHERE source_arn = :source_arn
ORDER BY started_at DESC, id DESC
LIMIT :max_results + 0
"""

SELECT_MOVE_TASK = """
SELECT
    task_id, status, source_arn, destination_arn, max_messages_per_second, moved_count, to_move_count, failure_reason,
    started_at
FROM sqs_move_tasks
WHERE task_id = :task_id
"""

END_MOVE_TASK = """
UPDATE sqs_move_tasks
SET status = :status, failure_reason = :failure_reason, finished_at = :now_ms, leased_until_at = 0, lease_token = NULL
WHERE task_id = :task_id AND finished_at IS NULL
"""

# --- who works on what, and when --------------------------------------------------------------------------------

LIST_ORIGINS = """
-- Where the messages of a dead-letter queue died. By sqs_ix_dead_letters_epoch, through all of them.
SELECT DISTINCT source_arn FROM sqs_dead_letters WHERE epoch_id = :epoch_id
"""

LIST_UNFINISHED_MOVE_TASKS = """
-- The one that has waited longest first. By sqs_ix_move_tasks_due.
SELECT
    task_id, source_arn, source_epoch_id, destination_arn, filter, max_messages_per_second, failure_reason,
    started_at, last_message_id, due_at, cursor_sent_at, cursor_id, leased_until_at, lease_token
FROM sqs_move_tasks
WHERE finished_at IS NULL
ORDER BY due_at
"""

ADVANCE_MOVE_TASK = """
-- After a chunk, in its own transaction: how far it came, when it goes on, and who goes on with it.
UPDATE sqs_move_tasks
SET
    moved_count = moved_count + :moved_count,
    cursor_sent_at = :cursor_sent_at,
    cursor_id = :cursor_id,
    failure_reason = :failure_reason,
    due_at = :due_at,
    leased_until_at = :leased_until_at,
    lease_token = :lease_token
WHERE task_id = :task_id
"""

LEAVE_MOVE_TASKS = """
-- A process that closes the file leaves its tasks to the others at once. By sqs_ix_move_tasks_due.
UPDATE sqs_move_tasks
SET leased_until_at = 0, lease_token = NULL
WHERE finished_at IS NULL AND lease_token = :lease_token
"""

# --- a chunk ----------------------------------------------------------------------------------------------------

LIST_MOVABLE = """
-- The next messages of a source in order of age, whatever their state, with where they came from. Two ranges of
-- sqs_ix_leases_age, merged, as LIST_MESSAGES has them. Sent after the start: not the task's.
SELECT
    l.id AS id, l.sent_at AS sent_at, l.size_bytes, l.visible_at, l.token IS NOT NULL, l.group_key,
    d.source_arn, d.receive_count, d.moved_at, d.earlier
FROM sqs_leases AS l
LEFT JOIN sqs_dead_letters AS d ON d.id = l.id
WHERE l.epoch_id = :epoch_id AND l.sent_at = :after_sent_at AND l.id > :after_id AND l.id <= :last_id
UNION ALL
SELECT
    l.id, l.sent_at, l.size_bytes, l.visible_at, l.token IS NOT NULL, l.group_key,
    d.source_arn, d.receive_count, d.moved_at, d.earlier
FROM sqs_leases AS l
LEFT JOIN sqs_dead_letters AS d ON d.id = l.id
WHERE l.epoch_id = :epoch_id AND l.sent_at > :after_sent_at AND l.sent_at <= :started_at AND +l.id <= :last_id
ORDER BY sent_at, id
LIMIT :limit + 0
"""

LIST_GROUPS_BEHIND = """
-- FIFO: the groups of whatever queue behind one, and whether they are the source's and can be received from. By row id:
-- a group that begins later comes later, and none comes twice.
SELECT group_key, epoch_id = :epoch_id AND head_visible_at <= :now_ms
FROM sqs_message_groups
WHERE group_key > :after_key
ORDER BY group_key
LIMIT :limit + 0
"""

LIST_MOVABLE_OF_GROUP = """
-- A group's messages, in order. By sqs_ix_leases_group.
SELECT
    l.id, l.sent_at, l.size_bytes, l.visible_at, l.token IS NOT NULL, l.group_key,
    d.source_arn, d.receive_count, d.moved_at, d.earlier
FROM sqs_leases AS l
LEFT JOIN sqs_dead_letters AS d ON d.id = l.id
WHERE l.group_key = :group_key AND l.id > :after_id AND l.id <= :last_id
ORDER BY l.id
LIMIT :limit + 0
"""

FIND_HIDDEN_BEFORE = """
-- Is a message of the group hidden that stands before others of it? By sqs_ix_leases_hidden.
SELECT 1 FROM sqs_leases
WHERE epoch_id = :epoch_id AND visible_at > 0 AND visible_at > :now_ms AND +group_key = :group_key AND id <= :after_id
LIMIT 1
"""

LIST_WITH_BODY = """
-- Those of some messages whose body contains a text.
SELECT m.id
FROM json_each(:ids) AS listed
CROSS JOIN sqs_messages AS m ON m.id = listed.value
WHERE instr(m.body, :text) > 0
"""

LIST_GROUPS = """
-- Place in the list, and group, of those messages that have one.
SELECT listed.key, m.group_id
FROM json_each(:ids) AS listed
CROSS JOIN sqs_messages AS m ON m.id = listed.value
WHERE m.group_id IS NOT NULL
"""

COPY_MESSAGES = """
-- New row ids in the order of the list, whose keys count from 0. Each gets an id of its own, a random UUID (version 4).
INSERT INTO sqs_messages (id, message_id, body_md5, sender_id, group_id, trace_header, attributes, body)
SELECT
    :first_id + listed.key,
    unhex(
        hex(randomblob(6)) || '4' || substr(hex(randomblob(2)), 2) || substr('89AB', 1 + (random() & 3), 1)
        || substr(hex(randomblob(8)), 2)
    ),
    m.body_md5, m.sender_id, m.group_id, m.trace_header, m.attributes, m.body
FROM json_each(:ids) AS listed
CROSS JOIN sqs_messages AS m ON m.id = listed.value
"""

COPY_LEASES = """
-- Sent now, visible at once, never received.
INSERT INTO sqs_leases (id, epoch_id, turn, sent_at, size_bytes, visible_at)
SELECT :first_id + listed.key, :epoch_id, :turn, :now_ms, l.size_bytes, 0
FROM json_each(:ids) AS listed
CROSS JOIN sqs_leases AS l ON l.id = listed.value
"""

COPY_FIFO_LEASES = """
-- The same, each into its group, which is there already. The deduplication id stays, and no send is compared with it.
INSERT INTO sqs_leases (id, epoch_id, group_key, sent_at, size_bytes, visible_at, deduplication_id)
SELECT :first_id + listed.key, :epoch_id, g.group_key, :now_ms, l.size_bytes, 0, l.deduplication_id
FROM json_each(:ids) AS listed
CROSS JOIN sqs_leases AS l ON l.id = listed.value
CROSS JOIN sqs_messages AS m ON m.id = l.id
CROSS JOIN sqs_message_groups AS g ON g.epoch_id = :epoch_id AND g.group_id = m.group_id
"""

DELETE_MOVED_LEASES = """
DELETE FROM sqs_leases WHERE id IN (SELECT value FROM json_each(:ids))
"""

DELETE_MOVED_DEAD_LETTERS = """
DELETE FROM sqs_dead_letters WHERE id IN (SELECT value FROM json_each(:ids))
"""

DELETE_MOVED_MESSAGES = """
DELETE FROM sqs_messages WHERE id IN (SELECT value FROM json_each(:ids))
"""
