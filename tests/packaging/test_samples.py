# SPDX-License-Identifier: Apache-2.0
"""Each name in tests/conftest.py is a test: a stale one would add tests to `make test`, or remove some."""

import subprocess
import sys

import pytest

from tests.conftest import DEAR, ONE_AT_A_TIME, SAMPLES
from tests.packaging.checkout import ROOT


@pytest.fixture(scope="module")
def collected():
    """The names with parameters of all tests that are not slow, and of those that are."""
    found = {}
    for marked in ("not slow", "slow"):
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", marked],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        found[marked] = {line.partition("::")[2] for line in run.stdout.splitlines() if "::" in line}
    return found


@pytest.mark.slow
def test_each_dear_test_exists_and_is_slow(collected):
    assert DEAR - collected["slow"] == set()


@pytest.mark.slow
@pytest.mark.parametrize("function", SAMPLES)
def test_each_sample_exists_and_is_all_that_is_not_slow(collected, function):
    quick = {name for name in collected["not slow"] if name.startswith(f"{function}[")}
    assert quick == {f"{function}[{parameters}]" for parameters in SAMPLES[function]}


def test_each_folder_whose_tests_run_one_at_a_time_has_tests():
    assert [name for name in ONE_AT_A_TIME if not list((ROOT / "tests" / name).glob("test_*.py"))] == []
