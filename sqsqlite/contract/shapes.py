# SPDX-License-Identifier: Apache-2.0
"""AWS-cased dicts and JSON to requests, and responses back: one table for every door.

Parameters of the wrong shape are refused in the words of boto3, whose rules are: required members are there, no
others are, Python types fit. The fast path is msgspec's; a second, slow look explains what it refused.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from sqsqlite.contract import requests
from sqsqlite.contract.limits import Limits
from sqsqlite.contract.parameters import missing
from sqsqlite.contract.requests import Request
from sqsqlite.contract.responses import Response
from sqsqlite.errors import MissingParameter, ParamValidationError, SerializationException

ACTIONS: Final[dict[str, type[Request]]] = {
    kind.action: kind
    for kind in (
        requests.AddPermission,
        requests.CancelMessageMoveTask,
        requests.ChangeMessageVisibility,
        requests.ChangeMessageVisibilityBatch,
        requests.CreateQueue,
        requests.DeleteMessage,
        requests.DeleteMessageBatch,
        requests.DeleteQueue,
        requests.GetQueueAttributes,
        requests.GetQueueUrl,
        requests.ListDeadLetterSourceQueues,
        requests.ListMessageMoveTasks,
        requests.ListQueueTags,
        requests.ListQueues,
        requests.PurgeQueue,
        requests.ReceiveMessage,
        requests.RemovePermission,
        requests.SendMessage,
        requests.SendMessageBatch,
        requests.SetQueueAttributes,
        requests.StartMessageMoveTask,
        requests.TagQueue,
        requests.UntagQueue,
    )
}
"""Request class of each action, by SQS's name of it."""

AnyRequest = TypeVar("AnyRequest", bound=Request)

# Made while this module loads, by one thread. msgspec notes what it knows of a class in that class at first use; a
# second thread that uses the class meanwhile reads the unfinished note, and the process ends with a segmentation fault.
_DECODERS: Final[dict[type[Request], msgspec.json.Decoder[Any]]] = {
    kind: msgspec.json.Decoder(kind) for kind in ACTIONS.values()
}

_BYTES = (bytes, bytearray)  # kept as they are, not read as Base64
# Members whose values are structures, which may hide a None of their own.
_CONTAINERS = frozenset({dict, list, tuple})
_NESTED = ("MessageAttributes", "MessageSystemAttributes", "Entries")


def parse(kind: type[AnyRequest], params: Mapping[str, object], limits: Limits) -> AnyRequest:
    """The checked request of parameters as boto3 takes them: AWS's names, Python's types, binary values as bytes.

    Raises:
        ParamValidationError: a member missing or unknown, or of the wrong type (None is one).
        SQSError: a value that no queue would take.
    """
    try:
        if None in params.values() or _has_nested_none(params):
            raise ParamValidationError("\n".join(_problems(_shape(kind), params, "")))
        request = msgspec.convert(params, kind, builtin_types=_BYTES)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        # UnicodeEncodeError: msgspec would quote a lone surrogate in the place of another type.
        problems = list(_problems(_shape(kind), params, ""))
        if problems:
            raise ParamValidationError("\n".join(problems)) from error
        # boto3 is laxer in a few places: True for a number, text or a file for bytes.
        request = msgspec.convert(_plain(_shape(kind), params), kind, builtin_types=_BYTES)
    request.check(limits)
    return request


def parse_json(kind: type[AnyRequest], body: bytes | str, limits: Limits) -> AnyRequest:
    """The checked request of an AWS JSON 1.0 body: binary values in Base64, null as good as absent.

    Members that are not known are passed over, so that SDKs may be newer than this.

    Raises:
        MissingParameter: a required member is absent.
        SerializationException: no JSON object, or a value of the wrong JSON type.
        SQSError: a value that no queue would take.
    """
    try:
        try:
            request: AnyRequest = _DECODERS[kind].decode(body)
        except msgspec.ValidationError:
            # Decoded again, without a shape: msgspec stops at the first slip, and the rest may be no JSON at all.
            params = msgspec.json.decode(body)
            _drop_unknown(_shape(kind), params)
            try:
                request = msgspec.convert(params, kind)
            except msgspec.ValidationError as error:
                raise _json_error(kind, params, error) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SerializationException(f"The request body is not a JSON object: {error}") from error
    request.check(limits)
    return request


def to_dict(response: Response) -> dict[str, Any]:
    """The result as boto3 gives it, without ResponseMetadata: AWS's names, binary values as bytes."""
    found: dict[str, Any] = msgspec.to_builtins(response, builtin_types=(bytes,))
    return found


def _has_nested_none(params: Mapping[str, object]) -> bool:
    """Whether a None hides deeper: msgspec would take it for absent, boto3 refuses it."""
    for member in _NESTED:  # noqa: SIM110 - loops: any() with a generator takes twice as long
        if member in params and _holds_none(params[member]):
            return True
    return False


