# SPDX-License-Identifier: Apache-2.0
"""The limits of HTTP requests, and the rules for their heads: each request must have only one reading.

llhttp, the parser in httptools, refuses much that two programs could read differently: Content-Length together with
Transfer-Encoding, either of them twice, bad chunk sizes, bare line feeds, folded headers, control characters. This
module refuses the rest. Source: RFC 9112, sections 3 (request line and Host), 6 (bodies) and 9 (connections).
"""

import re
from dataclasses import dataclass

_METHODS = ("GET", "POST", "HEAD")
# If one of these came twice, two programs could read different values.
_ONCE = (
    b"authorization",
    b"content-type",
    b"expect",
    b"host",
    b"transfer-encoding",
    b"x-amz-date",
    b"x-amz-security-token",
    b"x-amz-target",
)
_is_host = re.compile(rb"([A-Za-z0-9._~-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?").fullmatch
_match_absolute = re.compile(rb"https?://([^/?#]*)(/[^?#]*)?(.*)", re.IGNORECASE | re.DOTALL).fullmatch

Refusal = tuple[int, str]
"""The HTTP status and the reason."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The server refuses a request beyond these limits and closes its connection. In parentheses: the HTTP status.

    Attributes:
        head_bytes: the request line and all headers together (431, or 414 for the line).
        header_count: headers (431).
        body_bytes: one body (413). The longest valid request, ten messages of 1 MiB in all, takes 6 MiB if each
            character is escaped.
        head_seconds: from the first byte of a request, or the start of the connection, to the end of the headers (408).
            A TLS handshake has the same time; the server then closes the connection.
        body_seconds: from the end of the headers to the end of the body (408).
        idle_seconds: the server closes a connection that has had no request for this long.
        unread_seconds: the server drops a client that has read nothing of its answer for this long.
        pipelined: requests on one connection that wait for an earlier answer (400 to the next).
        connections: accepted at the same time (503 to the next; if many come, the server closes the rest unanswered).
        short_bytes: bytes of bodies that each connection may hold without counting towards `bodies_bytes`.
        bodies_bytes: all bodies together. Beyond it the server refuses the body that began to arrive first (503), so
            slow senders cannot keep others out.
        texts_bytes: the parsed contents of bodies, until the answers are made. Beyond it requests wait in line.
        answers_bytes: received messages and their answers, until the clients have read them. Beyond it receives wait in
            line, and the server refuses them (503) when their waiting time is over.
        unread_bytes: written answers that clients have not read. Beyond it the server drops the client that has read
            nothing for longest.
        scarce_seconds: replaces `unread_seconds` while receives wait in line for memory.
    """

    head_bytes: int = 32 * 1024
    header_count: int = 100
    body_bytes: int = 8 * 1024 * 1024
    head_seconds: float = 10
    body_seconds: float = 60
    idle_seconds: float = 75
    unread_seconds: float = 60
    pipelined: int = 16
    connections: int = 5_000
    short_bytes: int = 64 * 1024
    bodies_bytes: int = 192 * 1024 * 1024
    texts_bytes: int = 64 * 1024 * 1024
    answers_bytes: int = 128 * 1024 * 1024
    unread_bytes: int = 128 * 1024 * 1024
    scarce_seconds: float = 10


@dataclass(slots=True)
class Head:
    """The request line and the headers of a request, as the parser has read them.

    Attributes:
        url: the request target.
        headers: names in lower case, with their values.
        expects_continue: whether the client waits for 100 Continue before it sends the body.
    """

    method: str
    version: str
    url: bytes
    headers: list[tuple[bytes, bytes]]
    expects_continue: bool = False

    def refusal(self, limits: HttpLimits) -> Refusal | None:
        """The refusal of this head, if it breaks a rule. Moves the host of an absolute URL into the headers."""
        headers = self.headers
        if self.version not in ("1.1", "1.0"):
            return 400, "This server supports only HTTP/1.1 and HTTP/1.0."
        if self.method not in _METHODS:
            return 405, f"Only {', '.join(_METHODS)} are allowed."
        size = len(self.url) + sum(len(name) + len(value) for name, value in headers) + 4 * len(headers)
        if size > limits.head_bytes or len(headers) > limits.header_count:
            return head_too_long(self.url, headers, limits)
        named = dict(headers)
        if len(named) != len(headers):
            names = [name for name, _ in headers]
            for name in _ONCE:
                if names.count(name) > 1:
                    return 400, f"The header {name.decode()} was sent twice."
        return self._wrong_address(named) or self._wrong_framing(named, limits)

    def _wrong_address(self, named: dict[bytes, bytes]) -> Refusal | None:
        if not self.url.startswith(b"/"):
            found = _match_absolute(self.url)
            if found is None:
                return 400, "The request target is not a path or an http URL."
            self.url = (found[2] or b"/") + found[3]
            named[b"host"] = found[1]
            # In place: the parser's owner has this list.
            self.headers[:] = [(name, value) for name, value in self.headers if name != b"host"]
            self.headers.append((b"host", found[1]))
        host = named.get(b"host")
        if host is None:
            return (400, "The header host is missing.") if self.version == "1.1" else None
        # Queue URLs contain the host.
        if not _is_host(host):
            return 400, "The header host is not a name or address with an optional port."
        return None

    def _wrong_framing(self, named: dict[bytes, bytes], limits: HttpLimits) -> Refusal | None:
        coding = named.get(b"transfer-encoding")
        if coding is not None and (self.version == "1.0" or coding.lower() != b"chunked"):
            return 400, "The only transfer coding is chunked, in HTTP/1.1."
        if b"expect" in named:
            if named[b"expect"].lower() != b"100-continue":
                return 417, "The only expectation is 100-continue."
            self.expects_continue = True
        length = named.get(b"content-length", b"0")
        return body_too_long(limits) if len(length) > 15 or int(length) > limits.body_bytes else None


def head_too_long(url: bytes, headers: list[tuple[bytes, bytes]], limits: HttpLimits) -> Refusal:
    """The refusal of a head beyond `head_bytes` or `header_count`, by the part that is too long."""
    if not headers and len(url) > limits.head_bytes // 2:
        return 414, f"The request's URL is longer than {limits.head_bytes} bytes."
    return 431, f"There are more than {limits.head_bytes} bytes or {limits.header_count} headers."


def body_too_long(limits: HttpLimits) -> Refusal:
    """The refusal of a body beyond `body_bytes`."""
    return 413, f"The body is longer than {limits.body_bytes} bytes."
