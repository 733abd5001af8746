"""Data on its way out: rows of short verbs and documents of the AWS CLI's, in the format asked for."""

import io
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sqsqlite.cli.failures import Failure
from sqsqlite.cli.printed import search
from sqsqlite.cli.screen import on_screen

if TYPE_CHECKING:
    from sqsqlite.cli.table import Column, Table

Row = Mapping[str, Any]


class Output:
    """Prints data, and nothing else, to standard output or to a file.

    A file or a pipe gets the data as it is. On a terminal the marks that would steer it are written out.

    Args:
        form: json, jsonl, table, csv, csv-safe or text; None lets the kind of data and the terminal decide.
        path: the file to write; None or "-" is standard output.
        inputs: the files that are read, of which it is none.
        query: a compiled JMESPath expression, applied before anything is printed.
        coloured: whether a terminal may be shown colours.

    Attributes:
        whole: nothing is left out of a table or cut for the screen: what is printed is deleted afterwards.

    Raises:
        Failure: the file can't be made, or must not be overwritten.
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
        self._endless: Table | None = None
        if path not in (None, "-"):
            from sqsqlite.cli.targets import check_target

            check_target(str(path), inputs)
            try:
                self._file = open(str(path), "w", encoding="utf-8")  # noqa: SIM115 - open for the run
            except OSError as error:
                raise Failure(f"--out {path}: {error.strerror}") from error

    @property
    def is_terminal(self) -> bool:
        """Whether a human sees it as it comes."""
        return self._file is None and sys.stdout is not None and sys.stdout.isatty()

    @property
    def makes_tables(self) -> bool:
        """Whether rows become a table, of which a human sees no more than there is room for."""
        return self._query is None and (self._form or ("table" if self.is_terminal else "")) == "table"

    @property
    def shows_tables(self) -> bool:
        """Whether rows become a table on a terminal: words that explain it may follow."""
        return self.is_terminal and self.makes_tables

    def close(self) -> None:
        """Flush, and close the file if there is one."""
        if self._file is not None:
            self._file.close()

    @property
    def _out(self) -> IO[str]:
        if self._file is not None:
            return self._file
        if sys.stdout is None:  # Python's own answer to a closed descriptor
            raise Failure("standard output is closed")
        return sys.stdout

    def flush(self) -> None:
        """Hand everything over."""
        self._out.flush()

    def sync(self) -> None:
        """Hand everything over, and a file to the disk: what is deleted next is gone for good."""
        self.flush()
        try:
            number = self._out.fileno()
        except io.UnsupportedOperation:  # a program that embeds this one collects what is printed
            return
        if stat.S_ISREG(os.fstat(number).st_mode):
            os.fsync(number)

    def rows(
        self,
        rows: Iterable[Row],
        columns: "Sequence[Column]" = (),
        *,
        endless: bool = False,
        default: str | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Print rows: a table on a terminal, else a JSON object a line.

        Args:
            rows: values that JSON knows; all rows have the same keys.
            columns: those that a table and text show, in this order; () is all. The other formats show all always.
            endless: they come one by one, so each is printed at once; a table on a terminal where columns are named,
                in as many calls as there are.
            default: the format where none was asked for, whatever the terminal.
            names: the keys that rows would have: CSV without a row is their heading.
        """
        if endless:
            for row in rows:
                if self._form is None and self._query is None and self.is_terminal and columns:
                    self._endless_table(row, columns)
                else:
                    self._some_rows(self._one(row), columns, "text" if self.is_terminal else "jsonl")
                self.flush()
            return
        if self._query is not None:
            self.document(search(self._query, list(rows)), queried=True)
            return
        self._some_rows(rows, columns, default or ("table" if self.is_terminal else "jsonl"), names)

    def _one(self, row: Row) -> list[Any]:
        return [row] if self._query is None else [search(self._query, row)]

    def _some_rows(
        self, rows: Iterable[Any], columns: "Sequence[Column]", default: str, names: Sequence[str] = ()
    ) -> None:
        form = self._form or default
        if form == "json":
            self._line(_indented(list(rows)))
        elif form == "jsonl":
            for row in rows:
                self._line(_compact(row))
        elif form == "csv":
            self._csv(rows, names, cell_text)
        elif form == "csv-safe":
            self._csv(rows, names, _no_formula)
        elif form == "text":
            for row in rows:
                self._line(_text_line(row, [column.name for column in columns]))
        else:
            self._table(list(rows), columns)

    def document(self, value: Any, *, queried: bool = False) -> None:
        """Print one value as the AWS CLI prints it: JSON indented by four, nothing for an empty object.

        Args:
            queried: the JMESPath expression has been applied already.
        """
        if self._query is not None and not queried:
            value = search(self._query, value)
        if value == {}:
            return
        form = self._form or "json"
        if form == "json":
            self._line(_indented(value))
        elif form == "text":
            from sqsqlite.cli.aws_text import text_lines

            for line in text_lines(value):
                self._line(line)
        else:
            rows = list(_rows_of(value))
            if form != "jsonl":
                # The first row's keys are the columns: give it those of the others, too.
                names = dict.fromkeys(name for row in rows if isinstance(row, Mapping) for name in row)
                rows = [{**names, **row} if isinstance(row, Mapping) else row for row in rows]
            self._some_rows(rows, (), form)

    def _line(self, text: str) -> None:
        out = self._out
        out.write((on_screen(text) if out.isatty() else text) + "\n")

    def _csv(self, rows: Iterable[Any], names: Sequence[str], cell: Callable[[Any], str]) -> None:
        import csv

        buffer = io.StringIO()
        # The writer quotes the characters of its own line end, and a reader takes either of these for one.
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

    def _table(self, rows: list[Any], columns: "Sequence[Column]") -> None:
        from sqsqlite.cli.table import Table, plain_columns

        if rows:
            first = list(rows[0]) if isinstance(rows[0], Mapping) else ["value"]
            columns = columns or plain_columns(first)
            self._table_lines(Table(columns, self._width), rows, heading=True)

    @property
    def _width(self) -> int | None:
        import shutil

        return shutil.get_terminal_size().columns if self.is_terminal and not self.whole else None

    def _endless_table(self, row: Row, columns: "Sequence[Column]") -> None:
        from sqsqlite.cli.table import Table

        begins = self._endless is None
        table = self._endless = self._endless or Table(columns, None)
        table.width = self._width
        self._table_lines(table, [row], heading=begins)

    def _table_lines(self, table: "Table", rows: list[Any], *, heading: bool) -> None:
        names = [column.name for column in table.columns]
        for line in table.lines([_cells(row, names) for row in rows]):
            # The cells hold no mark that steers a terminal any more, and these are ours.
            self._out.write((_bold(line) if heading and self.is_terminal and self._coloured else line) + "\n")
            heading = False


