# SPDX-License-Identifier: Apache-2.0
"""The programs of README.md and of the pages of use run, and print the output shown below them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.programs import COMMANDS, Block, blocks, files, runnable
from tests.packaging.checkout import ROOT

# One for each "I want to ..." of README.md.
USES = [
    ROOT / "docs" / name
    for name in (
        "jobs.md",
        "testing.md",
        "test-mode.md",
        "endpoint.md",
        "more-machines.md",
        "replies.md",
        "queues.md",
        "backlogs.md",
    )
]
REFERENCE = [ROOT / "docs" / name for name in ("api.md", "cli.md", "transactions.md", "payloads.md")]
PAGES = [ROOT / "README.md", *REFERENCE, *USES]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}


class Program(NamedTuple):
    """A block to run, and the files that its page shows."""

    block: Block
    files: dict[str, str]

    @property
    def needs_java(self) -> bool:
        return "sqsqlite" in self.block.source and " report " in self.block.source


def parameters():
    for page, text in TEXTS.items():
        for block in runnable(text):
            program = Program(block, files(text))
            yield pytest.param(
                program,
                id=f"{page.name} line {block.line}, {block.language}",
                # Several commands, or a server: slow. README.md's own are the sample of them.
                marks=[pytest.mark.slow] if page.parent != ROOT and block.language == "sh" else [],
            )


PROGRAMS = list(parameters())


def run(program, folder):
    for name, source in program.files.items():
        (folder / name).write_text(source, encoding="utf-8")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return subprocess.run(
        [*COMMANDS[program.block.language], program.block.source],
        cwd=folder,
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def skip_without_its_needs(program):
    sources = [program.block.source, *program.files.values()]
    if any("boto" in source for source in sources):
        pytest.importorskip("boto3")
    if "sqsqlite serve" in program.block.source:
        pytest.importorskip("uvicorn")
    if program.needs_java:
        pytest.importorskip("pyspark")
        if shutil.which("java") is None and not os.environ.get("CI"):
            pytest.skip("there is no Java")


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_runs_as_shown(program, tmp_path):
    """In a folder of its own."""
    skip_without_its_needs(program)
    first = run(program, tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    if program.block.output is not None:
        assert first.stdout == program.block.output
    else:
        assert first.stdout.strip() != ""


@pytest.mark.slow
@pytest.mark.parametrize("program", [one for one in PROGRAMS if not one.values[0].needs_java])
def test_a_program_runs_a_second_time(program, tmp_path):
    """A reader who tries a program tries it twice: the remains of the first run must not stop the second.

    A report changes nothing in its file, and Spark takes half a minute to start.
    """
    skip_without_its_needs(program)
    run(program, tmp_path)
    again = run(program, tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_has_programs(page):
    assert runnable(TEXTS[page])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_file_of_the_page_is_used_by_its_programs(page):
    """So no file is shown without being run: a program names it, or another file of the page does."""
    shown = blocks(TEXTS[page])
    for name in files(TEXTS[page]):
        module = name.removesuffix(".py")
        assert any(module in block.source for block in shown if block.file != name)


@pytest.mark.parametrize("page", USES, ids=lambda page: page.name)
def test_a_page_of_use_is_short(page):
    assert len(TEXTS[page].splitlines()) <= 90


@pytest.mark.parametrize("page", USES, ids=lambda page: page.name)
def test_every_block_of_a_page_of_use_has_a_tested_language(page):
    """`console` is for a block that a test cannot run, such as a server; `text` is the output of a program."""
    assert {block.language for block in blocks(TEXTS[page])} <= {"python", "sh", "console"}
