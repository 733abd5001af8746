"""The Query protocol's flattened parameters as a tree, and the tree as what an action's request is made of.

`Attribute.1.Name=VisibilityTimeout` is a name with an index: lists and maps are told apart by what the action expects.
"""

import re
from typing import Any

from msgspec import inspect

from sqsqlite.contract.parameters import missing
from sqsqlite.contract.requests import Request
from sqsqlite.errors import InvalidParameterValue

# What int() takes besides is none: spaces, underscores, digits of other scripts.
_is_number = re.compile(r"[+-]?[0-9]{1,18}").fullmatch
_is_handle_with_spaces = re.compile(r"[A-Za-z0-9/=+ ]{0,1024}").fullmatch
_is_index = re.compile(r"[0-9]{1,9}").fullmatch

Tree = dict[str, Any]

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
_MAPS = {
    "Attributes": ("Attribute", "Name", "Value"),
    "MessageAttributes": ("MessageAttribute", "Name", "Value"),
    "MessageSystemAttributes": ("MessageSystemAttribute", "Name", "Value"),
    "Tags": ("Tag", "Key", "Value"),
    "tags": ("Tag", "Key", "Value"),
}


def to_tree(fields: dict[str, str]) -> Tree:
    """The fields by the parts of their names. A name that is a value and a branch at once stays a value."""
    tree: Tree = {}
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


# SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringValue has five dots.
_DEEPEST = 6


def to_members(kind: type[Request], tree: Tree) -> dict[str, Any]:
    """The members of the request, as JSON would have them; what the action does not know is passed over.

    Raises:
        MissingParameter: a required member is not there.
        InvalidParameterValue: a number that is none.
    """
    shape = inspect.type_info(kind)
    assert isinstance(shape, inspect.StructType)
    return _struct(shape, tree, kind.action)


def _struct(shape: inspect.StructType, tree: Tree, action: str) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for field in shape.fields:
        found = _member(field, tree, action)
        if found is not None:
            members[field.encode_name] = found
        elif field.required:
            raise missing(field.encode_name)
    return members


def _member(field: inspect.Field, tree: Tree, action: str) -> Any:
    name, shape = field.encode_name, _without_none(field.type)
    if isinstance(shape, inspect.ListType):
        return _list(name, shape, tree, action)
    if isinstance(shape, inspect.DictType):
        return _map(name, shape, tree, action)
    value = tree.get(name)
    if not isinstance(value, str):
        return None
    if name == "ReceiptHandle" and _is_handle_with_spaces(value):
        # Amazon's sample requests, and who follows them, send the plus signs of a handle as they are: as spaces.
        return value.replace(" ", "+")
    return _number(name, value) if isinstance(shape, inspect.IntType) else value


def _list(name: str, shape: inspect.ListType, tree: Tree, action: str) -> list[Any] | None:
    item = _without_none(shape.item_type)
    if isinstance(item, inspect.StructType):
        branches = _indexed(tree.get(f"{action}RequestEntry"))
        entries = [_struct(item, branch, action) for branch in branches if isinstance(branch, dict)]
        # No entries at all is an empty batch, and has an error of its own.
        return entries
    # botocore sends a list without members as the list's own name, without a value.
    found = tree.get(_LISTS.get(name, name), tree.get(name))
    if found is None:
        return None
    if isinstance(found, str):
        return [found] if found else []
    return [value for value in _indexed(found) if isinstance(value, str)]


def _map(name: str, shape: inspect.DictType, tree: Tree, action: str) -> dict[str, Any] | None:
    element, key_name, value_name = _MAPS[name]
    found = tree.get(element)
    if found is None and name == "Tags":
        # TagQueue's alone: the Java SDKs that speak Query send it by the member's own name, and Amazon takes both.
        found = tree.get(name)
    if not isinstance(found, dict):
        return None
    # An older form has one attribute, without an index.
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
    """The children with a number for a name, in its order; gaps are no matter."""
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
