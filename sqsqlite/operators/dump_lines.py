# SPDX-License-Identifier: Apache-2.0
"""The lines of a dump, each a JSON object: `dump`, a `queue` each, a `message` each, a `deduplication` each, `end`.

Instants are milliseconds since 1970 UTC. Members with their default value are left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec

from sqsqlite.contract.message_attributes import MessageAttributeValue
from sqsqlite.errors import BadDump

# 2 has the lines `deduplication`, and `earlier` in `dead_letter`.
FORMAT_VERSION = 2

# Moves of each dead letter before its last one; INSERT_DEAD_LETTER keeps no more.
MOST_EARLIER = 8

Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""What any JSON reader keeps exactly."""


class DumpStart(msgspec.Struct, tag_field="kind", tag="dump", frozen=True, kw_only=True):
    """The first line.

    Attributes:
        version: of this format.
        dump_id: 32 hexadecimal digits, another for each dump: how `load` knows how far it came with this one.
        dumped_at: the instant that the dump shows.
    """

    version: Number
    dump_id: str
    dumped_at: Number


class DumpedQueue(
    msgspec.Struct, tag_field="kind", tag="queue", frozen=True, kw_only=True, omit_defaults=True
):
    """A queue's settings, and how many messages of it follow (about: some may reach the end of their retention)."""

    name: str
    attributes: dict[str, str]
    tags: dict[str, str] = {}
    messages: Number = 0


class DumpedMove(msgspec.Struct, frozen=True, kw_only=True):
    """From which queue a message was moved to the dead-letter queue, after how many receives, and when."""

    source_arn: str
    receive_count: Number
    moved_at: Number


class Provenance(DumpedMove, frozen=True, kw_only=True, omit_defaults=True):
    """Where a dead letter was moved from.

    Attributes:
        earlier: the moves before that one, of a message that died in several queues, the latest last.
    """

    earlier: Annotated[tuple[DumpedMove, ...], msgspec.Meta(max_length=MOST_EARLIER)] = ()


class DumpedMessage(
    msgspec.Struct, tag_field="kind", tag="message", frozen=True, kw_only=True, omit_defaults=True
):
    """A message.

    Attributes:
        message_id: a UUID.
        sent_at: retention counts from it.
        delayed_until: when its delay ends, where it had not yet.
        receive_count: ApproximateReceiveCount.
        queue_receive_count: compared with maxReceiveCount; it starts again after a move.
        sequence, deduplication_id: of FIFO queues.
    """

    queue: str
    message_id: str
    body: str
    attributes: dict[str, MessageAttributeValue] = {}
    group_id: str | None = None
    deduplication_id: str | None = None
    sequence: Number | None = None
    trace_header: str | None = None
    sender_id: str | None = None
    sent_at: Number
    delayed_until: Number | None = None
    first_received_at: Number | None = None
    receive_count: Number = 0
    queue_receive_count: Number = 0
    dead_letter: Provenance | None = None


class DumpedDeduplication(msgspec.Struct, tag_field="kind", tag="deduplication", frozen=True, kw_only=True):
    """A deduplication id that a FIFO queue remembers. Its message may be gone.

    Attributes:
        message_id, sequence: of the original, which a duplicate is answered with; the id is a UUID.
        expires_at: five minutes after the send.
    """

    queue: str
    deduplication_id: str
    group_id: str
    message_id: str
    sequence: Number
    expires_at: Number


class DumpEnd(msgspec.Struct, tag_field="kind", tag="end", frozen=True, kw_only=True):
    """The last line: a dump without it was cut off."""

    messages: Number


Line = DumpStart | DumpedQueue | DumpedMessage | DumpedDeduplication | DumpEnd

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Line).decode


def to_row(line: Line) -> dict[str, Any]:
    """The line as a JSON object, binary values in Base64."""
    row: dict[str, Any] = msgspec.to_builtins(line)
    return row


class DumpReader:
    """A dump's lines, decoded, and in the order they must have.

    Attributes:
        number: of the line read last, from 1.
    """

    def __init__(self, lines: Iterable[str | bytes | Mapping[str, Any]]) -> None:
        self._lines = iter(lines)
        self._ahead: Line | None = None
        self._count = 0
        self.number = 0

    def _next(self) -> Line:
        if self._ahead is not None:
            line, self._ahead = self._ahead, None
            return line
        for text in self._lines:
            self.number += 1
            if not isinstance(text, str | bytes | Mapping):
                raise self.refused(f"{type(text).__name__}: text, bytes or a mapping is allowed")
            if not isinstance(text, Mapping) and not text.strip():
                continue
            try:
                found: Line = msgspec.convert(text, Line) if isinstance(text, Mapping) else decode(text)
            except (msgspec.DecodeError, UnicodeError) as error:
                raise self.refused(str(error)) from error
            return found
        raise BadDump(f"after line {self.number}: the dump was cut off, its end is missing")

    def refused(self, reason: str) -> BadDump:
        """The error for the line read last."""
        return BadDump(f"line {self.number}: {reason}")

    def start(self) -> DumpStart:
        """The first line.

        Raises:
            BadDump: it is another line, or of an unknown format.
        """
        line = self._next()
        if not isinstance(line, DumpStart):
            raise self.refused("not the first line of a dump")
        if not 1 <= line.version <= FORMAT_VERSION:
            raise self.refused(
                f"format {line.version} of dumps, {FORMAT_VERSION} is known: install a newer SQSQLite"
            )
        return line

    def queues(self) -> list[DumpedQueue]:
        """The queues, which come before all messages."""
        found = []
        while isinstance(line := self._next(), DumpedQueue):
            found.append(line)
        self._ahead = line
        return found

    def messages(self) -> Iterator[DumpedMessage]:
        """The messages.

        Raises:
            BadDump: a line that must not follow.
        """
        while isinstance(line := self._next(), DumpedMessage):
            self._count += 1
            yield line
        if not isinstance(line, DumpedDeduplication | DumpEnd):
            raise self.refused("a message or the end is expected here")
        self._ahead = line

    def deduplications(self) -> Iterator[DumpedDeduplication]:
        """The deduplication ids, to the end.

        Raises:
            BadDump: another line, an end that counts other messages, or a line after the end.
        """
        while isinstance(line := self._next(), DumpedDeduplication):
            yield line
        if not isinstance(line, DumpEnd):
            raise self.refused("a deduplication or the end is expected here")
        if line.messages != self._count:
            raise self.refused(f"the dump had {line.messages} messages, {self._count} were read")
        for text in self._lines:
            self.number += 1
            if isinstance(text, Mapping) or text.strip():
                raise self.refused("stands after the end of the dump; dumps are loaded one by one")
