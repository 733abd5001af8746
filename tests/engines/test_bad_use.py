# SPDX-License-Identifier: Apache-2.0
"""What an application may do to its own file while consumers use it: nothing is lost, and errors say what is wrong."""

import threading

import pytest

import sqsqlite
from sqsqlite import dbapi
from sqsqlite.errors import Busy
from tests.store.inspection import assert_whole, bodies
from tests.store.waiting import Task, until


def test_another_journal_mode_is_refused_while_the_queue_is_open(sqs, queue, connection):
    queue.send("hi")
    with pytest.raises(dbapi.OperationalError, match="locked"):
        connection.execute("PRAGMA journal_mode = DELETE")
    queue.send("still here")
    assert bodies(queue) == ["hi", "still here"]


@pytest.mark.parametrize("mode", ["DELETE", "TRUNCATE", "PERSIST", "MEMORY"])
def test_file_in_another_journal_mode_becomes_a_wal_again(path, mode):
    with sqsqlite.connect(path, adopt=True) as sqs:
        sqs.create_queue("orders").send("hi")
    own = dbapi.connect(path)
    assert own.execute(f"PRAGMA journal_mode = {mode}").fetchone() == (mode.lower(),)
    with sqsqlite.connect(path) as sqs:
        own.execute("SELECT count(*) FROM sqs_queues").fetchone()  # SQLite looks at the file's header
        assert own.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        sqs.queue("orders").send("on", connection=own)
        own.commit()
        assert bodies(sqs.queue("orders")) == ["hi", "on"]
        assert_whole(sqs)
    own.close()


def test_a_transaction_that_is_held_too_long_makes_others_busy_and_loses_nothing(path, connection):
    with sqsqlite.connect(path, adopt=True, busy_timeout=0.2) as sqs:
        queue = sqs.create_queue("orders")
        for level in ("IMMEDIATE", "DEFERRED"):
            connection.isolation_level = level
            connection.execute("INSERT INTO items VALUES ('slow')")
            with pytest.raises(Busy):
                Task(queue.send, "meanwhile").outcome()
            queue.send("with the row", connection=connection)
            connection.commit()
            queue.send("after")
        assert bodies(queue) == ["with the row", "after"] * 2


def test_migrations_beside_consumers_lose_nothing(path, sqs, queue, connection):
    """Tables, indexes, VACUUM, foreign keys, while a thread sends, receives and deletes."""
    stop, sent, received = threading.Event(), [], []

    def work():
        while not stop.is_set():
            sent.append(queue.send(f"{len(sent)}").message_id)
            for message in queue.receive(10):
                message.delete()
                received.append(message.message_id)

    connection.isolation_level = None
    connection.execute("PRAGMA busy_timeout = 600000")
    consumer = Task(work)
    for round_number in range(5):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE big (id INTEGER PRIMARY KEY, text TEXT)")
        connection.executemany("INSERT INTO big (text) VALUES (?)", [("x" * 500,)] * 500)
        connection.execute("COMMIT")
        connection.execute("CREATE INDEX ix_big ON big (text)")
        connection.execute(f"ALTER TABLE items ADD COLUMN extra_{round_number} TEXT")
        connection.execute("DROP TABLE big")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        count = len(received)
        until(lambda count=count: len(received) > count + 3 or not consumer.is_alive())
        assert consumer.is_alive()
    stop.set()
    consumer.outcome()
    assert sorted(sent) == sorted(received + [message.message_id for message in queue.messages()])
    assert_whole(sqs)


def test_an_error_of_the_application_leaves_the_message_to_it(queue, connection):
    """The application decides after its own failed statement: SQLite keeps the transaction."""
    connection.execute("CREATE TABLE unique_items (name TEXT PRIMARY KEY)")
    connection.execute("INSERT INTO unique_items VALUES ('a')")
    queue.send("kept", connection=connection)
    with pytest.raises(dbapi.IntegrityError):
        connection.execute("INSERT INTO unique_items VALUES ('a')")
    connection.commit()
    assert len(queue) == 1
    queue.send("rolled back", connection=connection)
    with pytest.raises(dbapi.IntegrityError):
        connection.execute("INSERT OR ROLLBACK INTO unique_items VALUES ('a')")
    connection.commit()
    assert bodies(queue) == ["kept"]


def test_read_only_connection_is_told(path, queue):
    reading = dbapi.connect(f"file:{path}?mode=ro", uri=True)
    with pytest.raises(sqsqlite.errors.ReadOnlyFile):
        queue.send("hi", connection=reading)
    reading.close()
    asked = dbapi.connect(path)
    asked.execute("PRAGMA query_only = ON")
    with pytest.raises(sqsqlite.errors.ReadOnlyFile):
        queue.send("hi", connection=asked)
    asked.close()
    assert bodies(queue) == []
