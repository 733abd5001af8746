# SPDX-License-Identifier: Apache-2.0
import pytest

import sqsqlite
from sqsqlite.payloads import PayloadStore, extend
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
    with sqsqlite.connect(lay(path), synchronous="OFF", clock=clock) as opened:
        with opened.transaction() as connection:
            connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)")
        yield opened


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "payloads"


@pytest.fixture
def store(folder):
    return PayloadStore(folder, threshold=1_000)


@pytest.fixture
def plain(sqs):
    """The queue as it is without a store."""
    return sqs.create_queue("orders", visibility_timeout=30)


@pytest.fixture
def queue(plain, store):
    return extend(plain, store)


@pytest.fixture
def kept(folder):
    """The payloads in the folder, with their content."""

    def kept():
        return {found.name: found.read_text("utf-8") for found in folder.rglob("*") if found.is_file()}

    return kept
