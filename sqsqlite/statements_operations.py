"""The SQL of the operator's commands: backup, restore, check, dump, load, migrations.

Apart from `statements.py`, because the rule there is the opposite one: these read whole tables, on purpose, and none
of them stands on the way of a message.
"""

# --- schema -----------------------------------------------------------------------------------------------------

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
-- Their handles died with the secret: nobody could delete them, so nobody should have to wait for them.
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
-- Whoever ran them runs them in the original.
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
-- What is kept beside what is there: messages, in flight, delayed, by the state of the rows.
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
-- Fair queues: where nobody draws turns all messages have the turn 0.
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

FIND_UNMARKED_DEAD_LETTER_QUEUES = """
SELECT DISTINCT q.name
FROM sqs_dead_letters AS d
JOIN sqs_queues AS q ON q.epoch_id = d.epoch_id
WHERE q.holds_dead_letters = 0
LIMIT 20
"""

LIST_BODIES = """
-- The body's bytes as they are, so that bytes that are no UTF-8 are a finding and not an error.
SELECT id, body_md5, CAST(body AS BLOB), attributes FROM sqs_messages
"""

# --- dump and load ----------------------------------------------------------------------------------------------

LIST_QUEUE_NAMES = """
SELECT name FROM sqs_queues WHERE account_id = :account_id ORDER BY name
"""

DUMP_MESSAGES = """
-- The messages of some epochs, oldest row first, in one pass over the leases' row ids: the plus keeps the planner
-- from an index, after which it would sort whole bodies.
SELECT
    l.epoch_id, m.message_id, m.body, m.attributes, m.group_id, m.trace_header, m.sender_id, l.deduplication_id,
    CASE WHEN l.group_key IS NOT NULL THEN l.id END, l.sent_at, l.first_received_at, l.receive_count,
    l.queue_receive_count, l.visible_at, l.token IS NOT NULL, d.source_arn, d.receive_count, d.moved_at
FROM sqs_leases AS l
CROSS JOIN sqs_messages AS m ON m.id = l.id
LEFT JOIN sqs_dead_letters AS d ON d.id = l.id
WHERE +l.epoch_id IN (SELECT value FROM json_each(:epoch_ids))
ORDER BY l.id
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
-- FIFO: sequence numbers go on above those that the messages had in another file.
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

# --- metrics ----------------------------------------------------------------------------------------------------

LIST_ACCOUNTS = """
-- Accounts that have queues, by the unique index on (account_id, name).
SELECT DISTINCT account_id FROM sqs_queues ORDER BY account_id
"""

LIST_QUEUES_TO_MEASURE = """
-- From one name to another: all that begin alike, or one. By the unique index on (account_id, name).
SELECT
    q.name, q.id, q.epoch_id, q.fifo, q.message_retention_period_seconds, q.holds_dead_letters, q.has_tenants,
    c.minute_at, c.sent, c.received, c.empty_receives, c.deleted, c.deduplicated, c.sent_bytes
FROM sqs_queues AS q
JOIN sqs_queue_counts AS c ON c.epoch_id = q.epoch_id
WHERE q.account_id = :account_id AND q.name >= :first_name AND q.name <= :last_name
ORDER BY q.name
"""

SUM_ACTIVITY = """
-- Of a queue's closed minutes of late. By the primary key.
SELECT
    coalesce(sum(sent), 0), coalesce(sum(received), 0), coalesce(sum(empty_receives), 0), coalesce(sum(deleted), 0),
    coalesce(sum(deduplicated), 0), coalesce(sum(sent_bytes), 0)
FROM sqs_queue_activity
WHERE queue_id = :queue_id AND minute_at >= :since_at
"""

FIND_OLDEST_MOVE = """
-- By sqs_ix_dead_letters_epoch; passes over what is beyond retention and not yet swept.
SELECT d.moved_at
FROM sqs_dead_letters AS d
CROSS JOIN sqs_leases AS l ON l.id = d.id
WHERE d.epoch_id = :epoch_id AND l.epoch_id = :epoch_id AND l.sent_at > :expired_at
ORDER BY d.moved_at
LIMIT 1
"""

FIND_OLDEST_UNMOVED = """
-- The oldest message that was sent to a dead-letter queue itself, if it was sent before the oldest move. Dead letters
-- that are older than the oldest move are passed over, 10,000 at most. By sqs_ix_leases_age.
SELECT old.sent_at
FROM (
    SELECT l.id, l.sent_at FROM sqs_leases AS l
    WHERE l.epoch_id = :epoch_id AND l.sent_at > :expired_at AND l.sent_at < :oldest_move_at
    ORDER BY l.sent_at
    LIMIT 10000
) AS old
WHERE NOT EXISTS (SELECT 1 FROM sqs_dead_letters AS d WHERE d.id = old.id)
ORDER BY old.sent_at
LIMIT 1
"""

COUNT_GROUPS_IN_FLIGHT = """
-- FIFO. Goes through what is hidden: in flight, 120,000 at most, and delayed.
SELECT count(DISTINCT group_key)
FROM sqs_leases
WHERE epoch_id = :epoch_id AND visible_at > 0 AND visible_at > :now_ms AND token IS NOT NULL AND sent_at > :expired_at
"""

LIST_NOISY_GROUPS = """
-- Fair queues: the groups, at most nine, that have 30 messages and more than a tenth of all in flight. Goes through
-- what is hidden: in flight, 120,000 at most, and delayed.
SELECT m.group_id
FROM sqs_leases AS l
JOIN sqs_messages AS m ON m.id = l.id
WHERE l.epoch_id = :epoch_id AND l.visible_at > 0 AND l.visible_at > :now_ms AND (l.token IS NOT NULL)
    AND l.sent_at > :expired_at AND m.group_id IS NOT NULL
GROUP BY m.group_id
HAVING count(*) >= 30 AND count(*) * 10 > :in_flight
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
-- By the queue they are in and the one they came from.
SELECT q.name, d.source_arn, count(*), min(d.moved_at), max(d.moved_at)
FROM sqs_queues AS q
JOIN sqs_dead_letters AS d ON d.epoch_id = q.epoch_id
JOIN sqs_leases AS l ON l.id = d.id AND l.epoch_id = d.epoch_id
WHERE q.account_id = :account_id AND l.sent_at > :now_ms - q.message_retention_period_seconds * 1000
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
