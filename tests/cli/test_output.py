# SPDX-License-Identifier: Apache-2.0
"""Formats: rows and documents as JSON, lines, tables, CSV and text."""

import csv
import io
import json

import pytest
from rich.cells import cell_len

from sqsqlite.cli.aws_output import text_lines
from sqsqlite.cli.drawing import Drawing
from sqsqlite.cli.output import Output
from sqsqlite.cli.queues import counts_columns
from sqsqlite.cli.stats import _ACTIVITY
from sqsqlite.cli.table import Column, age

ROWS = [
    {"name": "a", "count": 1, "parts": {"x": "y"}, "none": None},
    {"name": 'b,"c"', "count": 20, "parts": {}, "none": None},
]


@pytest.fixture
def printed(capsys):
    def of(rows, form=None, *columns, query=None, **options):
        import jmespath

        columns = [Column(name) for name in columns]
        Output(form, query=None if query is None else jmespath.compile(query)).rows(rows, columns, **options)
        return capsys.readouterr().out

    return of


def test_rows_are_json_lines_outside_a_terminal(printed):
    assert [json.loads(line) for line in printed(ROWS).splitlines()] == ROWS


def test_rows_are_one_array_as_json(printed):
    assert json.loads(printed(ROWS, "json")) == ROWS
    assert json.loads(printed([], "json")) == []


def test_csv_has_a_heading_every_column_and_quotes(printed):
    found = list(csv.reader(io.StringIO(printed(ROWS, "csv"))))
    assert found == [
        ["name", "count", "parts", "none"],
        ["a", "1", '{"x": "y"}', ""],
        ['b,"c"', "20", "{}", ""],
    ]
    assert printed([], "csv") == ""
    assert printed([], "csv", names=["name", "count"]) == "name,count\n"


def test_csv_quotes_every_kind_of_line_end(printed):
    """A carriage return would end the row, and the rest would begin a cell of its own."""
    bodies = ["a\rb", "a\nb", "a\r\nb", "\r"]
    text = printed([{"body": body, "x": 1} for body in bodies], "csv")
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["body", "x"],
        *([body, "1"] for body in bodies),
    ]
    assert text.endswith('"\r",1\n')


@pytest.mark.parametrize("begin", [*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20"])
def test_csv_safe_has_no_cell_that_a_spreadsheet_reads_as_a_formula(printed, begin):
    text = f"{begin}cmd|' /C calc'!A0"
    rows = [{"body": text, text: "a=b", "count": -5, "ratio": -0.5, "parts": {"=": text}, "none": None}]
    [heading, cells] = csv.reader(io.StringIO(printed(rows, "csv-safe"), newline=""))
    assert heading == ["body", f"'{text}", "count", "ratio", "parts", "none"]
    assert cells == [f"'{text}", "a=b", "-5", "-0.5", json.dumps({"=": text}, ensure_ascii=False), ""]


def test_csv_keeps_a_cell_that_looks_like_a_formula(printed):
    assert printed([{"body": "=1+1"}], "csv") == "body\n=1+1\n"


def test_text_is_separated_by_tabs_and_has_the_selected_columns(printed):
    assert printed(ROWS, "text", "count", "name") == '1\ta\n20\tb,"c"\n'


def test_a_table_aligns_numbers_right(printed):
    assert printed(ROWS, "table", "name", "count") == 'name   count\na          1\nb,"c"     20\n'


def test_a_query_applies_to_all_rows_or_to_each_row_of_a_stream(printed):
    assert json.loads(printed(ROWS, query="[].count")) == [1, 20]
    assert printed(ROWS, "text", query="[].count") == "1\t20\n"
    assert printed(iter(ROWS), "jsonl", query="count", endless=True) == "1\n20\n"


def test_rows_of_a_stream_are_printed_one_by_one(printed, capsys):
    def rows():
        yield ROWS[0]
        assert json.loads(capsys.readouterr().out) == ROWS[0]
        yield ROWS[1]

    assert json.loads(printed(rows(), endless=True)) == ROWS[1]


def table(columns, rows, width):
    return list(Drawing(columns, width).lines(rows))


def test_a_wide_table_cuts_its_widest_text():
    columns = [Column("id"), Column("body", cut=True), Column("remark", cut=True)]
    lines = table(columns, [["12345", "x" * 1000, "short"], ["1", "☂" * 50, "y" * 30]], 70)
    assert max(map(cell_len, lines)) == 70
    assert lines[1].startswith("12345  xxx")
    assert lines[1].endswith("…  short")
    assert lines[2].endswith("y" * 30)


STATISTICS = [*counts_columns(), *_ACTIVITY]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("name", ["orders", "a-queue-with-a-longer-name"])
def test_headings_and_ids_are_never_cut(width, name):
    row = [
        name,
        12_345,
        678,
        90,
        200_000,
        1_234,
        1_234,
        1_200,
        34,
        5_678,
        "a-queue-with-a-longer-name-failed",
    ]
    heading, line = table(STATISTICS, [row], width)
    assert max(cell_len(heading), cell_len(line)) <= width
    assert "…" not in heading + line
    assert line.split()[:3] == [name, "12345", "678"]
    assert heading.split()[:3] == ["queue", "visible", "flight"]


def test_the_least_important_columns_are_left_out_first():
    columns = [Column("id"), Column("second", leave=2), Column("first", leave=1), Column("body", cut=True)]
    row = ["x" * 36, "s" * 10, "f" * 10, "b" * 100]
    shown = {width: table(columns, [row], width)[0].split() for width in (82, 81, 70, 69)}
    assert shown == {
        82: ["id", "second", "first", "body"],
        81: ["id", "second", "body"],
        70: ["id", "second", "body"],
        69: ["id", "body"],
    }


def test_rows_of_a_stream_share_one_heading_and_its_columns():
    found = Drawing([Column("state", width=9), Column("body", cut=True)], 40)
    lines = [line for row in (["visible", "a"], ["in flight", "b"]) for line in found.lines([row])]
    assert lines == ["state      body", "visible    a", "in flight  b"]


def test_rows_of_a_stream_are_one_table_on_a_terminal(printed, monkeypatch):
    monkeypatch.setattr(Output, "is_terminal", True)
    shown = printed(iter(ROWS), None, "name", "count", endless=True)
    assert shown.splitlines() == ["\x1b[1mname  count\x1b[0m", "a         1", 'b,"c"     20']


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7199, "120m"),
        (7200, "2h"),
        (172_800, "2d"),
        (1_209_600, "14d"),
    ],
)
def test_an_age_has_a_fitting_unit(seconds, text):
    assert age(seconds) == text


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("größe", 5), ("日本", 4), ("e\u0301", 1)])
def test_width_is_counted_in_columns_of_the_terminal(text, width):
    """The next column begins under its heading, and half a wide character is never shown."""
    heading, line = table([Column("body", cut=True, width=9), Column("id")], [[text, "x"]], None)
    assert line == text + " " * (11 - width) + "x"
    assert heading == "body" + " " * 7 + "id"


