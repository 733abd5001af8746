import pytest

import sqsqlite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "queues.db"


@pytest.fixture
def clock():
    return sqsqlite.ManualClock()


@pytest.fixture
def sqs(path, clock):
    with sqsqlite.connect(path, clock=clock) as opened:
        yield opened


@pytest.fixture
def queue(sqs):
    return sqs.create_queue("orders")
