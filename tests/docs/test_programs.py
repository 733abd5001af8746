"""The programs that README.md and docs/api.md show are run, and print what is shown below them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.programs import COMMANDS, runnable
from tests.packaging.checkout import ROOT

PAGES = [ROOT / "README.md", ROOT / "docs" / "api.md"]
PROGRAMS = {
    f"{page.name} line {block.line}, {block.language}": block
    for page in PAGES
    for block in runnable(page.read_text(encoding="utf-8"))
}


def run(block, folder):
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return subprocess.run(
        [*COMMANDS[block.language], block.source],
        cwd=folder,
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.parametrize("block", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_it_runs_as_shown(block, tmp_path):
    """In a folder of its own."""
    if "sqsqlite.boto" in block.source:
        pytest.importorskip("boto3")
    first = run(block, tmp_path)
    assert first.returncode == 0, first.stderr
    if block.output is not None:
        assert first.stdout == block.output
    else:
        assert first.stdout.strip() != ""


@pytest.mark.slow
@pytest.mark.parametrize("block", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_it_runs_again(block, tmp_path):
    """Whoever tries a program tries it twice: what the first run left must not stop the second."""
    run(block, tmp_path)
    again = run(block, tmp_path)
    assert again.returncode == 0, again.stderr


def test_each_page_has_programs():
    for page in PAGES:
        assert any(name.startswith(f"{page.name} ") for name in PROGRAMS)
