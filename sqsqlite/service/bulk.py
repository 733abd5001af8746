"""Many messages in one transaction: what SQS's batches of ten can't say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqsqlite import requests, shapes
from sqsqlite.engine.send import append
from sqsqlite.errors import SQSError
from sqsqlite.prepared import PreparedMessage
from sqsqlite.responses import SendMessageResponse
from sqsqlite.service import lookup
from sqsqlite.service.messages import prepare, sent

if TYPE_CHECKING:
    from sqsqlite.service.caller import Caller
    from sqsqlite.store.connections import Connection
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction


def send_many(
    store: "Store",
    queue_url: str,
    entries: Sequence[dict[str, Any]],
    caller: "Caller",
    connection: "Connection | None" = None,
) -> list[SendMessageResponse]:
    """Send all the entries (members of SendMessage) in one transaction, or none of them.

    Raises:
        SQSError: of the first entry that is refused; its place, from 0, stands before the message.
    """
    messages = [
        shapes.parse(requests.SendMessage, {"QueueUrl": queue_url, **entry}, store.settings.limits)
        for entry in entries
    ]
    if connection is not None:
        return store.join(connection, _send_all, queue_url, messages, caller)
    return store.write(_send_all, queue_url, messages, caller)


def _send_all(
    tx: "Transaction", queue_url: str, messages: list[requests.SendMessage], caller: "Caller"
) -> list[SendMessageResponse]:
    queue = lookup.find(tx.execute, queue_url, caller)
    lookup.refuse_fifo(queue)
    prepared: list[PreparedMessage] = []
    for place, message in enumerate(messages):
        try:
            prepared.append(prepare(tx, queue, message))
        except SQSError as error:
            raise type(error)(f"message {place}: {error.message}") from error
    if not prepared:
        return []
    message_ids = append(tx, queue, prepared, caller.sender_id)
    return [sent(message, message_id) for message, message_id in zip(prepared, message_ids, strict=True)]
