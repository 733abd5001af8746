# SPDX-License-Identifier: Apache-2.0
"""The Query protocol of older SDKs: parameters of a form or a query string, results as XML.

A parameter's name is a path with indexes, such as `Attribute.1.Name`. The action's request tells lists from maps.
Source: contract of the API version 2012-11-05 and the older ones; real responses where they differ from the documents.
"""

import re
from typing import Any

import msgspec
from msgspec import inspect

from sqsqlite.access.exchange import Exchange
from sqsqlite.contract.limits import Limits
from sqsqlite.contract.parameters import missing
from sqsqlite.contract.requests import Request
from sqsqlite.contract.responses import Empty, Response
from sqsqlite.contract.urlencoded import MOST_IN_FORM, MOST_IN_URL, check_count, parse_form
from sqsqlite.errors import InvalidAction, InvalidParameterValue, QueueDoesNotExist, SQSError
from sqsqlite.serve.protocol import Answer

_VERSIONS = ("2012-11-05", "2011-10-01", "2009-02-01", "2008-01-01")
# For each entry of a large batch, without attributes. More parameters would keep other requests waiting.
_FIELDS_OF_AN_ENTRY = 5
_WITHOUT_QUEUE = ("CreateQueue", "ListQueues")
_encode = msgspec.json.Encoder().encode

# The parameter that holds one item of a list, by member.
_LISTS = {
    "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName",
    "AttributeNames": "AttributeName",
    "BinaryListValues": "BinaryListValue",
    "MessageAttributeNames": "MessageAttributeName",
    "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "StringListValues": "StringListValue",
    "TagKeys": "TagKey",
}
# The element that holds one item of a list in an answer, by member.
_ELEMENTS = {
    "QueueUrls": "QueueUrl",
    "queueUrls": "QueueUrl",
    "Messages": "Message",
    "Results": "ListMessageMoveTasksResultEntry",
    "Failed": "BatchResultErrorEntry",
}
# For maps, by member: the element of one pair, and the elements of its key and value.
_MAPS = {
    "Attributes": ("Attribute", "Name", "Value"),
    "MessageAttributes": ("MessageAttribute", "Name", "Value"),
    "MessageSystemAttributes": ("MessageSystemAttribute", "Name", "Value"),
    "Tags": ("Tag", "Key", "Value"),
    "tags": ("Tag", "Key", "Value"),
}
# SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringValue has five dots.
_DEEPEST = 6
# int() also accepts spaces, underscores and digits of other scripts. SQS does not.
_is_number = re.compile(r"[+-]?[0-9]{1,18}").fullmatch
_is_handle_with_spaces = re.compile(r"[A-Za-z0-9/=+ ]{0,1024}").fullmatch
_is_index = re.compile(r"[0-9]{1,9}").fullmatch
# XML 1.0 can't contain these, not even as references. Messages never have them, but errors repeat a client's text.
_CONTROLS = bytes(range(0x20)).translate(None, b"\t\n\r")
_replace_illegal = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]").sub

_Tree = dict[str, Any]


