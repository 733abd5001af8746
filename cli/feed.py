# SPDX-License-Identifier: Apache-2.0
"""Standard input as messages: cut into records as they come, sent hundreds a commit, the refused ones set aside."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from sqsqlite.cli.failures import PARTIAL, Failure, failure_of, put_off
from sqsqlite.cli.message_rows import BadMessage
from sqsqlite.errors import CommitInDoubt, SQSError, SQSQLiteError

if TYPE_CHECKING:
    from sqsqlite import SQS, Queue, SentMessage

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
        aside: where refused records go; None: the first one ends it all.
        sent: messages whose commit was acknowledged.
        through: the number of the last record that was dealt with; those before it were, too.
        begun: the number of the last record of the portion that was begun last.
    """

    sqs: "SQS"
    queue: "Queue"
    message_of: Callable[[bytes], dict[str, Any]]
    aside: "Aside | None" = None
    sent: int = 0
    through: int = 0
    begun: int = 0

    def send(self, portion: list[Record]) -> "list[SentMessage]":
        """Send a portion in one commit.

        Raises:
            Failure: a record was refused, and no file for refused records was named. The records before it were sent.
        """
        with put_off(signal.SIGINT, signal.SIGTERM):  # so that what was committed is counted
            self.begun = portion[-1][0]
            try:
                messages = [self.message_of(raw) for _, raw in portion]
                sent = self.queue.send_many(messages)
            except (SQSError, ValueError, TypeError):
                # One of them is refused, so none was sent: find out which, still in one commit.
                sent = self._send_singly(portion)
            self.sent += len(sent)
            self.through = self.begun
        return sent

    def _send_singly(self, portion: list[Record]) -> "list[SentMessage]":
        sent = []
        failure: Failure | None = None
        with self.aside or nullcontext(), self.sqs.transaction():
            for number, raw in portion:
                message: dict[str, Any] = {"raw": raw.decode(errors="replace")}
                try:
                    message = self.message_of(raw)
                    sent.append(self.queue.send(**message))
                except (SQSError, ValueError, TypeError) as error:
                    text = failure_of(error).message if isinstance(error, SQSQLiteError) else str(error)
                    if self.aside is None:
                        failure = Failure(f"line {number}: {text}")
                        break
                    if isinstance(error, BadMessage) and error.row is not None:
                        message = error.row
                    self.aside.put({**message, "line": number, "error": text})
        if failure is not None:
            self.sent += len(sent)
            raise Failure(f"{failure.message}\n{self.sent:,} sent before it, none after")
        return sent

    def told(self, error: BaseException, separator: bytes) -> str:
        """How much of the input is in after an error, and how the rest of it is sent."""
        name = {b"\n": "line", b"\0": "record"}.get(separator, "input")
        if not self.through:
            text = (
                f"{self.sent:,} sent: no {name} of the input is in" if separator else "0 sent: it is not in"
            )
        elif separator:
            tail = "tail -z" if separator == b"\0" else "tail"
            text = (
                f"{self.sent:,} sent: the first {self.through:,} {name}s of the input are in; "
                f"{tail} -n +{self.through + 1} gives the others"
            )
        else:
            text = f"{self.sent:,} sent: all of the input is in"
        if self.begun > self.through and isinstance(error, CommitInDoubt | KeyboardInterrupt):
            text += f"\nWhether {name}s {self.through + 1:,} to {self.begun:,} are in is not known"
        return text


class Aside:
    """The file of refused records: JSON lines in the order of the input, to be mended and fed again.

    Made at once: a file that can't be written is reported before anything is sent.

    Args:
        path: a file that is not there, or empty as an earlier run may have left it that was killed.

    Raises:
        Failure: it can't be made.
        UsageError: it holds something.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        try:
            if path.exists() and path.stat().st_size:
                raise click.UsageError(f"{path} exists already: --refused names another file")
            self._file: IO[str] = path.open("a", encoding="utf-8")
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}, and refused lines would go there") from error

    def __enter__(self) -> None:
        self._mark = self._file.tell(), self.count

    def __exit__(self, kind: object, *_: object) -> None:
        """Take back what was put in the block if it fails: it was not sent, so the same lines come once more."""
        if kind is not None:
            self._file.truncate(self._mark[0])
            self.count = self._mark[1]

    def put(self, row: dict[str, Any]) -> None:
        """Write a record; `line` and `error` are members of it."""
        self.count += 1
        self._file.write(json.dumps(row, default=_as_json) + "\n")
        self._file.flush()

    def close(self) -> Failure | None:
        """Close the file; the failure to end with. Without a refused record there is neither."""
        self._file.close()
        if not self.count:
            self.path.unlink()
            return None
        return Failure(f"{self.count:,} refused: {self.path}", PARTIAL)


def _as_json(value: Any) -> Any:
    """What `message_of` has read, so that it reads the same again: bytes, and the digits of a number with a point."""
    import base64
    from decimal import Decimal

    if not isinstance(value, Decimal):
        return base64.b64encode(value).decode("ascii")
    number = float(value)
    return number if repr(number) == str(value) else {"DataType": "Number", "StringValue": str(value)}
