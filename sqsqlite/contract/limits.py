# SPDX-License-Identifier: Apache-2.0
"""Every quota of SQS in one table, and the table without the quotas that exist only for AWS's sake.

Source, unless stated: developer guide, "Amazon SQS quotas"; API_SetQueueAttributes for queue attributes.
"""

from typing import NamedTuple


class Range(NamedTuple):
    """Whole numbers from `low` to `high`, both allowed."""

    low: int
    high: int

    # Of a tuple, but it holds the numbers between its two fields.
    def __contains__(self, number: int) -> bool:  # type: ignore[override]
        return self.low <= number <= self.high


class Limits(NamedTuple):
    """What a request may ask for; the defaults are SQS's. The end of a name is its unit."""

    # Queues
    queue_name_characters: Range = Range(1, 80)  # `.fifo` included. API_CreateQueue
    tag_count: int = 50
    tag_key_characters: Range = Range(1, 128)
    tag_value_characters: Range = Range(0, 256)
    policy_bytes: int = 8_192
    policy_statement_count: int = 20
    policy_principal_count: int = 50
    policy_condition_count: int = 10
    policy_resource_count: int = 50  # ours, as is the next: each request to the queue is compared with them
    policy_value_count: int = 100  # of all conditions
    policy_action_count: int = 7  # in one statement, also one AddPermission
    permission_label_characters: Range = Range(1, 80)  # API_AddPermission
    list_result_count: Range = Range(1, 1_000)  # a page. API_ListQueues, API_ListDeadLetterSourceQueues
    deleted_name_seconds: int = 60  # until the name can be used again. API_DeleteQueue
    purge_interval_seconds: int = 60  # API_PurgeQueue

    # Queue attributes
    delay_seconds: Range = Range(0, 900)  # also of one message. API_SendMessage
    maximum_message_size_bytes: Range = Range(1_024, 1_048_576)
    message_retention_period_seconds: Range = Range(60, 1_209_600)
    receive_message_wait_time_seconds: Range = Range(0, 20)  # also of one receive. API_ReceiveMessage
    visibility_timeout_seconds: Range = Range(0, 43_200)  # also of one receive and one change
    kms_data_key_reuse_period_seconds: Range = Range(60, 86_400)
    max_receive_count: Range = Range(1, 1_000)  # of a RedrivePolicy
    redrive_source_count: int = 10  # ARNs in a RedriveAllowPolicy

    # Messages
    message_attribute_count: int = 10
    message_attribute_name_characters: int = 256
    data_type_characters: int = 256
    number_digits: int = 38  # of a Number attribute
    number_exponent: Range = Range(-128, 126)  # a Number's magnitude, as a power of ten
    identifier_characters: Range = Range(1, 128)  # group, deduplication and receive attempt ids
    deduplication_seconds: int = 300
    receive_attempt_seconds: int = 300

    # Requests
    max_number_of_messages: Range = Range(1, 10)  # of one receive
    batch_entry_count: int = 10
    batch_entry_id_characters: Range = Range(1, 80)
    batch_bytes: int = 1_048_576  # bodies and user attributes of all entries
    name_count: int = (
        1_000  # ours: attributes or tags in one list; a message has 10 attributes, a queue 50 tags
    )

    # Messages in flight
    standard_in_flight_count: int = 120_000
    fifo_in_flight_count: int = 20_000  # the reference documents' number
    fifo_in_flight_aws_count: int = 120_000  # Amazon's of today: compat="aws"
    visibility_total_seconds: int = 43_200  # from the receive, all changes added. API_ChangeMessageVisibility

    # Message move tasks
    move_task_messages_per_second: Range = Range(1, 500)
    move_task_result_count: Range = Range(1, 10)  # API_ListMessageMoveTasks
    move_task_count: int = 100  # active, an account
    move_task_seconds: int = 129_600  # 36 h, then a task ends


SQS = Limits()

BUSY_TIMEOUT_SECONDS = Range(0, 86_400)  # ours: a day; the driver's own milliseconds end at 24 days
LOOKED_AT = Range(1, 10_000)  # ours: messages of one peek, all of them in memory

# 512 MiB: SQLite takes rows up to 1,000,000,000 bytes, and Base64 makes a binary attribute a third larger.
_NATIVE_MESSAGE_BYTES = 2**29

NATIVE = Limits(
    policy_resource_count=Limits().policy_bytes,  # a dump keeps the policies of files from before these limits
    policy_value_count=Limits().policy_bytes,
    delay_seconds=Range(0, 2**31 - 1),  # 68 years: the largest Integer of the API
    maximum_message_size_bytes=Range(1_024, _NATIVE_MESSAGE_BYTES),
    receive_message_wait_time_seconds=Range(0, 3_600),
    deleted_name_seconds=0,
    purge_interval_seconds=0,
    max_number_of_messages=Range(1, 1_000),
    batch_entry_count=1_000,
    batch_bytes=_NATIVE_MESSAGE_BYTES,
)
