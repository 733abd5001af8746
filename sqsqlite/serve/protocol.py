"""The protocols of the endpoint, and what they and the server ask of each other."""

from typing import NamedTuple, Protocol

from sqsqlite.access.exchange import Exchange
from sqsqlite.contract.limits import Limits
from sqsqlite.contract.requests import Request
from sqsqlite.contract.responses import Response
from sqsqlite.errors import SQSError

Headers = list[tuple[bytes, bytes]]

IS_GONE = "sqsqlite.is_gone"
"""Among an ASGI scope's extensions: a function that tells whether the client has closed the connection."""

WRITE_WHOLE = "sqsqlite.write_whole"
"""Another: a function that writes an `Answer` at once, and tells whether it did; if not, it is sent as ASGI has it."""

UNTIL_READ = "sqsqlite.until_read"
"""A third: takes a function, and calls it when the client has taken the answer that was written, or is gone."""


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
