# SPDX-License-Identifier: Apache-2.0
"""The results of the 23 actions, one Struct each. A key is absent where SQS leaves it out.

Names and casing: the SQS service model. Queue attributes and message system attributes are all strings.
"""

import msgspec

from sqsqlite.contract.message_attributes import MessageAttributeValue
from sqsqlite.errors import SQSError


class Response(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="pascal"):
    """What every result has: AWS's casing, and no key for what is empty."""


class Empty(Response, frozen=True, kw_only=True):
    """The result of an action that has none."""


# Queues


class CreateQueueResponse(Response, frozen=True, kw_only=True):
    """Where the queue is, new or not."""

    queue_url: str


class GetQueueUrlResponse(Response, frozen=True, kw_only=True):
    """Where the queue is."""

    queue_url: str


class ListQueuesResponse(Response, frozen=True, kw_only=True):
    """A page of queues; `next_token` unless it is the last."""

    queue_urls: list[str] = []
    next_token: str | None = None


class ListDeadLetterSourceQueuesResponse(Response, frozen=True, kw_only=True):
    """A page of source queues. The key `queueUrls`, with a small q, is there even when it is empty."""

    queue_urls: list[str] = msgspec.field(name="queueUrls")
    next_token: str | None = None


class GetQueueAttributesResponse(Response, frozen=True, kw_only=True):
    """The attributes asked for that are set."""

    attributes: dict[str, str] = {}


class ListQueueTagsResponse(Response, frozen=True, kw_only=True):
    """A queue's tags."""

    tags: dict[str, str] | None = None


# Messages


class SendMessageResponse(Response, frozen=True, kw_only=True):
    """Digests in lower-case hexadecimal; `sequence_number` (20 digits) on FIFO queues only."""

    md5_of_message_body: str = msgspec.field(name="MD5OfMessageBody")
    md5_of_message_attributes: str | None = msgspec.field(default=None, name="MD5OfMessageAttributes")
    md5_of_message_system_attributes: str | None = msgspec.field(
        default=None, name="MD5OfMessageSystemAttributes"
    )
    message_id: str
    sequence_number: str | None = None


class ReceivedMessage(Response, frozen=True, kw_only=True):
    """A received message. `attributes` are the system's; `md5_of_message_attributes` covers those returned."""

    message_id: str
    receipt_handle: str
    md5_of_body: str = msgspec.field(name="MD5OfBody")
    body: str
    attributes: dict[str, str] | None = None
    md5_of_message_attributes: str | None = msgspec.field(default=None, name="MD5OfMessageAttributes")
    message_attributes: dict[str, MessageAttributeValue] | None = None


class ReceiveMessageResponse(Response, frozen=True, kw_only=True):
    """The received messages; an empty list is not an error."""

    messages: list[ReceivedMessage] = []


# Batches


class BatchResultErrorEntry(Response, frozen=True, kw_only=True):
    """The failure of one entry; `code` is the Query code."""

    id: str
    sender_fault: bool
    code: str
    message: str | None = None


class SendMessageBatchResultEntry(Response, frozen=True, kw_only=True):
    """What SendMessage answers, for one entry."""

    id: str
    message_id: str
    md5_of_message_body: str = msgspec.field(name="MD5OfMessageBody")
    md5_of_message_attributes: str | None = msgspec.field(default=None, name="MD5OfMessageAttributes")
    md5_of_message_system_attributes: str | None = msgspec.field(
        default=None, name="MD5OfMessageSystemAttributes"
    )
    sequence_number: str | None = None


class DeleteMessageBatchResultEntry(Response, frozen=True, kw_only=True):
    """An entry that was deleted."""

    id: str


class ChangeMessageVisibilityBatchResultEntry(Response, frozen=True, kw_only=True):
    """An entry whose timeout was changed."""

    id: str


class SendMessageBatchResponse(Response, frozen=True, kw_only=True):
    """Entries sent and entries refused, each in the request's order."""

    successful: list[SendMessageBatchResultEntry] | None = None
    failed: list[BatchResultErrorEntry] | None = None


class DeleteMessageBatchResponse(Response, frozen=True, kw_only=True):
    """Entries deleted and entries refused, each in the request's order."""

    successful: list[DeleteMessageBatchResultEntry] | None = None
    failed: list[BatchResultErrorEntry] | None = None


class ChangeMessageVisibilityBatchResponse(Response, frozen=True, kw_only=True):
    """Entries changed and entries refused, each in the request's order."""

    successful: list[ChangeMessageVisibilityBatchResultEntry] | None = None
    failed: list[BatchResultErrorEntry] | None = None


# Message move tasks


class StartMessageMoveTaskResponse(Response, frozen=True, kw_only=True):
    """The handle by which the task can be cancelled."""

    task_handle: str


class ListMessageMoveTasksResultEntry(Response, frozen=True, kw_only=True):
    """A task: `task_handle` while it runs, `failure_reason` if it failed, `started_timestamp` in ms since 1970 UTC."""

    task_handle: str | None = None
    status: str
    source_arn: str
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None
    approximate_number_of_messages_moved: int
    approximate_number_of_messages_to_move: int | None = None
    failure_reason: str | None = None
    started_timestamp: int


class ListMessageMoveTasksResponse(Response, frozen=True, kw_only=True):
    """Tasks of a source, the latest first. The key is there even without tasks."""

    results: list[ListMessageMoveTasksResultEntry]


class CancelMessageMoveTaskResponse(Response, frozen=True, kw_only=True):
    """How many messages were moved before."""

    approximate_number_of_messages_moved: int


def failure(entry_id: str, error: SQSError) -> BatchResultErrorEntry:
    """The failed entry; `Code` is the Query code. Source: API_BatchResultErrorEntry."""
    return BatchResultErrorEntry(
        id=entry_id, sender_fault=error.fault == "Sender", code=error.query_code, message=error.message
    )