class QueryProtocol:
    """The protocol of older SDKs. A URL in a browser's address bar works too."""

    # The text, and up to `&quot;` for each of its characters.
    copies = 7
    """The most bytes of memory that one byte of a message takes while its answer is made."""

    @staticmethod
    def names_action_in_body(exchange: Exchange) -> bool:
        """Whether there is a form: its Action takes precedence over the query string's."""
        return _has_form(exchange)

    @staticmethod
    def check_size(exchange: Exchange, limits: Limits) -> None:
        """Count the parameters, then parse them.

        Raises:
            InvalidParameterValue: there are too many, or they can't be parsed.
        """
        if _has_form(exchange):
            check_count(exchange.body, max(MOST_IN_FORM, _FIELDS_OF_AN_ENTRY * limits.batch_entry_count))
        _fields(exchange)

    @staticmethod
    def action(exchange: Exchange) -> str:
        """The parameter Action; empty if it is missing."""
        return _fields(exchange).get("Action", "")

    @staticmethod
    def queue_url(exchange: Exchange) -> str:
        """QueueUrl, or else the URL's path. Empty if there is neither."""
        found = _fields(exchange)
        return found.get("QueueUrl") or _url_of_path(exchange)

    def read(self, exchange: Exchange, kind: type[Request], limits: Limits) -> Request:
        """Make the request from the parameters.

        Raises:
            MissingParameter: a required parameter is missing.
            InvalidParameterValue: a parameter has the wrong form.
            InvalidAction: the path names a queue, but the action does not work on one.
            SQSError: a value is invalid for every queue.
        """
        found = dict(_fields(exchange))
        if "queue_url" in kind.__struct_fields__:
            found.setdefault("QueueUrl", _url_of_path(exchange))
        elif kind.action in _WITHOUT_QUEUE and _url_of_path(exchange):
            raise InvalidAction(f"The action {kind.action} is not valid for this endpoint.")
        members = _to_members(kind, _to_tree(found))
        try:
            request = msgspec.convert(members, kind)
        except (msgspec.ValidationError, UnicodeError) as error:
            raise InvalidParameterValue(f"The parameters don't make a {kind.action}: {error}") from error
        request.check(limits)
        return request

    @staticmethod
    def answer(exchange: Exchange, kind: type[Request], response: Response) -> Answer:
        """XML, or JSON with the same structure if the client accepts application/json."""
        action = kind.action
        members: dict[str, Any] = msgspec.to_builtins(response)
        if _wants_json(exchange):
            return _json(exchange, 200, _as_json(exchange, action, response, members))
        inner = "" if isinstance(response, Empty) else _result(action, _elements(members, action))
        body = (
            f'<?xml version="1.0"?><{action}Response xmlns="{_namespace(exchange)}">{inner}'
            f"<ResponseMetadata><RequestId>{exchange.request_id}</RequestId></ResponseMetadata></{action}Response>"
        )
        return _xml(exchange, 200, body)

    @staticmethod
    def refuse(exchange: Exchange, error: SQSError) -> Answer:
        """The error with its Query code. In this protocol SQS uses another sentence for a missing queue."""
        if isinstance(error, QueueDoesNotExist):
            error = QueueDoesNotExist("The specified queue does not exist for this wsdl version.")
        if _wants_json(exchange):
            found = {"Type": error.fault, "Code": error.query_code, "Message": error.message, "Detail": None}
            return _json(exchange, error.http_status, {"Error": found, "RequestId": exchange.request_id})
        body = (
            f'<?xml version="1.0"?><ErrorResponse xmlns="{_namespace(exchange)}"><Error><Type>{error.fault}</Type>'
            f"<Code>{_escape(error.query_code)}</Code><Message>{_escape(error.message)}</Message><Detail/></Error>"
            f"<RequestId>{exchange.request_id}</RequestId></ErrorResponse>"
        )
        return _xml(exchange, error.http_status, body)


