"""Sending: SendMessage and its batch."""

from typing import TYPE_CHECKING

from sqsqlite.engine.rows import Queue
from sqsqlite.engine.send import append
from sqsqlite.errors import SQSError
from sqsqlite.prepared import PreparedMessage, check_queue_type
from sqsqlite.responses import (
    BatchResultErrorEntry,
    SendMessageBatchResponse,
    SendMessageBatchResultEntry,
    SendMessageResponse,
)
from sqsqlite.service import lookup
from sqsqlite.service.batch import failure

if TYPE_CHECKING:
    from sqsqlite import requests
    from sqsqlite.service.caller import Caller
    from sqsqlite.store.transaction import Transaction


def send_message(tx: "Transaction", request: "requests.SendMessage", caller: "Caller") -> SendMessageResponse:
    """Store one message.

    Raises:
        QueueDoesNotExist: as said.
        MissingParameter, InvalidMessageContents, InvalidParameterValue: see `prepare_message`.
        DiskFull: too little room; what is in the queue can still be received and deleted.
    Source: API_SendMessage.
    """
    queue = lookup.find(tx.execute, request.queue_url, caller)
    lookup.refuse_fifo(queue)
    message = prepare(tx, queue, request)
    [message_id] = append(tx, queue, (message,), caller.sender_id)
    return sent(message, message_id)


def send_message_batch(
    tx: "Transaction", request: "requests.SendMessageBatch", caller: "Caller"
) -> SendMessageBatchResponse:
    """Store up to ten messages, in order; an entry that is refused leaves the others alone.

    Raises:
        QueueDoesNotExist: as said; the batch's own errors were raised before.
    Source: API_SendMessageBatch.
    """
    queue = lookup.find(tx.execute, request.queue_url, caller)
    lookup.refuse_fifo(queue)
    entries: list[str] = []
    messages: list[PreparedMessage] = []
    failed: list[BatchResultErrorEntry] = []
    for entry in request.entries:
        try:
            messages.append(prepare(tx, queue, entry))
        except SQSError as error:
            failed.append(failure(entry.id, error))
        else:
            entries.append(entry.id)
    message_ids = append(tx, queue, messages, caller.sender_id) if messages else []
    successful = [
        SendMessageBatchResultEntry(
            id=entry_id,
            message_id=uuid_text(message_id),
            md5_of_message_body=message.body_md5.hex(),
            md5_of_message_attributes=message.attributes_md5,
            md5_of_message_system_attributes=message.trace_md5,
        )
        for entry_id, message, message_id in zip(entries, messages, message_ids, strict=True)
    ]
    return SendMessageBatchResponse(successful=successful or None, failed=failed or None)


def sent(message: PreparedMessage, message_id: bytearray) -> SendMessageResponse:
    """What a send answers."""
    return SendMessageResponse(
        md5_of_message_body=message.body_md5.hex(),
        md5_of_message_attributes=message.attributes_md5,
        md5_of_message_system_attributes=message.trace_md5,
        message_id=uuid_text(message_id),
    )


def prepare(
    tx: "Transaction", queue: Queue, request: "requests.SendMessage | requests.SendMessageBatchRequestEntry"
) -> PreparedMessage:
    """Check a message against its queue and compute its digests. Raises as `prepare_message`."""
    message = request.prepare(tx.settings.limits, queue.maximum_message_size_bytes)
    check_queue_type(message, fifo=bool(queue.fifo))
    return message


def uuid_text(message_id: bytes | bytearray) -> str:
    """16 bytes as the text of a UUID."""
    text = message_id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