def cell_text(value: Any) -> str:
    """A value as one cell: empty for None, JSON for what has parts."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else _compact(value)


# How a text begins that spreadsheets take for a formula; some of them pass over the white space before it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def _no_formula(value: Any) -> str:
    """A cell that a spreadsheet shows as it is: a text that would be a formula has an apostrophe before it."""
    text = cell_text(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def one_line(text: str) -> str:
    """Text with its control characters written out: a body can neither break the line nor steer the terminal."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else _ESCAPES.get(mark) or _escaped(mark) for mark in text)


_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escaped(mark: str) -> str:
    return mark.encode("unicode_escape").decode("ascii")


def _text_line(row: Any, columns: Sequence[str]) -> str:
    names = list(columns) or (list(row) if isinstance(row, Mapping) else ["value"])
    return "\t".join(one_line(cell_text(value)) for value in _cells(row, names))


def _cells(row: Any, columns: Sequence[str]) -> list[Any]:
    return [row.get(name) for name in columns] if isinstance(row, Mapping) else [row]


def _rows_of(value: Any) -> Iterator[Any]:
    """A document as rows: its one list's items, a map's pairs, or itself."""
    if isinstance(value, Mapping) and len(value) == 1:
        [value] = value.values()
        if isinstance(value, Mapping):
            yield from ({"name": name, "value": item} for name, item in value.items())
            return
    if isinstance(value, list):
        yield from value
    else:
        yield value


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=4)


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m"
