# SPDX-License-Identifier: Apache-2.0
"""Tables that fit a terminal: headings and ids stay whole, other texts are cut, less important columns are left out.

Rich measures, cuts and pads the texts, including wide characters. This module does not use `rich.table`, which never
leaves out a column, needs all rows before it draws the first, takes ten times as long for a row and 35 ms more to load.
"""

from collections.abc import Iterator, Sequence
from typing import IO, Any

import click
from rich.cells import cell_len, set_cell_size

from sqsqlite.cli.table import Column, on_screen

_GAP = 2
_READABLE = 20  # the least width of a text while a less important column can be left out
_NARROWEST = 6


class Drawing:
    """Makes the lines of a table, all at once or row by row.

    Attributes:
        columns: the columns, in their order.
        width: the width of the screen in columns; None leaves out and cuts nothing.
    """

    def __init__(self, columns: Sequence[Column], width: int | None = None) -> None:
        self.columns = columns
        self.width = width
        self._begun = False
        self._natural = [max(cell_len(column.title), column.width) for column in columns]

    def lines(self, rows: Sequence[Sequence[Any]], *, bold: bool = False) -> Iterator[str]:
        """Yield the heading, unless an earlier call did, and a line for each row. Numbers stand on the right.

        Args:
            rows: a value for each column.
            bold: whether the heading is bold.
        """
        cells = [
            [column.text(value) for column, value in zip(self.columns, row, strict=True)] for row in rows
        ]
        self._natural = [
            max([width, *(cell_len(row[place]) for row in cells)])
            for place, width in enumerate(self._natural)
        ]
        widths = self._fitted()
        right = [_is_number({type(row[place]) for row in rows}) for place in range(len(self.columns))]
        if not self._begun:
            self._begun = True
            heading = _line([column.title for column in self.columns], widths, right)
            yield click.style(heading, bold=True) if bold else heading
        for row in cells:
            yield _line(row, widths, right)

    def _fitted(self) -> dict[int, int]:
        """The widths of the columns that fit on the screen, by their places."""
        widths = dict(enumerate(self._natural))
        if self.width is None:
            return widths
        leaving = sorted((column.leave, place) for place, column in enumerate(self.columns) if column.leave)
        for _, place in leaving:
            if _needed(self._cut(widths, _READABLE)) <= self.width:
                break
            del widths[place]
        longest = max(self.width, _NARROWEST)
        while longest > _NARROWEST and _needed(self._cut(widths, longest)) > self.width:
            longest -= 1  # so the longest texts are cut first
        return self._cut(widths, longest)

    def _cut(self, widths: dict[int, int], longest: int) -> dict[int, int]:
        """The widths if texts are cut to `longest` columns of the screen. Headings stay whole."""
        return {
            place: min(width, max(longest, cell_len(self.columns[place].title)))
            if self.columns[place].cut
            else width
            for place, width in widths.items()
        }


def _needed(widths: dict[int, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _is_number(types: set[type]) -> bool:
    """Whether a column holds numbers, with or without empty cells."""
    return bool(types - {type(None)}) and types <= {int, float, type(None)}


def _line(cells: Sequence[str], widths: dict[int, int], right: Sequence[bool]) -> str:
    shown = []
    for place, width in widths.items():
        missing = width - cell_len(cells[place])
        if missing < 0:
            shown.append(set_cell_size(cells[place], width - 1) + "…")
        else:
            blank = " " * missing
            shown.append(blank + cells[place] if right[place] else cells[place] + blank)
    return (" " * _GAP).join(shown).rstrip()


class Screen:
    """A table that fills the terminal. `close` restores the earlier content of the terminal.

    Args:
        out: the terminal.
        coloured: whether the heading may be bold.
    """

    def __init__(self, out: IO[str], *, coloured: bool) -> None:
        from rich.console import Console
        from rich.live import Live

        self.console = Console(file=out, force_terminal=True, color_system="standard" if coloured else None)
        self._live = Live(
            console=self.console,
            screen=True,
            auto_refresh=False,  # no thread
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        self.close = self._live.stop

    def show(self, title: str, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> None:
        """Draw the title, and as many rows as fit on the terminal.

        Args:
            rows: a value for each column.
        """
        from rich.text import Text

        heading, *lines = Drawing(columns, self.console.width).lines(rows)
        room = max(
            self.console.height - 4, 1
        )  # besides the title, a blank line, the heading and the last line
        if len(lines) > room + 1:
            lines[room:] = [f"and {len(lines) - room:,} more"]
        # Cut, not wrapped: on a narrow screen the headings alone would take all its lines.
        text = Text("\n", no_wrap=True, overflow="ellipsis").join(
            [Text(f"{on_screen(title)}\n"), Text(heading, "bold"), *map(Text, lines)]
        )
        self._live.update(text, refresh=True)
