# SPDX-License-Identifier: Apache-2.0
"""The 23 requests of SQS, one Struct each: parameters under Python names, `check` for what needs no queue.

Field order and required fields are the service model's. A range, character set or shape is checked here and nowhere
else; whether a queue exists, its type and its own settings are the service's to check.
"""

import re
from typing import ClassVar

import msgspec

from sqsqlite.contract.digests import has_valid_characters, message_size_bytes
from sqsqlite.contract.limits import Limits
from sqsqlite.contract.message_attributes import MessageAttributeValue
from sqsqlite.contract.names import NO_SUCH_QUEUE, check_queue_name, is_queue_name
from sqsqlite.contract.parameters import (
    bad_tag_key_length,
    check_batch,
    check_between,
    check_count_of_names,
    check_identifier,
    check_label,
    check_range,
    check_source_arn,
    check_tags,
    missing,
)
from sqsqlite.errors import (
    BatchRequestTooLong,
    InvalidAttributeName,
    InvalidParameterValue,
    QueueDoesNotExist,
)

MESSAGE_SYSTEM_ATTRIBUTES = frozenset(
    {
        "SenderId",
        "SentTimestamp",
        "ApproximateReceiveCount",
        "ApproximateFirstReceiveTimestamp",
        "MessageGroupId",
        "MessageDeduplicationId",
        "SequenceNumber",
        "AWSTraceHeader",
        "DeadLetterQueueSourceArn",
    }
)

_is_account_id = re.compile(r"[0-9]{12}").fullmatch


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="pascal"):
    """What every request has: the name of its action, and `check`."""

    action: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.action = cls.__name__

    def check(self, limits: Limits) -> None:
        """Refuse what no queue would take. Raises the SQSError that SQS answers."""


class QueueRequest(Request, frozen=True, kw_only=True):
    """A request to one queue: by URL; its name and ARN are taken as well."""

    queue_url: str

    def check(self, limits: Limits) -> None:  # noqa: ARG002 - as every request's
        if not self.queue_url:
            raise missing("QueueUrl")


# Queues


class CreateQueue(Request, frozen=True, kw_only=True):
    """Make a queue, or find the one that is as asked. `attributes`: see queue_attributes.parse_attributes."""

    queue_name: str
    attributes: dict[str, str] | None = None
    tags: dict[str, str] | None = msgspec.field(default=None, name="tags")

    @property
    def fifo(self) -> bool:
        """Whether FifoQueue is true, in whatever letter case."""
        return (self.attributes or {}).get("FifoQueue", "").lower() == "true"

    def check(self, limits: Limits) -> None:
        check_queue_name(self.queue_name, self.fifo, "FifoQueue" in (self.attributes or {}))
        check_tags(self.tags or {}, limits)


class DeleteQueue(QueueRequest, frozen=True, kw_only=True):
    """Delete a queue and all its messages."""


class GetQueueUrl(Request, frozen=True, kw_only=True):
    """Find a queue's URL by its name."""

    queue_name: str
    queue_owner_aws_account_id: str | None = msgspec.field(default=None, name="QueueOwnerAWSAccountId")

    def check(self, limits: Limits) -> None:  # noqa: ARG002 - as every request's
        if not self.queue_name:
            raise missing("QueueName")
        if not is_queue_name(self.queue_name):
            raise QueueDoesNotExist(NO_SUCH_QUEUE)
        account_id = self.queue_owner_aws_account_id
        if account_id is not None and not _is_account_id(account_id):
            raise InvalidParameterValue(
                f"Value {account_id} for parameter QueueOwnerAWSAccountId is invalid. Reason: Must be 12 digits."
            )


class ListQueues(Request, frozen=True, kw_only=True):
    """List queues, by prefix, in pages if `max_results` (1 to 1,000) is given."""

    queue_name_prefix: str | None = None
    next_token: str | None = None
    max_results: int | None = None

    def check(self, limits: Limits) -> None:
        check_range("MaxResults", self.max_results, limits.list_result_count)
        if self.queue_name_prefix is not None and not has_valid_characters(self.queue_name_prefix):
            raise InvalidParameterValue(
                f"Value {self.queue_name_prefix!r} for parameter QueueNamePrefix is invalid. "
                "Reason: Can only include alphanumeric characters, hyphens, or underscores."
            )


class ListDeadLetterSourceQueues(QueueRequest, frozen=True, kw_only=True):
    """List the queues whose redrive policy names this one, in pages of `max_results` (1 to 1,000)."""

    next_token: str | None = None
    max_results: int | None = None

    def check(self, limits: Limits) -> None:
        super().check(limits)
        check_range("MaxResults", self.max_results, limits.list_result_count)


class GetQueueAttributes(QueueRequest, frozen=True, kw_only=True):
    """Read attributes by name; the names are checked against the queue's type by render_attributes."""

    attribute_names: list[str] | None = None

    def check(self, limits: Limits) -> None:
        super().check(limits)
        check_count_of_names("AttributeNames", self.attribute_names, limits)


