# SPDX-License-Identifier: Apache-2.0
"""Events within `with sqs.transaction()` other than plain statements."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

import sqsqlite
from sqsqlite import errors


@pytest.fixture
def sqs(tmp_path):
    with sqsqlite.connect(tmp_path / "queues.db", synchronous="OFF", busy_timeout=2) as sqs:
        yield sqs


@pytest.mark.parametrize(
    "end",
    [
        lambda connection: connection.commit(),
        lambda connection: connection.rollback(),
        lambda connection: connection.close(),
        lambda connection: connection.executescript("SELECT 1;"),
        lambda connection: connection.__enter__(),
    ],
    ids=["commit", "rollback", "close", "executescript", "with"],
)
def test_the_connection_of_a_block_cannot_end_the_block(sqs, queue, end):
    """The block keeps its promise: all of it, or nothing when it raises."""
    with pytest.raises(errors.StoreError, match="the block commits"), sqs.transaction() as connection:  # noqa: PT012
        queue.send("before")
        end(connection)
    assert len(queue) == 0
    queue.send("afterwards")
    assert len(queue) == 1


@pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK"])
def test_nothing_joins_a_transaction_that_sql_has_ended(sqs, queue, statement):
    with pytest.raises(errors.StoreError, match="ended"), sqs.transaction() as connection:  # noqa: PT012
        connection.execute(statement)
        queue.send("too late")
    assert len(queue) == 0


def test_block_that_sql_has_ended_is_an_error_at_its_end(sqs, queue):
    with pytest.raises(errors.StoreError, match="ended already"), sqs.transaction() as connection:  # noqa: PT012
        queue.send("undone")
        connection.execute("ROLLBACK")
    assert len(queue) == 0


def test_connection_closed_in_a_block_is_not_lent_twice(sqs, queue):
    with contextlib.suppress(errors.StoreError), sqs.transaction() as connection:
        connection.close()
    with sqs.transaction() as one, sqs.read_engine.connect() as other:
        assert other.connection.driver_connection is not one


def test_block_left_in_another_thread_is_rolled_back(sqs, queue):
    """A web framework may do that with a dependency that yields. Neither thread is stuck with the block."""
    with ThreadPoolExecutor(1) as entering, ThreadPoolExecutor(1) as leaving:
        block = sqs.transaction()
        entering.submit(block.__enter__).result()
        entering.submit(queue.send, "inside").result()
        with pytest.raises(errors.StoreError, match="left in another"):
            leaving.submit(block.__exit__, None, None, None).result()
        entering.submit(queue.send, "afterwards").result()
        leaving.submit(queue.send, "afterwards").result()
    assert [message.body for message in queue.peek()] == ["afterwards", "afterwards"]


def test_block_writes_after_the_read_engine_was_used(sqs, queue):
    with sqs.read_engine.connect() as connection:
        connection.execute(text("SELECT 1"))
    with sqs.transaction():
        queue.send("paint the fence")
    assert len(queue) == 1
