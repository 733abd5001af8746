"""AWS JSON 1.0: the action in a header, parameters and results as JSON. Source: API reference, sample requests."""

import msgspec

from sqsqlite.access.exchange import TARGET, Exchange
from sqsqlite.contract import shapes
from sqsqlite.contract.limits import Limits
from sqsqlite.contract.requests import Request
from sqsqlite.contract.responses import Empty, Response
from sqsqlite.errors import SQSError
from sqsqlite.serve.json_size import check_value_count
from sqsqlite.serve.protocol import Answer

_PREFIX = b"AmazonSQS."
_CONTENT_TYPE = (b"content-type", b"application/x-amz-json-1.0")
_encode = msgspec.json.Encoder().encode


class _Named(msgspec.Struct):
    """What names the queue, whatever else there is: the rest is passed over, and takes no memory."""

    queue_url: str = msgspec.field(name="QueueUrl", default="")


_read_named = msgspec.json.Decoder(_Named).decode


class JsonProtocol:
    """The protocol of today's SDKs."""

    # The text, its UTF-8, and a backslash before each byte of that.
    copies = 4

    @staticmethod
    def names_action_in_body(exchange: Exchange) -> bool:  # noqa: ARG004 - as Query's
        """Never: a header names it."""
        return False

    @staticmethod
    def check_size(exchange: Exchange, limits: Limits) -> None:
        """Count the values of the body. Raises SerializationException: there are too many."""
        check_value_count(exchange.body, limits)

    @staticmethod
    def action(exchange: Exchange) -> str:
        """The name behind `AmazonSQS.`, empty if the target is another service's."""
        target = exchange.headers.get(TARGET, b"")
        return target[len(_PREFIX) :].decode("latin-1") if target.startswith(_PREFIX) else ""

    @staticmethod
    def queue_url(exchange: Exchange) -> str:
        """QueueUrl, if the body is an object that has one."""
        try:
            return _read_named(exchange.body or b"{}").queue_url
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return ""

    @staticmethod
    def read(exchange: Exchange, kind: type[Request], limits: Limits) -> Request:
        """The checked request of the body.

        Raises:
            SerializationException: the body is not the JSON of this action.
            SQSError: a value that no queue would take.
        """
        return shapes.parse_json(kind, exchange.body or b"{}", limits)

    @staticmethod
    def answer(exchange: Exchange, kind: type[Request], response: Response) -> Answer:  # noqa: ARG004 - as Query's
        """The members that there are; an action without a result has an empty body."""
        body = b"" if isinstance(response, Empty) else _encode(response)
        return Answer(200, _headers(exchange, body), body)

    @staticmethod
    def refuse(exchange: Exchange, error: SQSError) -> Answer:
        """The error's JSON shape, and its Query code in a header: SDKs show the latter."""
        body = _encode({"__type": f"{error.json_namespace}#{error.code}", "message": error.message})
        headers = _headers(exchange, body)
        headers.append((b"x-amzn-query-error", f"{error.query_code};{error.fault}".encode("latin-1")))
        return Answer(error.http_status, headers, body)


def _headers(exchange: Exchange, body: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"x-amzn-requestid", exchange.request_id.encode()),
        _CONTENT_TYPE,
        (b"content-length", b"%d" % len(body)),
    ]
