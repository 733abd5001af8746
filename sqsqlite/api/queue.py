# SPDX-License-Identifier: Apache-2.0
"""A queue in the Python API: sending, receiving, settings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from sqsqlite.actions import bulk
from sqsqlite.actions.dispatch import call, receive_rows
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.api.inspection import QueueInspection, name_missing_queue
from sqsqlite.api.message import Message, SentMessage, to_attributes
from sqsqlite.api.settings import QueueSettings, attribute_texts, attributes_of
from sqsqlite.contract import requests
from sqsqlite.errors import QueueDoesNotExist

if TYPE_CHECKING:
    from sqsqlite.api.message import CallersTransaction

_ALL = ["All"]


class Queue(QueueInspection):
    """A queue by name. Holds nothing of its state: every call reads the file."""

    def _call(
        self, kind: type, parameters: dict[str, Any], connection: "CallersTransaction | None" = None
    ) -> Any:
        """Execute a request to this queue. None of the parameters may be None."""
        parameters["QueueUrl"] = self.name
        raw = None if connection is None else self._store.application.connection_of(connection)
        try:  # not `_named()`: this is the way of every send and receive
            return call(self._store, kind, parameters, LOCAL, raw)
        except QueueDoesNotExist as error:
            name_missing_queue(error, self.name, self._store)
            raise

    def send(
        self,
        body: str,
        *,
        delay: int | None = None,
        attributes: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        deduplication_id: str | None = None,
        trace_header: str | None = None,
        connection: "CallersTransaction | None" = None,
    ) -> SentMessage:
        """Send a message. When this returns it is in the file, synced as `synchronous` says.

        Args:
            body: text, 1 character to the queue's MaximumMessageSize in UTF-8.
            delay: 0 to 900 s until it becomes visible. Default, and always on a FIFO queue: the queue's own.
            attributes: up to 10, by name: str, int, float, Decimal or bytes, or {"DataType": ..., "StringValue": ...}.
            group_id: the message group, which a FIFO queue keeps in order; on a standard queue, the tenant.
            deduplication_id: FIFO: sent again within five minutes, the message is stored once. Needed unless the
                queue has ContentBasedDeduplication.
            trace_header: AWSTraceHeader.
            connection: the application's own transaction: the message is sent when, and only if, it commits. A
                Connection or Session of SQLAlchemy's on `sqs.engine` or on an engine with `module=sqsqlite.dbapi`, a
                connection of `sqsqlite.dbapi`, or Django's with the engine `sqsqlite.django`.

        Raises:
            InvalidMessageContents, InvalidParameterValue, MissingParameter: not as SQS allows.
            QueueDoesNotExist: it was deleted.
            DiskFull, Busy, CommitInDoubt: see `errors`.
        Source: API_SendMessage.
        """
        parameters: dict[str, Any] = {"MessageBody": body}
        if delay is not None:
            parameters["DelaySeconds"] = delay
        if attributes is not None:
            parameters["MessageAttributes"] = to_attributes(attributes)
        if group_id is not None:
            parameters["MessageGroupId"] = group_id
        if deduplication_id is not None:
            parameters["MessageDeduplicationId"] = deduplication_id
        if trace_header is not None:
            parameters["MessageSystemAttributes"] = _trace(trace_header)
        response = self._call(requests.SendMessage, parameters, connection)
        return SentMessage(response.message_id, response.md5_of_message_body, response.sequence_number)

    def send_many(
        self, messages: Iterable[str | Mapping[str, Any]], *, connection: "CallersTransaction | None" = None
    ) -> list[SentMessage]:
        """Send any number of messages in one transaction: all of them or none.

        Args:
            messages: bodies, or mappings with `send`'s argument names (`body`, `delay`, `attributes`, ...).

        Raises:
            TypeError: `messages` is one text or one mapping, or a message is neither.
            ValueError: a mapping without `body`, or with another key.
            as `send`, for the first message that is refused; its place, from 0, stands in the error.
        """
        if isinstance(messages, (str, bytes, bytearray, Mapping)):
            # Each is iterable too: its characters or keys would have been sent.
            raise TypeError(
                f"send_many takes a list or another iterable of messages, not one {type(messages).__name__}: "
                f"send(...) sends one"
            )
        entries = [_entry(place, message) for place, message in enumerate(messages)]
        raw = None if connection is None else self._store.application.connection_of(connection)
        with self._named():
            sent = bulk.send_many(self._store, self.name, entries, LOCAL, raw)
        return [SentMessage(one.message_id, one.md5_of_message_body, one.sequence_number) for one in sent]

    def receive(
        self,
        max_messages: int = 1,
        wait: int | None = None,
        visibility_timeout: int | None = None,
        *,
        attempt_id: str | None = None,
        connection: "CallersTransaction | None" = None,
    ) -> list[Message]:
        """Receive up to `max_messages` (1 to 10), hidden from others until deleted or their timeout ends.

        Args:
            wait: 0 to 20 s for the first message; default: the queue's own. Without a message the list is empty.
            visibility_timeout: 0 to 43,200 s; default: the queue's own.
            attempt_id: FIFO: a receive with the same id within five minutes gets the same messages and handles.

        Raises:
            OverLimit: 120,000 messages of a standard queue are in flight.
            InvalidParameterValue: an argument is out of its range.
            QueueDoesNotExist: it was deleted.
        Source: API_ReceiveMessage.
        """
        store = self._store
        parameters: dict[str, Any] = {
            "QueueUrl": self.name,
            "MaxNumberOfMessages": max_messages,
            "MessageSystemAttributeNames": _ALL,
        }
        if wait is not None:
            parameters["WaitTimeSeconds"] = wait
        if visibility_timeout is not None:
            parameters["VisibilityTimeout"] = visibility_timeout
        if attempt_id is not None:
            parameters["ReceiveRequestAttemptId"] = attempt_id
        raw = None if connection is None else store.application.connection_of(connection)
        try:
            found = receive_rows(store, parameters, LOCAL, raw)
        except QueueDoesNotExist as error:
            name_missing_queue(error, self.name, store)
            raise
        if found is None:
            return []
        sealer = store.settings.sealer
        return [Message(self._call, found, one, sealer) for one in found.messages]

    def delete_many(
        self,
        messages: "Iterable[Message | str]",
        *,
        missing_ok: bool = False,
        connection: "CallersTransaction | None" = None,
    ) -> None:
        """Delete any number of received messages: all of them or, when one is refused, none.

        Args:
            messages: of this queue, or their receipt handles.
            missing_ok: inside a transaction of the caller's, too, a message that is gone is not an error.
            connection: the application's own transaction, see `send`: deleted when, and only if, it commits.

        Raises:
            TypeError: `messages` is one message or one handle, or holds something else.
            ReceiptHandleIsInvalid: no receive of this queue issued the handle.
            LeaseLost, InvalidParameterValue: as `Message.delete`, for the first that is refused; its place, from 0,
                stands in the error.
        """
        if isinstance(messages, (str, Message)):
            raise TypeError(f"delete_many takes a list or another iterable of messages, not {messages!r}")
        handles = [_handle(place, message) for place, message in enumerate(messages)]
        raw = None if connection is None else self._store.application.connection_of(connection)
        with self._named():
            bulk.delete_many(self._store, self.name, handles, LOCAL, raw, missing_ok=missing_ok)

    def purge(self) -> None:
        """Remove every message, in flight and delayed ones too. Once in 60 s.

        Raises:
            PurgeQueueInProgress: purged within the last 60 s.
        """
        self._call(requests.PurgeQueue, {})

    def delete(self) -> None:
        """Delete the queue with its messages; its name is free again after 60 s."""
        self._call(requests.DeleteQueue, {})

    @property
    def attributes(self) -> dict[str, str]:
        """All attributes by SQS's names, counts included; every value is text. Source: API_GetQueueAttributes."""
        response = self._call(requests.GetQueueAttributes, {"AttributeNames": ["All"]})
        found: dict[str, str] = response.attributes
        return found

    def set_attributes(
        self, attributes: Mapping[str, Any] | None = None, **settings: Unpack[QueueSettings]
    ) -> None:
        """Set attributes: all of them or, when one is refused, none.

        Args:
            attributes: by SQS's names.
            settings: by the names that `SQS.create_queue` takes, its short form of RedrivePolicy too.

        Raises:
            TypeError: `attributes` is not a mapping, a setting is unknown, or one attribute is given twice.
            ValueError: a value is None, or as `SQS.create_queue`.
            InvalidAttributeName, InvalidAttributeValue, InvalidParameterValue: not as SQS allows.
        Source: API_SetQueueAttributes.
        """
        if attributes is None:
            attributes = {}
        if not isinstance(attributes, Mapping):
            raise TypeError(f"attributes={attributes!r}: a mapping of names to values is allowed")
        for name, value in (*attributes.items(), *settings.items()):
            if value is None:
                raise ValueError(f"{name}=None: an attribute has a value; one that is to stay is left out")
        named = attributes_of(self._store, settings)
        twice = attributes.keys() & named.keys()
        if twice:
            raise TypeError(f"{', '.join(sorted(twice))}: given twice, by SQS's name and by Python's")
        self._call(requests.SetQueueAttributes, {"Attributes": attribute_texts({**attributes, **named})})

    @property
    def tags(self) -> dict[str, str]:
        """The queue's tags."""
        return dict(self._call(requests.ListQueueTags, {}).tags or {})

    def tag(self, tags: Mapping[str, str]) -> None:
        """Add tags, or give them other values."""
        self._call(requests.TagQueue, {"Tags": dict(tags)})

    def untag(self, *keys: str) -> None:
        """Remove tags; missing ones are ignored."""
        self._call(requests.UntagQueue, {"TagKeys": list(keys)})

    def add_permission(self, label: str, aws_account_ids: Sequence[str], actions: Sequence[str]) -> None:
        """Write into the queue's Policy that these accounts may do this. It refuses no other account.

        Args:
            label: 1 to 80 letters, digits, `-` and `_`, another one than the Policy has.
            aws_account_ids: 12 digits each.
            actions: up to 7 of `*`, SendMessage, ReceiveMessage, DeleteMessage, ChangeMessageVisibility,
                GetQueueAttributes, GetQueueUrl, ListDeadLetterSourceQueues and PurgeQueue.

        Raises:
            InvalidParameterValue, MissingParameter: not as SQS allows.
            OverLimit: more actions, or more than 20 statements, 50 accounts or 8,192 bytes in the Policy.
        Source: API_AddPermission.
        """
        self._call(
            requests.AddPermission, {"Label": label, "AWSAccountIds": aws_account_ids, "Actions": actions}
        )

    def remove_permission(self, label: str) -> None:
        """Take a permission out of the queue's Policy, which goes with the last one.

        Raises:
            InvalidParameterValue: none has this label.
        Source: API_RemovePermission.
        """
        self._call(requests.RemovePermission, {"Label": label})


def _handle(place: int, message: "Message | str") -> str:
    if isinstance(message, Message):
        return message.receipt_handle
    if isinstance(message, str):
        return message
    raise TypeError(f"message {place} is {message!r}: a Message or a receipt handle is allowed")


def _trace(trace_header: str) -> dict[str, Any]:
    return {"AWSTraceHeader": {"DataType": "String", "StringValue": trace_header}}


def _entry(place: int, message: str | Mapping[str, Any]) -> dict[str, Any]:
    """One message of `send_many` as the members of a batch entry."""
    if isinstance(message, str):
        return {"MessageBody": message}
    if not isinstance(message, Mapping):
        raise TypeError(f"message {place} is {message!r}: a str or a mapping with body is allowed")
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
