# SPDX-License-Identifier: Apache-2.0
"""The application's settings of its connection affect its own statements, not the queue's, and no later user's."""

import sqlite3

import pytest
from sqlalchemy import event, text

import sqsqlite
from sqsqlite import errors
from sqsqlite.store.driver import dbapi


@pytest.fixture
def sqs(tmp_path):
    with sqsqlite.connect(tmp_path / "queues.db", busy_timeout=2) as sqs:
        with sqs.transaction() as connection:
            connection.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT)")
            connection.execute("INSERT INTO jobs (name) VALUES ('paint')")
        yield sqs


def use_everything(sqs, queue):
    """Make every kind of call: writes, reads, refusals."""
    sqs.create_queue("more.fifo", fifo=True).send("in order", group_id="g", deduplication_id="d")
    queue.send_many(["a", "b", "c", {"body": "d", "attributes": {"n": 1}}])
    received = queue.receive(max_messages=3)
    received[0].delete()
    received[1].change_visibility(0)
    assert len(queue) == 3
    assert [each.name for each in sqs.stats()] == ["more.fifo", "orders"]
    assert queue.attributes["ApproximateNumberOfMessages"] == "2"
    assert [message.body for message in queue.peek()]
    with pytest.raises(errors.InvalidParameterValue):
        queue.send("x", delay=901)
    sqs.queue("more.fifo").delete()


def dictionary(cursor, row):
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


SETTINGS = {
    "Row": lambda connection: setattr(connection, "row_factory", dbapi.Row),
    "dictionary": lambda connection: setattr(connection, "row_factory", dictionary),
    "bytes": lambda connection: setattr(connection, "text_factory", bytes),
    "deferred": lambda connection: setattr(connection, "isolation_level", "DEFERRED"),
    "implicit": lambda connection: setattr(connection, "isolation_level", ""),
    "query_only": lambda connection: connection.execute("PRAGMA query_only = ON"),
    "busy_timeout": lambda connection: connection.execute("PRAGMA busy_timeout = 0"),
    "all": lambda connection: [set_(connection) for name, set_ in SETTINGS.items() if name != "all"],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_setting_of_a_block_does_not_reach_the_queue(sqs, queue, name):
    with sqs.transaction() as connection:
        SETTINGS[name](connection)
        use_everything(sqs, queue)
    assert len(queue) == 3
    with sqs.transaction() as connection:
        assert connection.execute("SELECT name FROM jobs").fetchall() == [("paint",)]
        connection.execute("INSERT INTO jobs (name) VALUES ('dry')")


@pytest.mark.parametrize("name", SETTINGS)
def test_setting_by_a_listener_does_not_reach_the_queue(sqs, queue, name):
    """The usual place for settings under SQLAlchemy."""
    event.listen(sqs.engine, "connect", lambda connection, _: SETTINGS[name](connection))
    with sqs.engine.begin() as connection:
        queue.send("hi", connection=connection)
        [message] = queue.receive(connection=connection)
        message.delete(connection=connection)
        with pytest.raises(errors.InvalidParameterValue):
            queue.send("x", delay=901, connection=connection)
        queue.send("kept", connection=connection)
    assert len(queue) == 1
    with sqs.transaction() as raw:
        assert raw.execute("SELECT name FROM jobs").fetchall() == [("paint",)]
        raw.execute("INSERT INTO jobs (name) VALUES ('dry')")


def test_settings_serve_the_applications_statements_around_the_queues(sqs, queue):
    with sqs.transaction() as connection:
        connection.row_factory = dbapi.Row
        connection.text_factory = bytes
        connection.execute("PRAGMA query_only = ON")
        before = connection.execute("SELECT name FROM jobs")
        queue.send("hi")
        after = connection.execute("SELECT name FROM jobs")
        assert [row["name"] for row in (*before, *after)] == [b"paint", b"paint"]
        with pytest.raises(dbapi.OperationalError, match="readonly"):
            connection.execute("DELETE FROM jobs")
    assert len(queue) == 1


def test_isolation_level_has_no_effect(sqs, queue):
    """Otherwise the driver would begin and commit by itself."""
    with sqs.transaction() as connection:
        connection.isolation_level = "EXCLUSIVE"
        connection.execute("CREATE TABLE more (id INTEGER)")
        assert connection.isolation_level is None
        assert connection.in_transaction
    with sqs.engine.connect() as connection:
        raw = connection.connection.driver_connection
        raw.isolation_level = ""
        raw.execute("DELETE FROM jobs WHERE id = 7")
        assert not raw.in_transaction


def test_autocommit_attribute_is_refused(sqs, queue):
    """Since Python 3.12 a change of it ends the transaction."""
    with pytest.raises(errors.StoreError, match="autocommit"), sqs.transaction() as connection:  # noqa: PT012
        queue.send("undone")
        connection.autocommit = True
    assert len(queue) == 0


PRAGMAS = {
    "synchronous": ("OFF", 2),
    "busy_timeout": ("0", 2000),
    "query_only": ("ON", 0),
    "foreign_keys": ("ON", 0),
    "recursive_triggers": ("ON", 0),
    "wal_autocheckpoint": ("1", 16384),
    "journal_size_limit": ("0", 33554432),
    "locking_mode": ("EXCLUSIVE", "normal"),
    "case_sensitive_like": ("ON", None),
    "read_uncommitted": ("ON", 0),
}


@pytest.mark.parametrize("name", PRAGMAS)
@pytest.mark.parametrize("engine", ["engine", "read_engine"])
def test_pragma_does_not_outlive_its_connection(sqs, queue, name, engine):
    value, expected = PRAGMAS[name]
    with getattr(sqs, engine).connect() as connection:
        raw = connection.connection.driver_connection
        raw.execute(f"PRAGMA {name} = {value}").fetchall()
    with sqs.transaction() as connection:
        found = connection.execute(f"PRAGMA {name}").fetchone()
        assert found is None if expected is None else found == (expected,)
        assert connection.execute("SELECT 'A' LIKE 'a'").fetchone() == (1,)
        queue.send("hi")


def test_commit_is_synced_although_a_listener_lowered_the_level(sqs, queue):
    """The answer to a send must hold, whatever durability the application wants for its own rows."""
    event.listen(sqs.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = OFF"))
    for _ in range(2):
        with sqs.engine.connect() as connection:
            for _ in range(2):
                with connection.begin():
                    queue.send("hi", connection=connection)
                    assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
                connection.connection.driver_connection.execute("PRAGMA /* again */ synchronous(OFF)")


@pytest.mark.parametrize(
    "leave",
    [
        lambda connection, tmp_path: connection.execute("CREATE TEMP TABLE jobs (name)"),
        lambda connection, tmp_path: connection.execute(
            "/* mine */ create temporary view jobs AS SELECT 'x' AS name"
        ),
        lambda connection, tmp_path: connection.execute("CREATE TABLE temp.jobs (name)"),
        lambda connection, tmp_path: connection.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),)),
        lambda connection, tmp_path: connection.create_function("upper", 1, lambda text: "mine"),
        lambda connection, tmp_path: connection.create_collation("nocase", lambda one, other: -1),
        lambda connection, tmp_path: connection.set_authorizer(lambda *_: sqlite3.SQLITE_OK),
        lambda connection, tmp_path: connection.set_progress_handler(lambda: 0, 1),
        lambda connection, tmp_path: connection.set_trace_callback([].append),
    ],
    ids=["table", "view", "temp.", "attach", "function", "collation", "authorizer", "progress", "trace"],
)
def test_nothing_is_left_on_the_connection_for_the_next_block(sqs, queue, leave, tmp_path):
    with sqs.transaction() as connection:
        leave(connection, tmp_path)
    with sqs.transaction() as another:
        assert another is not connection
        assert another.execute("SELECT upper(name) FROM jobs").fetchall() == [("PAINT",)]
        assert [row[1] for row in another.execute("PRAGMA database_list")] == ["main"]
        queue.send("hi")
    assert len(queue) == 1


