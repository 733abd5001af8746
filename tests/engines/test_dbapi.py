# SPDX-License-Identifier: Apache-2.0
"""sqsqlite.dbapi: the driver as a DB-API module, whose connections share a file and transactions with a queue."""

import gc
import os
import threading
import time
from urllib.parse import quote

import pytest

import sqsqlite
from sqsqlite import dbapi
from sqsqlite.errors import (
    Busy,
    LeaseLost,
    QueueDoesNotExist,
    SecondSQLiteCopy,
    StoreError,
    TransactionInProgress,
)
from sqsqlite.store import driver, foreign
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Program
from tests.store.waiting import Task, until


def items(connection):
    return [name for (name,) in connection.execute("SELECT name FROM items ORDER BY name")]


# --- the module


def test_module_has_the_drivers_names_and_its_own_connect():
    assert (dbapi.apilevel, dbapi.paramstyle) == ("2.0", "qmark")
    assert issubclass(dbapi.IntegrityError, dbapi.Error)
    assert dbapi.sqlite_version == driver.dbapi.sqlite_version
    assert set(dbapi.__all__) <= set(dir(dbapi))
    namespace = {}
    exec("from sqsqlite.dbapi import *", namespace)
    assert namespace["connect"] is dbapi.connect
    assert namespace["Row"] is driver.dbapi.Row


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError):
        dbapi.no_such_name  # noqa: B018 - the access is the test


def test_arguments_are_the_drivers_in_its_order(path):
    opened = dbapi.connect(path, 1.5, dbapi.PARSE_DECLTYPES, None)
    assert opened.isolation_level is None
    assert opened.execute("PRAGMA busy_timeout").fetchone() == (1500,)
    opened.close()


def test_connection_in_memory_is_the_drivers():
    for name, options in ((":memory:", {}), ("", {}), ("file::memory:", {"uri": True})):
        opened = dbapi.connect(name, **options)
        opened.execute("CREATE TABLE t (x)")
        assert opened.identity is None
        opened.close()


@pytest.mark.parametrize("spelled", [str, os.fsencode, lambda path: path, os.path.relpath])
def test_a_file_is_known_by_each_spelling(path, spelled):
    opened = dbapi.connect(spelled(path))
    assert opened.identity == foreign.identity(path)
    opened.close()


def test_a_file_is_known_by_its_uri(tmp_path):
    path = tmp_path / "a b?c#d%41.db"
    sqsqlite.connect(path).close()
    opened = dbapi.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True)
    assert opened.identity == foreign.identity(path)
    with pytest.raises(dbapi.OperationalError, match="readonly"):
        opened.execute("CREATE TABLE t (x)")
    opened.close()


def test_errors_of_opening_are_the_drivers(tmp_path):
    with pytest.raises(dbapi.OperationalError, match="unable to open"):
        dbapi.connect(tmp_path / "missing" / "app.db")
    with pytest.raises(TypeError):
        dbapi.connect(17.5)


def test_factories_derive_from_the_modules_classes(path):
    class Mine(dbapi.Connection):
        pass

    opened = dbapi.connect(path, factory=Mine)
    assert type(opened) is Mine
    opened.close()
    with pytest.raises(TypeError, match=r"sqsqlite\.dbapi\.Connection"):
        dbapi.connect(path, factory=driver.dbapi.Connection)
    opened = dbapi.connect(path)
    with pytest.raises(TypeError, match=r"sqsqlite\.dbapi\.Cursor"):
        opened.cursor(driver.dbapi.Cursor)
    opened.close()


def test_another_thread_is_refused_unless_it_is_allowed(path):
    opened = dbapi.connect(path)
    with pytest.raises(dbapi.ProgrammingError, match="check_same_thread=False"):
        Task(lambda: opened.execute("SELECT 1")).outcome()
    opened.close()
    opened = dbapi.connect(path, check_same_thread=False)
    assert Task(lambda: opened.execute("SELECT 1").fetchone()).outcome() == (1,)
    opened.close()


@pytest.mark.parametrize("is_open", [False, True], ids=["no transaction", "transaction"])
def test_a_send_in_another_thread_than_the_connections_is_refused(queue, connection, is_open):
    if is_open:
        connection.execute("INSERT INTO items VALUES ('a')")
    with pytest.raises(dbapi.ProgrammingError, match="check_same_thread=False"):
        Task(lambda: queue.send("hi", connection=connection)).outcome()
    connection.commit()
    assert len(queue) == 0


