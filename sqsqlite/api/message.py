# SPDX-License-Identifier: Apache-2.0
"""Messages as the Python door shows them."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import msgspec

from sqsqlite.actions.messages import sequence_number, uuid_text
from sqsqlite.contract import requests
from sqsqlite.errors import LeaseLost

# A program that only sends loads no receiving.
if TYPE_CHECKING:
    from sqlalchemy import Connection as SQLAlchemyConnection
    from sqlalchemy.orm import Session

    from sqsqlite.actions.queue_rows import Received
    from sqsqlite.actions.receive import Found
    from sqsqlite.contract.message_attributes import MessageAttributeValue
    from sqsqlite.contract.receipts import Sealer
    from sqsqlite.store.own_connection import OwnConnection

    class DjangoConnection(Protocol):
        """What `django.db.connection` is."""

        def ensure_connection(self) -> None:
            """Connect, unless it is connected."""

    # The application's own transaction, which an operation joins.
    CallersTransaction = SQLAlchemyConnection | Session | OwnConnection | DjangoConnection


class SentMessage(msgspec.Struct, frozen=True):
    """What a send answers.

    Attributes:
        message_id: a UUID; the message keeps it.
        md5_of_body: of its UTF-8, hexadecimal.
        sequence_number: FIFO queues only.
    """

    message_id: str
    md5_of_body: str
    sequence_number: str | None = None


class Message:
    """A received message, hidden from others until `delete()` or the end of its visibility timeout.

    Attributes:
        body: the text that was sent.
        message_id: the same at every receive.
        receipt_handle: this receive's, and void once another one happened.
        receive_count: how often it was received, this time included.
        sent_at, first_received_at: milliseconds since 1970 UTC.
        attributes: str, int or Decimal, or bytes by name.
        group_id, deduplication_id, sequence_number, trace_header, dead_letter_source_arn: None for a message without
            one.
    """

    __slots__ = (
        "_call",
        "attributes",
        "body",
        "dead_letter_source_arn",
        "deduplication_id",
        "first_received_at",
        "group_id",
        "md5_of_body",
        "message_id",
        "receipt_handle",
        "receive_count",
        "sender_id",
        "sent_at",
        "sequence_number",
        "trace_header",
    )

    def __init__(self, call: Callable[..., Any], found: "Found", one: "Received", sealer: "Sealer") -> None:
        lease, message, queue = one.claim, one.message, found.queue
        self._call = call  # the queue's: it adds the queue to a request
        self.body = message.body
        self.message_id = uuid_text(message.message_id)
        self.receipt_handle = found.handle(one, sealer)
        self.md5_of_body = message.body_md5.hex()
        self.receive_count = lease.receive_count
        self.sent_at = lease.sent_at
        self.first_received_at = lease.first_received_at
        self.sender_id = message.sender_id or queue.account_id
        self.group_id = message.group_id
        self.deduplication_id = one.deduplication_id
        self.sequence_number = sequence_number(lease.id) if queue.fifo else None
        self.trace_header = message.trace_header
        self.dead_letter_source_arn = one.source_arn
        self.attributes = (
            {name: _python_value(value) for name, value in one.attributes.items()} if one.attributes else {}
        )

    def __repr__(self) -> str:
        return f"<Message {self.message_id} receive_count={self.receive_count}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Message can't be pickled or copied: pass its body and its receipt_handle, and settle it by the handle "
            "in the other process, with sqsqlite.client(path)"
        )

    def delete(self, *, missing_ok: bool = False, connection: "CallersTransaction | None" = None) -> None:
        """Delete the message: its work is done.

        Outside a transaction a message that is gone already is not an error. Inside `with sqs.transaction()`, or with
        `connection=`, this succeeds only if it deletes: else it raises, and the rows written there roll back with it.

        Args:
            missing_ok: inside a transaction, too, a message that is gone is not an error.
            connection: a transaction of the application's, see `Queue.send`: deleted when, and only if, it commits.

        Raises:
            InvalidParameterValue: the visibility timeout ended, or another consumer received it since; it stays.
            LeaseLost: the same error, which derives from both; `.reason` says which. Inside a transaction also when the
                message is gone: after `CommitInDoubt`, that may mean that the commit in doubt took place.
        Source: API_DeleteMessage.
        """
        try:
            self._call(requests.DeleteMessage, {"ReceiptHandle": self.receipt_handle}, connection)
        except LeaseLost as error:
            if not (missing_ok and error.reason == "gone"):
                raise

    def change_visibility(self, seconds: int, *, connection: "CallersTransaction | None" = None) -> None:
        """Hide the message for `seconds` (0 to 43,200) from now on; 0 gives it back at once.

        Raises:
            MessageNotInflight: the visibility timeout ended, or another consumer received it since. It is a LeaseLost.
            InvalidParameterValue: it would be in flight for more than 12 h; or, as a LeaseLost, the message is gone.
        Source: API_ChangeMessageVisibility.
        """
        self._call(
            requests.ChangeMessageVisibility,
            {"ReceiptHandle": self.receipt_handle, "VisibilityTimeout": seconds},
            connection,
        )


def _python_value(value: "MessageAttributeValue") -> str | int | Decimal | bytes:
    if value.binary_value is not None:
        return value.binary_value
    text = value.string_value or ""
    if value.data_type.partition(".")[0] != "Number":
        return text
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() and "." not in text else number


def to_attributes(attributes: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Python values as SQS's typed attributes.

    Raises:
        TypeError: no mapping, or a value of another type.
    """
    if attributes is None:
        return None
    if not isinstance(attributes, Mapping):
        raise TypeError(f"attributes={attributes!r}: a mapping of names to values is allowed")
    return {name: _typed(name, value) for name, value in attributes.items()}


def _typed(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return {"DataType": "String", "StringValue": value}
    if isinstance(value, (bytes, bytearray)):
        return {"DataType": "Binary", "BinaryValue": bytes(value)}
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return {"DataType": "Number", "StringValue": str(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(
        f"attribute {name!r} is {value!r}: str, int, float, Decimal, bytes or a mapping with DataType is allowed"
    )