def _fields(exchange: Exchange) -> dict[str, str]:
    """The parameters of the query string and of a POST's form.

    Raises:
        InvalidParameterValue: they can't be parsed.
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
    """The answer to a request without an action: always XML."""
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
        envelope[f"{action}Result"] = _json_members(members)
    envelope["ResponseMetadata"] = {"RequestId": exchange.request_id}
    return {f"{action}Response": envelope}


def _json_members(members: dict[str, Any]) -> dict[str, Any]:
    """The members nested as in XML: a map becomes a list of its pairs."""
    return {name: _json_member(name, value) for name, value in members.items()}


def _json_member(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_json_item(item) for item in value]
    if isinstance(value, dict) and name in _MAPS:
        _, key_name, value_name = _MAPS[name]
        return [{key_name: key, value_name: _json_item(item)} for key, item in value.items()]
    return _json_item(value)


def _json_item(value: Any) -> Any:
    return _json_members(value) if isinstance(value, dict) else value


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


# --- Reading parameters


def _to_tree(fields: dict[str, str]) -> _Tree:
    """Nest the fields by the parts of their names. If a name has both a value and children, the first to come wins."""
    tree: _Tree = {}
    for name, value in fields.items():
        branch = tree
        *parents, leaf = name.split(".", _DEEPEST)
        for part in parents:
            child = branch.setdefault(part, {})
            if not isinstance(child, dict):
                break
            branch = child
        else:
            branch.setdefault(leaf, value)
    return tree


def _to_members(kind: type[Request], tree: _Tree) -> dict[str, Any]:
    """The members of the request as in JSON. Parameters that the action does not have are ignored.

    Raises:
        MissingParameter: a required parameter is missing.
        InvalidParameterValue: a parameter must be an integer and is not.
    """
    shape = inspect.type_info(kind)
    assert isinstance(shape, inspect.StructType)
    return _struct(shape, tree, kind.action)


def _struct(shape: inspect.StructType, tree: _Tree, action: str) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for field in shape.fields:
        found = _value(field, tree, action)
        if found is not None:
            members[field.encode_name] = found
        elif field.required:
            raise missing(field.encode_name)
    return members


def _value(field: inspect.Field, tree: _Tree, action: str) -> Any:
    name, shape = field.encode_name, _without_none(field.type)
    if isinstance(shape, inspect.ListType):
        return _list(name, shape, tree, action)
    if isinstance(shape, inspect.DictType):
        return _map(name, shape, tree, action)
    value = tree.get(name)
    if not isinstance(value, str):
        return None
    if name == "ReceiptHandle" and _is_handle_with_spaces(value):
        # Amazon's sample requests do not encode the plus signs of a handle, so they arrive as spaces.
        return value.replace(" ", "+")
    return _number(name, value) if isinstance(shape, inspect.IntType) else value


def _list(name: str, shape: inspect.ListType, tree: _Tree, action: str) -> list[Any] | None:
    item = _without_none(shape.item_type)
    if isinstance(item, inspect.StructType):
        branches = _indexed(tree.get(f"{action}RequestEntry"))
        # An empty batch has its own error, so it is not a missing parameter.
        return [_struct(item, branch, action) for branch in branches if isinstance(branch, dict)]
    # botocore sends an empty list as the list's own name with an empty value.
    found = tree.get(_LISTS.get(name, name), tree.get(name))
    if found is None:
        return None
    if isinstance(found, str):
        return [found] if found else []
    return [value for value in _indexed(found) if isinstance(value, str)]


def _map(name: str, shape: inspect.DictType, tree: _Tree, action: str) -> dict[str, Any] | None:
    element, key_name, value_name = _MAPS[name]
    found = tree.get(element)
    if found is None and name == "Tags":
        # Only TagQueue: older Java SDKs send the member's own name, and Amazon accepts both.
        found = tree.get(name)
    if not isinstance(found, dict):
        return None
    # An older form of the API sends one attribute without an index.
    branches = [found] if key_name in found else _indexed(found)
    members: dict[str, Any] = {}
    value_shape = _without_none(shape.value_type)
    for branch in branches:
        if not isinstance(branch, dict):
            continue
        key, value = branch.get(key_name), branch.get(value_name)
        if not isinstance(key, str):
            raise missing(f"{element}.{key_name}")
        if isinstance(value_shape, inspect.StructType):
            members[key] = _struct(value_shape, value if isinstance(value, dict) else {}, action)
        elif isinstance(value, str):
            members[key] = value
        else:
            raise missing(f"{element}.{value_name}")
    return members


def _indexed(branch: Any) -> list[Any]:
    """The children whose names are numbers, in numeric order. Gaps are allowed."""
    if not isinstance(branch, dict):
        return []
    numbers = sorted((name for name in branch if _is_index(name)), key=int)
    return [branch[name] for name in numbers]


def _number(name: str, value: str) -> int:
    if not _is_number(value):
        raise InvalidParameterValue(
            f"Value {value[:40]} for parameter {name} is invalid. Reason: Must be an integer."
        )
    return int(value)


def _without_none(shape: inspect.Type) -> inspect.Type:
    if isinstance(shape, inspect.UnionType):
        [shape] = [one for one in shape.types if not isinstance(one, inspect.NoneType)]
    return shape


# --- Writing XML


def _escape(text: str) -> str:
    """Escape text as SQS does: quotes and carriage returns too, but not line feeds and tabs.

    A character that XML 1.0 can't contain becomes U+FFFD, the replacement character.
    """
    return (
        _legal(text)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
        .replace("\r", "&#xD;")
    )


def _legal(text: str) -> str:
    encoded = text.encode()
    # For a message of 1 MiB, the pattern takes longer than all other steps together.
    if len(encoded.translate(None, _CONTROLS)) < len(encoded) or "\ufffe" in text or "\uffff" in text:
        return _replace_illegal("\ufffd", text)
    return text


def _elements(members: dict[str, Any], action: str) -> str:
    """The elements of a result's members. A list becomes one element per item."""
    return "".join(_member_elements(name, value, action) for name, value in members.items())


def _member_elements(name: str, value: Any, action: str) -> str:
    if isinstance(value, list):
        element = f"{action}ResultEntry" if name == "Successful" else _ELEMENTS.get(name, name)
        return "".join(_element(element, item, action) for item in value)
    if isinstance(value, dict) and name in _MAPS:
        element, key_name, value_name = _MAPS[name]
        return "".join(
            f"<{element}>{_element(key_name, key, action)}{_element(value_name, item, action)}</{element}>"
            for key, item in value.items()
        )
    return _element(name, value, action)


def _element(name: str, value: Any, action: str) -> str:
    if isinstance(value, dict):
        return f"<{name}>{_elements(value, action)}</{name}>"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"<{name}>{_escape(text)}</{name}>"
