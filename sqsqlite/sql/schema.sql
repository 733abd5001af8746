-- The schema of a queue file: a new file is made of these statements. A test proves that the migrations build the same.
--
-- State is instants: whether a message is visible, delayed, in flight or expired follows from its milliseconds since
-- 1970 UTC and the clock. There is no status column. A row that describes a message does not name the queue: it carries
-- the queue's epoch_id, so a purge is one new epoch.
--
-- Numbers are declared INT, not INTEGER: Spark's JDBC reader takes INTEGER for 32 bits and wraps milliseconds silently,
-- and STRICT tables refuse BIGINT. Row ids must be INTEGER PRIMARY KEY.

-- The file's own facts: schema_version, file_id, secret (it signs the receipt handles), and of the clock boot (its
-- offset), jumps and difference. A test's file has a row test: only its own test run opens it.
CREATE TABLE sqs_meta (
    name TEXT NOT NULL,
    number INT,
    bytes BLOB,
    PRIMARY KEY (name)
) WITHOUT ROWID, STRICT;

-- Alembic's own table, under a name that leaves the application's alembic_version alone.
CREATE TABLE sqs_alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT sqs_alembic_version_pkc PRIMARY KEY (version_num)
);

-- Who has queues on an endpoint with keys. A file without a server has one account, which needs no row.
CREATE TABLE sqs_accounts (
    account_id TEXT NOT NULL,
    created_at INT NOT NULL,
    PRIMARY KEY (account_id)
) WITHOUT ROWID, STRICT;

CREATE TABLE sqs_access_keys (
    access_key_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    user_name TEXT NOT NULL,
    -- SigV4 is a MAC: the verifier needs the secret itself; a hash would not do.
    secret_access_key TEXT NOT NULL,
    created_at INT NOT NULL,
    expires_at INT,
    PRIMARY KEY (access_key_id)
) WITHOUT ROWID, STRICT;

CREATE TABLE sqs_queues (
    -- Stays for the queue's life: history, tags and provenance refer to it. AUTOINCREMENT: receipt handles name it.
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,
    -- The storage key that the rows of messages carry; a purge gives the queue a new one.
    epoch_id INT NOT NULL,
    fifo INT DEFAULT 0 NOT NULL,
    created_at INT NOT NULL,
    modified_at INT NOT NULL,
    purged_at INT,
    delay_seconds INT DEFAULT 0 NOT NULL,
    maximum_message_size_bytes INT NOT NULL,
    message_retention_period_seconds INT NOT NULL,
    receive_message_wait_time_seconds INT DEFAULT 0 NOT NULL,
    visibility_timeout_seconds INT NOT NULL,
    dead_letter_target_arn TEXT,
    max_receive_count INT,
    redrive_allow_policy TEXT,
    policy TEXT,
    kms_master_key_id TEXT,
    kms_data_key_reuse_period_seconds INT,
    sqs_managed_sse_enabled INT DEFAULT 1 NOT NULL,
    content_based_deduplication INT DEFAULT 0 NOT NULL,
    deduplication_scope TEXT,
    first_deduplication_scope TEXT,  -- as created: compat="aws" goes by it
    fifo_throughput_limit TEXT,
    -- 1 from the first one on: until then, actions skip sqs_dead_letters and draw no turns.
    holds_dead_letters INT DEFAULT 0 NOT NULL,
    has_tenants INT DEFAULT 0 NOT NULL,
    UNIQUE (account_id, name)
) STRICT;

CREATE INDEX sqs_ix_queues_dead_letter_target ON sqs_queues (dead_letter_target_arn)
WHERE dead_letter_target_arn IS NOT NULL;

CREATE TABLE sqs_queue_tags (
    queue_id INT NOT NULL,
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (queue_id, "key")
) WITHOUT ROWID, STRICT;

-- Names deleted lately: SQS keeps a name for 60 s.
CREATE TABLE sqs_queue_tombstones (
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,
    deleted_at INT NOT NULL,
    PRIMARY KEY (account_id, name)
) WITHOUT ROWID, STRICT;

CREATE TABLE sqs_epochs (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    queue_id INT NOT NULL,
    created_at INT NOT NULL,
    -- Set by purge and delete: no action reads the epoch's rows any more, and upkeep sweeps them in chunks.
    discarded_at INT
) STRICT;

CREATE INDEX sqs_ix_epochs_discarded ON sqs_epochs (discarded_at)
WHERE discarded_at IS NOT NULL;