# --- one file, two users


def test_file_is_open_by_both_in_either_order(path):
    first = dbapi.connect(path)
    first.execute("CREATE TABLE items (name TEXT)")
    with sqsqlite.connect(path, adopt=True) as sqs:
        queue = sqs.create_queue("orders")
        second = dbapi.connect(path)
        with second:
            second.execute("INSERT INTO items VALUES ('a')")
        queue.send("hi")
        assert items(first) == ["a"]
        second.close()
        assert bodies(queue) == ["hi"]
        assert_whole(sqs)
    first.close()


@pytest.mark.skipif(driver.is_standard_library, reason="sqlite3 is the one copy here")
def test_connections_of_the_driver_itself_are_welcome(path):
    plain = driver.dbapi.connect(str(path), isolation_level=None)
    plain.execute("CREATE TABLE items (name TEXT)")
    with sqsqlite.connect(path, adopt=True) as sqs:
        queue = sqs.create_queue("orders")
        plain.execute("BEGIN IMMEDIATE")
        plain.execute("INSERT INTO items VALUES ('a')")
        queue.send("hi", connection=plain)
        plain.execute("ROLLBACK")
        assert bodies(queue) == []
        plain.execute("BEGIN")
        queue.send("hi", connection=plain)
        plain.execute("COMMIT")
        assert bodies(queue) == ["hi"]
        plain.close()


@pytest.mark.skipif(driver.is_standard_library, reason="sqlite3 is the one copy here")
def test_another_copy_is_refused_with_both_versions_and_the_cure(path, connection):
    import sqlite3

    with pytest.raises(SecondSQLiteCopy) as caught:
        sqlite3.connect(path)
    text = str(caught.value)
    assert f"SQLite {driver.dbapi.sqlite_version} (pysqlite3)" in text
    assert f"SQLite {sqlite3.sqlite_version} (sqlite3)" in text
    assert "module=sqsqlite.dbapi" in text


@pytest.mark.skipif(driver.is_standard_library, reason="sqlite3 is the one copy here")
def test_a_file_that_another_copy_has_open_is_refused(path):
    import sqlite3

    other = sqlite3.connect(path)
    try:
        with pytest.raises(SecondSQLiteCopy, match="already open in this process"):
            dbapi.connect(path)
    finally:
        other.close()
    dbapi.connect(path).close()


# --- a message with the application's rows


