# SPDX-License-Identifier: Apache-2.0
"""The columns of tables, and how their values read. cli/drawing.py draws them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqsqlite.cli.screen import one_line


class Column(NamedTuple):
    """One column of a table.

    Attributes:
        name: the row's member.
        heading: the text above the column; the name if empty.
        leave: 0: the column stays on every screen; otherwise narrow screens leave columns out in this order, 1 first.
        cut: a part of the text is of use too.
        shown: makes the text of a value; by default the text of the other formats.
        width: at least, in columns of the screen. Where rows come one by one, later ones may be wider than the first.
    """

    name: str
    heading: str = ""
    leave: int = 0
    cut: bool = False
    shown: Callable[[Any], str] | None = None
    width: int = 0

    def text(self, value: Any) -> str:
        """The text of a cell, on one line."""
        return one_line(cell_text(value) if self.shown is None or value is None else self.shown(value))

    @property
    def title(self) -> str:
        """The text above the column."""
        return self.heading or self.name


def cell_text(value: Any) -> str:
    """A value as one cell: empty for None, JSON for what has parts."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def plain_columns(names: Sequence[str]) -> list[Column]:
    """Columns of unknown rows: every text but ids may be cut."""
    return [Column(name, cut=not name.lower().endswith(("id", "queue"))) for name in names]


_GROUP = Column("group_id", "group", leave=2, cut=True)


def with_group(columns: Sequence[Column], queue: str, rows: Sequence[Mapping[str, Any]] = ()) -> list[Column]:
    """Columns of messages. On a FIFO queue, or if a row has a group, the group stands before the body.

    Args:
        queue: its name.
    """
    if not (queue.endswith(".fifo") or any(row["group_id"] for row in rows)):
        return [*columns]
    return [*columns[:-1], _GROUP, columns[-1]]


def age(seconds: float) -> str:
    """Seconds in the unit that fits: 45s, 12m, 30h, 4d."""
    for unit, length, below in (("s", 1, 120), ("m", 60, 7200), ("h", 3600, 172_800)):
        if seconds < below:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds / 86_400:.0f}d"


def instant(text: str) -> str:
    """An ISO 8601 instant to the second, without its year."""
    return text[5:19].replace("T", " ")
