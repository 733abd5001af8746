# SPDX-License-Identifier: Apache-2.0
"""`--output text` as the AWS CLI writes it, so that `--query QueueUrl --output text` serves the same scripts.

Scalars of an object stand on one line, by name, tabs between; its lists and objects follow, each line of theirs
led by their name in capitals.
"""

from collections.abc import Iterator
from typing import Any


def text_lines(value: Any, title: str = "") -> Iterator[str]:
    """The lines of a JSON value.

    Args:
        title: what its lines are led by, in capitals; "" for none.
    """
    if isinstance(value, dict):
        yield from _object_lines(value, title, sorted(name for name in value if not _has_parts(value[name])))
    elif isinstance(value, list):
        yield from _list_lines(value, title)
    else:
        yield str(value)


def _list_lines(items: list[Any], title: str) -> Iterator[str]:
    if any(isinstance(item, dict) for item in items):
        # One row an object, under the same columns: a name that some lack leaves an empty place.
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
