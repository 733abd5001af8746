# SPDX-License-Identifier: Apache-2.0
import pytest

import sqsqlite
from sqsqlite.testing.files import lay


@pytest.fixture
def clock():
    return sqsqlite.ManualClock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "app.db"


@pytest.fixture
def sqs(path, clock):
    with sqsqlite.connect(lay(path), clock=clock) as sqs:
        yield sqs


@pytest.fixture
def queue(sqs):
    return sqs.create_queue("orders")
