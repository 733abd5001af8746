"""Tables for a terminal: headings and ids are whole; what finds no room beside them is cut, or left out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import combining, east_asian_width

from sqsqlite.cli.output import cell_text, one_line

_GAP = "  "
_READABLE = 20  # columns of the screen that a text gets at least, before less important columns are left out
_NARROWEST = 6


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        name: the row's member.
        heading: what stands above it; the name unless said.
        leave: 0: stands on every screen; else the order in which columns are left out, 1 first.
        cut: a text of which a part serves too.
        shown: a value's text; as other formats have it unless said.
        width: at least; where rows come one by one, later ones may be wider than the first.
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
        """What stands above it."""
        return self.heading or self.name


def plain_columns(names: Sequence[str]) -> list[Column]:
    """Columns of rows that nothing is known of: all but ids may be cut."""
    return [Column(name, cut=not name.lower().endswith(("id", "queue"))) for name in names]


_GROUP = Column("group_id", "group", leave=2, cut=True)


def with_group(columns: Sequence[Column], queue: str, rows: Sequence[Mapping[str, Any]] = ()) -> list[Column]:
    """Columns of messages, and their group before the body: on a FIFO queue, or where a row has one.

    Args:
        queue: its name.
    """
    if not (queue.endswith(".fifo") or any(row["group_id"] for row in rows)):
        return [*columns]
    return [*columns[:-1], _GROUP, columns[-1]]


@dataclass
class Table:
    """Lines of a table, all at once or row by row.

    Attributes:
        columns: in the order they stand in.
        width: of the screen, in columns; None: there is room for all.
    """

    columns: Sequence[Column]
    width: int | None
    _natural: list[int] = field(default_factory=list)

    def lines(self, rows: Sequence[Sequence[Any]]) -> Iterator[str]:
        """A heading where there was none yet, then a line a row; numbers stand right.

        Args:
            rows: a value for each of the columns.
        """
        cells = [
            [column.text(value) for column, value in zip(self.columns, row, strict=True)] for row in rows
        ]
        begun = bool(self._natural)
        earlier = self._natural or [max(screen_width(one.title), one.width) for one in self.columns]
        self._natural = [
            max([width, *(screen_width(row[place]) for row in cells)]) for place, width in enumerate(earlier)
        ]
        widths = self._fitted()
        right = [_is_number({type(row[place]) for row in rows}) for place in range(len(self.columns))]
        if not begun:
            yield _joined([column.title for column in self.columns], widths, right)
        for row in cells:
            yield _joined(row, widths, right)

    def _fitted(self) -> list[int | None]:
        """The columns' widths; None: left out."""
        widths: list[int | None] = list(self._natural)
        if self.width is None:
            return widths
        leaving = sorted((one.leave, place) for place, one in enumerate(self.columns) if one.leave)
        for _, place in leaving:
            if _needed(self._cut(widths, _READABLE)) <= self.width:
                break
            widths[place] = None
        cut = self._cut(widths, _READABLE)
        return cut if _needed(cut) <= self.width else self._cut(widths, _NARROWEST)

    def _cut(self, widths: Sequence[int | None], least: int) -> list[int | None]:
        """Let the widest texts give way until all fit, none below what shows `least` columns of it."""
        assert self.width is not None
        cut = [
            min(width, self.width) if width is not None and column.cut else width
            for width, column in zip(widths, self.columns, strict=True)
        ]
        floors = [max(least, screen_width(column.title)) for column in self.columns]
        while (too_much := _needed(cut) - self.width) > 0:
            places = [
                place
                for place, column in enumerate(self.columns)
                if column.cut and (cut[place] or 0) > floors[place]
            ]
            if not places:
                break
            widest = max(places, key=lambda place: cut[place] or 0)
            step = too_much if len(places) == 1 else 1
            cut[widest] = max(floors[widest], (cut[widest] or 0) - step)
        return cut


def _needed(widths: Sequence[int | None]) -> int:
    shown = [width for width in widths if width is not None]
    return sum(shown) + len(_GAP) * (len(shown) - 1)


def _is_number(types: set[type]) -> bool:
    """Whether a column holds numbers, some of them missing at most."""
    return bool(types - {type(None)}) and types <= {int, float, type(None)}


def screen_width(text: str) -> int:
    """How many columns of a terminal the text takes: wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(mark) else 2 if east_asian_width(mark) in "WF" else 1 for mark in text)


def age(seconds: float) -> str:
    """Seconds in the unit that fits: 45s, 12m, 30h, 4d."""
    for unit, length, below in (("s", 1, 120), ("m", 60, 7200), ("h", 3600, 172_800)):
        if seconds < below:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds / 86_400:.0f}d"


def instant(text: str) -> str:
    """An ISO 8601 instant to the second, without its year."""
    return text[5:19].replace("T", " ")


def _joined(cells: Sequence[str], widths: Sequence[int | None], right: Sequence[bool]) -> str:
    padded = []
    for text, wanted, from_right in zip(cells, widths, right, strict=True):
        if wanted is None:
            continue
        shown = _cut_text(text, wanted)
        blank = " " * (wanted - screen_width(shown))
        padded.append(blank + shown if from_right else shown + blank)
    return _GAP.join(padded).rstrip()


def _cut_text(text: str, width: int) -> str:
    if screen_width(text) <= width:
        return text
    taken, room = [], width - 1
    for mark in text:
        room -= screen_width(mark)
        if room < 0:
            break
        taken.append(mark)
    return "".join(taken) + "…"
