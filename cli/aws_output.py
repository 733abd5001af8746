# SPDX-License-Identifier: Apache-2.0
"""`--output text` as the AWS CLI writes it, and the messages that a --query prints: only they may be deleted.

The scalars of an object stand on one line, by name, with tabs between them. Its lists and objects follow, each line led
by their name in capitals.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from sqsqlite.cli.failures import USAGE, Failure

_PROJECTIONS = frozenset({"projection", "filter_projection"})
_ROOTS = frozenset({"identity", "current"})


def search(query: Any, data: Any) -> Any:
    """Apply a compiled JMESPath expression.

    Raises:
        Failure: a function of the expression does not accept a value of the data.
    """
    from jmespath.exceptions import JMESPathError

    try:
        return query.search(data)
    except JMESPathError as error:
        raise Failure(f"--query: {error}", USAGE) from error


def check_query(query: Any, *, each: bool) -> None:
    """Refuse an expression that does not say which messages it prints.

    Args:
        query: a compiled JMESPath expression.
        each: the expression applies to one message at a time; otherwise to the list of all.

    Raises:
        UsageError: it takes a member or a part of the list, or an item of a single message.
    """
    if each:
        if _is_of_a_list(query.parsed):
            raise click.UsageError(
                "with --loop, --query applies to one message at a time and finds no list in it: "
                "'body' is right, '[].body' is not"
            )
    elif not _is_of_each(query.parsed):
        raise click.UsageError(
            "with --delete, --query must begin with [], [*] or [?...], as '[].body' does, and give one result "
            "for each message: otherwise the command can't know which messages were printed and may be deleted"
        )


def prints(query: Any, row: Mapping[str, Any], *, each: bool) -> bool:
    """Whether the expression prints anything of a message. Null, and lists and objects of nulls, do not count."""
    return _holds_something(search(query, row if each else [row]))


def _holds_something(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_something(member) for member in value.values())
    if isinstance(value, list):
        return any(_holds_something(item) for item in value)
    return value is not None


def _is_of_each(node: dict[str, Any]) -> bool:
    """Whether it projects the list itself, so that the results of each message together are the result of all."""
    if node["type"] in _PROJECTIONS:
        left = node["children"][0]
        return _is_of_each(left["children"][0] if left["type"] == "flatten" else left)
    return node["type"] in _ROOTS


def _is_of_a_list(node: dict[str, Any]) -> bool:
    """Whether the first step of the expression takes items of a list."""
    if node["type"] in _PROJECTIONS | {"flatten", "index_expression"}:
        left = node["children"][0]
        return left["type"] in _ROOTS or _is_of_a_list(left)
    return node["type"] in {"subexpression", "pipe"} and _is_of_a_list(node["children"][0])


def text_lines(value: Any, title: str = "") -> Iterator[str]:
    """The lines of a JSON value.

    Args:
        title: the name that begins each line, in capitals; "" for no name.
    """
    if isinstance(value, dict):
        yield from _object_lines(value, title, sorted(name for name in value if not _has_parts(value[name])))
    elif isinstance(value, list):
        yield from _list_lines(value, title)
    else:
        yield str(value)


def _list_lines(items: list[Any], title: str) -> Iterator[str]:
    if any(isinstance(item, dict) for item in items):
        # Each object is one row with the same columns. A missing name leaves an empty cell.
        objects = [item for item in items if isinstance(item, dict)]
        columns = sorted({name for item in objects for name in item if not _has_parts(item[name])})
        for item in items:
            yield from (
                _object_lines(item, title, columns) if isinstance(item, dict) else text_lines(item, title)
            )
        return
    plain = [str(item) for item in items if not _has_parts(item)]
    if title:
        yield from (f"{title.upper()}\t{text}" for text in plain)
    elif plain:
        yield "\t".join(plain)
    for item in items:
        if _has_parts(item):
            yield from text_lines(item, title)


def _object_lines(value: dict[str, Any], title: str, columns: list[str]) -> Iterator[str]:
    cells = [str(value.get(name, "")) for name in columns]
    if cells:
        yield "\t".join([title.upper(), *cells] if title else cells)
    for name in sorted(value.keys() - set(columns)):
        yield from text_lines(value[name], name)


def _has_parts(value: Any) -> bool:
    return isinstance(value, dict | list)
