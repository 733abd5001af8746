"""Writing queues and their messages out as JSON lines."""

import json
import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqsqlite import queue_attributes, statements_operations
from sqsqlite import statements_queues as sql
from sqsqlite.message_attributes import load_attributes
from sqsqlite.names import queue_arn
from sqsqlite.service import lookup
from sqsqlite.service.dump_lines import (
    FORMAT_VERSION,
    DumpedMessage,
    DumpedQueue,
    DumpEnd,
    DumpStart,
    Line,
    Provenance,
)
from sqsqlite.service.messages import uuid_text
from sqsqlite.service.queues import exact_counts

if TYPE_CHECKING:
    from sqsqlite.service.caller import Caller
    from sqsqlite.store.connections import Connection
    from sqsqlite.store.jumps import Jumps
    from sqsqlite.store.settings import Settings
    from sqsqlite.store.store import Store

# What GetQueueAttributes tells and nobody can set.
_TOLD_ONLY = ("Approximate", "CreatedTimestamp", "LastModifiedTimestamp", "QueueArn")
_PAGE = 200


def dump(store: "Store", queue_urls: Sequence[str], caller: "Caller") -> Iterator[Line]:
    """Queues as they are at one instant, all their messages with them; nothing is changed.

    A message in flight is among them like any other: whoever loads the dump gets it, whatever its present holder does.
    One snapshot is held until the last line was taken; the WAL grows for that long.

    Args:
        queue_urls: names, URLs or ARNs; none: all queues of the account.

    Raises:
        QueueDoesNotExist: as said, before the first line.
    """
    with store.reading() as connection:
        now_ms = store.clock.now_ms()
        names = queue_urls or _all_names(connection, caller)
        found = [lookup.find_row(connection.execute, name, caller) for name in names]
        rows = list({row["id"]: row for row in found}.values())
        yield DumpStart(version=FORMAT_VERSION, dump_id=secrets.token_hex(16), dumped_at=now_ms)
        for row in rows:
            yield _queue(connection, row, store.settings, now_ms)
        count = 0
        for message in _messages(connection, rows, now_ms, store.settings.jumps):
            yield message
            count += 1
        yield DumpEnd(messages=count)


def _all_names(connection: "Connection", caller: "Caller") -> list[str]:
    where = {"account_id": caller.account_id}
    return [row[0] for row in connection.execute(statements_operations.LIST_QUEUE_NAMES, where)]


def _queue(connection: "Connection", row: dict[str, Any], settings: "Settings", now_ms: int) -> DumpedQueue:
    arn = queue_arn(settings.region, row["account_id"], row["name"])
    shown = queue_attributes.render_attributes(row, ["All"], (0, 0, 0), arn)
    return DumpedQueue(
        name=row["name"],
        attributes={name: text for name, text in shown.items() if not name.startswith(_TOLD_ONLY)},
        tags=dict(connection.execute(sql.SELECT_TAGS, {"queue_id": row["id"]}).fetchall()),
        messages=sum(exact_counts(connection, row, now_ms, settings.jumps)),
    )


def _messages(
    connection: "Connection", rows: list[dict[str, Any]], now_ms: int, jumps: "Jumps"
) -> Iterator[DumpedMessage]:
    queues = {row["epoch_id"]: row for row in rows}
    cursor = connection.execute(statements_operations.DUMP_MESSAGES, {"epoch_ids": json.dumps(list(queues))})
    while page := cursor.fetchmany(_PAGE):
        for found in page:
            queue = queues[found[0]]
            sent_at = found[9]
            if sent_at > jumps.expired_at(queue["message_retention_period_seconds"], now_ms):
                yield _message(queue["name"], found[1:], now_ms)


def _message(queue: str, found: tuple[Any, ...], now_ms: int) -> DumpedMessage:
    message_id, body, attributes, group_id, trace_header, sender_id, deduplication_id, sequence, *lease = (
        found
    )
    sent_at, first_received_at, receive_count, queue_receive_count, visible_at, received, *source = lease
    return DumpedMessage(
        queue=queue,
        message_id=uuid_text(message_id),
        body=body,
        attributes=load_attributes(attributes) if attributes else {},
        group_id=group_id,
        deduplication_id=deduplication_id,
        sequence=sequence,
        trace_header=trace_header,
        sender_id=sender_id,
        sent_at=sent_at,
        delayed_until=visible_at if visible_at > now_ms and not received else None,
        first_received_at=first_received_at,
        receive_count=receive_count,
        queue_receive_count=queue_receive_count,
        dead_letter=None
        if source[0] is None
        else Provenance(source_arn=source[0], receive_count=source[1], moved_at=source[2]),
    )
