# SPDX-License-Identifier: Apache-2.0
"""Received messages as entries of SendMessageBatch: body, attributes, group and deduplication id as they were."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqsqlite.contract.limits import SQS as LIMITS
from sqsqlite.contract.message_attributes import TRACE_HEADER

# An id that a target drops: longer by a minute than its memory of 5 minutes, for clocks and roads.
REMEMBERED_SECONDS = LIMITS.deduplication_seconds + 60


@dataclass(slots=True)
class Carried:
    """A message on its way.

    Attributes:
        message_id: its id at the source.
        handle: its receipt handle.
        group_id: None on a standard queue without groups.
        entry: what SendMessageBatch takes, without Id.
        size_bytes: body and attributes, as SQS counts a batch.
        may_be_sent: an attempt to send it may have succeeded without an answer.
    """

    message_id: str
    handle: str
    group_id: str | None
    entry: dict[str, Any]
    size_bytes: int
    may_be_sent: bool = field(default=False)


def carried(message: dict[str, Any], *, fifo: bool) -> Carried:
    """Make an entry of a message that ReceiveMessage gave with all its attributes."""
    system = message.get("Attributes", {})
    entry: dict[str, Any] = {"MessageBody": message["Body"]}
    attributes = {
        name: {key: value[key] for key in ("DataType", "StringValue", "BinaryValue") if key in value}
        for name, value in message.get("MessageAttributes", {}).items()
    }
    if attributes:
        entry["MessageAttributes"] = attributes
    if TRACE_HEADER in system:
        entry["MessageSystemAttributes"] = {
            TRACE_HEADER: {"DataType": "String", "StringValue": system[TRACE_HEADER]}
        }
    group_id = system.get("MessageGroupId")
    if group_id is not None:
        entry["MessageGroupId"] = group_id
    if fifo:
        entry["MessageDeduplicationId"] = system["MessageDeduplicationId"]
    return Carried(
        message["MessageId"], message["ReceiptHandle"], group_id, entry, _size(message, attributes)
    )


def _size(message: dict[str, Any], attributes: dict[str, dict[str, Any]]) -> int:
    size = len(message["Body"].encode())
    for name, value in attributes.items():
        content = value.get("StringValue", value.get("BinaryValue", ""))
        size += len(name.encode()) + len(value["DataType"].encode())
        size += len(content.encode() if isinstance(content, str) else content)
    return size


def waves(messages: Sequence[Carried], *, fifo: bool) -> Iterator[list[Carried]]:
    """Messages that one request may hold: 10 entries, 1 MiB, and on a FIFO queue one of a group.

    A target may refuse one entry of a batch and accept a later one. With two messages of a group in one request, the
    second would overtake the first.
    """
    left = list(messages)
    while left:
        wave: list[Carried] = []
        rest: list[Carried] = []
        size = 0
        groups: set[str | None] = set()
        for one in left:
            fits = len(wave) < LIMITS.batch_entry_count and size + one.size_bytes <= LIMITS.batch_bytes
            if (fits or not wave) and not (fifo and one.group_id in groups):
                wave.append(one)
                size += one.size_bytes
            else:
                rest.append(one)
            groups.add(one.group_id)
        yield wave
        left = rest


class Ids:
    """Deduplication ids that the target may still remember.

    A source accepts the same id again after five minutes. When both messages are sent within five minutes of each other
    here, the target would drop the second: it gets an id of its own.

    Args:
        by_group: the target remembers ids by message group.
    """

    def __init__(self, *, by_group: bool) -> None:
        self._by_group = by_group
        self._sent: dict[tuple[str | None, str], tuple[str, float]] = {}

    def choose(self, one: Carried, now: float) -> bool:
        """Give a message its id. Returns whether it is another one than it had.

        Args:
            now: seconds on a clock that never goes back.
        """
        for key, (_, sent_at) in list(self._sent.items()):
            if now - sent_at < REMEMBERED_SECONDS:
                break  # in the order of sending
            del self._sent[key]
        given = one.entry["MessageDeduplicationId"]
        key = (one.group_id if self._by_group else None, given)
        before = self._sent.get(key)
        renamed = before is not None and before[0] != one.message_id
        if renamed:
            digest = hashlib.sha256(f"{given}\0{one.message_id}".encode()).hexdigest()
            one.entry["MessageDeduplicationId"] = digest
        else:
            self._sent.pop(key, None)
            self._sent[key] = (one.message_id, now)
        return renamed
