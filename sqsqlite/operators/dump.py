# SPDX-License-Identifier: Apache-2.0
"""Dumping queues and their messages."""

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import dead_letters, queue_rows
from sqsqlite.actions.damaged import line
from sqsqlite.actions.messages import uuid_text
from sqsqlite.actions.queues import exact_counts
from sqsqlite.contract import queue_attributes
from sqsqlite.contract.message_attributes import load_attributes
from sqsqlite.contract.names import queue_arn
from sqsqlite.errors import Corrupt, QueueDoesNotExist
from sqsqlite.operators.dump_lines import (
    FORMAT_VERSION,
    DumpedDeduplication,
    DumpedMessage,
    DumpedMove,
    DumpedQueue,
    DumpEnd,
    DumpStart,
    Line,
    Provenance,
)
from sqsqlite.operators.rescue import (
    LARGEST,
    Rescue,
    Stored,
    check_deduplication,
    check_loadable,
    is_plain,
    loadable_attributes,
    loadable_tags,
    mended,
)
from sqsqlite.sql import operators as statements_operations
from sqsqlite.sql import queues as sql
from sqsqlite.store.damage import ODD, warn_of_damage
from sqsqlite.store.driver import dbapi
from sqsqlite.store.transaction import Snapshot
from sqsqlite.store.translate import CORRUPT, is_undecodable, primary_code

if TYPE_CHECKING:
    from sqsqlite.actions.queue_rows import Caller
    from sqsqlite.store.clock import Jumps
    from sqsqlite.store.driver import Connection
    from sqsqlite.store.store import Store

# Attributes of GetQueueAttributes that can't be set.
_NOT_KEPT = ("Approximate", "CreatedTimestamp", "LastModifiedTimestamp", "QueueArn")


def dump(
    store: "Store",
    queue_urls: Sequence[str],
    caller: "Caller",
    *,
    passed_by: Callable[[str], None] | None = None,
) -> Iterator[Line]:
    """Yield queues as they are at one instant, with all their messages. Changes nothing.

    Messages in flight are included, and stay with their consumers. The snapshot is held until the last line was taken,
    and the WAL grows for that long.

    Args:
        queue_urls: names, URLs or ARNs; empty: all queues of the account.
        passed_by: called with a sentence for each message, queue or range of rows that is damaged and left out.
            Without it they are logged as warnings.

    Raises:
        QueueDoesNotExist: no queue has this name; before the first line.
        Corrupt: the file is too damaged to find the queues.
    """
    passed_by = passed_by or (lambda line: warn_of_damage(store.path, [line]))
    with store.reading() as snapshot:
        now_ms = snapshot.now_ms
        names = queue_urls or _all_names(snapshot, caller)
        found = [row for name in names if (row := _find(snapshot, name, caller, passed_by, bool(queue_urls)))]
        rows = {row["id"]: _as_called(row, passed_by) for row in found}
        lines = {}
        for row in list(rows.values()):
            try:
                lines[row["id"]] = _queue(snapshot, row, passed_by)
            except ODD as error:
                passed_by(f"queue {row['name']} is damaged ({error}): it is left out, with its messages")
                del rows[row["id"]]
        yield DumpStart(version=FORMAT_VERSION, dump_id=secrets.token_hex(16), dumped_at=now_ms)
        yield from lines.values()
        count = 0
        for message in _messages(
            snapshot.connection, list(rows.values()), now_ms, passed_by, store.settings.jumps
        ):
            yield message
            count += 1
        yield from _deduplications(snapshot.connection, list(rows.values()), now_ms, passed_by)
        yield DumpEnd(messages=count)


def _find(
    snapshot: Snapshot, name: str, caller: "Caller", passed_by: Callable[[str], None], is_named: bool
) -> dict[str, Any] | None:
    """A queue's row; None if it is damaged."""
    try:
        return queue_rows.find_row(snapshot, name, caller)
    except dbapi.Error as error:
        if not (is_undecodable(error) or primary_code(error) == CORRUPT):
            raise
        passed_by(f"queue {name} is damaged: its row can't be read; it is left out, with its messages")
    except QueueDoesNotExist:
        if is_named:
            raise
        passed_by(f"queue {name!r} is damaged: a queue can't have this name")
    return None


def _as_called(row: dict[str, Any], passed_by: Callable[[str], None]) -> dict[str, Any]:
    """The row with the type that the queue's name says: `load` can make no other queue of that name."""
    fifo = row["name"].endswith(".fifo")
    if bool(row["fifo"]) == fifo:
        return row
    kind = "FIFO" if fifo else "standard"
    passed_by(
        f"queue {row['name']} is damaged: its type contradicts its name; it is dumped as a {kind} queue"
    )
    return {**row, "fifo": int(fifo)}


