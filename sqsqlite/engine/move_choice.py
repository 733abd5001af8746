"""What a message move task moves next, and where to. It only reads."""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqsqlite import statements as queue_sql
from sqsqlite import statements_moves as sql
from sqsqlite.engine.rows import Queue
from sqsqlite.engine.transfer import Movable
from sqsqlite.move_filter import MoveFilter
from sqsqlite.names import queue_name

NO_SUCH_DESTINATION = "AWS.SimpleQueueService.NonExistentQueue"
NO_KNOWN_SOURCE = "CouldNotDetermineMessageSource"

# Messages looked at in a chunk: 500 plain ones take about 5 ms. And their bytes, beyond the first message.
CHUNK_ROWS = 500
CHUNK_BYTES = 1024 * 1024
_NO_ID = 1 << 62


class Route(NamedTuple):
    """What a task goes by.

    Attributes:
        destination_arn: None: each message's own source.
        conditions: None: all messages.
        started_at, last_message_id: what was sent or died later is not the task's.
    """

    source: Queue
    destination_arn: str | None
    conditions: MoveFilter | None
    started_at: int
    last_message_id: int


class Choice(NamedTuple):
    """What a chunk moves, by destination, and how far it comes.

    Attributes:
        failure_reason: why the first of those that have nowhere to go has to stay.
        cursor: time of sending and row id of the last message looked at.
        is_last: nothing is behind it.
    """

    moves: dict[Queue, list[Movable]]
    failure_reason: str | None
    cursor: tuple[int, int]
    is_last: bool

    @property
    def size_bytes(self) -> int:
        """What is copied: bodies and attributes."""
        return sum(message.size_bytes for messages in self.moves.values() for message in messages)


def find_queue(execute: Callable[..., Any], arn: str) -> Queue | None:
    """The queue of that name: also one deleted and made again."""
    where = queue_name(arn)
    row = execute(queue_sql.SELECT_QUEUE, where).fetchone()
    return None if row is None else Queue(*row + where)


def choose(
    execute: Callable[..., Any], now_ms: int, route: Route, cursor: tuple[int, int], allowed: int
) -> Choice:
    """Go through the messages behind `cursor`, in order of age, until `allowed` are found that can be moved."""
    messages, is_last = _next_messages(execute, now_ms, route, cursor)
    wanted = _wanted(execute, now_ms, route, messages)
    destinations: dict[str, Queue | None] = {}
    moves: dict[Queue, list[Movable]] = {}
    failure_reason = None
    for message in messages:
        if message.id in wanted:
            arn = route.destination_arn or message.source_arn
            if arn is not None and arn not in destinations:
                destinations[arn] = find_queue(execute, arn)
            destination = None if arn is None else destinations[arn]
            if destination is None:
                failure_reason = failure_reason or (NO_KNOWN_SOURCE if arn is None else NO_SUCH_DESTINATION)
            elif allowed:
                moves.setdefault(destination, []).append(message)
                allowed -= 1
            else:
                return Choice(moves, failure_reason, cursor, is_last=False)
        cursor = message.sent_at, message.id
    return Choice(moves, failure_reason, cursor, is_last)


def _next_messages(
    execute: Callable[..., Any], now_ms: int, route: Route, cursor: tuple[int, int]
) -> tuple[list[Movable], bool]:
    """A chunk of the messages behind the cursor, and whether these are all."""
    after = max(cursor, (route.source.expired_at(now_ms), _NO_ID))
    bounds = {
        "epoch_id": route.source.epoch_id,
        "after_sent_at": after[0],
        "after_id": after[1],
        "last_id": route.last_message_id,
        "started_at": route.started_at,
        "limit": CHUNK_ROWS,
    }
    messages = [Movable(*row) for row in execute(sql.LIST_MOVABLE, bounds).fetchall()]
    size_bytes = 0
    for place, message in enumerate(messages):
        size_bytes += message.size_bytes
        if place and size_bytes > CHUNK_BYTES:
            return messages[:place], False
    return messages, len(messages) < CHUNK_ROWS


def _wanted(execute: Callable[..., Any], now_ms: int, route: Route, messages: Sequence[Movable]) -> set[int]:
    """Ids of those that are visible, were there at the start, and meet the conditions."""
    locked = _locked_groups(execute, now_ms, messages)
    found = {
        message.id for message in messages if message.visible_at <= now_ms and message.group_key not in locked
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
        found = {row[0] for row in execute(sql.LIST_WITH_BODY, listed).fetchall()}
    return found


def _locked_groups(execute: Callable[..., Any], now_ms: int, messages: Sequence[Movable]) -> set[int | None]:
    """FIFO: groups whose first message is hidden. Those behind it can't be received, so they are not moved either."""
    keys = {message.group_key for message in messages} - {None}
    if not keys:
        return set()
    listed = {"group_keys": json.dumps(list(keys)), "now_ms": now_ms}
    return {row[0] for row in execute(sql.LIST_LOCKED_GROUPS, listed).fetchall()}
