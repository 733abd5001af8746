# SPDX-License-Identifier: Apache-2.0
"""Text for people: columns and how their values read. No message can steer the terminal or reverse its text.

cli/drawing.py draws the tables.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

# C0 except tab and line end, DEL, C1, and Unicode's controls of the writing direction. Compiled at its first use.
_STEERING = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def obeys_escapes() -> bool:
    """Whether the terminal knows the codes for bold, colours and the cursor. TERM=dumb says that it does not."""
    return os.environ.get("TERM") not in ("dumb", "unknown")


def on_screen(text: str) -> str:
    r"""Escape the characters that steer a terminal as `\u` and four hexadecimal digits, as JSON does."""
    return re.sub(_STEERING, lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Escape every character without a glyph, line ends included, so that the text stays on one line."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else _ESCAPES.get(mark) or _escaped(mark) for mark in text)


def _escaped(mark: str) -> str:
    return mark.encode("unicode_escape").decode("ascii")


class Column(NamedTuple):
    """One column of a table.

    Attributes:
        name: the key in the row.
        heading: the text above the column; the name if empty.
        leave: 0 keeps the column on every screen; narrow screens leave out the others in this order, 1 first.
        cut: whether a narrow screen may cut the text.
        shown: makes the text of a value; by default the text of the other formats.
        width: the least width in columns of the screen, for rows that are printed one by one.
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
    """The text of a cell: empty for None, JSON for lists and objects."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def plain_columns(names: Sequence[str]) -> list[Column]:
    """The columns of unknown rows. Screens may cut every text but ids and queues."""
    return [Column(name, cut=not name.lower().endswith(("id", "queue"))) for name in names]


_GROUP = Column("group_id", "group", leave=2, cut=True)


def with_group(columns: Sequence[Column], queue: str, rows: Sequence[Mapping[str, Any]] = ()) -> list[Column]:
    """The columns of messages. On a FIFO queue, or if a row has a group, the group stands before the body.

    Args:
        queue: the name of the queue.
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
    """Shorten an ISO 8601 instant to the second, without its year."""
    return text[5:19].replace("T", " ")