def _all_names(snapshot: Snapshot, caller: "Caller") -> list[str]:
    where = {"account_id": caller.account_id}
    return [row[0] for row in snapshot.execute(statements_operations.LIST_EVERY_NAME, where)]


def _queue(snapshot: Snapshot, row: dict[str, Any], passed_by: Callable[[str], None]) -> DumpedQueue:
    arn = queue_arn(snapshot.settings.region, row["account_id"], row["name"])
    shown = queue_attributes.render_attributes(row, ["All"], (0, 0, 0), arn)
    stored = {name: text for name, text in shown.items() if not name.startswith(_NOT_KEPT)}
    attributes = loadable_attributes(stored, fifo=bool(row["fifo"]))
    for name in stored.keys() - attributes.keys():
        passed_by(f"queue {row['name']} is damaged: it is dumped without its {name}, {stored[name]!r}")
    stored_tags = dict(snapshot.execute(sql.SELECT_TAGS, {"queue_id": row["id"]}).fetchall())
    tags = loadable_tags(stored_tags)
    for key in stored_tags.keys() - tags.keys():
        passed_by(f"queue {row['name']} is damaged: it is dumped without its tag {key!r}")
    return DumpedQueue(
        name=row["name"],
        attributes=attributes,
        tags=tags,
        messages=max(0, min(sum(exact_counts(snapshot, row)), LARGEST)),  # of damaged counts
    )


def _messages(
    connection: "Connection",
    rows: list[dict[str, Any]],
    now_ms: int,
    passed_by: Callable[[str], None],
    jumps: "Jumps",
) -> Iterator[DumpedMessage]:
    queues = {row["epoch_id"]: row for row in rows}
    for found in Rescue(connection, queues.keys(), passed_by).rows():
        queue = queues[found.epoch_id]
        if not is_plain(found):
            try:
                found = mended(found, queue["name"], now_ms, passed_by)  # noqa: PLW2901
            except Corrupt as error:
                passed_by(line(found.id, queue["name"], error))
                continue
        if found.sent_at <= jumps.expired_at(queue["message_retention_period_seconds"], now_ms):
            continue
        try:
            dumped = _message(queue, found, now_ms)
            check_loadable(dumped)
        except ValueError:
            passed_by(line(found.id, queue["name"], "its attributes can't be decoded"))
        except Corrupt as error:
            passed_by(line(found.id, queue["name"], error))
        else:
            yield dumped


def _message(queue: dict[str, Any], found: Stored, now_ms: int) -> DumpedMessage:
    message = found.message
    assert message is not None
    return DumpedMessage(
        queue=queue["name"],
        message_id=uuid_text(message.message_id),
        body=message.body,
        attributes=load_attributes(message.attributes) if message.attributes else {},
        group_id=message.group_id,
        deduplication_id=found.deduplication_id,
        sequence=found.id if queue["fifo"] else None,
        trace_header=message.trace_header,
        sender_id=message.sender_id,
        sent_at=found.sent_at,
        delayed_until=found.visible_at if found.visible_at > now_ms and not found.received else None,
        first_received_at=found.first_received_at,
        receive_count=found.receive_count,
        queue_receive_count=found.queue_receive_count,
        dead_letter=_provenance(found),
    )


def _provenance(found: Stored) -> Provenance | None:
    if found.source_arn is None or found.source_receive_count is None or found.moved_at is None:
        return None
    moves = [] if found.earlier is None else dead_letters.read(found.earlier)
    return Provenance(
        source_arn=found.source_arn,
        receive_count=found.source_receive_count,
        moved_at=found.moved_at,
        earlier=tuple(
            DumpedMove(source_arn=move.source_arn, receive_count=move.receive_count, moved_at=move.moved_at)
            for move in moves
        ),
    )


def _deduplications(
    connection: "Connection", rows: list[dict[str, Any]], now_ms: int, passed_by: Callable[[str], None]
) -> Iterator[DumpedDeduplication]:
    queues = {row["epoch_id"]: row["name"] for row in rows if row["fifo"]}
    bounds = {"epoch_ids": json.dumps(list(queues)), "now_ms": now_ms}
    try:
        for epoch_id, *found in connection.execute(statements_operations.DUMP_DEDUPLICATIONS, bounds):
            deduplication_id, group_id, message_id, sequence, expires_at = found
            try:
                dumped = DumpedDeduplication(
                    queue=queues[epoch_id],
                    deduplication_id=deduplication_id,
                    group_id=group_id,
                    message_id=uuid_text(message_id),
                    sequence=sequence,
                    expires_at=expires_at,
                )
                check_deduplication(dumped)
            except (TypeError, ValueError, AttributeError, Corrupt) as error:
                passed_by(
                    f"the deduplication id {deduplication_id!r} of queue {queues[epoch_id]} is damaged: {error}"
                )
            else:
                yield dumped
    except ODD as error:
        passed_by(f"the deduplication ids are damaged ({error}): those not read by then are left out")
