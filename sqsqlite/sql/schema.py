"""The tables of a queue file, defined once, in SQLAlchemy Core.

Nothing on the way of a message imports this module: a new file is made from `sql/ddl.py`, the text that `make ddl`
writes from here, and the migrations under `migrations/` are proven to build the same.

Two conventions carry the rest. State is instants: whether a message is visible, delayed, in flight or expired follows
from its milliseconds and the clock, there is no status column. And a row that describes a message never names a
queue: it carries the queue's `epoch_id`, so that purging a queue is giving it a new epoch.

Whole numbers are declared INT, not INTEGER: Spark's JDBC reader takes INTEGER for 32 bits and wraps milliseconds
silently, and STRICT tables refuse BIGINT. Row ids must be INTEGER PRIMARY KEY.
"""

from sqlalchemy import Column, Index, MetaData, PrimaryKeyConstraint, String, Table, UniqueConstraint, text
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import BLOB, INTEGER, TEXT, UserDefinedType

SCHEMA_VERSION = 2
# The Alembic revision under migrations/versions that builds this schema.
ALEMBIC_VERSION = "0002"


class INT(UserDefinedType[int]):
    """A 64-bit whole number under the one name that STRICT accepts and JDBC readers take for 64 bits."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "INT"


metadata = MetaData()


def _number(name: str, default: int | None = 0) -> Column[int]:
    """A NOT NULL number; `default=None` asks every INSERT to give it."""
    return Column(name, INT, nullable=False, server_default=None if default is None else text(str(default)))


def _table(name: str, *columns: SchemaItem, rowid: bool = True, autoincrement: bool = False) -> Table:
    return Table(
        name,
        metadata,
        *columns,
        sqlite_strict=True,
        sqlite_with_rowid=rowid,
        sqlite_autoincrement=autoincrement,
    )


meta = _table(
    "sqs_meta",
    # schema_version, file_id, secret (of the receipt handles), and of the clock: boot (its offset), jumps, difference.
    Column("name", TEXT, primary_key=True, nullable=False),
    Column("number", INT),
    Column("bytes", BLOB),
    rowid=False,
)

# As Alembic itself would make it, under a name that leaves the application's own alembic_version alone.
alembic_version = Table(
    "sqs_alembic_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="sqs_alembic_version_pkc"),
)

accounts = _table(
    "sqs_accounts",
    Column("account_id", TEXT, primary_key=True, nullable=False),
    _number("created_at", None),
    rowid=False,
)

access_keys = _table(
    "sqs_access_keys",
    Column("access_key_id", TEXT, primary_key=True, nullable=False),
    Column("account_id", TEXT, nullable=False),
    Column("user_name", TEXT, nullable=False),
    # SigV4 is a MAC: the verifier needs the secret itself, a hash of it would not do.
    Column("secret_access_key", TEXT, nullable=False),
    _number("created_at", None),
    Column("expires_at", INT),
    rowid=False,
)

queues = _table(
    "sqs_queues",
    # Stays for the queue's life: history, tags and provenance refer to it. AUTOINCREMENT: a handle names it too.
    Column("id", INTEGER, primary_key=True, nullable=False),
    Column("account_id", TEXT, nullable=False),
    Column("name", TEXT, nullable=False),
    # The storage key that messages' rows carry; a purge gives the queue a new one.
    _number("epoch_id", None),
    _number("fifo"),
    _number("created_at", None),
    _number("modified_at", None),
    Column("purged_at", INT),
    _number("delay_seconds"),
    _number("maximum_message_size_bytes", None),
    _number("message_retention_period_seconds", None),
    _number("receive_message_wait_time_seconds"),
    _number("visibility_timeout_seconds", None),
    Column("dead_letter_target_arn", TEXT),
    Column("max_receive_count", INT),
    Column("redrive_allow_policy", TEXT),
    Column("policy", TEXT),
    Column("kms_master_key_id", TEXT),
    Column("kms_data_key_reuse_period_seconds", INT),
    _number("sqs_managed_sse_enabled", 1),
    _number("content_based_deduplication"),
    Column("deduplication_scope", TEXT),
    Column("first_deduplication_scope", TEXT),  # as created: what compat="aws" goes by
    Column("fifo_throughput_limit", TEXT),
    # 1 from the first one on: only then does anybody look at sqs_dead_letters, or draw turns.
    _number("holds_dead_letters"),
    _number("has_tenants"),
    UniqueConstraint("account_id", "name"),
    autoincrement=True,
)
Index(
    "sqs_ix_queues_dead_letter_target",
    queues.c.dead_letter_target_arn,
    sqlite_where=text("dead_letter_target_arn IS NOT NULL"),
)

queue_tags = _table(
    "sqs_queue_tags",
    _number("queue_id", None),
    Column("key", TEXT, nullable=False),
    Column("value", TEXT, nullable=False),
    PrimaryKeyConstraint("queue_id", "key"),
    rowid=False,
)

queue_tombstones = _table(
    "sqs_queue_tombstones",
    Column("account_id", TEXT, nullable=False),
    Column("name", TEXT, nullable=False),
    _number("deleted_at", None),
    PrimaryKeyConstraint("account_id", "name"),
    rowid=False,
)

epochs = _table(
    "sqs_epochs",
    Column("id", INTEGER, primary_key=True, nullable=False),
    _number("queue_id", None),
    _number("created_at", None),
    # Set by purge and delete: nothing reads the epoch's rows any more, the sweeper takes them away in chunks.
    Column("discarded_at", INT),
    autoincrement=True,
)
Index("sqs_ix_epochs_discarded", epochs.c.discarded_at, sqlite_where=text("discarded_at IS NOT NULL"))

messages = _table(
    "sqs_messages",
    # Never rewritten: not by a claim, not by a move. AUTOINCREMENT, though it costs an eighth of a send: without it
    # the next send may get a deleted message's id, and a stale handle would name a stranger's message.
    Column("id", INTEGER, primary_key=True, nullable=False),
    Column("message_id", BLOB, nullable=False),
    Column("body_md5", BLOB, nullable=False),
    Column("sender_id", TEXT),
    Column("group_id", TEXT),
    Column("trace_header", TEXT),
    Column("attributes", TEXT),
    Column("body", TEXT, nullable=False),
    autoincrement=True,
)

leases = _table(
    "sqs_leases",
    # One narrow row a message, under the message's id: all that a claim, a change or a move rewrites.
    Column("id", INTEGER, primary_key=True, nullable=False),
    _number("epoch_id", None),
    Column("group_key", INT),  # FIFO: the row of sqs_message_groups
    _number("turn"),  # fair queues: the order of service; 0 where nobody uses groups
    _number("sent_at", None),
    _number("size_bytes", None),
    # 0: visible, for good. Otherwise the instant at which a delay or a visibility timeout ends.
    _number("visible_at", None),
    _number("receive_count"),  # reported as ApproximateReceiveCount, goes on after a move
    _number("queue_receive_count"),  # compared with maxReceiveCount, starts again in another queue
    Column("token", BLOB),  # of the latest receive; NULL: never received in this queue
    Column("received_at", INT),
    Column("first_received_at", INT),
    Column("deduplication_id", TEXT),  # FIFO
)
# Everything visible, in order of service. The WHERE clauses must repeat the index's own terms to be served by it.
Index(
    "sqs_ix_leases_ready",
    leases.c.epoch_id,
    leases.c.turn,
    leases.c.id,
    sqlite_where=text("visible_at = 0 AND group_key IS NULL"),
)
# Everything hidden, in order of its return; the last column tells in flight from delayed.
Index(
    "sqs_ix_leases_hidden",
    leases.c.epoch_id,
    leases.c.visible_at,
    text("(token IS NOT NULL)"),
    sqlite_where=text("visible_at > 0"),
)
Index("sqs_ix_leases_group", leases.c.group_key, leases.c.id, sqlite_where=text("group_key IS NOT NULL"))
# Retention, the oldest message, and the sweeper.
Index("sqs_ix_leases_age", leases.c.epoch_id, leases.c.sent_at)

queue_counts = _table(
    "sqs_queue_counts",
    # The one hot row a queue: exact counts, and the activity of the minute that is still open.
    Column("epoch_id", INTEGER, primary_key=True, nullable=False),
    _number("messages"),
    _number("in_flight"),
    _number("delayed"),
    _number("turn"),  # fair queues: the highest turn ever claimed
    _number("minute_at"),
    _number("sent"),
    _number("received"),
    _number("deleted"),
    _number("dead_lettered"),
    _number("deduplicated"),
    _number("empty_receives"),
    _number("sent_bytes"),
)

queue_activity = _table(
    "sqs_queue_activity",
    # Closed minutes, kept after the messages are gone.
    _number("queue_id", None),
    _number("minute_at", None),
    _number("sent"),
    _number("received"),
    _number("deleted"),
    _number("dead_lettered"),
    _number("deduplicated"),
    _number("empty_receives"),
    _number("sent_bytes"),
    PrimaryKeyConstraint("queue_id", "minute_at"),
    rowid=False,
)

message_groups = _table(
    "sqs_message_groups",
    # FIFO: a row while the group has messages; it finds the next receivable group without looking at any message.
    Column("group_key", INTEGER, primary_key=True, nullable=False),
    _number("epoch_id", None),
    Column("group_id", TEXT, nullable=False),
    _number("head_visible_at", None),
    UniqueConstraint("epoch_id", "group_id"),
    autoincrement=True,
)
Index(
    "sqs_ix_message_groups_ready",
    message_groups.c.epoch_id,
    message_groups.c.head_visible_at,
    message_groups.c.group_key,
)

tenants = _table(
    "sqs_tenants",
    # Fair queues: the last turn that each group of a standard queue drew.
    _number("epoch_id", None),
    Column("group_id", TEXT, nullable=False),
    _number("last_turn"),
    _number("last_sent_at", None),
    PrimaryKeyConstraint("epoch_id", "group_id"),
    rowid=False,
)
Index("sqs_ix_tenants_quiet", tenants.c.last_sent_at)

deduplications = _table(
    "sqs_deduplications",
    # FIFO: five minutes of accepted deduplication ids, by group whatever the scope: so a changed scope forgets none.
    _number("epoch_id", None),
    Column("deduplication_id", TEXT, nullable=False),
    Column("group_id", TEXT, nullable=False),
    Column("message_id", BLOB, nullable=False),
    _number("sequence", None),
    _number("expires_at", None),
    PrimaryKeyConstraint("epoch_id", "deduplication_id", "group_id"),
    rowid=False,
)
Index("sqs_ix_deduplications_expiry", deduplications.c.expires_at)

receive_attempts = _table(
    "sqs_receive_attempts",
    # FIFO: what each ReceiveRequestAttemptId got, as JSON [[lease id, token in hex, visible_at], ...].
    _number("epoch_id", None),
    Column("attempt_id", TEXT, nullable=False),
    Column("leases", TEXT, nullable=False),
    _number("expires_at", None),
    PrimaryKeyConstraint("epoch_id", "attempt_id"),
    rowid=False,
)
Index("sqs_ix_receive_attempts_expiry", receive_attempts.c.expires_at)

dead_letters = _table(
    "sqs_dead_letters",
    # Where a moved message came from; lives as long as the message does.
    Column("id", INTEGER, primary_key=True, nullable=False),
    _number("epoch_id", None),
    _number("source_queue_id", None),
    Column("source_arn", TEXT, nullable=False),
    _number("receive_count", None),
    _number("moved_at", None),
    # The moves before that one, as JSON [[source_queue_id, source_arn, receive_count, moved_at], ...], the latest last.
    Column("earlier", TEXT),
)
Index("sqs_ix_dead_letters_epoch", dead_letters.c.epoch_id, dead_letters.c.moved_at)

move_tasks = _table(
    "sqs_move_tasks",
    Column("id", INTEGER, primary_key=True, nullable=False),
    Column("task_id", TEXT, nullable=False),
    Column("account_id", TEXT, nullable=False),
    Column("source_arn", TEXT, nullable=False),
    _number("source_epoch_id", None),
    Column("destination_arn", TEXT),
    Column("filter", TEXT),
    Column("max_messages_per_second", INT),
    Column("status", TEXT, nullable=False),
    Column("failure_reason", TEXT),
    _number("started_at", None),
    Column("finished_at", INT),
    # Messages sent after the start are not the task's: it stops at this row id.
    _number("last_message_id", None),
    _number("moved_count"),
    _number("to_move_count"),
    # When its next chunk may run: the rate, where there is one. And the last message that was looked at, by age.
    _number("due_at", None),
    _number("cursor_sent_at"),
    _number("cursor_id"),
    # Whichever process is alive goes on with it: the row itself is leased.
    _number("leased_until_at"),
    Column("lease_token", BLOB),
    UniqueConstraint("task_id"),
    autoincrement=True,
)
Index("sqs_ix_move_tasks_source", move_tasks.c.source_arn, move_tasks.c.started_at)
Index("sqs_ix_move_tasks_due", move_tasks.c.due_at, sqlite_where=text("finished_at IS NULL"))
