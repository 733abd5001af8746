# SPDX-License-Identifier: Apache-2.0
"""An application changes its tables while consumers in threads and other processes write to them with each message."""

import threading

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Integer, Text, create_engine, event

import sqsqlite
from sqsqlite import dbapi
from sqsqlite.errors import Busy
from tests.store.inspection import assert_whole, rows
from tests.store.processes import Program
from tests.store.waiting import Task, until

# Stores a row for each message in the transaction that deletes it, until it gets the message "stop".
CONSUME = """
import sqsqlite
with sqsqlite.connect(sys.argv[1], busy_timeout=600) as sqs:
    queue = sqs.queue("orders")
    own = sqsqlite.dbapi.connect(sys.argv[1], isolation_level="IMMEDIATE", timeout=600)
    say("ready")
    bodies = []
    while "stop" not in bodies:
        for message in queue.receive(3, wait=20):
            own.execute("INSERT INTO items (name) VALUES (?)", (message.body,))
            message.delete(connection=own)
            own.commit()
            bodies.append(message.body)
    own.close()
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "app.db"
    own = dbapi.connect(path)
    own.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)")
    with own:
        own.executemany(
            "INSERT INTO items (name) VALUES (?)", [(f"old {n} {'x' * 200}",) for n in range(500)]
        )
    own.close()
    return path


@pytest.fixture
def queue(sqs):
    return sqs.create_queue("orders", visibility_timeout=43_200)


def consume(path, sqs):
    """As CONSUME, in a thread and by blocks."""
    queue, found = sqs.queue("orders"), []
    while "stop" not in found:
        for message in queue.receive(3, wait=20):
            with sqs.transaction() as connection:
                connection.execute("INSERT INTO items (name) VALUES (?)", (message.body,))
                message.delete()
            found.append(message.body)


def own_engine(path, *, has_listeners):
    """As docs/transactions.md advises, or with the listeners that SQLAlchemy's page on SQLite shows.

    With these a migration is one transaction. Without them the driver begins one at the first change of rows only.
    """
    level = None if has_listeners else "IMMEDIATE"
    options = {"isolation_level": level, "timeout": 600}
    engine = create_engine(f"sqlite:///{path}", module=dbapi, connect_args=options)
    if has_listeners:

        @event.listens_for(engine, "begin")
        def begin(connection):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def migrate(engine, number):
    """A revision as Alembic runs it: another table, a column by a copy of the table, an index."""
    with engine.begin() as connection:
        operations = Operations(MigrationContext.configure(connection))
        operations.create_table(f"made_{number}", Column("id", Integer, primary_key=True))
        with operations.batch_alter_table("items", recreate="always") as batch:
            batch.add_column(Column(f"column_{number}", Text))
        operations.create_index(f"ix_{number}", "items", ["name"])
        operations.drop_table(f"made_{number}")


def received(sqs):
    """The names that consumers have stored."""
    return [name for (name,) in rows(sqs, "SELECT name FROM items WHERE name NOT LIKE 'old%' ORDER BY name")]


@pytest.mark.parametrize(
    "has_listeners",
    [
        pytest.param(True, id="one transaction", marks=pytest.mark.slow),
        pytest.param(False, id="the driver's"),
    ],
)
def test_each_message_is_stored_once_while_its_table_is_copied(path, sqs, queue, has_listeners):
    engine = own_engine(path, has_listeners=has_listeners)
    sent = []
    with Program(CONSUME, path) as process:
        process.hear()
        thread = Task(consume, path, sqs)
        for number in range(3):
            for _ in range(5):
                sent.append(f"message {len(sent):03}")
                queue.send(sent[-1])
            migrate(engine, number)
        maintenance = dbapi.connect(path, isolation_level=None, timeout=600)
        for statement in ("VACUUM", "REINDEX", "ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"):
            sent.append(f"message {len(sent):03}")
            queue.send(sent[-1])
            maintenance.execute(statement).fetchall()
        maintenance.close()
        until(lambda: not len(queue) or not thread.is_alive())
        queue.send_many(["stop", "stop"])
        # One of the two consumers may receive both: then the other goes on with the next.
        until(lambda: not thread.is_alive() or (not len(queue) and queue.send("stop")))
        thread.outcome()
        queue.send("stop")
        process.end()
    engine.dispose()
    assert [name for name in received(sqs) if name != "stop"] == sent
    assert rows(sqs, "SELECT count(*) FROM items WHERE name LIKE 'old%'") == [(500,)]
    assert "column_2" in rows(sqs, "SELECT sql FROM sqlite_schema WHERE name = 'items'")[0][0]
    assert_whole(sqs)


# --- a kill in the middle

# Says "middle" half way through its migration, and waits there.
MIGRATE = """
import sqsqlite
own = sqsqlite.dbapi.connect(sys.argv[1], isolation_level=None, timeout=600)

def middle():
    say("middle")
    sys.stdin.readline()

rest = []
def progress():
    if not rest:
        rest.append(1)
        middle()
    return 0

*statements, last = sys.argv[2].split("; ")
for statement in statements:
    own.execute(statement)
if last == "middle":
    middle()
else:
    own.set_progress_handler(progress, 500)
    own.execute(last)