class SetQueueAttributes(QueueRequest, frozen=True, kw_only=True):
    """Set attributes, all or none; the values are checked by parse_attributes."""

    attributes: dict[str, str]


class PurgeQueue(QueueRequest, frozen=True, kw_only=True):
    """Delete all messages of a queue."""


class TagQueue(QueueRequest, frozen=True, kw_only=True):
    """Add or replace tags."""

    tags: dict[str, str]

    def check(self, limits: Limits) -> None:
        super().check(limits)
        if not self.tags:
            raise missing("Tags")
        check_tags(self.tags, limits)


class UntagQueue(QueueRequest, frozen=True, kw_only=True):
    """Take tags away; unknown keys are no error."""

    tag_keys: list[str]

    def check(self, limits: Limits) -> None:
        super().check(limits)
        if not self.tag_keys:
            raise bad_tag_key_length(limits)
        check_count_of_names("TagKeys", self.tag_keys, limits)
        for key in self.tag_keys:
            if len(key) not in limits.tag_key_characters:
                raise bad_tag_key_length(limits)
            if not has_valid_characters(key):
                raise InvalidParameterValue(
                    f"Tag key {key!r} is invalid: it holds a character that no tag can have."
                )


class ListQueueTags(QueueRequest, frozen=True, kw_only=True):
    """Read a queue's tags."""


class AddPermission(QueueRequest, frozen=True, kw_only=True):
    """Add a statement to a queue's policy."""

    label: str
    aws_account_ids: list[str] = msgspec.field(name="AWSAccountIds")
    actions: list[str]

    def check(self, limits: Limits) -> None:
        super().check(limits)
        check_label(self.label, limits)
        from sqsqlite.contract.policy_permissions import check_permission  # a send loads no policies

        check_permission(self.aws_account_ids, self.actions, limits)


class RemovePermission(QueueRequest, frozen=True, kw_only=True):
    """Take a statement out of a queue's policy."""

    label: str

    def check(self, limits: Limits) -> None:
        super().check(limits)
        if not self.label:
            raise missing("Label")


# Messages


class SendMessage(QueueRequest, frozen=True, kw_only=True):
    """Send one message. `check` leaves the message itself to `prepare_message`, so that nothing is computed twice."""

    message_body: str
    delay_seconds: int | None = None
    message_attributes: dict[str, MessageAttributeValue] | None = None
    message_system_attributes: dict[str, MessageAttributeValue] | None = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class ReceiveMessage(QueueRequest, frozen=True, kw_only=True):
    """Receive up to 10 messages, waiting up to 20 s for the first."""

    attribute_names: list[str] | None = None
    message_system_attribute_names: list[str] | None = None
    message_attribute_names: list[str] | None = None
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None

    @property
    def system_attribute_names(self) -> frozenset[str]:
        """Names of system attributes asked for under either parameter, `All` among them if it was asked for."""
        if not self.attribute_names and not self.message_system_attribute_names:
            return frozenset()
        return frozenset((*(self.attribute_names or ()), *(self.message_system_attribute_names or ())))

    def check(self, limits: Limits) -> None:
        super().check(limits)
        number, wait = self.max_number_of_messages, self.wait_time_seconds
        if number is not None:
            check_between("MaxNumberOfMessages", number, limits.max_number_of_messages)
        if self.visibility_timeout is not None:
            check_between("VisibilityTimeout", self.visibility_timeout, limits.visibility_timeout_seconds)
        if wait is not None and wait not in (allowed := limits.receive_message_wait_time_seconds):
            raise InvalidParameterValue(
                f"Value {wait} for parameter WaitTimeSeconds is invalid. "
                f"Reason: Must be >= {allowed.low} and <= {allowed.high}, if provided."
            )
        check_count_of_names("AttributeNames", self.attribute_names, limits)
        check_count_of_names("MessageSystemAttributeNames", self.message_system_attribute_names, limits)
        check_count_of_names("MessageAttributeNames", self.message_attribute_names, limits)
        for name in self.system_attribute_names:
            if name != "All" and name not in MESSAGE_SYSTEM_ATTRIBUTES:
                raise InvalidAttributeName(f"Unknown Attribute {name}.")
        if self.receive_request_attempt_id is not None:
            check_identifier("ReceiveRequestAttemptId", self.receive_request_attempt_id, limits)


class DeleteMessage(QueueRequest, frozen=True, kw_only=True):
    """Delete a message that was received."""

    receipt_handle: str

    def check(self, limits: Limits) -> None:
        super().check(limits)
        if not self.receipt_handle:
            raise missing("ReceiptHandle")


