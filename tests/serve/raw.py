# SPDX-License-Identifier: Apache-2.0
"""Raw HTTP, for requests that no client library would send."""

import select
import socket
import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

HOST = b"Host: localhost\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
LIST_QUEUES = b"GET /?Action=ListQueues HTTP/1.1\r\n" + HOST + b"\r\n"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """One connection to a server at a URL. An `authority` makes it TLS. Reads wait 300 s at most."""

    def __init__(self, url, authority=None):
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname, parts.port), timeout=300)
        if authority is not None:
            context = ssl.create_default_context(cafile=authority)
            self._socket = context.wrap_socket(self._socket, server_hostname=parts.hostname)
        self._unread = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def send(self, data):
        """Send, unless the server closes meanwhile. Returns whether all was sent."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _read(self):
        data = self._socket.recv(65_536)
        self._unread += data
        return data

    def answer(self, has_body=True):
        """The next answer. None: the server closed the connection."""
        while b"\r\n\r\n" not in self._unread:
            if not self._read():
                assert self._unread == b""
                return None
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        if status.startswith("HTTP/1.1 1"):
            return Answer(int(status.split(" ")[1]), headers, b"")
        length = int(headers["content-length"]) if has_body else 0
        while len(self._unread) < length:
            assert self._read()
        body, self._unread = self._unread[:length], self._unread[length:]
        return Answer(int(status.split(" ")[1]), headers, body)

    def has_answer(self):
        """Whether data has arrived."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def is_closed(self):
        """Wait for the server to close."""
        try:
            return self._unread == b"" and self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def ask(self, data, has_body=True):
        self.send(data)
        return self.answer(has_body)


def ask(url, data, has_body=True):
    """One request on a connection of its own."""
    with Connection(url) as connection:
        return connection.ask(data, has_body)


def post(body, headers=b"", path=b"/"):
    """A POST with these header lines."""
    return (
        b"POST " + path + b" HTTP/1.1\r\n" + HOST + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body
    )


def json_of(action, body):
    """A request of the JSON protocol."""
    return post(
        body, b"X-Amz-Target: AmazonSQS." + action + b"\r\nContent-Type: application/x-amz-json-1.0\r\n"
    )


def chunked(*chunks, end=b"0\r\n\r\n", headers=FORM):
    """A POST with these chunks."""
    return (
        b"POST / HTTP/1.1\r\n"
        + HOST
        + headers
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + b"".join(chunks)
        + end
    )
