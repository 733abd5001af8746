"""The Query protocol: parameters of a form or a query string, results as XML. For SDKs from before JSON.

Source: contract of the API version 2012-11-05 and the older ones; real responses where they differ from the documents.
"""

from typing import Any

import msgspec

from sqsqlite.access.exchange import Exchange
from sqsqlite.contract.limits import Limits
from sqsqlite.contract.requests import Request
from sqsqlite.contract.responses import Empty, Response
from sqsqlite.contract.urlencoded import MOST_IN_FORM, MOST_IN_URL, check_count, parse_form
from sqsqlite.errors import InvalidAction, InvalidParameterValue, QueueDoesNotExist, SQSError
from sqsqlite.serve.form import to_members, to_tree
from sqsqlite.serve.protocol import Answer
from sqsqlite.serve.xml import MAPS, elements, escape

_VERSIONS = ("2012-11-05", "2011-10-01", "2009-02-01", "2008-01-01")
# Of a batch of a thousand, without attributes: more would keep other requests waiting.
_FIELDS_OF_AN_ENTRY = 5
_WITHOUT_QUEUE = ("CreateQueue", "ListQueues")
_encode = msgspec.json.Encoder().encode


class QueryProtocol:
    """The protocol of older SDKs, and of a browser's address line."""

    # The text, and `&quot;` for each character.
    copies = 7

    @staticmethod
    def names_action_in_body(exchange: Exchange) -> bool:
        """Whether there is a form: its Action comes before that of the query string."""
        return _has_form(exchange)

    @staticmethod
    def check_size(exchange: Exchange, limits: Limits) -> None:
        """Read the parameters, which are counted first. Raises InvalidParameterValue: they can't be read."""
        if _has_form(exchange):
            check_count(exchange.body, max(MOST_IN_FORM, _FIELDS_OF_AN_ENTRY * limits.batch_entry_count))
        fields(exchange)

    @staticmethod
    def action(exchange: Exchange) -> str:
        """The parameter Action, empty if there is none."""
        return fields(exchange).get("Action", "")

    @staticmethod
    def queue_url(exchange: Exchange) -> str:
        """QueueUrl, or else the path if it may be a queue's."""
        found = fields(exchange)
        return found.get("QueueUrl") or _url_of_path(exchange)

    def read(self, exchange: Exchange, kind: type[Request], limits: Limits) -> Request:
        """The checked request of the parameters.

        Raises:
            MissingParameter, InvalidParameterValue: they don't make the request.
            InvalidAction: an action without a queue, asked of a queue's path.
            SQSError: a value that no queue would take.
        """
        found = dict(fields(exchange))
        if "queue_url" in kind.__struct_fields__:
            found.setdefault("QueueUrl", _url_of_path(exchange))
        elif kind.action in _WITHOUT_QUEUE and _url_of_path(exchange):
            raise InvalidAction(f"The action {kind.action} is not valid for this endpoint.")
        members = to_members(kind, to_tree(found))
        try:
            request = msgspec.convert(members, kind)
        except (msgspec.ValidationError, UnicodeError) as error:
            raise InvalidParameterValue(f"The parameters don't make a {kind.action}: {error}") from error
        request.check(limits)
        return request

    @staticmethod
    def answer(exchange: Exchange, kind: type[Request], response: Response) -> Answer:
        """XML, or JSON of the same structure for who accepts nothing else."""
        action = kind.action
        members: dict[str, Any] = msgspec.to_builtins(response)
        if _wants_json(exchange):
            return _json(exchange, 200, _as_json(exchange, action, response, members))
        inner = "" if isinstance(response, Empty) else _result(action, elements(members, action))
        body = (
            f'<?xml version="1.0"?><{action}Response xmlns="{_namespace(exchange)}">{inner}'
            f"<ResponseMetadata><RequestId>{exchange.request_id}</RequestId></ResponseMetadata></{action}Response>"
        )
        return _xml(exchange, 200, body)

    @staticmethod
    def refuse(exchange: Exchange, error: SQSError) -> Answer:
        """The error, by its Query code. SQS words one of them differently here."""
        if isinstance(error, QueueDoesNotExist):
            error = QueueDoesNotExist("The specified queue does not exist for this wsdl version.")
        if _wants_json(exchange):
            found = {"Type": error.fault, "Code": error.query_code, "Message": error.message, "Detail": None}
            return _json(exchange, error.http_status, {"Error": found, "RequestId": exchange.request_id})
        body = (
            f'<?xml version="1.0"?><ErrorResponse xmlns="{_namespace(exchange)}"><Error><Type>{error.fault}</Type>'
            f"<Code>{escape(error.query_code)}</Code><Message>{escape(error.message)}</Message><Detail/></Error>"
            f"<RequestId>{exchange.request_id}</RequestId></ErrorResponse>"
        )
        return _xml(exchange, error.http_status, body)


