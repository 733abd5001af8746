# SPDX-License-Identifier: Apache-2.0
"""An application that changes SQLite's settings, on its connection or from another process, while queues are in use."""

import pytest

import sqsqlite
from sqsqlite import dbapi
from sqsqlite.errors import Busy
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Child, Program

SHELL = """
from sqsqlite.store.driver import dbapi
for line in sys.stdin:
    connection = dbapi.connect(sys.argv[1], isolation_level=None, timeout=0.1)
    try:
        say(connection.execute(line).fetchall())
    except dbapi.Error as error:
        say(error)
    connection.close()
"""
"""Runs each line of its input by the driver itself, as SQLite's shell does: it knows nothing of queues."""

WAIT = """
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    queue = sqs.queue("orders")
    say("ready")
    [message] = queue.receive(wait=20)
    message.delete()
    say(message.body)
"""

KEEP_ALONE = """
from sqsqlite.store.driver import dbapi
connection = dbapi.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("INSERT INTO items VALUES ('alone')")
say("alone")
sys.stdin.readline()
connection.close()
say("closed")
"""


@pytest.fixture
def shell(path):
    with Program(SHELL, path) as program:

        def run(statement):
            program.tell(statement)
            return program.hear()

        yield run


# --- journal modes


@pytest.mark.parametrize("mode", ["DELETE", "TRUNCATE", "MEMORY", "OFF"])
def test_another_process_cannot_change_the_journal_mode_of_a_file_in_use(path, sqs, queue, shell, mode):
    queue.send("before")
    assert shell(f"PRAGMA journal_mode = {mode}") == "database is locked"
    assert shell("PRAGMA journal_mode") == "[('wal',)]"
    queue.send("after")
    assert bodies(queue) == ["before", "after"]
    assert_whole(sqs)


def test_consumer_that_waits_survives_attempts_to_change_the_journal_mode(
    path, sqs, queue, shell, connection
):
    with Program(WAIT, path) as consumer:
        consumer.hear()
        assert shell("PRAGMA journal_mode = DELETE") == "database is locked"
        with pytest.raises(dbapi.OperationalError, match="locked"):
            connection.execute("PRAGMA journal_mode = TRUNCATE")
        queue.send("hi", connection=connection)
        connection.commit()
        assert consumer.hear() == "hi"
        consumer.end()


@pytest.mark.parametrize("mode", ["DELETE", "TRUNCATE", "PERSIST"])
def test_file_that_another_process_took_out_of_wal_mode_is_a_wal_at_the_next_open(path, shell, mode):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("kept")
    assert shell(f"PRAGMA journal_mode = {mode}") == f"[('{mode.lower()}',)]"
    with sqsqlite.connect(path) as sqs:
        assert shell("PRAGMA journal_mode") == "[('wal',)]"
        assert bodies(sqs.queue("orders")) == ["kept"]
        assert_whole(sqs)


CHANGED_BEFORE_A_FORK = """
import os

# Hooks run last in, first out: this one runs when the queue's connections are closed already.
wanted = []
os.register_at_fork(before=lambda: wanted and (say(wanted.pop()), sys.stdin.readline()))
import sqsqlite

sqs = sqsqlite.connect(sys.argv[1])
queue = sqs.create_queue("orders")
queue.send("before")
wanted.append("now")
if not os.fork():
    os._exit(0)
try:
    queue.send("refused")
except sqsqlite.errors.CannotOpen as error:
    say(error)
sqs.close()
with sqsqlite.connect(sys.argv[1]) as sqs:
    sqs.queue("orders").send("after")
    say([message.body for message in sqs.queue("orders").receive(10)])
"""


def test_journal_mode_that_changes_around_a_fork_is_named_and_loses_nothing(path, shell):
    with Program(CHANGED_BEFORE_A_FORK, path) as program:
        assert program.hear() == "now"
        assert shell("PRAGMA journal_mode = DELETE") == "[('delete',)]"
        program.tell()
        refusal = program.hear()
        assert "changed the journal mode to DELETE" in refusal
        assert "Nothing is lost: close the file and open it again" in refusal
        assert program.hear() == "['before', 'after']"
        program.end()


# --- exclusive locking


def test_exclusive_locking_is_refused_while_the_queue_is_open(path, sqs, queue, connection):
    connection.commit()
    greedy = dbapi.connect(path, timeout=0.05, isolation_level="IMMEDIATE")
    greedy.execute("SELECT count(*) FROM items").fetchone()
    greedy.execute("PRAGMA locking_mode = EXCLUSIVE")
    for statement in ("INSERT INTO items VALUES ('a')", "BEGIN IMMEDIATE"):
        with pytest.raises(dbapi.OperationalError, match="locked"):
            greedy.execute(statement)
        queue.send("meanwhile")
    greedy.execute("PRAGMA locking_mode = NORMAL")
    greedy.execute("PRAGMA busy_timeout = 600000")
    greedy.timeout = 600
    queue.send("hi", connection=greedy)
    greedy.commit()
    greedy.close()
    assert bodies(queue) == ["meanwhile", "meanwhile", "hi"]
    assert_whole(sqs)


