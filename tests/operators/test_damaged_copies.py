# SPDX-License-Identifier: Apache-2.0
"""Any damage ends in an error of ours: never in a bare error of the driver, a crash or a hang."""

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.operators.damaged_copies import DAMAGES, make
from tests.packaging.checkout import ROOT

CHUNK = 50


def use(folder: Path, first: int, count: int) -> list[dict]:
    """Use damaged copies in a process of its own. Returns a line for each copy."""
    # A signal would be a negative exit code. The program ends a hang itself, with a traceback.
    run = subprocess.run(
        [sys.executable, "-m", "tests.operators.damaged_copies", str(folder), str(first), str(count)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert (run.returncode, len(lines)) == (0, count), f"seed {first + len(lines)}: {run.stderr[-4000:]}"
    assert "Traceback" not in run.stderr, run.stderr[-4000:]  # a traceback of a thread
    return lines


def judge(lines: list[dict]) -> Counter:
    """Assert that all errors are ours. Returns how often each showed the damage."""
    wrong = [(line["seed"], line["damage"], line["wrong"][0]) for line in lines if line["wrong"]]
    assert wrong == [], f"{len(wrong)} copies, the first: {wrong[0]}"
    return Counter(kind for line in lines for kind in line["errors"])


@pytest.fixture
def folder(tmp_path):
    make(tmp_path / "template.db")
    return tmp_path


@pytest.mark.timeout(900)
def test_a_few_damaged_copies_end_in_errors_of_ours(folder):
    """One of each kind of damage."""
    lines = use(folder, 0, len(DAMAGES))
    assert judge(lines)["Corrupt"] > 0
    assert sum(line["dumped"] >= 150 for line in lines) >= len(lines) / 3


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_1000_damaged_copies_end_in_errors_of_ours(folder):
    with ThreadPoolExecutor(2) as pool:
        chunks = list(pool.map(lambda first: use(folder, first, CHUNK), range(0, 1000, CHUNK)))
    lines = [line for chunk in chunks for line in chunk]
    assert judge(lines)["Corrupt"] > 0
    # A copy that opens and has lost no page of bodies gives back all its messages.
    assert sum(line["dumped"] >= 150 for line in lines) >= 500
