"""The DDL of a new file, written from `sqsqlite/schema.py` by `make ddl`; a test keeps the two equal."""

SCHEMA_VERSION = 1
ALEMBIC_VERSION = "0001"

STATEMENTS: tuple[str, ...] = (
    """
CREATE TABLE sqs_meta (
    name TEXT NOT NULL,
    number INT,
    bytes BLOB,
    PRIMARY KEY (name)
) WITHOUT ROWID, STRICT
""",
    """
CREATE TABLE sqs_alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT sqs_alembic_version_pkc PRIMARY KEY (version_num)
)
""",
    """
CREATE TABLE sqs_accounts (
    account_id TEXT NOT NULL,
    created_at INT NOT NULL,
    PRIMARY KEY (account_id)
) WITHOUT ROWID, STRICT
""",
    """
CREATE TABLE sqs_access_keys (
    access_key_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    user_name TEXT NOT NULL,
    secret_access_key TEXT NOT NULL,
    created_at INT NOT NULL,
    expires_at INT,
    PRIMARY KEY (access_key_id)
) WITHOUT ROWID, STRICT
""",
    """
CREATE TABLE sqs_queues (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,
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
    first_deduplication_scope TEXT,
    fifo_throughput_limit TEXT,
    holds_dead_letters INT DEFAULT 0 NOT NULL,
    has_tenants INT DEFAULT 0 NOT NULL,
    UNIQUE (account_id, name)
) STRICT
""",
    """
CREATE INDEX sqs_ix_queues_dead_letter_target ON sqs_queues (dead_letter_target_arn)
WHERE dead_letter_target_arn IS NOT NULL
""",
    """
CREATE TABLE sqs_queue_tags (
    queue_id INT NOT NULL,
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (queue_id, "key")
) WITHOUT ROWID, STRICT
""",
    """
CREATE TABLE sqs_queue_tombstones (
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,
    deleted_at INT NOT NULL,
    PRIMARY KEY (account_id, name)
) WITHOUT ROWID, STRICT
""",
    """
CREATE TABLE sqs_epochs (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    queue_id INT NOT NULL,
    created_at INT NOT NULL,
    discarded_at INT
) STRICT
""",
    """
CREATE INDEX sqs_ix_epochs_discarded ON sqs_epochs (discarded_at)
WHERE discarded_at IS NOT NULL
""",
    """
CREATE TABLE sqs_messages (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    message_id BLOB NOT NULL,
    body_md5 BLOB NOT NULL,
    sender_id TEXT,
    group_id TEXT,
    trace_header TEXT,
    attributes TEXT,
    body TEXT NOT NULL
) STRICT
""",
    """
CREATE TABLE sqs_leases (
    id INTEGER NOT NULL,
    epoch_id INT NOT NULL,
    group_key INT,
    turn INT DEFAULT 0 NOT NULL,
    sent_at INT NOT NULL,
    size_bytes INT NOT NULL,
    visible_at INT NOT NULL,
    receive_count INT DEFAULT 0 NOT NULL,
    queue_receive_count INT DEFAULT 0 NOT NULL,
    token BLOB,
    received_at INT,
    first_received_at INT,
    deduplication_id TEXT,
    PRIMARY KEY (id)
) STRICT
""",
    """
CREATE INDEX sqs_ix_leases_age ON sqs_leases (epoch_id, sent_at)
""",
    """
CREATE INDEX sqs_ix_leases_group ON sqs_leases (group_key, id)
WHERE group_key IS NOT NULL
""",
    """
CREATE INDEX sqs_ix_leases_hidden ON sqs_leases (epoch_id, visible_at, (token IS NOT NULL))
WHERE visible_at > 0
""",
    """
CREATE INDEX sqs_ix_leases_ready ON sqs_leases (epoch_id, turn, id)
WHERE visible_at = 0 AND group_key IS NULL
""",
    """
CREATE TABLE sqs_queue_counts (
    epoch_id INTEGER NOT NULL,
    messages INT DEFAULT 0 NOT NULL,
    in_flight INT DEFAULT 0 NOT NULL,
    delayed INT DEFAULT 0 NOT NULL,
    turn INT DEFAULT 0 NOT NULL,
    minute_at INT DEFAULT 0 NOT NULL,
    sent INT DEFAULT 0 NOT NULL,
    received INT DEFAULT 0 NOT NULL,
    deleted INT DEFAULT 0 NOT NULL,
    dead_lettered INT DEFAULT 0 NOT NULL,
    deduplicated INT DEFAULT 0 NOT NULL,
    empty_receives INT DEFAULT 0 NOT NULL,
    sent_bytes INT DEFAULT 0 NOT NULL,
    PRIMARY KEY (epoch_id)
) STRICT
""",
    """
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
) WITHOUT ROWID, STRICT
""",
    """
CREATE TABLE sqs_message_groups (
    group_key INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    epoch_id INT NOT NULL,
    group_id TEXT NOT NULL,
    head_visible_at INT NOT NULL,
    UNIQUE (epoch_id, group_id)
) STRICT
""",
    """
CREATE INDEX sqs_ix_message_groups_ready ON sqs_message_groups (epoch_id, head_visible_at, group_key)
""",
    """
CREATE TABLE sqs_tenants (
    epoch_id INT NOT NULL,
    group_id TEXT NOT NULL,
    last_turn INT DEFAULT 0 NOT NULL,
    last_sent_at INT NOT NULL,
    PRIMARY KEY (epoch_id, group_id)
) WITHOUT ROWID, STRICT
""",
    """
CREATE INDEX sqs_ix_tenants_quiet ON sqs_tenants (last_sent_at)
""",
    """
CREATE TABLE sqs_deduplications (
    epoch_id INT NOT NULL,
    deduplication_id TEXT NOT NULL,
    group_id TEXT NOT NULL,
    message_id BLOB NOT NULL,
    sequence INT NOT NULL,
    expires_at INT NOT NULL,
    PRIMARY KEY (epoch_id, deduplication_id, group_id)
) WITHOUT ROWID, STRICT
""",
    """
CREATE INDEX sqs_ix_deduplications_expiry ON sqs_deduplications (expires_at)
""",
    """
CREATE TABLE sqs_receive_attempts (
    epoch_id INT NOT NULL,
    attempt_id TEXT NOT NULL,
    leases TEXT NOT NULL,
    expires_at INT NOT NULL,
    PRIMARY KEY (epoch_id, attempt_id)
) WITHOUT ROWID, STRICT
""",
    """
CREATE INDEX sqs_ix_receive_attempts_expiry ON sqs_receive_attempts (expires_at)
""",
    """
CREATE TABLE sqs_dead_letters (
    id INTEGER NOT NULL,
    epoch_id INT NOT NULL,
    source_queue_id INT NOT NULL,
    source_arn TEXT NOT NULL,
    receive_count INT NOT NULL,
    moved_at INT NOT NULL,
    PRIMARY KEY (id)
) STRICT
""",
    """
CREATE INDEX sqs_ix_dead_letters_epoch ON sqs_dead_letters (epoch_id, moved_at)
""",
    """
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
    last_message_id INT NOT NULL,
    moved_count INT DEFAULT 0 NOT NULL,
    to_move_count INT DEFAULT 0 NOT NULL,
    due_at INT NOT NULL,
    cursor_sent_at INT DEFAULT 0 NOT NULL,
    cursor_id INT DEFAULT 0 NOT NULL,
    leased_until_at INT DEFAULT 0 NOT NULL,
    lease_token BLOB,
    UNIQUE (task_id)
) STRICT
""",
    """
CREATE INDEX sqs_ix_move_tasks_due ON sqs_move_tasks (due_at)
WHERE finished_at IS NULL
""",
    """
CREATE INDEX sqs_ix_move_tasks_source ON sqs_move_tasks (source_arn, started_at)
""",
)
