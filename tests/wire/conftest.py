import pytest

import sqsqlite
from sqsqlite.service.opening import open_store


@pytest.fixture
def clock():
    return sqsqlite.ManualClock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "queues.db"


@pytest.fixture
def store(path, clock):
    """The file, opened as a server opens it."""
    opened = open_store(path, synchronous="NORMAL", clock=clock)
    yield opened
    opened.close()
