"""Formats: rows and documents as JSON, lines, tables, CSV and text."""

import csv
import io
import json

import pytest

from sqsqlite.cli.aws_text import text_lines
from sqsqlite.cli.output import Output
from sqsqlite.cli.table import screen_width, table_lines

ROWS = [
    {"name": "a", "count": 1, "parts": {"x": "y"}, "none": None},
    {"name": 'b,"c"', "count": 20, "parts": {}, "none": None},
]


@pytest.fixture
def printed(capsys):
    def of(rows, form=None, *columns, query=None, **options):
        import jmespath

        Output(form, query=None if query is None else jmespath.compile(query)).rows(rows, columns, **options)
        return capsys.readouterr().out

    return of


def test_rows_are_json_lines_where_no_terminal_is(printed):
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


def test_text_is_parted_by_tabs_and_has_the_columns_asked_for(printed):
    assert printed(ROWS, "text", "count", "name") == '1\ta\n20\tb,"c"\n'


def test_a_table_aligns_numbers_right(printed):
    assert printed(ROWS, "table", "name", "count") == 'name   count\na          1\nb,"c"     20\n'


def test_a_query_applies_to_all_rows_or_to_each_that_comes_endlessly(printed):
    assert json.loads(printed(ROWS, query="[].count")) == [1, 20]
    assert printed(ROWS, "text", query="[].count") == "1\t20\n"
    assert printed(iter(ROWS), "jsonl", query="count", endless=True) == "1\n20\n"


def test_rows_that_come_endlessly_are_printed_one_by_one(printed, capsys):
    def rows():
        yield ROWS[0]
        assert json.loads(capsys.readouterr().out) == ROWS[0]
        yield ROWS[1]

    assert json.loads(printed(rows(), endless=True)) == ROWS[1]


def test_a_table_that_is_too_wide_cuts_its_widest_cells():
    lines = list(table_lines(["id", "body"], [["12345", "x" * 1000], ["1", "☂" * 30]], width=30))
    assert max(map(screen_width, lines)) <= 30
    assert lines[1].startswith("12345  xxx")
    assert lines[1].endswith("…")


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("größe", 5), ("日本", 4), ("e\u0301", 1)])
def test_width_is_what_a_terminal_shows(text, width):
    assert screen_width(text) == width


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
