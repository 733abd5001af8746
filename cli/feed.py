# SPDX-License-Identifier: Apache-2.0
"""Sends standard input as messages, hundreds in a commit, and writes the refused ones to a file."""

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
"""The number of a line, from 1 on, and the line."""


def records(stream: IO[bytes], separator: bytes) -> Iterator[list[Record]]:
    """Yield the stream's records, in portions that fit one commit.

    A portion holds the records of one read: a slow writer's line is sent at once, the lines of a file by hundreds.

    Args:
        separator: separates records, and may follow the last one; empty takes the whole stream as one record.
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
        message_of: turns a record into the arguments of `Queue.send`, or raises ValueError.
        aside: takes refused records; None ends the run at the first one.
        sent: the number of messages in acknowledged commits.
        through: the number of the last finished record; all records before it are finished too.
        begun: the number of the last record of the latest portion.
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
        with put_off(signal.SIGINT, signal.SIGTERM):  # so that committed messages are counted
            self.begun = portion[-1][0]
            try:
                messages = [self.message_of(raw) for _, raw in portion]
                sent = self.queue.send_many(messages)
            except (SQSError, ValueError, TypeError):
                # One message was refused, so none was sent. Find out which, still in one commit.
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
            raise Failure(f"{failure.message}\n{self.sent:,} sent before it, and none after it")
        return sent

    def progress_after(self, error: BaseException, separator: bytes) -> str:
        """Say after an error how much of the input was sent, and how to send the rest."""
        name = {b"\n": "line", b"\0": "record"}.get(separator, "input")
        if not self.through:
            text = f"{self.sent:,} sent: no {name} of the input is in the queue"
            if not separator:
                text = "0 sent: the input is not in the queue"
        elif separator:
            tail = "tail -z" if separator == b"\0" else "tail"
            text = (
                f"{self.sent:,} sent: the first {self.through:,} {name}s of the input are in the queue; "
                f"{tail} -n +{self.through + 1} prints the others"
            )
        else:
            text = f"{self.sent:,} sent: the whole input is in the queue"
        if self.begun > self.through and isinstance(error, CommitInDoubt | KeyboardInterrupt):
            text += f"\nIt is unknown whether {name}s {self.through + 1:,} to {self.begun:,} are in the queue"
        return text


class Aside:
    """The file of refused records: JSON lines in the order of the input, which the user can correct and send again.

    Made at once: a file that can't be written is reported before anything is sent.

    Args:
        path: a missing file, or an empty one, which an earlier run may have left when it was killed.

    Raises:
        Failure: the file can't be made.
        UsageError: the file is not empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        try:
            if path.exists() and path.stat().st_size:
                raise click.UsageError(f"{path} exists already: --refused names another file")
            self._file: IO[str] = path.open("a", encoding="utf-8")
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}; refused lines need this file") from error

    def __enter__(self) -> None:
        self._mark = self._file.tell(), self.count

    def __exit__(self, kind: object, *_: object) -> None:
        """If the block fails, remove its records: its messages were not sent, so the same lines come again."""
        if kind is not None:
            self._file.truncate(self._mark[0])
            self.count = self._mark[1]

    def put(self, row: dict[str, Any]) -> None:
        """Write a record, with `line` and `error` among its members."""
        self.count += 1
        self._file.write(json.dumps(row, default=_as_json) + "\n")
        self._file.flush()

    def close(self) -> Failure | None:
        """Close the file, and return the failure of the run. Without refused records, delete the file instead."""
        self._file.close()
        if not self.count:
            self.path.unlink()
            return None
        return Failure(f"{self.count:,} refused: {self.path}", PARTIAL)


def _as_json(value: Any) -> Any:
    """Write bytes and decimal numbers so that `message_of` reads the same values again."""
    import base64
    from decimal import Decimal

    if not isinstance(value, Decimal):
        return base64.b64encode(value).decode("ascii")
    number = float(value)
    return number if repr(number) == str(value) else {"DataType": "Number", "StringValue": str(value)}
