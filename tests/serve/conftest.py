# SPDX-License-Identifier: Apache-2.0
import pytest

import sqsqlite
from sqsqlite.actions.opening import open_store
from sqsqlite.testing.files import lay


@pytest.fixture
def clock():
    return sqsqlite.ManualClock(patience=600.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "queues.db"


@pytest.fixture
def store(path, clock):
    """The file, opened as a server opens it."""
    opened = open_store(lay(path), synchronous="OFF", clock=clock)
    yield opened
    opened.close()
