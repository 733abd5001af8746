"""The Python door: `connect()`, and the `SQS`, `Queue` and `Message` it leads to."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from sqsqlite import requests
from sqsqlite._message import Message, SentMessage, to_attributes
from sqsqlite.names import DEFAULT_REGION, queue_arn, queue_name, queue_url
from sqsqlite.service import bulk, inspect
from sqsqlite.service.caller import LOCAL
from sqsqlite.service.dispatch import call
from sqsqlite.service.opening import open_store
from sqsqlite.store.clock import Clock
from sqsqlite.store.store import Store

if TYPE_CHECKING:
    from sqlalchemy import Connection as SQLAlchemyConnection
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session

    from sqsqlite._client import Client

    Caller = SQLAlchemyConnection | Session


def connect(
    path: str | os.PathLike[str],
    *,
    synchronous: str = "FULL",
    compat: str = "docs",
    limits: str = "sqs",
    busy_timeout: float = 30.0,
    adopt: bool = False,
    clock: Clock | None = None,
    region: str = DEFAULT_REGION,
) -> "SQS":
    """Open a file of queues, making it if there is none. For any number of threads and processes at once.

    Args:
        path: the file. Beside it live `-wal` and `-shm` (SQLite's) and a folder `-sqs` (locks and wake-ups).
        synchronous: "FULL": what was answered survives power loss. "NORMAL": survives a kill of the process, but the
            last commits may be lost at power loss; much faster one by one.
        compat: "docs": an expired or replaced receipt handle is an error. "aws": as softly as Amazon's standard
            queues treat it today.
        limits: "sqs": Amazon's. "native": without those that exist for Amazon's sake (delay over 15 minutes, body
            size, batches over 10).
        busy_timeout: seconds to wait for other writers before `errors.Busy`.
        adopt: put the queue's tables into a SQLite file that holds the application's own; those stay as they are.
        clock: for tests: an object with `now_ms()` and `wait(event, until_ms)`, such as `sqsqlite.ManualClock`.
        region: what ARNs say.

    Raises:
        StoreError: one of its kinds says what is wrong with the file.
        ValueError: an option that is none of those allowed.
    """
    store = open_store(
        path,
        synchronous=synchronous,
        compat=compat,
        limits=limits,
        busy_timeout=busy_timeout,
        adopt=adopt,
        clock=clock,
        region=region,
    )
    return SQS(store)


class SQS:
    """An open file of queues. A context manager; `close()` ends its waits and closes its connections."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SQS {self._store.path}>"

    def close(self) -> None:
        """Close the file. Waiting receives return empty; messages in flight stay so until their timeout ends."""
        self._store.close()

    def create_queue(
        self,
        name: str,
        *,
        fifo: bool = False,
        delay_seconds: int | None = None,
        maximum_message_size: int | None = None,
        message_retention_period: int | None = None,
        receive_message_wait_time_seconds: int | None = None,
        visibility_timeout: int | None = None,
        redrive_policy: Mapping[str, Any] | str | None = None,
        redrive_allow_policy: Mapping[str, Any] | str | None = None,
        policy: Mapping[str, Any] | str | None = None,
        kms_master_key_id: str | None = None,
        kms_data_key_reuse_period_seconds: int | None = None,
        sqs_managed_sse_enabled: bool | None = None,
        content_based_deduplication: bool | None = None,
        deduplication_scope: str | None = None,
        fifo_throughput_limit: str | None = None,
        dead_letter_queue: "Queue | str | None" = None,
        max_receive_count: int | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> "Queue":
        """Make a queue, or find the one of this name: the attributes given must then equal its own.

        Args:
            name: 1 to 80 letters, digits, `-` and `_`.
            delay_seconds: 0 to 900, before a message becomes visible.
            maximum_message_size: 1,024 to 1,048,576 bytes.
            message_retention_period: 60 to 1,209,600 s (14 days); 4 days unless said.
            receive_message_wait_time_seconds: 0 to 20, how long a receive waits unless it says so itself.
            visibility_timeout: 0 to 43,200 s (12 h), how long a received message stays hidden; 30 unless said.
            dead_letter_queue: where messages go that were received `max_receive_count` (1 to 1,000) times: the short
                form of `redrive_policy`.

        Raises:
            QueueNameExists: it exists with another value of an attribute given here.
            QueueDeletedRecently: one of this name was deleted within the last 60 s.
            InvalidParameterValue, InvalidAttributeValue, InvalidAttributeName: not as SQS allows.
        Source: API_CreateQueue.
        """
        if dead_letter_queue is not None:
            arn = (
                dead_letter_queue.arn
                if isinstance(dead_letter_queue, Queue)
                else self._arn(dead_letter_queue)
            )
            redrive_policy = {"deadLetterTargetArn": arn, "maxReceiveCount": max_receive_count}
        given = {
            "FifoQueue": True if fifo else None,
            "DelaySeconds": delay_seconds,
            "MaximumMessageSize": maximum_message_size,
            "MessageRetentionPeriod": message_retention_period,
            "ReceiveMessageWaitTimeSeconds": receive_message_wait_time_seconds,
            "VisibilityTimeout": visibility_timeout,
            "RedrivePolicy": redrive_policy,
            "RedriveAllowPolicy": redrive_allow_policy,
            "Policy": policy,
            "KmsMasterKeyId": kms_master_key_id,
            "KmsDataKeyReusePeriodSeconds": kms_data_key_reuse_period_seconds,
            "SqsManagedSseEnabled": sqs_managed_sse_enabled,
            "ContentBasedDeduplication": content_based_deduplication,
            "DeduplicationScope": deduplication_scope,
            "FifoThroughputLimit": fifo_throughput_limit,
        }
        parameters: dict[str, Any] = {"QueueName": name, "Attributes": _attribute_texts(given)}
        if tags is not None:
            parameters["tags"] = dict(tags)
        call(self._store, requests.CreateQueue, parameters)
        return Queue(self._store, name)

    def _arn(self, name: str) -> str:
        account_id, plain = queue_name(name)
        return queue_arn(self._store.settings.region, account_id or LOCAL.account_id, plain)

    def queue(self, name: str) -> "Queue":
        """An existing queue by name, URL or ARN.

        Raises:
            QueueDoesNotExist: there is none.
        """
        _, plain = queue_name(name)
        call(self._store, requests.GetQueueUrl, {"QueueName": plain})
        return Queue(self._store, plain)

    def queues(self, prefix: str = "") -> "list[Queue]":
        """All queues, or those whose names begin with `prefix`, by name."""
        return [Queue(self._store, row.name) for row in inspect.statistics(self._store, LOCAL, prefix)]

    def stats(self, prefix: str = "") -> "list[inspect.QueueStatistics]":
        """Counts, ages and the running minute's activity of all queues (whose names begin with `prefix`)."""
        return inspect.statistics(self._store, LOCAL, prefix)

    @contextmanager
    def transaction(self) -> "Iterator[Any]":
        """One transaction for the application's rows and the queue's messages, on this thread.

        Yields the raw connection (DB-API) for the application's statements; every operation of this object's queues
        and messages inside the block joins. It commits at the end, and rolls back when the block raises: then nothing
        was sent, received or deleted.

        Raises:
            TransactionInProgress: this thread is in one already.
            Busy, CommitInDoubt, DiskFull: see `errors`.
        """
        with self._store.transaction() as tx:
            yield tx.connection

    @property
    def engine(self) -> "Engine":
        """A SQLAlchemy engine on the same file whose transactions may write: BEGIN IMMEDIATE, in turn.

        Pass its Connection, or a Session on it, as `connection=` to send, receive and delete within its transaction.
        """
        return self._store.application.engine

    @property
    def read_engine(self) -> "Engine":
        """A SQLAlchemy engine for reading: never waits for writers, refuses to write."""
        return self._store.application.read_engine

    @property
    def client(self) -> "Client":
        """A boto3-shaped client on the same open file."""
        from sqsqlite._client import Client

        return Client(self._store)


class Queue:
    """A queue by name. Holds nothing of its state: every call reads the file."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name = name

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    @property
    def url(self) -> str:
        """What SQS's clients call it by."""
        return queue_url(LOCAL.base_url, LOCAL.account_id, self.name)

    @property
    def arn(self) -> str:
        """What policies call it by."""
        return queue_arn(self._store.settings.region, LOCAL.account_id, self.name)

    def _call(self, kind: type, connection: "Caller | None" = None, /, **parameters: Any) -> Any:
        given = {name: value for name, value in parameters.items() if value is not None}
        given["QueueUrl"] = self.name
        if connection is None:
            return call(self._store, kind, given)
        return call(self._store, kind, given, LOCAL, self._store.application.connection_of(connection))

    def send(
        self,
        body: str,
        *,
        delay: int | None = None,
        attributes: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        deduplication_id: str | None = None,
        trace_header: str | None = None,
        connection: "Caller | None" = None,
    ) -> SentMessage:
        """Send a message. When this returns it is in the file, synced as `synchronous` says.

        Args:
            body: text, 1 character to the queue's MaximumMessageSize in UTF-8.
            delay: 0 to 900 s until it becomes visible; the queue's own unless said.
            attributes: up to 10, by name: str, int, float, Decimal or bytes, or {"DataType": ..., "StringValue": ...}.
            group_id: on a standard queue, the tenant.
            trace_header: AWSTraceHeader.
            connection: a SQLAlchemy Connection or Session on `sqs.engine`: sent when, and only if, it commits.

        Raises:
            InvalidMessageContents, InvalidParameterValue, MissingParameter: not as SQS allows.
            QueueDoesNotExist: it was deleted.
            DiskFull, Busy, CommitInDoubt: see `errors`.
        Source: API_SendMessage.
        """
        response = self._call(
            requests.SendMessage,
            connection,
            MessageBody=body,
            DelaySeconds=delay,
            MessageAttributes=to_attributes(attributes),
            MessageGroupId=group_id,
            MessageDeduplicationId=deduplication_id,
            MessageSystemAttributes=_trace(trace_header),
        )
        return SentMessage(response.message_id, response.md5_of_message_body, response.sequence_number)

    def send_many(
        self, messages: Iterable[str | Mapping[str, Any]], *, connection: "Caller | None" = None
    ) -> list[SentMessage]:
        """Send any number of messages in one transaction: all of them or none.

        Args:
            messages: bodies, or mappings with `send`'s argument names (`body`, `delay`, `attributes`, ...).

        Raises:
            as `send`, for the first message that is refused; its place stands in the error.
        """
        entries = [_entry(message) for message in messages]
        raw = None if connection is None else self._store.application.connection_of(connection)
        return [
            SentMessage(sent.message_id, sent.md5_of_message_body, sent.sequence_number)
            for sent in bulk.send_many(self._store, self.name, entries, LOCAL, raw)
        ]

    def receive(
        self,
        max_messages: int = 1,
        wait: int | None = None,
        visibility_timeout: int | None = None,
        *,
        attempt_id: str | None = None,
        connection: "Caller | None" = None,
    ) -> list[Message]:
        """Receive up to `max_messages` (1 to 10), hidden from others until deleted or their timeout ends.

        Args:
            wait: 0 to 20 s for the first message; the queue's own unless said. An empty list when none came.
            visibility_timeout: 0 to 43,200 s; the queue's own unless said.

        Raises:
            OverLimit: 120,000 messages are in flight.
            InvalidParameterValue, QueueDoesNotExist: as their names say.
        Source: API_ReceiveMessage.
        """
        response = self._call(
            requests.ReceiveMessage,
            connection,
            MaxNumberOfMessages=max_messages,
            WaitTimeSeconds=wait,
            VisibilityTimeout=visibility_timeout,
            ReceiveRequestAttemptId=attempt_id,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return [Message(self._call, found) for found in response.messages or ()]

    def peek(self, max_messages: int = 10, *, hidden: bool = False) -> "list[inspect.Peeked]":
        """Look at messages without receiving them: no lease, no count, no write.

        Args:
            hidden: those delayed or in flight instead of the visible ones.
        """
        return inspect.peek(self._store, self.name, LOCAL, max_messages, hidden=hidden)

    def purge(self) -> None:
        """Remove every message, in flight and delayed ones too. Once in 60 s.

        Raises:
            PurgeQueueInProgress: purged within the last 60 s.
        """
        self._call(requests.PurgeQueue)

    def delete(self) -> None:
        """Delete the queue with its messages; its name is free again after 60 s."""
        self._call(requests.DeleteQueue)

    @property
    def attributes(self) -> dict[str, str]:
        """All attributes by SQS's names, counts included; every value is text. Source: API_GetQueueAttributes."""
        response = self._call(requests.GetQueueAttributes, AttributeNames=["All"])
        found: dict[str, str] = response.attributes
        return found

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes by SQS's names: all of them or, when one is refused, none.

        Raises:
            InvalidAttributeName, InvalidAttributeValue, InvalidParameterValue: not as SQS allows.
        Source: API_SetQueueAttributes.
        """
        self._call(requests.SetQueueAttributes, Attributes=_attribute_texts(attributes))

    @property
    def tags(self) -> dict[str, str]:
        """The queue's tags."""
        return dict(self._call(requests.ListQueueTags).tags or {})

    def tag(self, tags: Mapping[str, str]) -> None:
        """Add tags, or give them other values."""
        self._call(requests.TagQueue, Tags=dict(tags))

    def untag(self, *keys: str) -> None:
        """Remove tags; those that are not there are ignored."""
        self._call(requests.UntagQueue, TagKeys=list(keys))

    def __len__(self) -> int:
        """Messages in the queue: visible, in flight and delayed."""
        counts = self.attributes
        return sum(
            int(value) for name, value in counts.items() if name.startswith("ApproximateNumberOfMessages")
        )

    def __bool__(self) -> bool:
        """A queue is a queue, even an empty one."""
        return True


def _attribute_texts(given: Mapping[str, Any]) -> dict[str, str]:
    """Python values as the texts that SQS's attributes are; None is left out."""
    texts = {}
    for name, value in given.items():
        if isinstance(value, bool):
            texts[name] = "true" if value else "false"
        elif isinstance(value, Mapping):
            texts[name] = json.dumps(dict(value))
        elif value is not None:
            texts[name] = str(value)
    return texts


def _trace(trace_header: str | None) -> dict[str, Any] | None:
    if trace_header is None:
        return None
    return {"AWSTraceHeader": {"DataType": "String", "StringValue": trace_header}}


def _entry(message: str | Mapping[str, Any]) -> dict[str, Any]:
    """One message of `send_many` as the members of a batch entry."""
    if isinstance(message, str):
        return {"MessageBody": message}
    unknown = set(message) - set(_ENTRY_NAMES)
    if unknown or "body" not in message:
        raise ValueError(
            f"a message of send_many has the keys {', '.join(_ENTRY_NAMES)}, and always body; "
            f"given: {', '.join(map(str, message))}"
        )
    given: dict[str, Any] = {
        _ENTRY_NAMES[name]: value for name, value in message.items() if value is not None
    }
    if "MessageAttributes" in given:
        given["MessageAttributes"] = to_attributes(given["MessageAttributes"])
    if "MessageSystemAttributes" in given:
        given["MessageSystemAttributes"] = _trace(given["MessageSystemAttributes"])
    return given


_ENTRY_NAMES = {
    "body": "MessageBody",
    "delay": "DelaySeconds",
    "attributes": "MessageAttributes",
    "group_id": "MessageGroupId",
    "deduplication_id": "MessageDeduplicationId",
    "trace_header": "MessageSystemAttributes",
}
