# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest's for runs of mutants: which tests failed, and whether a check of theirs failed or the code broke.

Writes a JSON object to the path in CONTRACT_VERDICT: test (without parameters) -> "passed", "refuted" or what broke.
"""

import json
import os
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path

import pytest
from _pytest.outcomes import Failed

import sqsqlite
from sqsqlite.errors import SQSError

try:
    from botocore.exceptions import BotoCoreError, ClientError
except ModuleNotFoundError:
    BotoCoreError = ClientError = SQSError

# A check that failed, an answer other than the expected one, or none in time.
_REFUTATIONS = (AssertionError, Failed, SQSError, ClientError, BotoCoreError, FutureTimeout)

_verdicts: dict[str, str] = {}


def pytest_configure(config):
    root = Path(config.rootpath).resolve()
    assert root in Path(sqsqlite.__file__).resolve().parents, (
        f"{sqsqlite.__file__} is not the tree under test"
    )


def pytest_collection_modifyitems(items):
    """Run the tests through one door only: the code behind all doors is the same."""
    items[:] = [item for item in items if _door_of(item) in (None, "client")]


def _door_of(item):
    return item.callspec.params.get("door") if hasattr(item, "callspec") else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    test = item.nodeid.partition("[")[0]
    _verdicts.setdefault(test, "passed")
    if report.failed and _verdicts[test] != "refuted":
        _verdicts[test] = _judge(call)
    return report


def _judge(call):
    error = call.excinfo.value
    at = call.excinfo.traceback[-1].path
    # [message] = queue.receive() and answer["Failed"] are checks too: they fail in the test's own line.
    in_a_test = isinstance(at, Path) and "tests" in at.parts
    if call.when == "call" and (isinstance(error, _REFUTATIONS) or in_a_test):
        return "refuted"
    return f"{call.when}: {type(error).__name__}: {error}"[:300]


def pytest_sessionfinish():
    Path(os.environ["CONTRACT_VERDICT"]).write_text(json.dumps(_verdicts), encoding="utf-8")