class ChangeMessageVisibility(QueueRequest, frozen=True, kw_only=True):
    """Hide a message in flight for `visibility_timeout` seconds from now (0 to 43,200)."""

    receipt_handle: str
    visibility_timeout: int

    def check(self, limits: Limits) -> None:
        super().check(limits)
        if not self.receipt_handle:
            raise missing("ReceiptHandle")
        check_between("VisibilityTimeout", self.visibility_timeout, limits.visibility_timeout_seconds)


# Batches: `check` raises what fails the whole request, `check_entry` and `prepare_message` what fails one entry.


class BatchEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="pascal"):
    """An entry of a batch. `id` is the caller's name for it, in this request alone."""

    id: str


class SendMessageBatchRequestEntry(BatchEntry, frozen=True, kw_only=True):
    """One message of a SendMessageBatch."""

    message_body: str
    delay_seconds: int | None = None
    message_attributes: dict[str, MessageAttributeValue] | None = None
    message_system_attributes: dict[str, MessageAttributeValue] | None = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None

    @property
    def size_bytes(self) -> int:
        """Body and user attributes, as the batch's total counts them."""
        return message_size_bytes(self.message_body, self.message_attributes)


class SendMessageBatch(QueueRequest, frozen=True, kw_only=True):
    """Send up to 10 messages, 1 MiB in all."""

    entries: list[SendMessageBatchRequestEntry]

    def check(self, limits: Limits) -> None:
        super().check(limits)
        check_batch("SendMessageBatchRequestEntry", self.entries, limits)
        # UTF-8 takes four bytes a character at most: nearly every batch is known to fit without being encoded.
        if not any(entry.message_attributes for entry in self.entries) and (
            4 * sum([len(entry.message_body) for entry in self.entries]) <= limits.batch_bytes
        ):
            return
        total_bytes = sum([entry.size_bytes for entry in self.entries])
        if total_bytes > limits.batch_bytes:
            raise BatchRequestTooLong(
                f"Batch requests cannot be longer than {limits.batch_bytes} bytes. You have sent {total_bytes} bytes."
            )


class DeleteMessageBatchRequestEntry(BatchEntry, frozen=True, kw_only=True):
    """One handle of a DeleteMessageBatch."""

    receipt_handle: str

    def check_entry(self, limits: Limits) -> None:  # noqa: ARG002 - as every entry's
        """Raises MissingParameter if the handle is empty."""
        if not self.receipt_handle:
            raise missing("ReceiptHandle")


class DeleteMessageBatch(QueueRequest, frozen=True, kw_only=True):
    """Delete up to 10 messages."""

    entries: list[DeleteMessageBatchRequestEntry]

    def check(self, limits: Limits) -> None:
        super().check(limits)
        check_batch("DeleteMessageBatchRequestEntry", self.entries, limits)


class ChangeMessageVisibilityBatchRequestEntry(BatchEntry, frozen=True, kw_only=True):
    """One handle of a ChangeMessageVisibilityBatch, and its new timeout in seconds from now."""

    receipt_handle: str
    visibility_timeout: int | None = None

    def check_entry(self, limits: Limits) -> int:
        """The timeout in seconds.

        Raises:
            MissingParameter: no handle, or no timeout: a queue's default would hide the slip.
            InvalidParameterValue: a timeout out of its range.
        """
        if not self.receipt_handle:
            raise missing("ReceiptHandle")
        if self.visibility_timeout is None:
            raise missing("VisibilityTimeout")
        check_between("VisibilityTimeout", self.visibility_timeout, limits.visibility_timeout_seconds)
        return self.visibility_timeout


class ChangeMessageVisibilityBatch(QueueRequest, frozen=True, kw_only=True):
    """Change the visibility timeout of up to 10 messages."""

    entries: list[ChangeMessageVisibilityBatchRequestEntry]

    def check(self, limits: Limits) -> None:
        super().check(limits)
        check_batch("ChangeMessageVisibilityBatchRequestEntry", self.entries, limits)


# Message move tasks


class StartMessageMoveTask(Request, frozen=True, kw_only=True):
    """Move a dead-letter queue's messages to where they came from, or to one queue."""

    source_arn: str
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None

    def check(self, limits: Limits) -> None:
        check_source_arn(self.source_arn)
        check_range(
            "MaxNumberOfMessagesPerSecond",
            self.max_number_of_messages_per_second,
            limits.move_task_messages_per_second,
        )


class ListMessageMoveTasks(Request, frozen=True, kw_only=True):
    """List the latest tasks of a source, 1 to 10."""

    source_arn: str
    max_results: int | None = None

    def check(self, limits: Limits) -> None:
        check_source_arn(self.source_arn)
        check_range("MaxResults", self.max_results, limits.move_task_result_count)


class CancelMessageMoveTask(Request, frozen=True, kw_only=True):
    """Stop a running task; what is moved stays moved."""

    task_handle: str

    def check(self, limits: Limits) -> None:  # noqa: ARG002 - as every request's
        if not self.task_handle:
            raise missing("TaskHandle")
