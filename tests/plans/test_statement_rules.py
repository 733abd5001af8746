# SPDX-License-Identifier: Apache-2.0
"""Rules for every statement, so that it can be read, and run in the sqlite3 shell unchanged."""

import ast
import re
from pathlib import Path

from tests.plans.sql import MODULES, STATEMENTS


def test_module_holds_nothing_but_named_literals():
    """So a statement has no f-string, no format and no join: a list goes through placeholders."""
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


def offenders(breaks):
    """The names of the statements of which `breaks(statement)` is true."""
    return [name for name, statement in STATEMENTS.items() if breaks(statement)]


def test_comment_comes_first_and_names_no_parameter():
    def breaks(statement):
        lines = statement.text.strip().splitlines()
        first_code = next(place for place, line in enumerate(lines) if not line.startswith("--"))
        return "--" in "".join(lines[first_code:]) or re.search(r":[a-z_]+", statement.comment)

    assert offenders(breaks) == []


def test_statement_names_its_columns():
    every_column = re.compile(r"(?:SELECT|,|\.|RETURNING)\s*\*", re.IGNORECASE)
    assert offenders(lambda statement: every_column.search(statement.code)) == []


def test_statement_has_parameters_of_one_kind():
    assert offenders(lambda found: re.search(r":[a-z]", found.code) and "?" in found.code) == []


def test_statement_does_not_ask_sqlite_for_the_time():
    asked = r"\b(?:strftime|julianday|unixepoch|datetime|date|time|CURRENT_\w+)\b\s*\(|CURRENT_TIME"
    assert offenders(lambda statement: re.search(asked, statement.code, re.IGNORECASE)) == []


def test_text_is_one_statement_on_our_tables_alone():
    allowed = r"sqs_|sqlite_(?:schema|sequence)$|pragma_table_info$|json_each$|ids$|SET$"

    def breaks(statement):
        tables = re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)", statement.code)
        return ";" in statement.code or any(not re.match(allowed, table) for table in tables)

    assert offenders(breaks) == []