@pytest.mark.parametrize(
    "refuse",
    [
        lambda connection: connection.set_authorizer(lambda *_: sqlite3.SQLITE_DENY),
        lambda connection: connection.set_progress_handler(lambda: 1, 1),
    ],
    ids=["authorizer", "progress"],
)
def test_block_that_refuses_everything_is_rolled_back(sqs, queue, refuse):
    with pytest.raises(dbapi.Error), sqs.transaction() as connection:  # noqa: PT012
        queue.send("undone")
        refuse(connection)
        connection.execute("DELETE FROM jobs")
    queue.send("next")
    assert len(queue) == 1


def test_connection_is_kept_when_nothing_was_left_on_it(sqs, queue):
    """Opening one costs as much as many statements."""
    seen = set()
    for _ in range(3):
        with sqs.transaction() as connection:
            connection.row_factory = dbapi.Row
            connection.text_factory = bytes
            connection.execute(
                "SELECT 'pragmatic', attached FROM (SELECT 'temperature' AS attached)"
            ).fetchall()
            connection.execute("PRAGMA user_version").fetchall()
            queue.send("hi")
        seen.add(id(connection))
        with sqs.engine.begin() as sqlalchemys:
            queue.send("hi", connection=sqlalchemys)
            seen.add(id(sqlalchemys.connection.driver_connection))
        with sqs.read_engine.connect() as reader:
            reader.execute(text("SELECT 1"))
            seen.add(id(reader.connection.driver_connection))
    assert len(seen) == 1


def test_foreign_keys_keep_sqlites_default_for_the_application(tmp_path):
    """Off by default: turned on, they would refuse the application's inserts and delete its rows in cascades."""
    path = tmp_path / "shop.db"
    shop = dbapi.connect(str(path))
    shop.executescript(
        """
        CREATE TABLE customers (id INTEGER PRIMARY KEY);
        CREATE TABLE orders (customer REFERENCES customers (id) ON DELETE CASCADE);
        INSERT INTO customers VALUES (1);
        INSERT INTO orders VALUES (1);
        """
    )
    shop.close()
    with sqsqlite.connect(path, adopt=True) as sqs:
        with sqs.transaction() as connection:
            connection.execute("INSERT INTO orders VALUES (7)")
        with sqs.engine.begin() as connection:
            connection.execute(text("DELETE FROM customers"))
            assert connection.execute(text("SELECT customer FROM orders")).scalars().all() == [1, 7]