def fields(exchange: Exchange) -> dict[str, str]:
    """The parameters: of the query string, and of the form that a POST brings.

    Raises:
        InvalidParameterValue: they can't be read.
    """
    if exchange.fields is None:
        found = parse_form(exchange.query, MOST_IN_URL)
        if _has_form(exchange):
            found = {**found, **parse_form(exchange.body)}
        exchange.fields = found
    return exchange.fields


def _has_form(exchange: Exchange) -> bool:
    if exchange.method != "POST" or not exchange.body:
        return False
    content_type = exchange.header(b"content-type").partition(";")[0].strip().lower()
    return content_type in ("application/x-www-form-urlencoded", "")


def unknown_operation(exchange: Exchange) -> Answer:
    """What a request without an action is answered, whatever it accepts."""
    return _xml(exchange, 404, "<UnknownOperationException/>")


def _url_of_path(exchange: Exchange) -> str:
    path = exchange.decoded_path.strip("/")
    return f"http://localhost/{path}" if path else ""


def _namespace(exchange: Exchange) -> str:
    version = (exchange.fields or {}).get("Version", "")
    return f"http://queue.amazonaws.com/doc/{version if version in _VERSIONS else _VERSIONS[0]}/"


def _result(action: str, inner: str) -> str:
    return f"<{action}Result>{inner}</{action}Result>" if inner else f"<{action}Result/>"


def _wants_json(exchange: Exchange) -> bool:
    return exchange.header(b"accept").partition(";")[0].strip().lower() == "application/json"


def _as_json(exchange: Exchange, action: str, response: Response, members: dict[str, Any]) -> dict[str, Any]:
    envelope: dict[str, Any] = {}
    if not isinstance(response, Empty):
        if "Messages" in members:
            members = {"messages": members["Messages"]}
        envelope[f"{action}Result"] = _nested(members)
    envelope["ResponseMetadata"] = {"RequestId": exchange.request_id}
    return {f"{action}Response": envelope}


def _nested(members: dict[str, Any]) -> dict[str, Any]:
    """The members as XML nests them: a map is a list of its pairs."""
    return {name: _member(name, value) for name, value in members.items()}


def _member(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_item(item) for item in value]
    if isinstance(value, dict) and name in MAPS:
        _, key_name, value_name = MAPS[name]
        return [{key_name: key, value_name: _item(item)} for key, item in value.items()]
    return _item(value)


def _item(value: Any) -> Any:
    return _nested(value) if isinstance(value, dict) else value


def _json(exchange: Exchange, status: int, content: dict[str, Any]) -> Answer:
    return _answer(exchange, status, b"application/json", _encode(content))


def _xml(exchange: Exchange, status: int, body: str) -> Answer:
    return _answer(exchange, status, b"text/xml", body.encode())


def _answer(exchange: Exchange, status: int, content_type: bytes, body: bytes) -> Answer:
    headers = [
        (b"x-amzn-requestid", exchange.request_id.encode()),
        (b"content-type", content_type),
        (b"content-length", b"%d" % len(body)),
    ]
    return Answer(status, headers, body)
