# SPDX-License-Identifier: Apache-2.0
"""Loading a dump: hundreds of messages a commit, each message once however often the load is repeated."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import queue_rows
from sqsqlite.actions.insert import LoadedMessage, Source, append_loaded
from sqsqlite.actions.messages import new_message_id
from sqsqlite.actions.opening import LIMITS
from sqsqlite.actions.queues import create_queue, set_queue_attributes
from sqsqlite.contract import requests, shapes
from sqsqlite.contract.message_attributes import TRACE_HEADER, MessageAttributeValue
from sqsqlite.contract.names import is_queue_arn
from sqsqlite.contract.prepared import prepare_message
from sqsqlite.errors import InvalidParameterValue, QueueDoesNotExist, SQSError
from sqsqlite.operators.dump_lines import DumpedMessage, DumpedQueue, DumpReader
from sqsqlite.sql import file as sql
from sqsqlite.sql.operators import RESTORE_DEDUPLICATION, SELECT_BOOKMARK

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.contract.limits import Limits
    from sqsqlite.store.store import Store
    from sqsqlite.store.transaction import Transaction

# In one commit, whichever is reached first: more gains nothing, and others wait for as long.
BATCH_MESSAGES = 500
BATCH_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Loaded:
    """What `load` did, or has done so far.

    Attributes:
        messages: how many were loaded now.
        before: how many of this dump another run has loaded.
        expired: how many were left out, because they are beyond the retention of their queue.
        created: the names of the queues created.
        warnings: settings that could not be kept, a sentence each.
    """

    messages: int = 0
    before: int = 0
    expired: int = 0
    created: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def load(
    store: "Store",
    lines: Iterable[str | bytes | Mapping[str, Any]],
    caller: "Caller",
    *,
    renew: bool = False,
    again: bool = False,
    progress: Callable[[Loaded], None] = lambda _: None,
) -> Loaded:
    """Create the missing queues of a dump, and append its messages.

    Messages keep their ids, send times, receive counts and delays; an existing queue keeps its attributes. Each commit
    notes in the file how much of this dump it has. After an error or a kill, loading the same dump goes on from there;
    loading a complete one again does nothing. The deduplication ids of FIFO queues come last, when all messages are
    there: before that, a message that is still missing would be taken for a duplicate. Two loads of the same dump at
    once share the work.

    Args:
        lines: of one dump.
        renew: new message ids, sent now, never received: as if each was sent today.
        again: load the dump from its beginning, whatever was loaded of it before.
        progress: called with the counts so far after each commit.

    Raises:
        BadDump: a line does not belong to a dump, or the end is missing.
        SQSError: a queue or message is not allowed here; the message begins with the line's number.
        DiskFull, Busy: see `errors`. All messages before the commit that failed are in the file.
    """
    reader = DumpReader(lines)
    start = reader.start()
    bookmark = f"loaded {start.dump_id}"
    with store.reading() as snapshot:
        found = snapshot.execute(SELECT_BOOKMARK, {"name": bookmark}).fetchone()
    taken = 0 if found is None or again else found[0]
    queues = reader.queues()
    created, warnings = store.write(_create_queues, queues, caller)
    done = Loaded(before=taken, created=tuple(created), warnings=tuple(warnings))
    names = {queue.name for queue in queues}
    for batch in _batches(reader, names, taken, store.settings.limits):
        before, written = store.write(_write, batch, renew, caller, bookmark, taken, again)
        taken += len(batch)
        done = replace(
            done,
            messages=done.messages + written,
            before=done.before + before,
            expired=done.expired + len(batch) - before - written,
        )
        progress(done)
    for chunk in _remembered(reader, names):
        if not renew:
            store.write(_remember, chunk, caller)
    return done


def examine(lines: Iterable[str | bytes | Mapping[str, Any]], *, limits: str = "sqs") -> Loaded:
    """Read a dump to its end and check each message, without a file: what `load` would refuse is refused.

    Args:
        limits: "sqs" or "native", as for `connect`.

    Raises:
        BadDump, SQSError: as `load`; whether the queues' attributes are allowed shows only there.
    """
    reader = DumpReader(lines)
    reader.start()
    queues = {queue.name for queue in reader.queues()}
    count = sum(len(batch) for batch in _batches(reader, queues, 0, LIMITS[limits]))
    for _ in _remembered(reader, queues):
        pass
    return Loaded(messages=count)


# --- queues


def _create_queues(
    tx: "Transaction", queues: list[DumpedQueue], caller: "Caller"
) -> tuple[list[str], list[str]]:
    """Create the missing queues, then set their redrive policies. Returns names and warnings."""
    created = []
    warnings = []
    for queue in queues:
        try:
            queue_rows.find(tx, queue.name, caller)
        except QueueDoesNotExist:
            _create_queue(tx, queue, caller)
            created.append(queue)
    for queue in created:
        policy = queue.attributes.get("RedrivePolicy")
        if policy is None:
            continue
        attributes = {"RedrivePolicy": policy}
        request = shapes.parse(
            requests.SetQueueAttributes,
            {"QueueUrl": queue.name, "Attributes": attributes},
            tx.settings.limits,
        )
        try:
            set_queue_attributes(tx, request, caller)
        except InvalidParameterValue as error:
            warnings.append(f"queue {queue.name} was loaded without its RedrivePolicy: {error.message}")
    return [queue.name for queue in created], warnings


def _create_queue(tx: "Transaction", queue: DumpedQueue, caller: "Caller") -> None:
    attributes = {name: text for name, text in queue.attributes.items() if name != "RedrivePolicy"}
    parameters = {"QueueName": queue.name, "Attributes": attributes, "tags": queue.tags}
    try:
        create_queue(tx, shapes.parse(requests.CreateQueue, parameters, tx.settings.limits), caller)
    except SQSError as error:
        raise type(error)(f"queue {queue.name}: {error.message}") from error


# --- messages


def _batches(
    reader: DumpReader, queues: set[str], before: int, limits: "Limits"
) -> Iterator[list[tuple[str, LoadedMessage]]]:
    """(queue, message) of all after the first `before` ones, a commit's worth at a time; the last may be empty."""
    batch: list[tuple[str, LoadedMessage]] = []
    size_bytes = 0
    for place, line in enumerate(reader.messages()):
        if place < before:
            continue
        _check_queue(reader, line.queue, queues)
        message = _checked(reader, line, limits)
        batch.append((line.queue, message))
        size_bytes += message.message.size_bytes
        if len(batch) >= BATCH_MESSAGES or size_bytes >= BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    yield batch


