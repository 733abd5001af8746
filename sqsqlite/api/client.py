# SPDX-License-Identifier: Apache-2.0
"""The client: boto3's names, arguments, dicts and exceptions, without boto3 and without a server."""

import itertools
import os
import secrets
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn, Self, Unpack

from sqsqlite import errors
from sqsqlite.actions.dispatch import call
from sqsqlite.actions.opening import OpenOptions, check_names, open_store
from sqsqlite.actions.queue_rows import LOCAL, Caller
from sqsqlite.api.paginate import Paginator
from sqsqlite.contract import requests, shapes
from sqsqlite.errors import SQSError
from sqsqlite.store.store import Store

_PAGINATED = {"list_queues": "QueueUrls", "list_dead_letter_source_queues": "queueUrls"}


def client(path: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> "Client":
    """A boto3-shaped client on a file of queues. Options and errors are those of `sqsqlite.connect`."""
    check_names("client", options)
    return Client(open_store(path, **options), owns_store=True)


class Exceptions:
    """`client.exceptions`: the modelled errors by shape name, and ClientError above them all."""

    ClientError = SQSError
    LeaseLost = errors.LeaseLost

    def __getattr__(self, name: str) -> type[SQSError]:
        found = getattr(errors, name, None)
        if isinstance(found, type) and issubclass(found, SQSError):
            return found
        raise AttributeError(f"{name} is no SQS error. Valid are: {', '.join(sorted(dir(self)))}")

    def __dir__(self) -> list[str]:
        return ["ClientError", "LeaseLost", *(kind.__name__ for kind in errors.by_query_code.values())]


class Client:
    """SQS's actions as methods. Keyword arguments and results are boto3's; what SQS omits is absent."""

    exceptions = Exceptions()

    def __init__(self, store: Store, caller: Caller = LOCAL, *, owns_store: bool = False) -> None:
        self._store = store
        self._caller = caller
        self._owns_store = owns_store
        self._request_prefix = (
            f"{secrets.token_hex(4)}-{secrets.token_hex(2)}-4{secrets.token_hex(2)[1:]}-8000-"
        )
        self._request_number = itertools.count(1)
        self.meta = SimpleNamespace(
            region_name=store.settings.region,
            endpoint_url=caller.base_url,
            partition="aws",
            service_name="sqs",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Client can't be pickled or copied: open the file in the other process, "
            f"with sqsqlite.client({str(self._store.path)!r})"
        )

    def close(self) -> None:
        """Close the file, if this client opened it."""
        if self._owns_store:
            self._store.close()

    def _call(self, kind: Any, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            result = shapes.to_dict(call(self._store, kind, parameters, self._caller))
        except SQSError as error:
            error.operation_name = kind.action
            raise
        result["ResponseMetadata"] = {
            "RequestId": f"{self._request_prefix}{next(self._request_number):012x}",
            "HTTPStatusCode": 200,
            "HTTPHeaders": {},
            "RetryAttempts": 0,
        }
        return result

    def can_paginate(self, operation_name: str) -> bool:
        """Whether there is a paginator for the method."""
        return operation_name in _PAGINATED

    def get_paginator(self, operation_name: str) -> Paginator:
        """A paginator, for `list_queues` or `list_dead_letter_source_queues`.

        Raises:
            ValueError: another method.
        """
        if operation_name not in _PAGINATED:
            raise ValueError(f"{operation_name} can't be paginated; {', '.join(_PAGINATED)} can")
        method: Callable[..., dict[str, Any]] = getattr(self, operation_name)
        return Paginator(method, _PAGINATED[operation_name])

    @property
    def waiter_names(self) -> list[str]:
        """SQS has no waiters."""
        return []

    def add_permission(self, **parameters: Any) -> dict[str, Any]:
        """Let other accounts use the queue.

        Arguments: QueueUrl, Label, AWSAccountIds, Actions.
        Source: API_AddPermission.
        """
        return self._call(requests.AddPermission, parameters)

    def cancel_message_move_task(self, **parameters: Any) -> dict[str, Any]:
        """Stop a running move task: TaskHandle. Source: API_CancelMessageMoveTask."""
        return self._call(requests.CancelMessageMoveTask, parameters)

    def change_message_visibility(self, **parameters: Any) -> dict[str, Any]:
        """Hide a received message for another time, from now.

        Arguments: QueueUrl, ReceiptHandle, VisibilityTimeout.
        Source: API_ChangeMessageVisibility.
        """
        return self._call(requests.ChangeMessageVisibility, parameters)

    def change_message_visibility_batch(self, **parameters: Any) -> dict[str, Any]:
        """The same for up to ten: QueueUrl, Entries. Source: API_ChangeMessageVisibilityBatch."""
        return self._call(requests.ChangeMessageVisibilityBatch, parameters)

    def create_queue(self, **parameters: Any) -> dict[str, Any]:
        """Make a queue, or find the equal one: QueueName, Attributes, tags. Source: API_CreateQueue."""
        return self._call(requests.CreateQueue, parameters)

    def delete_message(self, **parameters: Any) -> dict[str, Any]:
        """Delete a received message: QueueUrl, ReceiptHandle. Source: API_DeleteMessage."""
        return self._call(requests.DeleteMessage, parameters)

    def delete_message_batch(self, **parameters: Any) -> dict[str, Any]:
        """The same for up to ten: QueueUrl, Entries. Source: API_DeleteMessageBatch."""
        return self._call(requests.DeleteMessageBatch, parameters)

    def delete_queue(self, **parameters: Any) -> dict[str, Any]:
        """Delete a queue with its messages: QueueUrl. Source: API_DeleteQueue."""
        return self._call(requests.DeleteQueue, parameters)

    def get_queue_attributes(self, **parameters: Any) -> dict[str, Any]:
        """Configuration and counts: QueueUrl, AttributeNames. Source: API_GetQueueAttributes."""
        return self._call(requests.GetQueueAttributes, parameters)

    def get_queue_url(self, **parameters: Any) -> dict[str, Any]:
        """The URL of a queue by its name: QueueName, QueueOwnerAWSAccountId. Source: API_GetQueueUrl."""
        return self._call(requests.GetQueueUrl, parameters)

    def list_dead_letter_source_queues(self, **parameters: Any) -> dict[str, Any]:
        """The queues whose dead letters come here.

        Arguments: QueueUrl, NextToken, MaxResults.
        Source: API_ListDeadLetterSourceQueues.
        """
        return self._call(requests.ListDeadLetterSourceQueues, parameters)

    def list_message_move_tasks(self, **parameters: Any) -> dict[str, Any]:
        """The move tasks of a dead-letter queue: SourceArn, MaxResults. Source: API_ListMessageMoveTasks."""
        return self._call(requests.ListMessageMoveTasks, parameters)

    def list_queue_tags(self, **parameters: Any) -> dict[str, Any]:
        """The queue's tags: QueueUrl. Source: API_ListQueueTags."""
        return self._call(requests.ListQueueTags, parameters)

    def list_queues(self, **parameters: Any) -> dict[str, Any]:
        """The queues by name, in pages: QueueNamePrefix, NextToken, MaxResults. Source: API_ListQueues."""
        return self._call(requests.ListQueues, parameters)

    def purge_queue(self, **parameters: Any) -> dict[str, Any]:
        """Remove every message: QueueUrl. Source: API_PurgeQueue."""
        return self._call(requests.PurgeQueue, parameters)

    def receive_message(self, **parameters: Any) -> dict[str, Any]:
        """Receive up to ten messages.

        Arguments: QueueUrl, MaxNumberOfMessages, VisibilityTimeout, WaitTimeSeconds, MessageSystemAttributeNames,
        AttributeNames, MessageAttributeNames, ReceiveRequestAttemptId.
        Source: API_ReceiveMessage.
        """
        return self._call(requests.ReceiveMessage, parameters)

    def remove_permission(self, **parameters: Any) -> dict[str, Any]:
        """Take a permission back: QueueUrl, Label. Source: API_RemovePermission."""
        return self._call(requests.RemovePermission, parameters)

    def send_message(self, **parameters: Any) -> dict[str, Any]:
        """Send a message.

        Arguments: QueueUrl, MessageBody, DelaySeconds, MessageAttributes, MessageSystemAttributes,
        MessageDeduplicationId, MessageGroupId.
        Source: API_SendMessage.
        """
        return self._call(requests.SendMessage, parameters)

    def send_message_batch(self, **parameters: Any) -> dict[str, Any]:
        """Send up to ten messages: QueueUrl, Entries. Source: API_SendMessageBatch."""
        return self._call(requests.SendMessageBatch, parameters)

    def set_queue_attributes(self, **parameters: Any) -> dict[str, Any]:
        """Set all these attributes or none: QueueUrl, Attributes. Source: API_SetQueueAttributes."""
        return self._call(requests.SetQueueAttributes, parameters)

    def start_message_move_task(self, **parameters: Any) -> dict[str, Any]:
        """Move a dead-letter queue's messages.

        Arguments: SourceArn, DestinationArn, MaxNumberOfMessagesPerSecond.
        Source: API_StartMessageMoveTask.
        """
        return self._call(requests.StartMessageMoveTask, parameters)

    def tag_queue(self, **parameters: Any) -> dict[str, Any]:
        """Add tags: QueueUrl, Tags. Source: API_TagQueue."""
        return self._call(requests.TagQueue, parameters)

    def untag_queue(self, **parameters: Any) -> dict[str, Any]:
        """Remove tags: QueueUrl, TagKeys. Source: API_UntagQueue."""
        return self._call(requests.UntagQueue, parameters)
