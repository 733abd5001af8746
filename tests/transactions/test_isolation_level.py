# SPDX-License-Identifier: Apache-2.0
"""SQLAlchemy's isolation levels: without a transaction, rows and messages cannot share one."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.orm import Session

import sqsqlite
from sqsqlite import errors


@pytest.fixture
def sqs(tmp_path):
    with sqsqlite.connect(tmp_path / "queues.db", synchronous="OFF", busy_timeout=2) as sqs:
        with sqs.transaction() as connection:
            connection.execute("CREATE TABLE jobs (name TEXT)")
        yield sqs


def ask_engine(engine, level):
    return engine.execution_options(isolation_level=level).connect()


def ask_in_place(engine, level):
    engine.update_execution_options(isolation_level=level)
    return engine.connect()


def ask_connection(engine, level):
    connection = engine.connect()
    try:
        return connection.execution_options(isolation_level=level)
    except BaseException:
        connection.close()
        raise


def ask_session(engine, level):
    session = Session(engine)
    try:
        return session.connection(execution_options={"isolation_level": level})
    except BaseException:
        session.close()
        raise


ways = pytest.mark.parametrize("ask", [ask_engine, ask_in_place, ask_connection, ask_session])
engines = pytest.mark.parametrize("name", ["engine", "read_engine"])


@ways
@engines
@pytest.mark.parametrize("level", ["AUTOCOMMIT", "autocommit"])
def test_autocommit_is_refused_at_once(sqs, queue, ask, name, level):
    """Otherwise rows would be accepted and dropped at the end, while the turn is held."""
    with pytest.raises(errors.StoreError, match="an AUTOCOMMIT connection has no transaction"):
        ask(getattr(sqs, name), level)
    queue.send("the turn is free")
    with sqs.engine.begin() as connection:
        connection.execute(text("INSERT INTO jobs VALUES ('paint')"))
        queue.send("hi", connection=connection)
    assert len(queue) == 2


@ways
@pytest.mark.parametrize("level", ["SERIALIZABLE", "READ UNCOMMITTED", "read_uncommitted"])
def test_other_levels_work(sqs, queue, ask, level):
    """SQLite's transactions are serializable at every level."""
    with ask(sqs.engine, level) as connection:
        connection.execute(text("INSERT INTO jobs VALUES ('paint')"))
        queue.send("hi", connection=connection)
        connection.commit()
        queue.send("not kept", connection=connection)
    assert len(queue) == 1
    with ask(sqs.read_engine, level) as connection:
        assert connection.execute(text("SELECT name FROM jobs")).all() == [("paint",)]
        with pytest.raises(DBAPIError, match="readonly"):
            connection.execute(text("DELETE FROM jobs"))
    with sqs.transaction() as connection:
        assert connection.execute("PRAGMA read_uncommitted").fetchone() == (0,)


def test_level_unknown_to_sqlite_is_refused_by_sqlalchemy(sqs, queue):
    with pytest.raises(ArgumentError, match="REPEATABLE READ"):
        ask_engine(sqs.engine, "REPEATABLE READ")
    queue.send("hi")
    assert len(queue) == 1
