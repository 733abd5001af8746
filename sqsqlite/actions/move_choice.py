# SPDX-License-Identifier: Apache-2.0
"""What a message move task moves next, and where to. It only reads."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from sqsqlite.actions.queue_rows import QueueRow, find_queue
from sqsqlite.contract.move_filter import MoveFilter
from sqsqlite.sql import moves as sql
from sqsqlite.store.transaction import Snapshot

NO_SUCH_DESTINATION = "AWS.SimpleQueueService.NonExistentQueue"
NO_KNOWN_SOURCE = "CouldNotDetermineMessageSource"

# Messages looked at in a chunk: 500 plain ones take about 5 ms. And their bytes, beyond the first message.
CHUNK_ROWS = 500
CHUNK_BYTES = 1024 * 1024
# FIFO: groups looked at in a chunk, of whatever queue.
CHUNK_GROUPS = 1_000
_NO_ID = 1 << 62


class Movable(NamedTuple):
    """A message of a dead-letter queue, with where it came from (None: it was sent there directly).

    `earlier`: the moves before that one, as `provenance` has them.
    """

    id: int
    sent_at: int
    size_bytes: int
    visible_at: int
    was_received: int
    group_key: int | None
    source_arn: str | None
    receive_count: int | None
    moved_at: int | None
    earlier: str | None


class Route(NamedTuple):
    """What a task goes by.

    Attributes:
        destination_arn: None: each message's own source.
        conditions: None: all messages.
        started_at, last_message_id: what was sent or died later is not the task's.
        expired_at: what was sent then or before is beyond its retention.
    """

    source: QueueRow
    destination_arn: str | None
    conditions: MoveFilter | None
    started_at: int
    last_message_id: int
    expired_at: int


class Choice(NamedTuple):
    """What a chunk moves, by destination, and how far it comes.

    Attributes:
        failure_reason: why the first message without a destination has to stay.
        cursor: time of sending, or FIFO the group's key, and row id of the last message looked at.
        is_last: nothing is behind it.
    """

    moves: dict[QueueRow, list[Movable]]
    failure_reason: str | None
    cursor: tuple[int, int]
    is_last: bool

    @property
    def size_bytes(self) -> int:
        """What is copied: bodies and attributes."""
        return sum(message.size_bytes for messages in self.moves.values() for message in messages)


class _Chunk(NamedTuple):
    """Messages to look at, in order.

    Attributes:
        cursor: where a task stands that is done with all of them.
        is_last: nothing is behind them.
    """

    messages: list[Movable]
    cursor: tuple[int, int]
    is_last: bool

    def with_few_bytes(self) -> "_Chunk":
        """Up to the message that makes too many bytes of them."""
        size_bytes = 0
        for place, message in enumerate(self.messages):
            size_bytes += message.size_bytes
            if place and size_bytes > CHUNK_BYTES:
                return _Chunk(self.messages[:place], _place(self.messages[place - 1]), is_last=False)
        return self


def choose(at: Snapshot, route: Route, cursor: tuple[int, int], allowed: int) -> Choice:
    """Go through the messages behind `cursor` until `allowed` are found that can be moved.

    From a standard queue in order of age. From a FIFO queue group by group: of each that can be received from, those
    that can be received, in order. A group that is locked when its turn comes stays as it is, whole.
    """
    find = _next_in_groups if route.source.fifo else _next_by_age
    chunk = find(at, route, cursor).with_few_bytes()
    wanted = _wanted(at, route, chunk.messages)
    destinations: dict[str, QueueRow | None] = {}
    moves: dict[QueueRow, list[Movable]] = {}
    failure_reason = None
    for message in chunk.messages:
        if message.id in wanted:
            arn = route.destination_arn or message.source_arn
            if arn is not None and arn not in destinations:
                destinations[arn] = find_queue(at, arn)
            destination = None if arn is None else destinations[arn]
            if destination is None:
                failure_reason = failure_reason or (NO_KNOWN_SOURCE if arn is None else NO_SUCH_DESTINATION)
            elif allowed:
                moves.setdefault(destination, []).append(message)
                allowed -= 1
            else:
                return Choice(moves, failure_reason, cursor, is_last=False)
        cursor = _place(message)
    return Choice(moves, failure_reason, chunk.cursor, chunk.is_last)


def _place(message: Movable) -> tuple[int, int]:
    """As a cursor has it."""
    return (message.sent_at if message.group_key is None else message.group_key), message.id


def _next_by_age(at: Snapshot, route: Route, cursor: tuple[int, int]) -> _Chunk:
    """A chunk of the messages behind the cursor."""
    after = max(cursor, (route.expired_at, _NO_ID))
    bounds = {
        "epoch_id": route.source.epoch_id,
        "after_sent_at": after[0],
        "after_id": after[1],
        "last_id": route.last_message_id,
        "started_at": route.started_at,
        "limit": CHUNK_ROWS,
    }
    messages = [Movable(*row) for row in at.execute(sql.LIST_MOVABLE, bounds).fetchall()]
    reached = _place(messages[-1]) if messages else cursor
    return _Chunk(messages, reached, is_last=len(messages) < CHUNK_ROWS)


def _next_in_groups(at: Snapshot, route: Route, cursor: tuple[int, int]) -> _Chunk:
    """A chunk of what stands at the front of the groups behind the cursor, and of the one that it stands in."""
    messages: list[Movable] = []
    bounds = {
        "epoch_id": route.source.epoch_id,
        "after_key": cursor[0] if cursor[1] == _NO_ID else cursor[0] - 1,
        "now_ms": at.now_ms,
        "limit": CHUNK_GROUPS,
    }
    rows = at.execute(sql.LIST_GROUPS_BEHIND, bounds).fetchall()
    for group_key, is_ready in rows:
        after_id = cursor[1] if group_key == cursor[0] else 0
        if is_ready:
            front, is_whole = _front(at, route, group_key, after_id, CHUNK_ROWS - len(messages))
            messages += front
            if not is_whole:
                return _Chunk(messages, _place(messages[-1]), is_last=False)
        cursor = group_key, _NO_ID
    return _Chunk(messages, cursor, is_last=len(rows) < CHUNK_GROUPS)


def _front(
    at: Snapshot, route: Route, group_key: int, after_id: int, wanted: int
) -> tuple[list[Movable], bool]:
    """Messages of the group, none of them behind one that is hidden, and whether these are all."""
    bounds = {
        "epoch_id": route.source.epoch_id,
        "group_key": group_key,
        "after_id": after_id,
        "last_id": route.last_message_id,
        "now_ms": at.now_ms,
        "limit": wanted,
    }
    # The messages left before the cursor may have been received since.
    if after_id and at.execute(sql.FIND_HIDDEN_BEFORE, bounds).fetchone() is not None:
        return [], True
    listed = [Movable(*row) for row in at.execute(sql.LIST_MOVABLE_OF_GROUP, bounds).fetchall()]
    front: list[Movable] = []
    for message in listed:
        if message.visible_at > at.now_ms:
            return front, True
        front.append(message)
    return front, len(listed) < wanted


def _wanted(at: Snapshot, route: Route, messages: Sequence[Movable]) -> set[int]:
    """Ids of the messages that are visible, were there at the start, and meet the conditions."""
    expired_at = route.expired_at
    found = {
        message.id for message in messages if message.visible_at <= at.now_ms and message.sent_at > expired_at
    }
    found -= {message.id for message in messages if (message.moved_at or 0) > route.started_at}
    conditions = route.conditions
    if conditions is None:
        return found
    found &= {
        message.id
        for message in messages
        if conditions.allows(message.source_arn, message.receive_count, message.moved_at)
    }
    if conditions.body is not None:
        listed = {"ids": json.dumps(sorted(found)), "text": conditions.body}
        found = {row[0] for row in at.execute(sql.LIST_WITH_BODY, listed).fetchall()}
    return found
