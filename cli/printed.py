# SPDX-License-Identifier: Apache-2.0
"""Which messages a --query prints something of: those alone may be deleted after it."""

from collections.abc import Mapping
from typing import Any

import click

from sqsqlite.cli.failures import USAGE, Failure

_PROJECTIONS = frozenset({"projection", "filter_projection"})
_ROOTS = frozenset({"identity", "current"})


def search(query: Any, data: Any) -> Any:
    """Apply a compiled JMESPath expression.

    Raises:
        Failure: a function of the expression does not take what it finds in the data.
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
        each: it is applied to one message at a time; otherwise to the list of all.

    Raises:
        UsageError: of the list it takes a member, which a list does not have, or a part; or of a message an item.
    """
    if each:
        if _is_of_a_list(query.parsed):
            raise click.UsageError(
                "with --loop, --query applies to one message at a time and finds no list in it: "
                "'body' is right, '[].body' is not"
            )
    elif not _is_of_each(query.parsed):
        raise click.UsageError(
            "with --delete, --query must begin with [], [*] or [?...], as '[].body' does, and give one result a "
            "message: otherwise it cannot be known which messages were printed and may be deleted"
        )


def prints(query: Any, row: Mapping[str, Any], *, each: bool) -> bool:
    """Whether the expression gives anything of a message: null is nothing, and so is what holds nothing else."""
    return _holds_something(search(query, row if each else [row]))


def _holds_something(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_something(member) for member in value.values())
    if isinstance(value, list):
        return any(_holds_something(item) for item in value)
    return value is not None


def _is_of_each(node: dict[str, Any]) -> bool:
    """A projection of the list itself: what it gives of all messages is what it gives of each, one after another."""
    if node["type"] in _PROJECTIONS:
        left = node["children"][0]
        return _is_of_each(left["children"][0] if left["type"] == "flatten" else left)
    return node["type"] in _ROOTS


def _is_of_a_list(node: dict[str, Any]) -> bool:
    """The first thing that it takes of its input is an item of a list, or all of them."""
    if node["type"] in _PROJECTIONS | {"flatten", "index_expression"}:
        left = node["children"][0]
        return left["type"] in _ROOTS or _is_of_a_list(left)
    return node["type"] in {"subexpression", "pipe"} and _is_of_a_list(node["children"][0])
