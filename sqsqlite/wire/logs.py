"""The log: one line of JSON for each request, and for the server's start and end."""

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from sqsqlite.wire.served import Served

_encode = msgspec.json.Encoder().encode


class Log:
    """Writes lines to a stream: what one turn of the event loop has answered, at once.

    A full disk or a closed pipe costs lines, never requests.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: list[str] = []

    def served(self, served: Served) -> None:
        """A request was answered. Within the event loop."""
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
        if served.cause:
            line["cause"] = served.cause
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._write)
        self._lines.append(_text(line))

    def tell(self, event: str, **facts: Any) -> None:
        """Something else than a request: written at once."""
        self._lines.append(_text({"time": _now(), "event": event, **facts}))
        self._write()

    def _write(self) -> None:
        lines, self._lines = self._lines, []
        with contextlib.suppress(OSError, ValueError):
            self._stream.write("".join(lines))
            self._stream.flush()


def _now() -> str:
    """The wall clock's time, whatever clock the file has."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(line: dict[str, Any]) -> str:
    return f"{_encode(line).decode()}\n"
