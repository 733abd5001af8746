# SPDX-License-Identifier: Apache-2.0
"""docs/conformance.md names all tests in tests/clients, and no others."""

import ast

from tests.clients.page import EXAMPLES, PAGE, sentence
from tests.packaging.checkout import ROOT

CLIENTS = ROOT / "tests" / "clients"


def functions_of_clients():
    for path in sorted(CLIENTS.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield path.stem, node.name


def rows():
    """The cells of each line below the heading."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_the_page_names_each_clients_tests():
    """After a change of tests/clients: make conformance."""
    told = {(row[4], ran) for row in rows() for ran in row[2].split("; ")}
    expected = {
        (f"[{EXAMPLES[module].rpartition('/')[2]}]({EXAMPLES[module]})", sentence(name))
        for module, name in functions_of_clients()
    }
    assert told == expected


def test_each_client_has_an_example():
    assert {path.stem for path in CLIENTS.glob("test_*.py")} == set(EXAMPLES)
    assert [example for example in EXAMPLES.values() if not (ROOT / "docs" / example).is_file()] == []
