# SPDX-License-Identifier: Apache-2.0
import pytest

import sqsqlite
from sqsqlite.testing.files import lay


@pytest.fixture
def path(tmp_path):
    return tmp_path / "queues.db"


@pytest.fixture
def clock():
    return sqsqlite.ManualClock(patience=600.0)


@pytest.fixture
def sqs(path, clock):
    with sqsqlite.connect(lay(path), clock=clock) as opened:
        yield opened


@pytest.fixture
def queue(sqs):
    return sqs.create_queue("orders")