"""
IN_THE_MIDDLE = {
    "column": "BEGIN IMMEDIATE; ALTER TABLE items ADD COLUMN extra TEXT; middle",
    "table copy": "BEGIN IMMEDIATE; CREATE TABLE copy (id INTEGER PRIMARY KEY, name TEXT); "
    "INSERT INTO copy SELECT id, name FROM items; DROP TABLE items; ALTER TABLE copy RENAME TO items; middle",
    "copy half way": "BEGIN EXCLUSIVE; CREATE TABLE copy (id, name); INSERT INTO copy SELECT id, name FROM items",
    "index": "CREATE INDEX ix_items ON items (name)",
    "update": "UPDATE items SET name = name || 'y'",
    "drop": "BEGIN IMMEDIATE; DROP TABLE items; middle",
    "vacuum": "VACUUM",
}


@pytest.mark.parametrize("statements", IN_THE_MIDDLE.values(), ids=IN_THE_MIDDLE)
def test_killed_migration_leaves_the_tables_and_the_queue_as_they_were(path, sqs, queue, statements):
    tables = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE '%sqs%' ORDER BY name"
    queue.send("before")
    before = rows(sqs, tables), rows(sqs, "SELECT * FROM items ORDER BY id")
    with Program(MIGRATE, path, statements) as program:
        assert program.hear() == "middle"
        with sqsqlite.connect(path, busy_timeout=0.1) as impatient:
            with pytest.raises(Busy, match=rf"process {program.pid} \(python.* has it"):
                impatient.queue("orders").send("no")
            assert [message.body for message in impatient.queue("orders").peek()] == ["before"]
        program.kill()
    [message] = queue.receive()
    with sqs.transaction() as connection:
        connection.execute("INSERT INTO items (name) VALUES ('after')")
        message.delete()
    assert received(sqs) == ["after"]
    with sqs.transaction() as connection:
        connection.execute("DELETE FROM items WHERE name = 'after'")
    assert (rows(sqs, tables), rows(sqs, "SELECT * FROM items ORDER BY id")) == before
    assert_whole(sqs)


KILLED_ALEMBIC = """
from tests.engines.test_migrations_beside import event, migrate, own_engine
engine = own_engine(sys.argv[1], has_listeners=sys.argv[2] == "True")

@event.listens_for(engine, "before_cursor_execute")
def look(connection, cursor, statement, *_):
    if "DROP TABLE items" in statement:
        say("middle")
        sys.stdin.readline()

migrate(engine, 1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("has_listeners", [True, False], ids=["one transaction", "the driver's"])
def test_killed_alembic_loses_no_row_and_no_message(path, sqs, queue, has_listeners):
    """Where the driver begins the transactions, Alembic's first steps stay: see docs/transactions.md."""
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqs_%' ORDER BY name"
    with Program(CONSUME, path) as consumer:
        consumer.hear()
        with Program(KILLED_ALEMBIC, path, has_listeners) as program:
            assert program.hear() == "middle"
            waiting = Task(queue.send, "message")  # stands in line behind the migration
            program.kill()
        waiting.outcome()
        queue.send("stop")
        consumer.end()
    assert received(sqs) == ["message", "stop"]
    assert rows(sqs, "SELECT count(*) FROM items") == [(502,)]
    left = {name for (name,) in rows(sqs, tables)} - {"items", "sqlite_sequence"}
    assert left == (set() if has_listeners else {"_alembic_tmp_items", "made_1"})
    assert_whole(sqs)


# --- tables that are dropped


def test_table_that_a_consumers_transaction_uses_cannot_be_dropped_meanwhile(path, sqs, queue):
    queue.send("work")
    [message] = queue.receive()
    used, end = threading.Event(), threading.Event()

    def consumer():
        with sqs.transaction() as connection:
            connection.execute("INSERT INTO items (name) VALUES ('work')")
            used.set()
            assert end.wait(600)
            message.delete()

    task = Task(consumer)
    assert used.wait(600)
    for level in (None, "IMMEDIATE"):
        impatient = dbapi.connect(path, timeout=0.05, isolation_level=level)
        with pytest.raises(dbapi.OperationalError, match="database is locked"):
            impatient.execute("DROP TABLE items")
        impatient.close()
    with Program(DROP, path) as other:
        assert other.hear() == "database is locked"
    end.set()
    task.outcome()
    assert received(sqs) == ["work"]
    assert len(queue) == 0
    assert_whole(sqs)


DROP = """
import sqsqlite
own = sqsqlite.dbapi.connect(sys.argv[1], timeout=0.05)
try:
    own.execute("DROP TABLE items")
except sqsqlite.dbapi.OperationalError as error:
    say(error)
"""


def test_consumer_whose_table_is_gone_keeps_its_message_until_the_table_is_back(path, sqs, queue):
    own = dbapi.connect(path, isolation_level="IMMEDIATE")

    def by_a_block(message):
        with sqs.transaction() as connection:
            message.delete()
            connection.execute("INSERT INTO items (name) VALUES (?)", (message.body,))

    def by_an_own_connection(message):
        with own:
            message.delete(connection=own)
            own.execute("INSERT INTO items (name) VALUES (?)", (message.body,))

    for number, work in enumerate((by_a_block, by_an_own_connection)):
        queue.send(f"{number}")
        [message] = queue.receive()
        [(definition,)] = rows(sqs, "SELECT sql FROM sqlite_schema WHERE name = 'items'")
        own.execute("DROP TABLE items")
        with pytest.raises(dbapi.OperationalError, match="no such table: items"):
            work(message)
        assert len(rows(sqs, "SELECT id FROM sqs_messages")) == 1
        own.execute(definition)
        work(message)
        assert received(sqs) == [f"{number}"]
    own.close()
    assert len(queue) == 0
    assert_whole(sqs)


def test_table_with_an_open_cursor_cannot_be_dropped_on_the_same_connection(sqs, queue, path):
    own = dbapi.connect(path)
    cursor = own.execute("SELECT name FROM items")
    cursor.fetchone()
    queue.send("hi", connection=own)
    with pytest.raises(dbapi.OperationalError, match="database table is locked"):
        own.execute("DROP TABLE items")
    own.commit()
    assert len(cursor.fetchall()) == 499
    own.execute("DROP TABLE items")
    own.close()
    assert len(queue) == 1
    assert_whole(sqs)
