# SPDX-License-Identifier: Apache-2.0
"""Prints data in the chosen format: rows or the AWS CLI's documents."""

import io
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sqsqlite.cli.failures import Failure
from sqsqlite.cli.out_file import Target, check_target
from sqsqlite.cli.table import Column, cell_text, obeys_escapes, on_screen, one_line, plain_columns

if TYPE_CHECKING:
    from sqsqlite.cli.drawing import Drawing, Screen

Row = Mapping[str, Any]


class Output:
    """Prints data, and nothing else, to standard output or to a file.

    A file or a pipe gets the data as it is. On a terminal, characters that would steer it are escaped.

    Args:
        form: json, jsonl, table, csv, csv-safe or text; None chooses by the kind of data and the terminal.
        path: the file to write; None or "-" is standard output.
        inputs: the files that the command reads, which the output must not overwrite.
        query: a compiled JMESPath expression, applied before printing.
        coloured: whether a terminal may show colours.

    Attributes:
        whole: whether a table keeps every column and every text whole, because its messages are deleted next.

    Raises:
        Failure: the file can't be written, or must not be overwritten.
    """

    def __init__(
        self,
        form: str | None = None,
        *,
        path: str | None = None,
        inputs: Sequence[Path] = (),
        query: Any = None,
        coloured: bool = True,
    ) -> None:
        self.whole = False
        self._form = form
        self._coloured = coloured
        self._query = query
        self._file: IO[str] | None = None
        self._endless: Drawing | None = None
        self._screen: Screen | None = None
        self._target = None if path in (None, "-") else Target(str(path))
        if self._target is not None:
            check_target(self._target.name, inputs)

    @property
    def is_terminal(self) -> bool:
        """Whether the data goes to a terminal."""
        return self._target is None and sys.stdout is not None and sys.stdout.isatty()

    @property
    def makes_tables(self) -> bool:
        """Whether rows become a table."""
        return self._query is None and (self._form or ("table" if self.is_terminal else "")) == "table"

    @property
    def shows_tables(self) -> bool:
        """Whether rows become a table on a terminal, where words may explain it."""
        return self.is_terminal and self.makes_tables

    @property
    def has_screen(self) -> bool:
        """Whether a table may fill the terminal, which can restore its earlier content afterwards."""
        return self.shows_tables and obeys_escapes()

    def finish(self) -> None:
        """Put the file in its place, after the last data. Without any data it is empty."""
        if self._target is not None:
            self._file = self._file or self._target.open()
            self._file.flush()
            self._target.put_in_place()

    def keep(self) -> None:
        """Put the data printed so far in its place, although the command has failed. Without data nothing changes."""
        if self._file is not None:
            self.finish()

    def close(self) -> None:
        """Close the file, drop it unless it was put in its place, and restore the terminal."""
        if self._screen is not None:
            self._screen.close()
        if self._file is not None:
            try:
                self._file.close()
            finally:
                assert self._target is not None
                self._target.drop()

    @property
    def _out(self) -> IO[str]:
        if self._target is not None:
            self._file = self._file or self._target.open()
            return self._file
        if sys.stdout is None:  # Python sets it so when the descriptor is closed
            raise Failure("standard output is closed")
        return sys.stdout

    def flush(self) -> None:
        """Hand the printed data to the operating system, in the file's place: the next data may come much later."""
        self._out.flush()
        self.keep()

    def sync(self) -> None:
        """Flush, and sync a file to the disk, before the messages are deleted."""
        self.flush()
        try:
            number = self._out.fileno()
        except io.UnsupportedOperation:  # an embedding program collects the data in memory
            return
        if stat.S_ISREG(os.fstat(number).st_mode):
            os.fsync(number)

    def rows(
        self,
        rows: Iterable[Row],
        columns: Sequence[Column] = (),
        *,
        endless: bool = False,
        default: str | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Print rows: a table on a terminal, else one JSON object a line.

        Args:
            rows: JSON values; all rows have the same keys.
            columns: the columns of a table and of text, in this order; () is all. Other formats always print all.
            endless: print each row as soon as it comes. On a terminal, rows with `columns` form one table, even if
                several calls print them.
            default: the format, unless the user chose one; None chooses by the terminal.
            names: the keys of the rows, for the heading of CSV if there are no rows.
        """
        if endless:
            for row in rows:
                if self._form is None and self._query is None and self.is_terminal and columns:
                    self._endless_table(row, columns)
                else:
                    found = row if self._query is None else self._searched(row)
                    self._some_rows([found], columns, "text" if self.is_terminal else "jsonl")
                self.flush()
            return
        if self._query is not None:
            self.document(self._searched(list(rows)), queried=True)
            return
        self._some_rows(rows, columns, default or ("table" if self.is_terminal else "jsonl"), names)

    def _searched(self, data: Any) -> Any:
        from sqsqlite.cli.aws_output import search

        return search(self._query, data)

    def _some_rows(
        self, rows: Iterable[Any], columns: Sequence[Column], default: str, names: Sequence[str] = ()
    ) -> None:
        form = self._form or default
        if form == "json":
            self._line(_indented(list(rows)))
        elif form == "jsonl":
            for row in rows:
                self._line(json.dumps(row, ensure_ascii=False))
        elif form == "csv":
            self._csv(rows, names, cell_text)
        elif form == "csv-safe":
            self._csv(rows, names, _no_formula)
        elif form == "text":
            for row in rows:
                self._line(_text_line(row, [column.name for column in columns]))
        else:
            self._table(list(rows), columns)

    def fill_screen(self, title: str, rows: Iterable[Row], columns: Sequence[Column]) -> None:
        """Show a title and a table on the whole terminal, until `close`."""
        from sqsqlite.cli.drawing import Screen

        if self._screen is None:
            self._screen = Screen(self._out, coloured=self._coloured)
        self._screen.show(title, columns, _values(rows, columns))

    def document(self, value: Any, *, queried: bool = False) -> None:
        """Print one value as the AWS CLI does: as JSON indented by four, or nothing for an empty object.

        Args:
            queried: the JMESPath expression has been applied already.
        """
        if self._query is not None and not queried:
            value = self._searched(value)
        if value == {}:
            return
        form = self._form or "json"
        if form == "json":
            self._line(_indented(value))
        elif form == "text":
            from sqsqlite.cli.aws_output import text_lines

            for line in text_lines(value):
                self._line(line)
        else:
            rows = list(_rows_of(value))
            if form != "jsonl":
                # The first row's keys become the columns, so every row gets the keys of all rows.
                names = dict.fromkeys(name for row in rows if isinstance(row, Mapping) for name in row)
                rows = [{**names, **row} if isinstance(row, Mapping) else row for row in rows]
            self._some_rows(rows, (), form)

    def _line(self, text: str) -> None:
        out = self._out
        out.write((on_screen(text) if out.isatty() else text) + "\n")

    def _csv(self, rows: Iterable[Any], names: Sequence[str], cell: Callable[[Any], str]) -> None:
        import csv

        buffer = io.StringIO()
        # The writer quotes the characters of its line end. Readers take either of these two for a line end.
        writer = csv.writer(buffer, lineterminator="\r\n")

        def line(values: Iterable[Any]) -> None:
            writer.writerow(map(cell, values))
            self._line(buffer.getvalue().removesuffix("\r\n"))
            buffer.seek(0)
            buffer.truncate()

        columns, count = list(names), 0
        for count, row in enumerate(rows, 1):
            if count == 1:
                columns = list(row) if isinstance(row, Mapping) else ["value"]
                line(columns)
            line(_cells(row, columns))
        if columns and not count:
            line(columns)

    def _table(self, rows: list[Any], columns: Sequence[Column]) -> None:
        if rows:
            first = list(rows[0]) if isinstance(rows[0], Mapping) else ["value"]
            self._draw(self._drawing(columns or plain_columns(first)), rows)

    def _endless_table(self, row: Row, columns: Sequence[Column]) -> None:
        if self._endless is None:
            self._endless = self._drawing(columns)
        self._endless.width = self.width
        self._draw(self._endless, [row])

    @property
    def width(self) -> int | None:
        """The width of the terminal in columns; None if the table stays whole."""
        import shutil

        return shutil.get_terminal_size().columns if self.is_terminal and not self.whole else None

    def _drawing(self, columns: Sequence[Column]) -> "Drawing":
        from sqsqlite.cli.drawing import Drawing  # loads Rich, which only tables need

        return Drawing(columns, self.width)

    def _draw(self, drawing: "Drawing", rows: list[Any]) -> None:
        for line in drawing.lines(_values(rows, drawing.columns), bold=self.is_terminal and self._coloured):
            self._out.write(line + "\n")


# Spreadsheets read a text with one of these beginnings as a formula; some skip the white space before it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def _no_formula(value: Any) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe before the text prevents that."""
    text = cell_text(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def _text_line(row: Any, columns: Sequence[str]) -> str:
    names = list(columns) or (list(row) if isinstance(row, Mapping) else ["value"])
    return "\t".join(one_line(cell_text(value)) for value in _cells(row, names))


def _values(rows: Iterable[Any], columns: Sequence[Column]) -> list[list[Any]]:
    names = [column.name for column in columns]
    return [_cells(row, names) for row in rows]


def _cells(row: Any, columns: Sequence[str]) -> list[Any]:
    return [row.get(name) for name in columns] if isinstance(row, Mapping) else [row]


def _rows_of(value: Any) -> Iterator[Any]:
    """The rows of a document: the items of its only list, the pairs of its only map, or the document itself."""
    if isinstance(value, Mapping) and len(value) == 1:
        [value] = value.values()
        if isinstance(value, Mapping):
            yield from ({"name": name, "value": item} for name, item in value.items())
            return
    if isinstance(value, list):
        yield from value
    else:
        yield value


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=4)
