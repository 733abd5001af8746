# SPDX-License-Identifier: Apache-2.0
"""Cursors on the application's connections end with their transaction, even while references to them exist."""

import contextlib

import pytest
from sqlalchemy import text

import sqsqlite
from sqsqlite import errors

NUMBERS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
SELECT i, name FROM n, sqs_queues
"""


@pytest.fixture
def sqs(tmp_path):
    with sqsqlite.connect(tmp_path / "queues.db", synchronous="OFF", busy_timeout=2) as sqs:
        yield sqs


def relay(sqs):
    """Read the first of many rows in a block, as an outbox relay does. Returns the references to the cursor."""
    with sqs.transaction() as connection:
        rows = connection.execute(NUMBERS)
        next(rows)
    return rows


def wal_begins_again(sqs):
    """Whether no snapshot holds the WAL."""
    with sqs.engine.connect() as connection:
        raw = connection.connection.driver_connection
        return raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def test_unread_cursor_does_not_keep_the_next_block_from_beginning(sqs, queue):
    held = relay(sqs)
    queue.send("written behind the cursor's snapshot")
    with sqs.transaction():
        queue.send("in a block")
    assert len(queue) == 2
    assert wal_begins_again(sqs)
    del held


def test_unread_cursor_does_not_keep_sqlalchemy_from_connecting(sqs, queue):
    held = relay(sqs)
    with sqs.engine.begin() as connection:
        queue.send("hi", connection=connection)
    assert len(queue) == 1
    del held


def test_unread_cursor_of_a_failed_block_does_not_hold_the_wal(sqs, queue):
    held = []
    with contextlib.suppress(KeyError), sqs.transaction() as connection:
        for row in (rows := connection.execute(NUMBERS)):
            held.append(rows)
            raise KeyError(row)
    queue.send("next")
    assert relay(sqs)
    assert wal_begins_again(sqs)


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
@pytest.mark.parametrize("engine", ["engine", "read_engine"])
def test_unread_result_of_sqlalchemy_ends_with_its_transaction(sqs, queue, engine, end):
    with getattr(sqs, engine).connect() as connection:
        result = connection.execute(text(NUMBERS))
        result.fetchone()
        getattr(connection, end)()
        queue.send("written behind the cursor's snapshot")
        with sqs.engine.begin() as other:
            queue.send("hi", connection=other)
        assert wal_begins_again(sqs)
    assert len(queue) == 2
    del result


def test_raw_cursor_under_sqlalchemy_ends_with_its_transaction(sqs, queue):
    with sqs.engine.begin() as connection:
        held = connection.connection.cursor()
        held.execute(NUMBERS)
        held.fetchone()
    queue.send("written behind the cursor's snapshot")
    with sqs.transaction():
        queue.send("hi")
    assert wal_begins_again(sqs)


@pytest.mark.parametrize(
    "use",
    [
        lambda cursor: cursor.fetchone(),
        lambda cursor: cursor.fetchmany(2),
        lambda cursor: cursor.fetchall(),
        next,
        list,
        lambda cursor: cursor.execute("SELECT 1"),
        lambda cursor: cursor.executemany("DELETE FROM sqs_queues WHERE id = ?", [(1,)]),
        lambda cursor: cursor.executescript("SELECT 1"),
    ],
)
def test_cursor_used_after_its_block_is_refused(sqs, queue, use):
    cursor = relay(sqs)
    with pytest.raises(errors.StoreError, match="was reading has ended"):
        use(cursor)
    cursor.close()
    with sqs.transaction(), pytest.raises(errors.StoreError, match="was reading has ended"):
        use(cursor)
    assert len(sqs.queues()) == 1


def test_loop_that_leaves_its_block_is_refused_and_not_ended_early(sqs, queue):
    """A missing row would look like the end of the rows."""

    def rows():
        with sqs.transaction() as connection:
            cursor = connection.execute(NUMBERS)
        yield from cursor

    with pytest.raises(errors.StoreError, match="was reading has ended"):
        list(rows())


@pytest.mark.parametrize(
    "use",
    [
        lambda connection: connection.execute("DELETE FROM sqs_queues"),
        lambda connection: connection.executemany("DELETE FROM sqs_queues WHERE id = ?", [(1,)]),
        lambda connection: connection.executescript("DELETE FROM sqs_queues"),
        lambda connection: connection.cursor(),
    ],
    ids=["execute", "executemany", "executescript", "cursor"],
)
def test_connection_used_after_its_block_is_refused(sqs, queue, use):
    """It would run in no transaction, and without the turn."""
    with sqs.transaction() as connection:
        pass
    with pytest.raises(errors.StoreError, match="after its end"):
        use(connection)
    assert len(sqs.queues()) == 1


def test_script_on_a_cursor_does_not_end_the_block(sqs, queue):
    with pytest.raises(errors.StoreError, match="the block commits"), sqs.transaction() as connection:  # noqa: PT012
        queue.send("before")
        connection.cursor().executescript("SELECT 1;")
    assert len(queue) == 0


def test_rows_written_by_an_unread_statement_are_kept(sqs, queue):
    with sqs.transaction() as connection:
        connection.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY)")
    with sqs.transaction() as connection:
        held = connection.execute("INSERT INTO jobs VALUES (1), (2), (3) RETURNING id")
        assert held.fetchone() == (1,)
    with sqs.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (3,)
    assert held.description is not None


def test_cursor_of_the_applications_own_class_ends_too(sqs, queue):
    class Rows(sqsqlite.store.driver.dbapi.Cursor):
        pass

    with sqs.transaction() as connection:
        held = connection.cursor(Rows)
        held.execute(NUMBERS)
        held.fetchone()
    queue.send("written behind the cursor's snapshot")
    with sqs.transaction():
        queue.send("hi")
    assert wal_begins_again(sqs)


def test_many_unread_cursors_end_with_their_transaction(sqs, queue):
    with sqs.transaction() as connection:
        held = [connection.execute(NUMBERS) for _ in range(500)]
        assert [cursor.fetchone()[0] for cursor in held] == [1] * 500
    queue.send("written behind their snapshot")
    with sqs.transaction():
        queue.send("hi")
    assert wal_begins_again(sqs)