@pytest.mark.parametrize("width", range(1, 40))
def test_a_cut_text_never_ends_in_half_a_character(width):
    heading, line = table([Column("id"), Column("body", cut=True)], [["12", "日本語" * 20]], width)
    assert heading == "id  body"
    assert line.startswith("12  日")
    assert line.endswith("…")
    assert cell_len(line) <= max(width, 10)


def test_markup_in_a_body_is_printed_as_text(printed):
    body = "[bold red]:smile:[/] [link=http://example.com]x[/link] \x1b[31m"
    shown = printed([{"body": body}], "table")
    assert shown == "body\n" + body.replace("\x1b", r"\x1b") + "\n"


def test_a_table_in_a_pipe_is_not_cut(printed):
    rows = [{"message_id": "1", "body": "x" * 100_000}, {"message_id": "2", "body": "short"}]
    heading, long, short = printed(rows, "table").splitlines()
    assert (heading, long, short) == (
        "message_id  body",
        "1           " + "x" * 100_000,
        "2           short",
    )


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("http://localhost/q", ["http://localhost/q"]),
        (None, ["None"]),
        (True, ["True"]),
        ([], []),
        (["a", "b"], ["a\tb"]),
        ([["a", 1], ["b", 2]], ["a\t1", "b\t2"]),
        ({"QueueUrl": "u"}, ["u"]),
        ({"QueueUrls": ["u", "v"]}, ["QUEUEURLS\tu", "QUEUEURLS\tv"]),
        ({"Attributes": {"B": "2", "A": "1"}}, ["ATTRIBUTES\t1\t2"]),
        (
            {"Messages": [{"Body": "x", "MessageId": "1"}, {"MessageId": "2", "Attributes": {"n": "5"}}]},
            ["MESSAGES\tx\t1", "MESSAGES\t\t2", "ATTRIBUTES\t5"],
        ),
        ({"Successful": [{"Id": "1"}], "Failed": [], "Count": 3}, ["3", "SUCCESSFUL\t1"]),
    ],
)
def test_text_of_documents_is_the_aws_cli_s(value, lines):
    """Recorded with AWS CLI 1.45's own formatter."""
    assert list(text_lines(value)) == lines
