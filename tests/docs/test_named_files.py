# SPDX-License-Identifier: Apache-2.0
"""ARCHITECTURE.md and CONTRIBUTING.md name files, constants, commands and rooms that exist."""

import re

import pytest

from tests.packaging.checkout import ROOT, modules

PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")}
# In code or in a picture. A name without a folder is a file of any folder.
PATH = re.compile(
    r"(?<![\w./-])(?:sqsqlite|cli|migrations|tests|docs|benchmarks|requirements|\.ci|\.githooks)/[\w./-]*"
)
FILE = re.compile(r"(?<![\w./-])\w+\.(?:py|sql|toml|md)\b")
CONSTANT = re.compile(r"`([A-Z]+(?:_[A-Z]+)*)`")


def missing(text: str) -> list[str]:
    """The paths and files in `text` that the checkout lacks."""
    files = {
        path.name for path in (*modules().values(), *(ROOT / "sqsqlite").rglob("*.sql"), *ROOT.glob("*.*"))
    }
    paths = [name for name in PATH.findall(text) if not (ROOT / name.rstrip(".")).exists()]
    return paths + [name for name in FILE.findall(text) if name not in files]


@pytest.mark.parametrize("page", PAGES)
def test_each_named_file_exists(page):
    assert len(PATH.findall(PAGES[page])) > 20
    assert missing(PAGES[page]) == []


@pytest.mark.parametrize(
    "gone", ["`sqsqlite/store/gone.py`", "`tests/gone`", "`.ci/gone`", "`gone.py`", " sqsqlite/gone "]
)
def test_a_missing_file_is_found(gone):
    assert len(missing(gone)) == 1


@pytest.mark.parametrize("page", PAGES)
def test_each_named_constant_exists(page):
    """Under its own name, at its assignment."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in modules().values())
    sources += (ROOT / "tests" / "plans" / "test_plans.py").read_text(encoding="utf-8")
    named = set(CONSTANT.findall(PAGES[page])) - {"ARGS", "CHECK", "COMMIT", "INSERT"}  # of make, and of SQL
    assert named
    assert [name for name in named if not re.search(rf"^{name}\b.*=", sources, re.MULTILINE)] == []


@pytest.mark.parametrize("page", PAGES)
def test_each_command_of_make_is_a_target(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"\bmake ([a-z][a-z-]+)(?=`| ARGS|  )", PAGES[page])
    assert {"setup", "quick", "test", "help", "lock", "lint", "migration-check"} <= {
        *named
    } or page != "CONTRIBUTING.md"
    assert [target for target in named if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_each_room_is_in_the_picture():
    picture = PAGES["ARCHITECTURE.md"].split("```")[1]
    rooms = [path.name for path in (ROOT / "sqsqlite").iterdir() if (path / "__init__.py").exists()]
    assert len(rooms) > 8
    assert [room for room in rooms if room != "demo" and not re.search(rf"\b{room}\b", picture)] == []
