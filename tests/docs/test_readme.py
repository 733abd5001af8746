# SPDX-License-Identifier: Apache-2.0
"""The lists of README.md are complete, and all that it names exists. test_programs.py runs its programs."""

import re

import pytest

import sqsqlite
from sqsqlite.cli.failures import EXIT_CODES
from tests.contract.page import PAGE
from tests.docs.programs import blocks, runnable
from tests.docs.test_programs import USES
from tests.packaging.checkout import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
# Without the files that `make contract` may have made.
DOCS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")} - {PAGE})

BLOCKS = blocks(README)
RUNNABLE = runnable(README)


def test_the_readme_begins_with_a_program():
    """A program first, before any promise."""
    assert [block.language for block in RUNNABLE].count("python") >= 3
    assert [block.language for block in RUNNABLE].count("sh") >= 1
    assert README.index("```python") < README.index("\n## ")
    assert len(RUNNABLE[0].source.splitlines()) <= 12


def test_every_block_of_the_readme_has_a_tested_language():
    """`console` is for a block that a test cannot run, such as an installation; `text` is checked output."""
    assert {block.language for block in BLOCKS} == {"python", "sh", "console"}


def test_every_make_target_of_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ make ([a-z -]+?) +#", README, re.MULTILINE)
    targets = {target for line in shown for target in line.split()}
    assert {"run", "test", "test-all", "help", "lock"} <= targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_the_readme_names_the_wheel_that_is_built():
    shown = re.findall(r"dist/(\S+?\.whl)", README)
    assert len(shown) == 2
    assert set(shown) == {f"sqsqlite-{sqsqlite.__version__}-py3-none-any.whl"}


def test_the_page_of_exit_codes_lists_them_all():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    section = page.split("\n## Exit codes\n")[1].split("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)] == list(EXIT_CODES)


def test_readme_leads_to_each_page_of_use():
    section = README.split("\n## Uses\n")[1].split("\n## ")[0]
    assert [page.name for page in USES if f"(docs/{page.name})" not in section] == []


@pytest.mark.parametrize("page", DOCS, ids=[str(page.relative_to(ROOT)) for page in DOCS])
def test_every_link_has_a_target(page):
    """To files of the checkout, and to headings that exist."""
    missing = []
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        name, _, heading = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists() or (heading and heading not in headings(linked)):
            missing.append(target)
    assert missing == []


def headings(page):
    """The anchors of a page's headings, as on the web: small letters, hyphens, no punctuation."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS if page.parent.name == "docs" and page.name != "README.md"] == [
        page.name for page in DOCS if f"({page.name})" in index
    ]
