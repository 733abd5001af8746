"""One HTTP request and its answer, as the protocols see them."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from sqsqlite.errors import SQSError
from sqsqlite.limits import Limits
from sqsqlite.requests import Request
from sqsqlite.responses import Response

Headers = list[tuple[bytes, bytes]]

IS_GONE = "sqsqlite.is_gone"
"""Among an ASGI scope's extensions: a function that tells whether the client has closed the connection."""

TRACE_ID = b"x-amzn-trace-id"
"""The header that becomes a message's AWSTraceHeader."""

WRITE_WHOLE = "sqsqlite.write_whole"
"""Another: a function that writes an `Answer` at once, and tells whether it did; if not, it is sent as ASGI has it."""

UNTIL_READ = "sqsqlite.until_read"
"""A third: takes a function, and calls it when the client has taken the answer that was written, or is gone."""


@dataclass(slots=True)
class Exchange:
    """An HTTP request, read whole, and the id that its answer carries.

    Attributes:
        headers: names in lower case; those given twice joined by commas.
        path: as sent, percent-encoded.
        query: what stands behind the question mark, as sent.
        digest: the body's SHA-256 in hexadecimal, if it was made already; empty: not yet.
        fields: the Query protocol's parameters, once they were read.
        client_address: the address that the connection comes from, None if it has none.
        key_id: the key whose removal ends what it signed, of a session its parent's; empty: it was not asked for one.
        action, account_id, user, access_key_id, queue, code, cause: what became of it, as `served.Served` tells it.
    """

    method: str
    scheme: str
    path: bytes
    query: bytes
    headers: dict[bytes, bytes]
    body: bytes
    request_id: str
    digest: str = ""
    fields: dict[str, str] | None = None
    client_address: str | None = None
    key_id: str = ""
    action: str = ""
    account_id: str = ""
    user: str = ""
    access_key_id: str = ""
    queue: str = ""
    code: str = ""
    cause: str = ""

    def header(self, name: bytes) -> str:
        """A header's value, empty if it is not there."""
        return self.headers.get(name, b"").decode("latin-1")

    @property
    def decoded_path(self) -> str:
        """The path without its percent signs."""
        return unquote(self.path.decode("latin-1"), errors="replace")


class Answer(NamedTuple):
    """Status, headers and body of the HTTP response."""

    status: int
    headers: Headers
    body: bytes


class WireProtocol(Protocol):
    """How requests are read and answers are written: AWS JSON 1.0 or Query.

    Attributes:
        copies: how many bytes a byte of a message's text takes at most until the answer of it is written.
    """

    copies: int

    def names_action_in_body(self, exchange: Exchange) -> bool:
        """Whether `action` needs the body; without it the headers and the URL tell."""

    def check_size(self, exchange: Exchange, limits: Limits) -> None:
        """Refuse a body with more parts than any action takes, before it is parsed. Raises SQSError."""

    def action(self, exchange: Exchange) -> str:
        """The name of the action asked for."""

    def queue_url(self, exchange: Exchange) -> str:
        """The queue that the request names, as far as that can be told; empty if it names none."""

    def read(self, exchange: Exchange, kind: type[Request], limits: Limits) -> Request:
        """The checked request. Raises SQSError."""

    def answer(self, exchange: Exchange, kind: type[Request], response: Response) -> Answer:
        """The response, written."""

    def refuse(self, exchange: Exchange, error: SQSError) -> Answer:
        """The error, written."""
