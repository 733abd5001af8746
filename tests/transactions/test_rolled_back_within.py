# SPDX-License-Identifier: Apache-2.0
"""Some errors make SQLite roll a transaction back.

If the application catches one, nothing continues without a transaction.
"""

import contextlib

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from sqsqlite.errors import StoreError
from sqsqlite.store.driver import dbapi
from tests.store.inspection import assert_whole, rows

COUNT = "SELECT count(*) FROM orders"
OTHER = "INSERT INTO orders (item) VALUES ('by itself')"
CONFLICT = "INSERT OR ROLLBACK INTO orders (id, item) VALUES (1, 'again')"


@pytest.fixture(autouse=True)
def stored(sqs):
    with sqs.transaction() as connection:
        connection.execute("INSERT INTO orders VALUES (1, 'lamp')")


def conflict(connection):
    connection.execute(CONFLICT)


def out_of_time(connection):
    """A time limit, as applications set it."""
    connection.set_progress_handler(lambda: 1, 10)
    try:
        connection.execute(
            "WITH n(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < 1e6) "
            "INSERT INTO orders SELECT n, 'x' FROM n"
        )
    finally:
        connection.set_progress_handler(None, 0)


@pytest.mark.parametrize("fail", [conflict, out_of_time], ids=lambda fail: fail.__name__)
@pytest.mark.parametrize(
    "go_on",
    [
        lambda connection: connection.execute(OTHER),
        lambda connection: connection.cursor().execute(OTHER),
        lambda connection: connection.executemany(OTHER, [()]),
        lambda connection: connection.blobopen("orders", "item", 1),
        lambda connection: None,
    ],
    ids=["execute", "cursor", "executemany", "blob", "nothing"],
)
def test_a_block_that_sqlite_rolled_back_does_not_continue(sqs, queue, fail, go_on):
    queue.send("work")
    [message] = queue.receive()
    with pytest.raises(StoreError, match="ended already"), sqs.transaction() as connection:  # noqa: PT012
        message.delete()
        with contextlib.suppress(dbapi.Error):
            fail(connection)
        go_on(connection)
    assert rows(sqs, COUNT) == [(1,)]
    assert len(queue) == 1
    message.delete()
    assert_whole(sqs)


@pytest.mark.parametrize("goes_on", [True, False])
def test_an_engines_transaction_that_sqlite_rolled_back_does_not_commit(sqs, queue, goes_on):
    queue.send("work")
    [message] = queue.receive()
    with pytest.raises(StoreError, match="ended already"), sqs.engine.begin() as connection:  # noqa: PT012
        message.delete(connection=connection)
        with contextlib.suppress(SQLAlchemyError):
            connection.execute(text(CONFLICT))
        if goes_on:
            connection.execute(text(OTHER))
    assert rows(sqs, COUNT) == [(1,)]
    assert len(queue) == 1
    with sqs.engine.begin() as connection:  # the turn was released
        connection.execute(text(OTHER))
        message.delete(connection=connection)
    assert len(queue) == 0
