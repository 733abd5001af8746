"""The Spark type of every column that crosses JDBC.

Spark asks the driver what a column was declared as, and takes the answer at its word: INTEGER as 32 bits, which wraps
milliseconds without an error, and a computed column as decimal(38,18). So nothing is left to it: each column of the
reporting views and of the facts file has its type here, and every read says them by `customSchema`.
"""

from collections.abc import Iterable, Mapping

Types = Mapping[str, str]

_NAMES: Types = {"queue": "STRING", "account_id": "STRING", "queue_id": "BIGINT"}
_ACTIVITY: Types = dict.fromkeys(
    (
        "minute_at",
        "sent",
        "received",
        "deleted",
        "dead_lettered",
        "deduplicated",
        "empty_receives",
        "sent_bytes",
    ),
    "BIGINT",
)

VIEWS: Mapping[str, Types] = {
    "sqs_report_now": {"now_ms": "BIGINT"},
    "sqs_report_queues": {
        **_NAMES,
        "fifo": "BIGINT",
        "created_at": "BIGINT",
        "modified_at": "BIGINT",
        "visibility_timeout_seconds": "BIGINT",
        "delay_seconds": "BIGINT",
        "receive_message_wait_time_seconds": "BIGINT",
        "message_retention_period_seconds": "BIGINT",
        "maximum_message_size_bytes": "BIGINT",
        "dead_letter_target_arn": "STRING",
        "max_receive_count": "BIGINT",
        "messages": "BIGINT",
        "in_flight": "BIGINT",
        "delayed": "BIGINT",
        "oldest_sent_at": "BIGINT",
    },
    "sqs_report_messages": {
        "id": "BIGINT",
        **_NAMES,
        "state": "STRING",
        "age_seconds": "DOUBLE",
        "sent_at": "BIGINT",
        "visible_at": "BIGINT",
        "received_at": "BIGINT",
        "first_received_at": "BIGINT",
        "receive_count": "BIGINT",
        "queue_receive_count": "BIGINT",
        "size_bytes": "BIGINT",
        "deduplication_id": "STRING",
        "dead_letter_source_arn": "STRING",
        "moved_at": "BIGINT",
        "message_id": "STRING",
        "group_id": "STRING",
        "sender_id": "STRING",
        "attributes": "STRING",
        "body": "STRING",
    },
    "sqs_report_leases": {
        "id": "BIGINT",
        **_NAMES,
        "received_at": "BIGINT",
        "expires_at": "BIGINT",
        "held_seconds": "DOUBLE",
        "expires_in_seconds": "DOUBLE",
        "sent_at": "BIGINT",
        "receive_count": "BIGINT",
        "group_id": "STRING",
        "message_id": "STRING",
    },
    "sqs_report_dead_letters": {
        "id": "BIGINT",
        **_NAMES,
        "source_arn": "STRING",
        "source_queue_id": "BIGINT",
        "receive_count": "BIGINT",
        "moved_at": "BIGINT",
        "dead_seconds": "DOUBLE",
        "sent_at": "BIGINT",
        "size_bytes": "BIGINT",
        "group_id": "STRING",
        "message_id": "STRING",
    },
    "sqs_report_activity": {**_NAMES, **_ACTIVITY},
    "sqs_report_groups": {
        **_NAMES,
        "group_id": "STRING",
        "head_visible_at": "BIGINT",
        "state": "STRING",
        "messages": "BIGINT",
        "in_flight": "BIGINT",
        "oldest_sent_at": "BIGINT",
    },
    "sqs_report_tenants": {
        **_NAMES,
        "group_id": "STRING",
        "last_turn": "BIGINT",
        "queue_turn": "BIGINT",
        "last_sent_at": "BIGINT",
    },
}
"""Of the live file's views: a stable interface for any JDBC reader."""

FACTS: Mapping[str, Types] = {
    "sqs_fact_files": {
        "file_id": "BIGINT",
        "file": "STRING",
        "taken_at": "BIGINT",
        "schema_version": "BIGINT",
        "messages": "BIGINT",
        "problem": "STRING",
    },
    "sqs_fact_queues": {
        "queue_key": "BIGINT",
        "file_id": "BIGINT",
        "file": "STRING",
        "taken_at": "BIGINT",
        "account_id": "STRING",
        "queue_id": "BIGINT",
        "queue": "STRING",
        "epoch_id": "BIGINT",
        "fifo": "BIGINT",
        "has_tenants": "BIGINT",
        "created_at": "BIGINT",
        "message_retention_period_seconds": "BIGINT",
        "dead_letter_target_arn": "STRING",
        "max_receive_count": "BIGINT",
    },
    "sqs_facts": {
        "seq": "BIGINT",
        "queue_key": "BIGINT",
        "id": "BIGINT",
        "sent_at": "BIGINT",
        "visible_at": "BIGINT",
        "received": "BIGINT",
        "received_at": "BIGINT",
        "first_received_at": "BIGINT",
        "receive_count": "BIGINT",
        "queue_receive_count": "BIGINT",
        "size_bytes": "BIGINT",
        "group_id": "STRING",
        "message_id": "STRING",
    },
    "sqs_fact_activity": {"queue_key": "BIGINT", **_ACTIVITY},
    "sqs_fact_groups": {"queue_key": "BIGINT", "group_id": "STRING", "head_visible_at": "BIGINT"},
    "sqs_fact_tenants": {
        "queue_key": "BIGINT",
        "group_id": "STRING",
        "last_turn": "BIGINT",
        "queue_turn": "BIGINT",
        "last_sent_at": "BIGINT",
    },
    "sqs_fact_dead_letters": {
        "queue_key": "BIGINT",
        "id": "BIGINT",
        "source_arn": "STRING",
        "receive_count": "BIGINT",
        "moved_at": "BIGINT",
        "sent_at": "BIGINT",
        "size_bytes": "BIGINT",
    },
}
"""Of the facts file."""


def custom_schema(types: Types, columns: Iterable[str] | None = None) -> str:
    """The value of Spark's option `customSchema`.

    Args:
        columns: those to name; all unless said.
    """
    names = types if columns is None else columns
    return ", ".join(f"{name} {types[name]}" for name in names)