def test_a_process_that_has_the_file_to_itself_is_named_and_waited_for(path, connection):
    connection.commit()
    connection.close()
    with sqsqlite.connect(path, adopt=True) as sqs:
        sqs.create_queue("orders")
    with Program(KEEP_ALONE, path) as keeper:
        assert keeper.hear() == "alone"
        with pytest.raises(Busy, match=rf"process {keeper.pid} \(python.*locking_mode = EXCLUSIVE"):
            sqsqlite.connect(path, busy_timeout=0.1)
        keeper.tell()
        assert keeper.hear() == "closed"
        with sqsqlite.connect(path) as sqs:
            sqs.queue("orders").send("hi")
            assert_whole(sqs)


def test_a_connection_of_this_process_that_has_the_file_to_itself_is_suspected(path, connection):
    with sqsqlite.connect(path, adopt=True) as sqs:
        sqs.create_queue("orders")
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    with connection:
        connection.execute("INSERT INTO items VALUES ('alone')")
    with pytest.raises(Busy, match=r"connection of this process .*locking_mode = EXCLUSIVE"):
        sqsqlite.connect(path, busy_timeout=0.1)
    connection.close()
    with sqsqlite.connect(path) as sqs:
        assert sqs.queue("orders").send("hi").message_id


# --- settings of the connection


@pytest.mark.parametrize(
    "pragma",
    [
        *("synchronous = OFF", "synchronous = EXTRA", "temp_store = MEMORY", "temp_store = FILE"),
        *("cache_size = 1", "cache_spill = 1", "wal_autocheckpoint = 1", "wal_autocheckpoint = 0"),
        *("mmap_size = 1000000", "secure_delete = ON", "recursive_triggers = ON", "trusted_schema = OFF"),
        *("case_sensitive_like = ON", "reverse_unordered_selects = ON", "automatic_index = OFF"),
        *("read_uncommitted = ON", "cell_size_check = ON", "ignore_check_constraints = ON"),
        *("journal_size_limit = 0", "analysis_limit = 1", "full_column_names = ON"),
    ],
)
def test_settings_of_the_application_change_no_answer(path, sqs, connection, pragma):
    """Each operation in the application's transaction, then by another connection."""
    connection.execute(f"PRAGMA {pragma}").fetchall()
    fifo = sqs.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)
    queue = sqs.create_queue("orders")
    for number in range(3):
        queue.send(f"A{number}", attributes={"a": "b"}, connection=connection)
        fifo.send(f"a{number}", group_id="g", connection=connection)
        fifo.send(f"a{number}", group_id="g", connection=connection)  # a duplicate
    connection.commit()
    received = queue.receive(10, connection=connection)
    assert [message.body for message in received] == ["A0", "A1", "A2"]
    received[1].delete(connection=connection)
    received[0].change_visibility(0, connection=connection)
    ordered = fifo.receive(10, connection=connection)
    assert [message.body for message in ordered] == ["a0", "a1", "a2"]
    for message in ordered[:2]:
        message.delete(connection=connection)
    connection.commit()
    assert bodies(queue) == ["A0"]
    assert [len(queue), len(fifo)] == [1, 1]
    assert_whole(sqs)


@pytest.mark.parametrize("state", ["ON", "OFF"])
def test_foreign_keys_are_the_applications_and_hold_for_its_rows(sqs, queue, connection, state):
    connection.execute(f"PRAGMA foreign_keys = {state}")
    connection.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
    connection.execute("CREATE TABLE children (parent INTEGER REFERENCES parents)")
    queue.send("hi", connection=connection)
    if state == "ON":
        with pytest.raises(dbapi.IntegrityError, match="FOREIGN KEY"):
            connection.execute("INSERT INTO children VALUES (1)")
    else:
        connection.execute("INSERT INTO children VALUES (1)")
    connection.commit()
    [message] = queue.receive(connection=connection)
    message.delete(connection=connection)
    connection.commit()
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (int(state == "ON"),)
    assert_whole(sqs)


def test_key_that_is_violated_until_the_commit_takes_the_message_back(sqs, queue, connection):
    """A deferred foreign key fails in the COMMIT, which leaves the transaction open."""
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
    connection.execute(
        "CREATE TABLE children (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)"
    )
    connection.execute("INSERT INTO children VALUES (1)")
    queue.send("no", connection=connection)
    with pytest.raises(dbapi.IntegrityError, match="FOREIGN KEY"):
        connection.commit()
    connection.rollback()
    queue.send("yes", connection=connection)
    connection.commit()
    assert bodies(queue) == ["yes"]
    assert_whole(sqs)


def test_settings_of_the_application_stay_off_the_queues_connections(sqs, queue, connection):
    """`synchronous` and the like belong to a connection."""
    for pragma in ("synchronous = OFF", "query_only = ON", "temp_store = MEMORY", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    queue.send("hi")
    with sqs.transaction() as block:
        assert block.execute("PRAGMA synchronous").fetchone() == (2,)
        assert block.execute("PRAGMA query_only").fetchone() == (0,)
        assert block.execute("PRAGMA temp_store").fetchone() == (0,)
        assert block.execute("PRAGMA foreign_keys").fetchone() == (0,)
    assert connection.execute("PRAGMA synchronous").fetchone() == (0,)


def test_queues_work_in_a_child_of_a_fork_with_settings_kept(sqs, queue, connection):
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")

    def work():
        queue.send("child", connection=connection)
        connection.commit()
        found = connection.execute("PRAGMA temp_store").fetchone(), connection.execute("PRAGMA synchronous")
        return found[0], found[1].fetchone()

    assert Child(work).outcome() == "((2,), (0,))"
    assert bodies(queue) == ["child"]
