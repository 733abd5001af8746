"""Standard input as messages: cut into records as they come, sent hundreds a commit, the refused ones set aside."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sqsqlite.cli.failures import PARTIAL, Failure, failure_of
from sqsqlite.errors import ParamValidationError, SQSError

if TYPE_CHECKING:
    from sqsqlite import SQS, Queue
    from sqsqlite._message import SentMessage

_READ_BYTES = 1 << 20
_MESSAGES_A_COMMIT = 500
_BYTES_A_COMMIT = 8 << 20

Record = tuple[int, bytes]
"""The number of a line, from 1, and the line."""


def records(stream: IO[bytes], separator: bytes) -> Iterator[list[Record]]:
    """The stream's records, in portions that fit one commit.

    A portion holds what came with one read: a slow writer's line is sent at once, a file's lines by hundreds.

    Args:
        separator: between records, and after the last one or not; empty: all of the stream is one record.
    """
    number, rest = 0, b""
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    while True:
        chunk = read(_READ_BYTES) if separator else stream.read()
        *found, rest = (rest + chunk).split(separator) if separator else (chunk, b"")
        if not chunk and rest:
            found, rest = [rest], b""
        yield from _portions(list(enumerate(found, number + 1)))
        number += len(found)
        if not chunk or not separator:
            return


def _portions(found: list[Record]) -> Iterator[list[Record]]:
    portion: list[Record] = []
    size = 0
    for record in found:
        if portion and (len(portion) == _MESSAGES_A_COMMIT or size + len(record[1]) > _BYTES_A_COMMIT):
            yield portion
            portion, size = [], 0
        portion.append(record)
        size += len(record[1])
    if portion:
        yield portion


@dataclass
class Feed:
    """Sends portions of records to a queue.

    Attributes:
        message_of: makes `Queue.send`'s arguments of a record, or raises ValueError.
        refused_path: where refused records go, as JSON lines that can be fed again; None: the first one ends it all.
        refused: how many there were.
    """

    sqs: "SQS"
    queue: "Queue"
    message_of: Callable[[bytes], dict[str, Any]]
    refused_path: Path | None = None
    refused: int = 0
    sent: int = 0
    _file: IO[str] | None = field(default=None, init=False)

    def send(self, portion: list[Record]) -> "list[SentMessage]":
        """Send a portion in one commit.

        Raises:
            Failure: a record was refused and there is no place for such. Those before it were sent.
        """
        messages = []
        failure: Failure | None = None
        for number, raw in portion:
            try:
                messages.append((number, self.message_of(raw)))
            except ValueError as error:
                failure = self._refuse(number, {"raw": raw.decode(errors="replace")}, str(error))
                if failure is not None:
                    break
        sent = self._send(messages) if messages else []
        if failure is not None:
            raise self._ended(failure)
        return sent

    def _send(self, messages: list[tuple[int, dict[str, Any]]]) -> "list[SentMessage]":
        try:
            sent = self.queue.send_many([message for _, message in messages])
        except (SQSError, ParamValidationError, TypeError):
            # One of them is refused, so none was sent: find out which, still in one commit.
            return self._send_singly(messages)
        self.sent += len(sent)
        return sent

    def _send_singly(self, messages: list[tuple[int, dict[str, Any]]]) -> "list[SentMessage]":
        sent = []
        failure: Failure | None = None
        with self.sqs.transaction():
            for number, message in messages:
                try:
                    sent.append(self.queue.send(**message))
                except (SQSError, ParamValidationError, TypeError) as error:
                    text = str(error) if isinstance(error, TypeError) else failure_of(error).message
                    failure = self._refuse(number, message, text)
                    if failure is not None:
                        break
        self.sent += len(sent)
        if failure is not None:
            raise self._ended(failure)
        return sent

    def _refuse(self, number: int, message: dict[str, Any], error: str) -> Failure | None:
        """Set a record aside; the failure that ends it all where there is no place for it."""
        self.refused += 1
        if self.refused_path is None:
            return Failure(f"line {number}: {error}")
        if self._file is None:
            self._file = self.refused_path.open("x", encoding="utf-8")
        self._file.write(json.dumps({**message, "line": number, "error": error}, default=_as_json) + "\n")
        self._file.flush()
        return None

    def _ended(self, failure: Failure) -> Failure:
        return Failure(f"{failure.message}\n{self.sent:,} sent before it, none after", failure.exit_code)

    def close(self) -> Failure | None:
        """Close the file of refused records; the failure to end with if there are any."""
        if self._file is None:
            return None
        self._file.close()
        return Failure(f"{self.refused:,} refused: {self.refused_path}", PARTIAL)


def _as_json(value: Any) -> Any:
    import base64

    return base64.b64encode(value).decode("ascii")
