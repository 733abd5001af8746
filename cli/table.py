"""Tables for a terminal: columns as wide as they need, the widest cut until all fit the screen."""

from collections.abc import Iterator, Sequence
from typing import Any
from unicodedata import combining, east_asian_width

from sqsqlite.cli.output import cell_text, one_line

_GAP = "  "
_NARROWEST = 6


def table_lines(names: Sequence[str], rows: Sequence[Sequence[Any]], *, width: int | None) -> Iterator[str]:
    """A heading, then a line a row; numbers stand right.

    Args:
        width: of the screen, in columns: cells are cut until they fit. None: nothing is cut.
    """
    cells = [[one_line(cell_text(value)) for value in row] for row in rows]
    right = [_is_number({type(row[place]) for row in rows}) for place in range(len(names))]
    widths = [
        max(screen_width(name), *(screen_width(row[place]) for row in cells))
        for place, name in enumerate(names)
    ]
    if width is not None:
        widths = _shrunk(widths, width - len(_GAP) * (len(widths) - 1))
    heading = _joined(names, widths, right)
    yield heading
    for row in cells:
        yield _joined(row, widths, right)


def _is_number(types: set[type]) -> bool:
    """Whether a column holds numbers, some of them missing at most."""
    return bool(types - {type(None)}) and types <= {int, float, type(None)}


def _shrunk(widths: Sequence[int], room: int) -> list[int]:
    """Widths that fit into the room: the widest give way first, none below what shows a few characters."""
    fitted = [min(width, room) for width in widths]
    while sum(fitted) > room and max(fitted) > _NARROWEST:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def screen_width(text: str) -> int:
    """How many columns of a terminal the text takes: wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(mark) else 2 if east_asian_width(mark) in "WF" else 1 for mark in text)


def _joined(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for text, wanted, from_right in zip(cells, widths, right, strict=True):
        shown = _cut(text, wanted)
        blank = " " * (wanted - screen_width(shown))
        padded.append(blank + shown if from_right else shown + blank)
    return _GAP.join(padded).rstrip()


def _cut(text: str, width: int) -> str:
    if screen_width(text) <= width:
        return text
    taken, room = [], width - 1
    for mark in text:
        room -= screen_width(mark)
        if room < 0:
            break
        taken.append(mark)
    return "".join(taken) + "…"
