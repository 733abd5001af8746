# SPDX-License-Identifier: Apache-2.0
"""What README.md lists is complete, and what it names is there. Its programs are run by test_programs.py."""

import re

import pytest

import sqsqlite
from sqsqlite.cli.failures import EXIT_CODES
from tests.contract.page import PAGE
from tests.docs.programs import blocks, runnable
from tests.docs.test_programs import USES
from tests.packaging.checkout import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
# Not what `make contract` may have made.
DOCS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")} - {PAGE})

BLOCKS = blocks(README)
RUNNABLE = runnable(README)


def test_there_is_something_to_run():
    """A program first, before any promise."""
    assert [block.language for block in RUNNABLE].count("python") >= 3
    assert [block.language for block in RUNNABLE].count("sh") >= 1
    assert README.index("```python") < README.index("\n## ")
    assert len(RUNNABLE[0].source.splitlines()) <= 12


def test_no_block_escapes_by_its_language():
    """`console` is for what a test can't do, such as installing; `text` is output, checked with its program."""
    assert {block.language for block in BLOCKS} == {"python", "sh", "console"}


def test_make_targets_that_are_shown_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ make ([a-z -]+?) +#", README, re.MULTILINE)
    targets = {target for line in shown for target in line.split()}
    assert {"run", "test", "test-all", "help", "lock"} <= targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_the_wheel_that_is_named_is_the_one_that_is_built():
    shown = re.findall(r"dist/(\S+?\.whl)", README)
    assert len(shown) == 2
    assert set(shown) == {f"sqsqlite-{sqsqlite.__version__}-py3-none-any.whl"}


def test_exit_codes_are_where_the_readme_points():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    section = page.split("\n## Exit codes\n")[1].split("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)] == list(EXIT_CODES)


def test_readme_leads_to_each_page_of_use():
    section = README.split("\n## Uses\n")[1].split("\n## ")[0]
    assert [page.name for page in USES if f"(docs/{page.name})" not in section] == []


@pytest.mark.parametrize("page", DOCS, ids=[str(page.relative_to(ROOT)) for page in DOCS])
def test_links_lead_somewhere(page):
    """To files of the checkout, and to headings that are there."""
    missing = []
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        name, _, heading = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists() or (heading and heading not in headings(linked)):
            missing.append(target)
    assert missing == []


def headings(page):
    """The anchors of a page's headings, as they are made on the web: small letters, hyphens, no punctuation."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS if page.parent.name == "docs" and page.name != "README.md"] == [
        page.name for page in DOCS if f"({page.name})" in index
    ]