def _check_queue(reader: DumpReader, name: str, queues: set[str]) -> None:
    if name not in queues:
        raise reader.refused(f"the queue {name} is not in the dump")


def _checked(reader: DumpReader, line: DumpedMessage, limits: "Limits") -> LoadedMessage:
    """Checked as a message that is sent, except for the size that its queue allows today."""
    trace = line.trace_header
    system = {TRACE_HEADER: MessageAttributeValue(data_type="String", string_value=trace)} if trace else None
    try:
        prepared = prepare_message(
            line.body, line.attributes, system, line.group_id, line.deduplication_id, limits=limits
        )
    except SQSError as error:
        raise type(error)(f"line {reader.number}: {error.message}") from error
    if line.group_id is None and line.queue.endswith(".fifo"):
        raise reader.refused("group_id is missing, without which a FIFO queue takes no message")
    if line.queue_receive_count > line.receive_count:
        raise reader.refused("queue_receive_count is more than receive_count")
    return LoadedMessage(
        prepared,
        _message_id(reader, line.message_id),
        line.sender_id,
        line.sent_at,
        line.delayed_until or 0,
        line.receive_count,
        line.queue_receive_count,
        line.first_received_at,
        _source(reader, line),
        line.sequence or 0,
    )


def _message_id(reader: DumpReader, text: str) -> bytes:
    try:
        return uuid.UUID(text).bytes
    except ValueError as error:
        raise reader.refused(f"message_id {text!r}: {error}") from error