-- Never rewritten, neither by a claim nor by a move. AUTOINCREMENT, though it costs an eighth of a send: without it
-- the next send could get a deleted message's id, and a stale handle would name another message.
CREATE TABLE sqs_messages (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    message_id BLOB NOT NULL,
    body_md5 BLOB NOT NULL,
    sender_id TEXT,
    group_id TEXT,
    trace_header TEXT,
    attributes TEXT,
    body TEXT NOT NULL
) STRICT;

-- One narrow row a message, under the message's id: all that a claim, a change of visibility or a move rewrites.
CREATE TABLE sqs_leases (
    id INTEGER NOT NULL,
    epoch_id INT NOT NULL,
    group_key INT,  -- FIFO: the row of sqs_message_groups
    turn INT DEFAULT 0 NOT NULL,  -- fair queues: the order of service; 0 where the queue has no groups
    sent_at INT NOT NULL,
    size_bytes INT NOT NULL,
    -- 0: visible, for good. Otherwise the instant at which a delay or a visibility timeout ends.
    visible_at INT NOT NULL,
    receive_count INT DEFAULT 0 NOT NULL,  -- reported as ApproximateReceiveCount; a move keeps it
    queue_receive_count INT DEFAULT 0 NOT NULL,  -- compared with maxReceiveCount; a move sets it to 0
    token BLOB,  -- of the latest receive; NULL: never received in this queue
    received_at INT,
    first_received_at INT,
    deduplication_id TEXT,  -- FIFO
    PRIMARY KEY (id)
) STRICT;

-- Retention, the oldest message, and the sweeper.
CREATE INDEX sqs_ix_leases_age ON sqs_leases (epoch_id, sent_at);

CREATE INDEX sqs_ix_leases_group ON sqs_leases (group_key, id)
WHERE group_key IS NOT NULL;

-- Everything hidden, in order of its return; the last column tells in flight from delayed.
CREATE INDEX sqs_ix_leases_hidden ON sqs_leases (epoch_id, visible_at, (token IS NOT NULL))
WHERE visible_at > 0;

-- Everything visible, in order of service. A statement must repeat the WHERE terms to be served by the index.
CREATE INDEX sqs_ix_leases_ready ON sqs_leases (epoch_id, turn, id)
WHERE visible_at = 0 AND group_key IS NULL;

-- The one hot row a queue: exact counts, and the activity of the open minute.
CREATE TABLE sqs_queue_counts (
    epoch_id INTEGER NOT NULL,
    messages INT DEFAULT 0 NOT NULL,
    in_flight INT DEFAULT 0 NOT NULL,
    delayed INT DEFAULT 0 NOT NULL,
    turn INT DEFAULT 0 NOT NULL,  -- fair queues: the highest turn ever claimed
    minute_at INT DEFAULT 0 NOT NULL,
    sent INT DEFAULT 0 NOT NULL,
    received INT DEFAULT 0 NOT NULL,
    deleted INT DEFAULT 0 NOT NULL,
    dead_lettered INT DEFAULT 0 NOT NULL,
    deduplicated INT DEFAULT 0 NOT NULL,
    empty_receives INT DEFAULT 0 NOT NULL,
    sent_bytes INT DEFAULT 0 NOT NULL,
    PRIMARY KEY (epoch_id)
) STRICT;

-- Closed minutes, kept after the messages are gone.
CREATE TABLE sqs_queue_activity (
    queue_id INT NOT NULL,
    minute_at INT NOT NULL,
    sent INT DEFAULT 0 NOT NULL,
    received INT DEFAULT 0 NOT NULL,
    deleted INT DEFAULT 0 NOT NULL,
    dead_lettered INT DEFAULT 0 NOT NULL,
    deduplicated INT DEFAULT 0 NOT NULL,
    empty_receives INT DEFAULT 0 NOT NULL,
    sent_bytes INT DEFAULT 0 NOT NULL,
    PRIMARY KEY (queue_id, minute_at)
) WITHOUT ROWID, STRICT;

-- FIFO: a row while the group has messages. It finds the next receivable group without looking at a message.
CREATE TABLE sqs_message_groups (
    group_key INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    epoch_id INT NOT NULL,
    group_id TEXT NOT NULL,
    head_visible_at INT NOT NULL,
    UNIQUE (epoch_id, group_id)
) STRICT;

CREATE INDEX sqs_ix_message_groups_ready ON sqs_message_groups (epoch_id, head_visible_at, group_key);

