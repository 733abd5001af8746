# SPDX-License-Identifier: Apache-2.0
"""`mock_sqs` answers aiobotocore's clients: decorated, made before the mock, and their errors."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.tools import programs
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow


def test_a_users_suite(tmp_path):
    done = subprocess.run(
        [programs("aiobotocore") / "python", "-W", "error", Path(__file__).with_name("aiobotocore_suite.py")],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "('https://sqs.eu-west-1.amazonaws.com/123456789012/orders', ['hello'])",
        "['late']",
        "AWS.SimpleQueueService.NonExistentQueue",
    ]
