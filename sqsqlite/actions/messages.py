"""Sending: SendMessage and its batch."""

from typing import TYPE_CHECKING

from sqsqlite.actions import fifo_send, lookup
from sqsqlite.actions.batch import failure
from sqsqlite.actions.fifo_send import find_settings
from sqsqlite.actions.rows import Queue
from sqsqlite.actions.send import append
from sqsqlite.contract.prepared import PreparedMessage, check_fifo_identifiers, check_queue_type
from sqsqlite.contract.responses import (
    BatchResultErrorEntry,
    SendMessageBatchResponse,
    SendMessageBatchResultEntry,
    SendMessageResponse,
)
from sqsqlite.errors import SQSError

if TYPE_CHECKING:
    from sqsqlite.actions.caller import Caller
    from sqsqlite.contract import requests
    from sqsqlite.store.transaction import Transaction

# Row ids are below 2**63: the sum has 20 digits, always, and is more than 10**19 + 2**63, with which it began once.
# Mixed digits: tools that redact accounts in recorded answers would find the default one, twelve zeros, in a round one.
_FIRST_SEQUENCE_NUMBER = 19_753_186_429_753_186_429


def send_message(tx: "Transaction", request: "requests.SendMessage", caller: "Caller") -> SendMessageResponse:
    """Store one message.

    Raises:
        QueueDoesNotExist: no queue has this name or URL.
        MissingParameter, InvalidMessageContents, InvalidParameterValue: see `prepare_message`.
        DiskFull: too little room; what is in the queue can still be received and deleted.
    Source: API_SendMessage.
    """
    queue = lookup.find(tx.execute, request.queue_url, caller)
    if queue.fifo:
        settings = find_settings(tx, queue)
        message = prepare_fifo(tx, queue, request, settings)
        [appended] = fifo_send.append(tx, queue, (message,), caller.sender_id, settings)
        return sent(message, *appended)
    message = prepare(tx, queue, request)
    [message_id] = append(tx, queue, (message,), caller.sender_id)
    return sent(message, message_id)


def send_message_batch(
    tx: "Transaction", request: "requests.SendMessageBatch", caller: "Caller"
) -> SendMessageBatchResponse:
    """Store up to ten messages, in order; an entry that is refused leaves the others alone.

    Raises:
        QueueDoesNotExist: no queue has this URL; the batch's own errors were raised before.
    Source: API_SendMessageBatch.
    """
    queue = lookup.find(tx.execute, request.queue_url, caller)
    settings = _check_batch(tx, queue, request) if queue.fifo else None
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
    stored: list[tuple[bytes | bytearray, int | None]] = []
    if settings is not None:
        stored += fifo_send.append(tx, queue, messages, caller.sender_id, settings)
    elif messages:
        stored += [(message_id, None) for message_id in append(tx, queue, messages, caller.sender_id)]
    successful = [
        SendMessageBatchResultEntry(
            id=entry_id,
            message_id=uuid_text(message_id),
            md5_of_message_body=message.body_md5.hex(),
            md5_of_message_attributes=message.attributes_md5,
            md5_of_message_system_attributes=message.trace_md5,
            sequence_number=None if sequence is None else sequence_number(sequence),
        )
        for entry_id, message, (message_id, sequence) in zip(entries, messages, stored, strict=True)
    ]
    return SendMessageBatchResponse(successful=successful or None, failed=failed or None)


def _check_batch(
    tx: "Transaction", queue: Queue, request: "requests.SendMessageBatch"
) -> fifo_send.FifoSettings:
    """One entry without a group, or without anything to tell duplicates by, fails the whole batch."""
    settings = find_settings(tx, queue)
    for entry in request.entries:
        check_fifo_identifiers(
            entry.message_group_id,
            entry.message_deduplication_id,
            content_based_deduplication=settings.content_based_deduplication,
            in_batch=True,
        )
    return settings


def sent(
    message: PreparedMessage, message_id: bytes | bytearray, sequence: int | None = None
) -> SendMessageResponse:
    """What a send answers. `sequence`: of a FIFO queue's message."""
    return SendMessageResponse(
        md5_of_message_body=message.body_md5.hex(),
        md5_of_message_attributes=message.attributes_md5,
        md5_of_message_system_attributes=message.trace_md5,
        message_id=uuid_text(message_id),
        sequence_number=None if sequence is None else sequence_number(sequence),
    )


def prepare_fifo(
    tx: "Transaction", queue: Queue, request: "requests.SendMessage", settings: fifo_send.FifoSettings
) -> PreparedMessage:
    """`prepare` for a message to a FIFO queue, with what it must have there. Raises as `check_fifo_identifiers`."""
    message = prepare(tx, queue, request)
    check_fifo_identifiers(
        message.group_id,
        message.deduplication_id,
        content_based_deduplication=settings.content_based_deduplication,
    )
    return message


def sequence_number(sequence: int) -> str:
    """20 digits, which sort as text, and grow with each message that is stored in the file."""
    return str(_FIRST_SEQUENCE_NUMBER + sequence)


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
