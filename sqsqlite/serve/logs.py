# SPDX-License-Identifier: Apache-2.0
"""The log: one line of JSON for each request, and for the server's start and end."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue
from typing import Any, TextIO

import msgspec

from sqsqlite.serve.protocol import Served

# The most bytes of lines that wait to be written, about 10,000 lines. Further lines are dropped.
QUEUED_BYTES = 4 * 1024 * 1024
# Seconds that `close` waits for the last lines.
_LAST_SECONDS = 1.0

_encode = msgspec.json.Encoder().encode


class Log:
    """Writes lines to a stream on its own thread. Lines of one iteration of the event loop are written together.

    A full disk, a closed pipe or a pipe without a reader loses lines, never requests. Call all methods within the event
    loop.
    """

    def __init__(self, stream: TextIO) -> None:
        self._write = _writer_of(stream)
        self._lines: list[bytes] = []
        self._dropped_count = 0
        self._batches: SimpleQueue[bytes | None] = SimpleQueue()
        # Only one thread changes each of them. The difference waits to be written.
        self._queued_bytes = self._written_bytes = 0
        self._thread = threading.Thread(target=self._run, name="sqsqlite-log", daemon=True)

    def start(self) -> None:
        """Start the thread. Call it in the process that serves."""
        self._thread.start()

    def served(self, served: Served) -> None:
        """Log an answered request."""
        line: dict[str, Any] = {
            "time": _now(),
            "event": "request",
            "request_id": served.request_id,
            "client": served.client_address,
            "action": served.action,
            "account": served.account_id,
            "queue": served.queue,
            "status": served.status,
            "code": served.code,
            "seconds": round(served.seconds, 6),
            "request_bytes": served.request_bytes,
            "answer_bytes": served.answer_bytes,
        }
        if served.access_key_id:
            line["access_key_id"] = served.access_key_id
        if served.user:
            line["user"] = served.user
        if served.cause:
            line["cause"] = served.cause
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._lines.append(_text(line))

    def event(self, event: str, **facts: Any) -> None:
        """Log an event other than a request."""
        self._lines.append(_text({"time": _now(), "event": event, **facts}))
        self._hand_over()

    def close(self) -> None:
        """Write the last lines. Do not wait long for a stream that accepts nothing."""
        self._hand_over()
        self._report_dropped()
        self._batches.put(None)
        self._thread.join(_LAST_SECONDS)

    def _hand_over(self) -> None:
        lines, self._lines = self._lines, []
        if self._queued_bytes - self._written_bytes > QUEUED_BYTES:
            self._dropped_count += len(lines)
            return
        self._report_dropped()
        self._put(b"".join(lines))

    def _report_dropped(self) -> None:
        if self._dropped_count:
            self._put(_text({"time": _now(), "event": "dropped", "lines": self._dropped_count}))
            self._dropped_count = 0

    def _put(self, batch: bytes) -> None:
        self._queued_bytes += len(batch)
        self._batches.put(batch)

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            with contextlib.suppress(OSError, ValueError):
                self._write(batch)
            self._written_bytes += len(batch)


def _writer_of(stream: TextIO) -> Callable[[bytes], object]:
    """A function that writes past the stream's buffer if the stream has a descriptor.

    A thread blocked inside the buffer would keep the program from ending.
    """
    try:
        return partial(_write_all, stream.fileno())
    except OSError:
        return partial(_write_text, stream)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _write_text(stream: TextIO, data: bytes) -> None:
    stream.write(data.decode())
    stream.flush()


def _now() -> str:
    """The time of the wall clock. The file may have another clock."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(line: dict[str, Any]) -> bytes:
    return _encode(line) + b"\n"
