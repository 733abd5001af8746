"""`--generate-cli-skeleton`: an action's parameters with empty values, to be filled in for --cli-input-json."""

from typing import Any

from msgspec import inspect

from sqsqlite.cli.shorthand import without_none


def skeleton(fields: tuple[inspect.Field, ...]) -> dict[str, Any]:
    """Each field by SQS's name, with an empty value of its type."""
    return {field.encode_name: _empty(field.type) for field in fields}


def _empty(shape: inspect.Type) -> Any:
    shape = without_none(shape)
    if isinstance(shape, inspect.StructType):
        return skeleton(shape.fields)
    if isinstance(shape, inspect.DictType):
        return {"KeyName": _empty(shape.value_type)}
    if isinstance(shape, inspect.ListType):
        return [_empty(shape.item_type)]
    return 0 if isinstance(shape, inspect.IntType) else ""
