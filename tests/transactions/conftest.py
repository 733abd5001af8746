# SPDX-License-Identifier: Apache-2.0
import pytest

import sqsqlite
from sqsqlite.testing.files import lay


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shop.db"


@pytest.fixture
def clock():
    return sqsqlite.ManualClock(patience=600.0)


@pytest.fixture
def sqs(path, clock):
    """A file with the application's table of orders in addition to the queues."""
    with sqsqlite.connect(lay(path), clock=clock) as opened:
        with opened.transaction() as connection:
            connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)")
        yield opened


@pytest.fixture
def queue(sqs):
    return sqs.create_queue("orders", visibility_timeout=30)
