# SPDX-License-Identifier: Apache-2.0
"""docs/promises.md: each promise names tests that exist, or the later part that will prove it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")

IS_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
IS_LATER = re.compile(r"later: ([\w -]+)")
LATER_PARTS = set(re.search(r"^The later parts: (.+)\.$", PAGE, re.MULTILINE)[1].split(", "))


def promises():
    """(place, promise, proof) of every row of the tables after the first, which lists the documents."""
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in PAGE.splitlines()
        if line[:1] == "|"
    ]
    return [row for row in rows if len(row) == 3 and row[0] != "place" and set(row[0]) != {"-"}]


PROMISES = promises()


def names_of_tests(path):
    """The names of the test functions in a file, without importing it. A file without a folder is in this folder."""
    folder = ROOT / "tests" if "/" in path else Path(__file__).parent
    tree = ast.parse((folder / path).read_text(encoding="utf-8"))
    return {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("place", "promise", "proof"), PROMISES, ids=[row[1][:50] for row in PROMISES])
def test_a_promise_has_tests_that_exist_or_a_later_part(place, promise, proof):
    named = IS_TEST.findall(proof)
    if not named:
        later = IS_LATER.fullmatch(proof)
        assert later is not None, proof
        assert later[1] in LATER_PARTS
        return
    assert IS_TEST.sub("", proof).strip() == ""
    assert [name for path, name in named if name not in names_of_tests(path)] == []
    assert len(named) == len(set(named))


@pytest.mark.parametrize("document", range(5))
def test_each_document_has_promises(document):
    assert any(re.search(rf"(?:^|; ){document} ", place) for place, _, _ in PROMISES)


def test_every_place_begins_with_its_documents_number():
    assert [
        place for place, _, _ in PROMISES if not all(re.match("[0-4] ", part) for part in place.split("; "))
    ] == []


def test_every_row_of_the_page_is_read():
    """A row with an additional cell would be skipped."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| place |")]
    documents = [line for line in rows if re.match(r"\| (number|\d) \| [^|]+ \|$", line)]
    assert len(rows) - len(documents) == len(PROMISES)
