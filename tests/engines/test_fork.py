# SPDX-License-Identifier: Apache-2.0
"""A process forks while the application has connections of its own: idle ones serve parent and child."""

import os
import sqlite3

import pytest

import sqsqlite
from sqsqlite import dbapi
from sqsqlite.store import connections
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Child

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    monkeypatch.setattr(connections, "FORK_PATIENCE", 300)


def test_idle_connection_serves_both(sqs, queue, connection):
    def work():
        queue.send("child", connection=connection)
        connection.execute("INSERT INTO items VALUES ('child')")
        connection.commit()
        return "done"

    assert Child(work).outcome() == "done"
    queue.send("parent", connection=connection)
    connection.commit()
    assert bodies(queue) == ["child", "parent"]
    assert connection.execute("SELECT name FROM items").fetchall() == [("child",)]
    assert_whole(sqs)


def test_engine_with_its_pool_serves_both(queue, engine):
    def work():
        with engine.begin() as begun:
            begun.exec_driver_sql("INSERT INTO items VALUES ('child')")
            queue.send("child", connection=begun)
        return "done"

    assert Child(work).outcome() == "done"
    with engine.begin() as begun:
        queue.send("parent", connection=begun)
    assert bodies(queue) == ["child", "parent"]


def settings_of(connection):
    return (
        connection.execute("SELECT PRAGMA_foreign_keys.foreign_keys FROM PRAGMA_foreign_keys").fetchone()[0],
        connection.execute("PRAGMA busy_timeout").fetchone()[0],
        connection.execute("PRAGMA cache_size").fetchone()[0],
        connection.execute("SELECT twice(4)").fetchone()[0],
        connection.execute("SELECT 'B' = 'b' COLLATE lax").fetchone()[0],
        connection.execute("SELECT 'a' AS name").fetchone()["name"],
        connection.isolation_level,
        connection.getlimit(9) if hasattr(connection, "getlimit") else None,
    )


def test_settings_hold_in_parent_and_child(connection):
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("  pragma main.cache_size(-777)")
    connection.execute("PRAGMA busy_timeout = 1000")
    connection.execute("PRAGMA busy_timeout = 1234")
    connection.create_function("twice", 1, lambda value: value * 3)
    connection.create_function("twice", 1, lambda value: value * 2, deterministic=True)
    connection.create_collation(
        "lax", lambda one, other: (one.lower() > other.lower()) - (one.lower() < other.lower())
    )
    connection.row_factory = dbapi.Row
    connection.isolation_level = None
    if hasattr(connection, "setlimit"):
        connection.setlimit(9, 50)
    before = settings_of(connection)
    assert before[:7] == (1, 1234, -777, 8, 1, "a", None)
    assert Child(lambda: settings_of(connection) == before).outcome() == "True"
    assert settings_of(connection) == before


def test_a_setting_that_sqlite_has_ignored_does_not_hold_after_a_fork(connection):
    """Within a transaction SQLite leaves foreign keys as they are."""
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("BEGIN")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("COMMIT")
    Child(lambda: None).outcome()
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_settings_of_the_file_are_not_set_again(path, connection):
    connection.execute("PRAGMA user_version = 5")
    other = dbapi.connect(path)
    other.execute("PRAGMA user_version = 6")
    other.close()
    Child(lambda: None).outcome()
    assert connection.execute("PRAGMA user_version").fetchone() == (6,)


def test_a_chain_of_forks_keeps_the_settings(connection):
    connection.execute("PRAGMA foreign_keys = ON")

    def generation(left):
        if left:
            return Child(lambda: generation(left - 1)).outcome()
        return connection.execute("PRAGMA foreign_keys").fetchone()[0]

    assert generation(3) == "1"


@pytest.mark.parametrize("state", ["transaction", "cursor", "temporary table", "attached file"])
def test_connection_in_use_stays_the_parents(path, tmp_path, sqs, queue, connection, state):
    connection.isolation_level = None
    cursor = None
    connection.execute("INSERT INTO items VALUES ('a'), ('b')")
    if state == "transaction":
        connection.execute("BEGIN IMMEDIATE")
        queue.send("hi", connection=connection)
    elif state == "cursor":
        cursor = connection.execute("SELECT name FROM items ORDER BY name")
        assert cursor.fetchone() == ("a",)
    elif state == "temporary table":
        connection.execute("CREATE TEMP TABLE scratch AS SELECT 7 AS number")
    else:
        connection.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),))

    assert "forked while" in Child(lambda: connection.execute("SELECT 1")).outcome()
    assert "forked while" in Child(lambda: queue.send("child")).outcome()
    assert "forked while" in Child(lambda: dbapi.connect(path)).outcome()
    assert "forked while" in Child(connection.__enter__).outcome()

    if state == "transaction":
        connection.execute("COMMIT")
        assert bodies(queue) == ["hi"]
    elif state == "cursor":
        assert cursor.fetchall() == [("b",)]
    elif state == "temporary table":
        assert connection.execute("SELECT number FROM scratch").fetchone() == (7,)
    else:
        assert len(connection.execute("PRAGMA database_list").fetchall()) == 3 - (state == "attached file")
    queue.send("parent")


def test_connection_of_the_driver_itself_keeps_its_file_from_the_child(path, queue):
    if dbapi.sqlite_version == sqlite3.sqlite_version:
        pytest.skip("sqlite3 is the one copy here")
    import pysqlite3

    plain = pysqlite3.connect(str(path))
    assert "forked while" in Child(lambda: queue.send("child")).outcome()
    plain.close()
    assert Child(lambda: queue.send("child").message_id).outcome()
    assert bodies(queue) == ["child"]


def test_a_file_that_has_gone_is_the_drivers_error_and_then_as_before(path, connection):
    Child(lambda: None).outcome()
    hidden = path.with_name("hidden")
    path.rename(hidden)
    os.mkdir(path)
    with pytest.raises(dbapi.OperationalError):
        connection.execute("SELECT 1")
    os.rmdir(path)
    hidden.rename(path)
    assert connection.execute("SELECT count(*) FROM items").fetchone() == (0,)


def test_another_thread_is_still_refused_after_a_fork(connection):
    from tests.store.waiting import Task

    Child(lambda: None).outcome()
    with pytest.raises(dbapi.ProgrammingError, match="thread"):
        Task(lambda: connection.execute("SELECT 1")).outcome()
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_closed_connection_stays_closed(connection):
    connection.close()
    Child(lambda: None).outcome()
    with pytest.raises(dbapi.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_connection_in_memory_keeps_its_rows():
    inside = dbapi.connect(":memory:")
    inside.execute("CREATE TABLE t AS SELECT 7 AS x")
    assert Child(lambda: inside.execute("SELECT x FROM t").fetchone()).outcome() == "(7,)"
    assert inside.execute("SELECT x FROM t").fetchone() == (7,)


def test_no_fork_leaves_a_second_connection_behind(path, connection):
    from sqsqlite.store import foreign

    for _ in range(5):
        Child(lambda: None).outcome()
        connection.execute("SELECT 1").fetchone()
    assert foreign.open_count(foreign.identity(path)) == 1
    assert len(foreign.descriptors(foreign.identity(path))) == 1
    with sqsqlite.connect(path, adopt=True) as sqs:
        sqs.create_queue("orders").send("hi")
