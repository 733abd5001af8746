# SPDX-License-Identifier: Apache-2.0
"""The demo on a machine ten times slower: its sum is right there too, within five minutes."""

import json
import os
import sys

import pytest

from tests.demo.slowly import run_slowly

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="stops process groups")
FIVE_MINUTES = 300  # s


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param(40, id="a part"),
        pytest.param(1_000_000, id="all", marks=[pytest.mark.slow]),
    ],
)
@pytest.mark.timeout(2 * FIVE_MINUTES)
def test_the_sum_is_right_on_a_machine_ten_times_slower(tmp_path, limit):
    program = "from sqsqlite.cli import main; main(prog_name='sqsqlite')"
    arguments = ["demo", "--limit", str(limit), "--no-report", "--output", "json"]
    done = run_slowly([sys.executable, "-c", program, *arguments], folder=tmp_path, hang_seconds=FIVE_MINUTES)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    totals = told["totals"]
    print(totals)
    assert told["faults"] == []
    assert totals["sent"] == totals["processed once"] + totals["dead letters"]
    assert told["received_again"]