def _holds_none(value: object) -> bool:
    if isinstance(value, dict):
        children: Collection[object] = value.values()
    elif isinstance(value, list | tuple):
        children = value
    else:
        return False
    kinds = set(map(type, children))
    if NoneType in kinds:
        return True
    if _CONTAINERS.isdisjoint(kinds):
        return False
    for child in children:  # noqa: SIM110 - a loop, for the same reason
        if type(child) in _CONTAINERS and _holds_none(child):
            return True
    return False


@cache
def _shape(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _drop_unknown(shape: inspect.Type, value: Any) -> None:
    """Take the members away that the value's shape has not: out of what was decoded, as a copy would double it."""
    shape = _without_none(shape)
    if isinstance(shape, inspect.StructType) and isinstance(value, dict):
        types = {field.encode_name: field.type for field in shape.fields}
        for name in value.keys() - types.keys():
            del value[name]
        for name, child in value.items():
            _drop_unknown(types[name], child)
    elif isinstance(shape, inspect.DictType) and isinstance(value, dict):
        for child in value.values():
            _drop_unknown(shape.value_type, child)
    elif isinstance(shape, inspect.ListType) and isinstance(value, list):
        for child in value:
            _drop_unknown(shape.item_type, child)


def _json_error(
    kind: type[Request], params: object, error: msgspec.ValidationError
) -> MissingParameter | SerializationException:
    """What is wrong with JSON of the wrong shape: SQS tells a missing parameter from any other slip."""
    if isinstance(params, dict):
        for field in msgspec.structs.fields(kind):
            if field.required and params.get(field.encode_name) is None:
                return missing(field.encode_name)
    return SerializationException(f"The request body does not have the form of {kind.action}: {error}")


# boto3's words


def _problems(shape: inspect.Type, value: object, path: str) -> Iterator[str]:
    """One line for each thing that boto3 finds wrong with a value, in its order."""
    shape = _without_none(shape)
    if isinstance(shape, inspect.StructType):
        yield from _struct_problems(shape, value, path)
    elif isinstance(shape, inspect.DictType):
        if not isinstance(value, dict):
            yield _wrong_type(path, value, dict)
            return
        for key, child in value.items():
            yield from _problems(shape.key_type, key, f"{path} (key: {key})")
            yield from _problems(shape.value_type, child, f"{path}.{key}")
    elif isinstance(shape, inspect.ListType):
        if not isinstance(value, list | tuple):
            yield _wrong_type(path, value, list, tuple)
            return
        for index, child in enumerate(value):
            yield from _problems(shape.item_type, child, f"{path}[{index}]")
    elif isinstance(shape, inspect.BytesType):
        if not (isinstance(value, bytes | bytearray | str) or hasattr(value, "read")):
            yield _wrong_type(path, value, bytes, bytearray, "file-like object")
    else:
        expected = int if isinstance(shape, inspect.IntType) else str
        if not isinstance(value, expected):
            yield _wrong_type(path, value, expected)


def _struct_problems(shape: inspect.StructType, value: object, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield _wrong_type(path, value, dict)
        return
    members = {field.encode_name: field for field in shape.fields}
    where = path.removeprefix(".") or "input"
    for name, field in members.items():
        if field.required and name not in value:
            yield f'Missing required parameter in {where}: "{name}"'
    for name in value:
        if name not in members:
            yield f'Unknown parameter in {where}: "{name}", must be one of: {", ".join(members)}'
    for name, child in value.items():
        if name in members:
            yield from _problems(members[name].type, child, f"{path}.{name}")


def _wrong_type(path: str, value: object, *expected: type | str) -> str:
    return (
        f"Invalid type for parameter {path.removeprefix('.') or 'input'}, value: {value}, "
        f"type: {type(value)}, valid types: {', '.join(map(str, expected))}"
    )


def _plain(shape: inspect.Type, value: Any) -> Any:
    """A value that boto3 takes, in the types that msgspec takes."""
    shape = _without_none(shape)
    if isinstance(shape, inspect.StructType):
        types = {field.encode_name: field.type for field in shape.fields}
        return {name: _plain(types[name], child) for name, child in value.items()}
    if isinstance(shape, inspect.DictType):
        return {str(key): _plain(shape.value_type, child) for key, child in value.items()}
    if isinstance(shape, inspect.ListType):
        return [_plain(shape.item_type, child) for child in value]
    if isinstance(shape, inspect.BytesType):
        content = value.read() if hasattr(value, "read") else value
        return content.encode() if isinstance(content, str) else bytes(content)
    return int(value) if isinstance(shape, inspect.IntType) else str(value)


def _without_none(shape: inspect.Type) -> inspect.Type:
    """The type of an optional member: leaving it out is allowed, None is not."""
    if isinstance(shape, inspect.UnionType):
        [shape] = [one for one in shape.types if not isinstance(one, inspect.NoneType)]
    return shape
