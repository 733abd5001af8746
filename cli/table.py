"""Tables for a terminal: columns as wide as they need, the last ones cut where the screen ends."""

from collections.abc import Iterator, Sequence
from typing import Any
from unicodedata import combining, east_asian_width

import click

from sqsqlite.cli.output import cell_text, one_line

_GAP = "  "


def table_lines(names: Sequence[str], rows: Sequence[Sequence[Any]], *, width: int | None) -> Iterator[str]:
    """A heading, then a line a row; numbers stand right.

    Args:
        width: of the screen, in columns: longer lines are cut. None: nothing is cut.
    """
    cells = [[one_line(cell_text(value)) for value in row] for row in rows]
    right = [all(isinstance(row[place], int | float | None) for row in rows) for place in range(len(names))]
    widths = [
        max(screen_width(name), *(screen_width(row[place]) for row in cells))
        for place, name in enumerate(names)
    ]
    yield (
        click.style(_cut(_joined(names, widths, right), width), bold=True)
        if width
        else _joined(names, widths, right)
    )
    for row in cells:
        yield _cut(_joined(row, widths, right), width)


def screen_width(text: str) -> int:
    """How many columns of a terminal the text takes: wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(mark) else 2 if east_asian_width(mark) in "WF" else 1 for mark in text)


def _joined(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for text, wanted, from_right in zip(cells, widths, right, strict=True):
        blank = " " * (wanted - screen_width(text))
        padded.append(blank + text if from_right else text + blank)
    return _GAP.join(padded).rstrip()


def _cut(line: str, width: int | None) -> str:
    if width is None or screen_width(line) <= width:
        return line
    taken, room = [], width - 1
    for mark in line:
        room -= screen_width(mark)
        if room < 0:
            break
        taken.append(mark)
    return "".join(taken) + "…"