@pytest.mark.parametrize("level", ["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
@pytest.mark.parametrize("first", ["row", "message"])
def test_row_and_message_commit_or_roll_back_together(path, queue, connection, level, first):
    connection.isolation_level = level
    for end, expected in (("rollback", []), ("commit", ["hi"])):
        if first == "row":
            connection.execute("INSERT INTO items VALUES ('a')")
        queue.send("hi", connection=connection)
        if first == "message":
            connection.execute("INSERT INTO items VALUES ('a')")
        getattr(connection, end)()
        assert bodies(queue) == expected
        assert len(items(connection)) == len(expected)


def test_transactions_in_sql_are_taken_as_well(queue, connection):
    connection.isolation_level = None
    connection.execute("BEGIN IMMEDIATE")
    queue.send("no", connection=connection)
    connection.execute("ROLLBACK")
    connection.execute("BEGIN EXCLUSIVE")
    queue.send("yes", connection=connection)
    connection.execute("END")
    with connection:
        connection.execute("begin")
        connection.execute("SAVEPOINT a")
        queue.send("undone", connection=connection)
        connection.execute("ROLLBACK TO a")
        queue.send("second", connection=connection)
    assert bodies(queue) == ["yes", "second"]


def test_received_message_is_deleted_with_the_row_or_comes_back(sqs, queue, connection):
    queue.send("work")
    [message] = queue.receive(visibility_timeout=0, connection=connection)
    connection.rollback()
    [message] = queue.receive(connection=connection)
    assert message.receive_count == 1
    connection.execute("INSERT INTO items VALUES ('done')")
    message.delete(connection=connection)
    connection.commit()
    assert len(queue) == 0
    assert items(connection) == ["done"]


def test_a_lost_lease_raises_and_the_row_rolls_back(sqs, queue, connection):
    queue.send("work")
    [message] = queue.receive()
    message.delete()
    connection.execute("INSERT INTO items VALUES ('done')")
    with pytest.raises(LeaseLost), connection:
        message.delete(connection=connection)
    assert items(connection) == []


def test_row_and_text_factories_are_the_applications_own(queue, connection):
    connection.row_factory = dbapi.Row
    connection.text_factory = bytes
    queue.send("hi", connection=connection)
    [message] = queue.receive(connection=connection)
    connection.commit()
    assert message.body == "hi"
    assert connection.execute("SELECT 'a' AS name").fetchone()["name"] == b"a"


def test_an_operation_that_fails_undoes_itself_alone(sqs, queue, connection):
    connection.execute("INSERT INTO items VALUES ('kept')")
    with pytest.raises(QueueDoesNotExist):
        sqs.queue("missing").send("hi", connection=connection)
    queue.send("hi", connection=connection)
    connection.commit()
    assert (items(connection), bodies(queue)) == (["kept"], ["hi"])


def test_waiting_consumer_wakes_with_the_commit(queue, connection):
    waiting = Task(lambda: [message.body for message in queue.receive(wait=20)])
    time.sleep(0.05)  # so that it waits; it finds the message without waiting otherwise
    queue.send("hi", connection=connection)
    connection.commit()
    assert waiting.outcome() == ["hi"]


def test_waiting_consumer_notices_a_commit_by_the_driver_itself(path, queue):
    """Nothing announces it: the consumer looks now and then."""
    plain = driver.dbapi.connect(str(path), check_same_thread=False)
    waiting = Task(lambda: [message.body for message in queue.receive(wait=20)])
    # Before the send, which takes the write lock: the consumer's first look needs it too.
    until(lambda: queue._store.waker._waiters)
    queue.send("hi", connection=plain)
    plain.commit()
    assert waiting.outcome() == ["hi"]
    plain.close()


WAIT = """
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    say("ready")
    say([message.body for message in sqs.queue("orders").receive(wait=20)])
"""


def test_consumer_in_another_process_wakes_with_the_commit(path, queue, connection):
    with Program(WAIT, path) as consumer:
        consumer.hear()
        queue.send("hi", connection=connection)
        connection.commit()
        assert consumer.hear() == "['hi']"


# --- the write lock


def test_a_transaction_that_has_read_an_older_snapshot_is_busy_and_told_the_cure(queue, connection):
    connection.isolation_level = None
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM items").fetchone()
    queue.send("other")
    with pytest.raises(Busy, match="BEGIN IMMEDIATE") as caught:
        queue.send("hi", connection=connection)
    assert "transaction_mode" in str(caught.value)
    connection.execute("ROLLBACK")
    connection.execute("BEGIN IMMEDIATE")
    queue.send("hi", connection=connection)
    connection.execute("COMMIT")
    assert bodies(queue) == ["other", "hi"]


def test_a_connection_in_no_transaction_is_refused(queue, connection):
    connection.isolation_level = None
    with pytest.raises(StoreError, match="in no transaction"):
        queue.send("hi", connection=connection)
    assert bodies(queue) == []


def test_immediate_transactions_stand_in_line(sqs, queue, connection):
    """While it is open no other writer gets the turn, and afterwards each does."""
    connection.execute("BEGIN IMMEDIATE")
    turnstile = sqs._store.file.turnstile
    assert turnstile.is_held_here
    other = Task(lambda: queue.send("later").message_id)
    with pytest.raises(TransactionInProgress):
        queue.send("on this thread")
    connection.commit()
    assert not turnstile.is_held_here
    assert other.outcome()
    connection.execute("BEGIN IMMEDIATE")
    connection.close()
    assert not turnstile.is_held_here


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE t (x)", "alter table items add column y", "DROP TABLE items", "VACUUM"],
)
@pytest.mark.parametrize("method", ["execute", "executescript"])
def test_changes_of_the_schema_stand_in_line(path, sqs, queue, connection, statement, method):
    """SQLite's own lock is free meanwhile: what refuses is the turn."""
    turnstile = sqs._store.file.turnstile
    taken, leave = threading.Event(), threading.Event()

    def hold():
        with turnstile.taken(600):
            taken.set()
            assert leave.wait(600)

    holder = Task(hold)
    assert taken.wait(600)
    impatient = dbapi.connect(path, timeout=0.01)
    with pytest.raises(dbapi.OperationalError, match=r"locked: .*another thread"):
        getattr(impatient, method)(statement)
    impatient.close()
    leave.set()
    holder.outcome()
    getattr(connection, method)(statement)
    assert queue.send("the turn is free").message_id


@pytest.mark.parametrize("statement", ["SELECT 1", "CREATE TEMPORARY TABLE t (x)", "PRAGMA user_version"])
def test_statements_that_leave_the_file_alone_take_no_turn(sqs, path, statement):
    taken, leave = threading.Event(), threading.Event()

    def hold():
        with sqs._store.file.turnstile.taken(600):
            taken.set()
            assert leave.wait(600)

    holder = Task(hold)
    assert taken.wait(600)
    impatient = dbapi.connect(path, timeout=0.01)
    impatient.execute(statement).fetchall()
    impatient.close()
    leave.set()
    holder.outcome()


def test_a_transaction_within_a_block_of_the_thread_is_locked_out_at_once(sqs, connection):
    with sqs.transaction(), pytest.raises(dbapi.OperationalError, match="locked"):
        connection.execute("BEGIN IMMEDIATE")


def test_a_connection_that_was_dropped_gives_up_its_turn(path, sqs, queue):
    dropped = dbapi.connect(path, isolation_level=None)
    dropped.execute("BEGIN IMMEDIATE")
    del dropped
    gc.collect()
    assert queue.send("hi").message_id


def test_a_store_that_is_closed_meanwhile_leaves_the_transaction_alone(path, connection):
    sqs = sqsqlite.connect(path, adopt=True)
    queue = sqs.create_queue("orders")
    queue.send("hi", connection=connection)
    sqs.close()
    connection.commit()
    with sqsqlite.connect(path) as sqs:
        assert bodies(sqs.queue("orders")) == ["hi"]
        assert sqs.queue("orders").send("next").message_id


# --- what is refused


def test_connection_to_another_file_is_refused(tmp_path, queue):
    other = dbapi.connect(tmp_path / "other.db")
    with pytest.raises(StoreError, match="another database"):
        queue.send("hi", connection=other)
    other.close()
    with pytest.raises(StoreError, match="another database"):
        queue.send("hi", connection=dbapi.connect(":memory:"))


@pytest.mark.parametrize("given", ["app.db", 17, object()])
def test_what_is_no_connection_is_refused(queue, given):
    with pytest.raises(StoreError, match="is not a connection"):
        queue.send("hi", connection=given)


@pytest.mark.skipif(driver.is_standard_library, reason="sqlite3 is the one copy here")
def test_connection_of_another_copy_is_refused(queue):
    import sqlite3

    with pytest.raises(StoreError, match=r"\(sqlite3\)"):
        queue.send("hi", connection=sqlite3.connect(":memory:"))


def test_scripts_commit_first_as_the_drivers_do(queue, connection):
    queue.send("hi", connection=connection)
    connection.executescript("INSERT INTO items VALUES ('a'); INSERT INTO items VALUES ('b');")
    assert (bodies(queue), items(connection)) == (["hi"], ["a", "b"])


def test_threads_with_connections_of_their_own_lose_nothing(path, sqs, queue, connection):
    """Own writers and the queue's side by side: every row has its message."""

    def work(number):
        own = dbapi.connect(path, isolation_level=None, timeout=600)
        for turn in range(20):
            own.execute("BEGIN IMMEDIATE")
            own.execute("INSERT INTO items VALUES (?)", (f"{number}-{turn}",))
            queue.send(f"{number}-{turn}", connection=own)
            own.execute("ROLLBACK" if turn % 5 == 4 else "COMMIT")
        own.close()

    tasks = [Task(lambda number=number: work(number)) for number in range(4)]
    for _ in range(20):
        queue.send("alone")
    for task in tasks:
        task.outcome()
    found = [body for body in bodies(queue) if body != "alone"]
    assert len(found) == 64
    assert sorted(found) == items(connection)
    assert_whole(sqs)
