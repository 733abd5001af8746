# SPDX-License-Identifier: Apache-2.0
"""What the Makefile's targets run."""

import subprocess

from tests.packaging.checkout import ROOT


def test_arguments_of_make_quick_go_to_its_tests_alone():
    """The checks of style and types are targets of their own, whose ARGS they would be too."""
    command = ["make", "--dry-run", "quick", "ARGS=-k receive"]
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    given = [line for line in planned.splitlines() if "-k receive" in line and "make" not in line]
    assert any("tests/behaviour" in line for line in given)
    assert not [line for line in given if "mypy" in line or "ruff" in line]
