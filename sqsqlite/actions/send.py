# SPDX-License-Identifier: Apache-2.0
"""SendMessage and its batch: a message and its lease, under one id. An entry's error becomes that entry's failure.

The hot statements are bound to int, str or bytearray, never None or bytes: the driver sends those two through its
adapters, which costs a microsecond each.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import fair, fifo_send, queue_rows
from sqsqlite.actions.fifo_send import find_settings
from sqsqlite.actions.messages import (
    insert_messages,
    message_row,
    new_message_id,
    new_message_ids,
    sequence_number,
    uuid_text,
)
from sqsqlite.actions.queue_rows import QueueRow
from sqsqlite.contract.prepared import (
    PreparedMessage,
    check_fifo_identifiers,
    check_queue_type,
    prepare_message,
)
from sqsqlite.contract.responses import (
    BatchResultErrorEntry,
    SendMessageBatchResponse,
    SendMessageBatchResultEntry,
    SendMessageResponse,
    failure,
)
from sqsqlite.errors import SQSError
from sqsqlite.sql import messages as sql

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract import requests
    from sqsqlite.store.transaction import Transaction


def send_message(tx: "Transaction", request: "requests.SendMessage", caller: "Caller") -> SendMessageResponse:
    """Store one message.

    Raises:
        QueueDoesNotExist: no queue has this name or URL.
        MissingParameter, InvalidMessageContents, InvalidParameterValue: see `prepare_message`.
        DiskFull: too little room; what is in the queue can still be received and deleted.
    Source: API_SendMessage.
    """
    queue = queue_rows.find(tx, request.queue_url, caller)
    if queue.fifo:
        settings = find_settings(tx, queue)
        message = prepare_fifo(tx, queue, request, settings)
        [appended] = fifo_send.append(tx, queue, (message,), caller.sender_id, settings)
        return sent(message, *appended)
    message = prepare(tx, queue, request)
    return sent(message, append_one(tx, queue, message, caller.sender_id))


def send_message_batch(
    tx: "Transaction", request: "requests.SendMessageBatch", caller: "Caller"
) -> SendMessageBatchResponse:
    """Store up to ten messages, in order; an entry that is refused leaves the others alone.

    Raises:
        QueueDoesNotExist: no queue has this URL; the batch's own errors were raised before.
    Source: API_SendMessageBatch.
    """
    queue = queue_rows.find(tx, request.queue_url, caller)
    settings = _check_batch(tx, queue, request) if queue.fifo else None
    entries: list[str] = []
    messages: list[PreparedMessage] = []
    failed: list[BatchResultErrorEntry] = []
    for entry in request.entries:
        try:
            messages.append(prepare(tx, queue, entry, in_batch=True))
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
    tx: "Transaction", queue: QueueRow, request: "requests.SendMessageBatch"
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
    tx: "Transaction", queue: QueueRow, request: "requests.SendMessage", settings: fifo_send.FifoSettings
) -> PreparedMessage:
    """`prepare` for a message to a FIFO queue, with what it must have there. Raises as `check_fifo_identifiers`."""
    message = prepare(tx, queue, request)
    check_fifo_identifiers(
        message.group_id,
        message.deduplication_id,
        content_based_deduplication=settings.content_based_deduplication,
    )
    return message


def prepare(
    tx: "Transaction",
    queue: QueueRow,
    request: "requests.SendMessage | requests.SendMessageBatchRequestEntry",
    *,
    in_batch: bool = False,
) -> PreparedMessage:
    """Check a message against its queue and compute its digests. Raises as `prepare_message`."""
    message = prepare_message(
        request.message_body,
        request.message_attributes,
        request.message_system_attributes,
        request.message_group_id,
        request.message_deduplication_id,
        request.delay_seconds,
        limits=tx.settings.limits,
        maximum_size_bytes=queue.maximum_message_size_bytes,
        in_batch=in_batch,
    )
    if queue.fifo or message.deduplication_id is not None:
        check_queue_type(message, fifo=bool(queue.fifo))
    return message


def append(
    tx: "Transaction", queue: QueueRow, messages: "Sequence[PreparedMessage]", sender_id: str | None
) -> list[bytearray]:
    """Store the messages, in order, and give back their message ids.

    Args:
        sender_id: None: the queue's own account.

    Raises:
        DiskFull: too little room is left to go on deleting afterwards; nothing was written.
    """
    if len(messages) == 1:
        return [append_one(tx, queue, messages[0], sender_id)]
    size_bytes = sum([message.size_bytes for message in messages])
    tx.require_room(size_bytes)
    message_ids = new_message_ids(len(messages))
    first = insert_messages(tx, messages, message_ids, sender_id)
    delta = tx.delta(queue.epoch_id)
    earliest = _insert_leases(tx, queue, messages, first, delta)
    delta.messages += len(messages)
    delta.sent += len(messages)
    delta.sent_bytes += size_bytes
    tx.wake(queue.id, earliest)
    return message_ids


def append_one(
    tx: "Transaction", queue: QueueRow, message: "PreparedMessage", sender_id: str | None
) -> bytearray:
    """`append` without lists: most sends are of one message."""
    size_bytes = message.size_bytes
    tx.require_room(size_bytes)
    message_id = new_message_id()
    lease_id: int = tx.run(*message_row(message, message_id, sender_id)).lastrowid
    delta = tx.delta(queue.epoch_id)
    delay = queue.delay_seconds if message.delay_seconds is None else message.delay_seconds
    visible_at = 0
    if delay:
        visible_at = tx.now_ms + delay * 1000
        delta.delayed += 1
    lease = (lease_id, queue.epoch_id, tx.now_ms, size_bytes, visible_at)
    if queue.has_tenants or message.group_id is not None:
        tx.run(sql.INSERT_LEASE_WITH_TURN, (*lease, fair.draw(tx, queue, message.group_id, visible_at)))
    else:
        tx.run(sql.INSERT_LEASE, lease)
    delta.messages += 1
    delta.sent += 1
    delta.sent_bytes += size_bytes
    tx.wake(queue.id, visible_at)
    return message_id


def _insert_leases(
    tx: "Transaction", queue: QueueRow, messages: "Sequence[PreparedMessage]", first: int, delta: Any
) -> int:
    """A lease for each message. Gives the earliest instant at which one is visible, 0: now."""
    now_ms, epoch_id, queue_delay = tx.now_ms, queue.epoch_id, queue.delay_seconds
    earliest = -1
    leases = []
    lease_id = first
    for message in messages:
        delay = message.delay_seconds
        if delay is None:
            delay = queue_delay
        visible_at = 0
        if delay:
            visible_at = now_ms + delay * 1000
            delta.delayed += 1
        if visible_at < earliest or earliest < 0:
            earliest = visible_at
        leases.append((lease_id, epoch_id, now_ms, message.size_bytes, visible_at))
        lease_id += 1
    if queue.has_tenants or any(message.group_id is not None for message in messages):
        with_turns = [
            (*lease, fair.draw(tx, queue, message.group_id, lease[-1]))
            for lease, message in zip(leases, messages, strict=True)
        ]
        tx.connection.executemany(sql.INSERT_LEASE_WITH_TURN, with_turns)
    else:
        tx.connection.executemany(sql.INSERT_LEASE, leases)
    return earliest
