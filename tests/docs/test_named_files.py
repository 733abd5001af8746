# SPDX-License-Identifier: Apache-2.0
"""ARCHITECTURE.md and CONTRIBUTING.md name files that exist."""

import re

import pytest

from tests.packaging.checkout import ROOT

NAMED = re.compile(r"`((?:sqsqlite|cli|migrations|tests|docs|benchmarks)/[\w./-]*|[\w]+\.(?:py|sql|toml))`")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_each_file_that_is_named_exists(page):
    named = NAMED.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(named) > 5
    found = {path.name for room in ("sqsqlite", "cli", "tests") for path in (ROOT / room).rglob("*")}
    missing = [name for name in named if not (ROOT / name).exists() and ("/" in name or name not in found)]
    assert missing == []


def test_each_room_is_in_the_picture():
    picture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")[1]
    rooms = [path.name for path in (ROOT / "sqsqlite").iterdir() if (path / "__init__.py").exists()]
    assert len(rooms) > 8
    assert [room for room in rooms if room != "demo" and not re.search(rf"\b{room}\b", picture)] == []