def _source(reader: DumpReader, line: DumpedMessage) -> Source | None:
    found = line.dead_letter
    if found is None:
        return None
    for move in (found, *found.earlier):
        if not is_queue_arn(move.source_arn):
            raise reader.refused(f"source_arn {move.source_arn!r} is not a queue's ARN")
    earlier = tuple(Source(move.source_arn, move.receive_count, move.moved_at) for move in found.earlier)
    return Source(found.source_arn, found.receive_count, found.moved_at, earlier)


def _write(
    tx: "Transaction",
    batch: list[tuple[str, LoadedMessage]],
    renew: bool,
    caller: "Caller",
    bookmark: str,
    taken: int,
    again: bool,
) -> tuple[int, int]:
    """Store a batch, and note how much of the dump is in the file.

    Args:
        taken: how many messages of the dump come before the batch.

    Returns:
        How many another load of the same dump has stored meanwhile, and how many of the others were within their
        retention.
    """
    end = taken + len(batch)
    found = tx.execute(SELECT_BOOKMARK, {"name": bookmark}).fetchone()
    before = 0 if found is None or again else min(max(found[0] - taken, 0), len(batch))
    if before:
        if before == len(batch):
            return before, 0
        batch = batch[before:]
    by_queue: dict[str, list[LoadedMessage]] = {}
    for name, message in batch:
        by_queue.setdefault(name, []).append(message)
    written = 0
    for name, messages in by_queue.items():
        queue = queue_rows.find(tx, name, caller)
        expired_at = queue.expired_at(tx)
        kept = [
            _renewed(message, tx.now_ms) if renew else _kept(message, tx.now_ms)
            for message in messages
            if renew or message.sent_at > expired_at
        ]
        if kept:
            append_loaded(tx, queue, kept)
        written += len(kept)
    tx.execute(sql.SET_META, {"name": bookmark, "number": end, "bytes": None})
    return before, written


def _kept(message: LoadedMessage, now_ms: int) -> LoadedMessage:
    """With its past. If its sender's clock was ahead, it counts as sent now, or it would outlive its retention."""
    visible_at = message.visible_at if message.visible_at > now_ms else 0
    return message._replace(sent_at=min(message.sent_at, now_ms), visible_at=visible_at)


def _renewed(message: LoadedMessage, now_ms: int) -> LoadedMessage:
    """Without a past, but with the rest of its delay."""
    return message._replace(
        message_id=bytes(new_message_id()),
        sent_at=now_ms,
        visible_at=message.visible_at if message.visible_at > now_ms else 0,
        receive_count=0,
        queue_receive_count=0,
        first_received_at=None,
        source=None,
    )


# --- deduplication ids


def _remembered(reader: DumpReader, queues: set[str]) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """(queue, row) of each deduplication, a commit's worth at a time; the last may be empty."""
    chunk: list[tuple[str, dict[str, Any]]] = []
    for line in reader.deduplications():
        _check_queue(reader, line.queue, queues)
        if not line.queue.endswith(".fifo"):
            raise reader.refused(f"the queue {line.queue} is no FIFO queue, which alone remembers sends")
        row = {
            "deduplication_id": line.deduplication_id,
            "group_id": line.group_id,
            "message_id": _message_id(reader, line.message_id),
            "sequence": line.sequence,
            "expires_at": line.expires_at,
        }
        chunk.append((line.queue, row))
        if len(chunk) == BATCH_MESSAGES:
            yield chunk
            chunk = []
    yield chunk


def _remember(tx: "Transaction", chunk: list[tuple[str, dict[str, Any]]], caller: "Caller") -> None:
    """Store the ids that have not expired, for five minutes at most: the other machine's clock may have been ahead."""
    longest = tx.now_ms + tx.settings.limits.deduplication_seconds * 1000
    for name, row in chunk:
        if row["expires_at"] > tx.now_ms:
            kept = {
                **row,
                "epoch_id": queue_rows.find(tx, name, caller).epoch_id,
                "expires_at": min(row["expires_at"], longest),
                "now_ms": tx.now_ms,
            }
            tx.execute(RESTORE_DEDUPLICATION, kept)
