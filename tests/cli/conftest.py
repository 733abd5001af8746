# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from pathlib import Path

import pytest

import sqsqlite
from sqsqlite.cli.verbs import VERBS
from sqsqlite.testing.files import lay
from tests.cli.runs import Run, runner_on


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a file that does not exist yet. The current folder is the file's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "queues.db"


@pytest.fixture
def run(path: Path) -> Run:
    return runner_on(path)


@pytest.fixture
def sqs(path: Path) -> Iterator[sqsqlite.SQS]:
    """The file, opened by this process too, with a queue `orders`."""
    with sqsqlite.connect(lay(path), synchronous="OFF") as opened:
        opened.create_queue("orders")
        yield opened


@pytest.fixture(params=list(VERBS))
def verb(request: pytest.FixtureRequest) -> str:
    """Each command of the table."""
    found: str = request.param
    return found
