# SPDX-License-Identifier: Apache-2.0
"""An application that has its own file, and puts queues into it."""

import pytest
from sqlalchemy import create_engine

import sqsqlite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "app.db"


@pytest.fixture
def sqs(path):
    with sqsqlite.connect(path, adopt=True) as opened:
        yield opened


@pytest.fixture
def queue(sqs):
    return sqs.create_queue("orders")


@pytest.fixture
def connection(path):
    """The application's, by the driver's own defaults."""
    opened = sqsqlite.dbapi.connect(path)
    opened.execute("CREATE TABLE IF NOT EXISTS items (name TEXT)")
    yield opened
    opened.close()


@pytest.fixture
def engine(path):
    """The application's, as docs/transactions.md advises."""
    made = create_engine(
        f"sqlite:///{path}", module=sqsqlite.dbapi, connect_args={"isolation_level": "IMMEDIATE"}
    )
    with made.begin() as begun:
        begun.exec_driver_sql("CREATE TABLE IF NOT EXISTS items (name TEXT)")
    yield made
    made.dispose()