-- Fair queues: the last turn that each group of a standard queue drew.
CREATE TABLE sqs_tenants (
    epoch_id INT NOT NULL,
    group_id TEXT NOT NULL,
    last_turn INT DEFAULT 0 NOT NULL,
    last_sent_at INT NOT NULL,
    PRIMARY KEY (epoch_id, group_id)
) WITHOUT ROWID, STRICT;

CREATE INDEX sqs_ix_tenants_quiet ON sqs_tenants (last_sent_at);

-- FIFO: five minutes of accepted deduplication ids, by group whatever the scope: a changed scope forgets none.
CREATE TABLE sqs_deduplications (
    epoch_id INT NOT NULL,
    deduplication_id TEXT NOT NULL,
    group_id TEXT NOT NULL,
    message_id BLOB NOT NULL,
    sequence INT NOT NULL,
    expires_at INT NOT NULL,
    PRIMARY KEY (epoch_id, deduplication_id, group_id)
) WITHOUT ROWID, STRICT;

CREATE INDEX sqs_ix_deduplications_expiry ON sqs_deduplications (expires_at);

-- FIFO: what each ReceiveRequestAttemptId received, as JSON [[lease id, token in hex, visible_at], ...].
CREATE TABLE sqs_receive_attempts (
    epoch_id INT NOT NULL,
    attempt_id TEXT NOT NULL,
    leases TEXT NOT NULL,
    expires_at INT NOT NULL,
    PRIMARY KEY (epoch_id, attempt_id)
) WITHOUT ROWID, STRICT;

CREATE INDEX sqs_ix_receive_attempts_expiry ON sqs_receive_attempts (expires_at);

-- Where a moved message came from; the row lives as long as the message does.
CREATE TABLE sqs_dead_letters (
    id INTEGER NOT NULL,
    epoch_id INT NOT NULL,
    source_queue_id INT NOT NULL,
    source_arn TEXT NOT NULL,
    receive_count INT NOT NULL,
    moved_at INT NOT NULL,
    -- The moves before, as JSON [[source_queue_id, source_arn, receive_count, moved_at], ...], the latest last.
    earlier TEXT,
    PRIMARY KEY (id)
) STRICT;

CREATE INDEX sqs_ix_dead_letters_epoch ON sqs_dead_letters (epoch_id, moved_at);

CREATE TABLE sqs_move_tasks (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    source_arn TEXT NOT NULL,
    source_epoch_id INT NOT NULL,
    destination_arn TEXT,
    filter TEXT,
    max_messages_per_second INT,
    status TEXT NOT NULL,
    failure_reason TEXT,
    started_at INT NOT NULL,
    finished_at INT,
    -- Messages sent after the start are not the task's: it stops at this row id.
    last_message_id INT NOT NULL,
    moved_count INT DEFAULT 0 NOT NULL,
    to_move_count INT DEFAULT 0 NOT NULL,
    -- When its next chunk may run (a task may have a rate); then the last message it looked at, by age.
    due_at INT NOT NULL,
    cursor_sent_at INT DEFAULT 0 NOT NULL,
    cursor_id INT DEFAULT 0 NOT NULL,
    -- Any live process goes on with it: the row itself is leased.
    leased_until_at INT DEFAULT 0 NOT NULL,
    lease_token BLOB,
    UNIQUE (task_id)
) STRICT;

CREATE INDEX sqs_ix_move_tasks_due ON sqs_move_tasks (due_at)
WHERE finished_at IS NULL;

CREATE INDEX sqs_ix_move_tasks_source ON sqs_move_tasks (source_arn, started_at);

-- The reporting views: what JDBC, BI tools and the sqlite3 shell read of a queue file, and may rely on. Their names and
-- columns stay; the tables behind them may change with the schema's version. `state` and columns that end in _seconds
-- use the machine's clock at the moment of the query: a program that needs one instant for all its rows reads the
-- instants themselves. A computed column has no declared type in SQLite: Spark reads it as decimal(38,18) unless its
-- schema names the type; `sqsqlite analytics schema` prints the types.
CREATE VIEW sqs_report_now AS
SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS now_ms;

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
CROSS JOIN sqs_report_now AS n;

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
CROSS JOIN sqs_report_now AS n;

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
WHERE l.visible_at > n.now_ms AND l.token IS NOT NULL;

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
CROSS JOIN sqs_report_now AS n;

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
WHERE c.sent + c.received + c.deleted + c.dead_lettered + c.deduplicated + c.empty_receives > 0;

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
CROSS JOIN sqs_report_now AS n;

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
JOIN sqs_queue_counts AS c ON c.epoch_id = t.epoch_id;
