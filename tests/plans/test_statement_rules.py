"""What every statement keeps to, so that it can be read, and run in the sqlite3 shell as it stands."""

import ast
import re
from pathlib import Path

import pytest

from tests.plans.sql import MODULES, STATEMENTS

EVERY = pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)


def test_module_holds_nothing_but_named_literals():
    """So there is no f-string, no format and no join either: a list goes through placeholders."""
    assignments = []
    for module in MODULES:
        docstring, *found = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
        assert isinstance(docstring, ast.Expr)
        assignments += found
    others = [
        ast.unparse(node)[:60]
        for node in assignments
        if not (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
    ]
    assert others == []
    assert len(assignments) == len(STATEMENTS) > 50


@EVERY
def test_comment_comes_first_and_names_no_parameter(statement):
    lines = statement.text.strip().splitlines()
    first_code = next(place for place, line in enumerate(lines) if not line.startswith("--"))
    assert "--" not in "".join(lines[first_code:])
    assert re.findall(r":[a-z_]+", statement.comment) == []


@EVERY
def test_names_its_columns(statement):
    assert re.findall(r"(?:SELECT|,|\.|RETURNING)\s*\*", statement.code, re.IGNORECASE) == []


@EVERY
def test_has_parameters_of_one_kind(statement):
    assert not (re.search(r":[a-z]", statement.code) and "?" in statement.code)


@EVERY
def test_asks_sqlite_for_no_time(statement):
    asked = r"\b(?:strftime|julianday|unixepoch|datetime|date|time|CURRENT_\w+)\b\s*\(|CURRENT_TIME"
    assert re.findall(asked, statement.code, re.IGNORECASE) == []


@EVERY
def test_is_one_statement_on_our_tables_alone(statement):
    assert ";" not in statement.code
    tables = re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)", statement.code)
    allowed = r"sqs_|sqlite_(?:schema|sequence)$|pragma_table_info$|json_each$|ids$|SET$"
    assert [table for table in tables if not re.match(allowed, table)] == []
