# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/analytics.md run, and print the output shown below them. Each starts Spark."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sqsqlite import spark
from sqsqlite.cli.report import FORMATS, NAMES
from tests.docs.programs import COMMANDS, runnable
from tests.packaging.checkout import ROOT

PAGE = (ROOT / "docs" / "analytics.md").read_text(encoding="utf-8")
PROGRAMS = {f"line {block.line}, {block.language}": block for block in runnable(PAGE)}


@pytest.fixture(scope="module")
def jar():
    """The driver, found or fetched. Without it, or without Java, the page cannot be tried, except on CI."""
    try:
        return spark.driver_jar()
    except spark.AnalyticsError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("block", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_it_runs_as_shown(block, jar, tmp_path):
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    run = subprocess.run(
        [*COMMANDS[block.language], block.source],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "SQSQLITE_JDBC_JAR": str(jar)},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr
    if block.output is not None:
        assert run.stdout == block.output
    else:
        assert run.stdout.strip() != ""


def test_the_page_has_a_program_of_each_kind():
    assert {block.language for block in PROGRAMS.values()} == {"python", "sh"}


def test_the_page_names_every_report_format_view_and_metric():
    for name in (*NAMES, *FORMATS, *spark.VIEWS, *spark.CLOUDWATCH):
        assert f"`{name}`" in PAGE


def test_the_page_and_the_docstring_name_public_names():
    """Each name behind `spark.`, and each name that the docstring of `sqsqlite.spark` lists."""
    documented = set(re.findall(r"`(\w+)`", spark.__doc__))
    assert len(documented) > 15
    assert documented - {*spark.__all__} == set()
    programs = "".join(block.source for block in PROGRAMS.values())
    assert set(re.findall(r"\bspark\.(\w+)\(", programs)) - {*spark.__all__} == set()
