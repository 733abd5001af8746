# SPDX-License-Identifier: Apache-2.0
"""The two pages of test mode: /_test/clock moves the clock, /_test/reset removes everything.

Programs in any language call them, so they are plain HTTP with JSON. They want a header that no page of a stranger can
make a browser send.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from sqsqlite.access.open_access import Hosts
from sqsqlite.serve.application import Scope, Send
from sqsqlite.serve.client import Disconnected, Receive, read_body

HEADER = b"x-sqsqlite-test"
LONGEST_SECONDS = 100 * 366 * 86_400
"""The farthest that one request moves the clock: a hundred years."""
_PREFIX = b"/_test/"
_MOST_BYTES = 10_000


class BadRequest(Exception):
    """A request that a page refuses: the status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class TestModePages:
    """Answers what begins with /_test/.

    Args:
        clock: a clock with `advance`.
        hosts: the names that a Host header may contain.
        reset: removes all queues.
    """

    def __init__(self, clock: Any, hosts: Hosts, reset: Callable[[], Awaitable[None]]) -> None:
        self._clock = clock
        self._hosts = hosts
        self._reset = reset

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer the request if it is for one of the pages. Returns whether it is."""
        path = scope.get("raw_path") or scope["path"].encode()
        if not path.startswith(_PREFIX):
            return False
        try:
            body = await read_body(receive)
        except Disconnected:
            return True
        try:
            self._check_origin(dict(scope["headers"]))
            found = await self._find(path[len(_PREFIX) :], scope["method"], body)
        except BadRequest as error:
            await send_text(send, error.status, f"{error}\n")
        else:
            await send_text(send, 200, json.dumps(found) + "\n", b"application/json")
        return True

    def _check_origin(self, headers: dict[bytes, bytes]) -> None:
        """Refuse what a page of another site can make a browser send.

        Raises:
            BadRequest: 403.
        """
        if HEADER not in headers:
            raise BadRequest(403, "the header X-Sqsqlite-Test is missing: send it with any value")
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._hosts.knows(host):
            raise BadRequest(
                403, f"the host {host} is not one of this server's: --allowed-host NAME adds a name"
            )
        origin = headers.get(b"origin")
        if origin is not None and not self._hosts.knows_origin(origin.decode("latin-1")):
            raise BadRequest(403, f"the origin {origin.decode('latin-1')} is another site's")
        if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            raise BadRequest(403, "the request comes from a page of another site")

    async def _find(self, page: bytes, method: str, body: bytes) -> dict[str, int]:
        if page == b"clock":
            if method == "POST":
                self._clock.advance(_seconds(body))
            elif method != "GET":
                raise BadRequest(405, "/_test/clock takes GET and POST")
        elif page == b"reset":
            if method != "POST":
                raise BadRequest(405, "/_test/reset takes POST")
            await self._reset()
        else:
            raise BadRequest(404, "the pages of test mode are /_test/clock and /_test/reset")
        return {"now_ms": self._clock.now_ms()}


def _seconds(body: bytes) -> float:
    """Read `{"advance": seconds}`.

    Raises:
        BadRequest: 400.
    """
    allowed = f'{{"advance": seconds}} with 0 to {LONGEST_SECONDS:,} seconds is allowed'
    try:
        given = json.loads(body) if len(body) <= _MOST_BYTES else None
    except (ValueError, RecursionError) as error:
        raise BadRequest(400, f"the body is not JSON ({error}): {allowed}") from error
    if not isinstance(given, dict) or given.keys() != {"advance"}:
        raise BadRequest(400, f"the body is {body[:100].decode('latin-1')!r}: {allowed}")
    seconds = given["advance"]
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not (is_number and 0 <= seconds <= LONGEST_SECONDS):  # false for NaN as well
        raise BadRequest(400, f"advance is {str(seconds)[:100]}: {allowed}")
    return float(seconds)


async def send_text(send: Send, status: int, text: str, kind: bytes = b"text/plain; charset=utf-8") -> None:
    """Answer with a text."""
    body = text.encode()
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
