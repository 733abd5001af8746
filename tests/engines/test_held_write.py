# SPDX-License-Identifier: Apache-2.0
"""An application that holds a write for long, or is killed while it does: others are told who, and go on afterwards."""

import threading

import pytest
from sqlalchemy import text

import sqsqlite
from sqsqlite import dbapi
from sqsqlite.errors import Busy
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Program
from tests.store.waiting import Task, until

TIMEOUT = 0.1  # s, of those who are to be refused

# Holds a transaction with a row and a message in it, until it is told how to end.
HOLD = """
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    own = sqsqlite.dbapi.connect(sys.argv[1], isolation_level="IMMEDIATE")
    for line in sys.stdin:
        own.execute("INSERT INTO items VALUES ('slow')")
        sqs.queue("orders").send("with the row", connection=own)
        say("held")
        getattr(own, sys.stdin.readline().strip())()
        say("over")
"""
CONSUME = """
import sqsqlite
with sqsqlite.connect(sys.argv[1], busy_timeout=600) as sqs:
    queue = sqs.queue("orders")
    say("ready")
    while True:
        for message in queue.receive(10, wait=20):
            message.delete()
            say(message.body)
"""


@pytest.fixture
def impatient(path, connection, queue):
    """A queue whose writers soon give up. The table `items` is there."""
    connection.commit()
    with sqsqlite.connect(path, adopt=True, busy_timeout=TIMEOUT) as sqs:
        yield sqs.queue("orders")


@pytest.fixture
def queue(sqs, connection):
    """The same queue for writers that have patience."""
    return sqs.create_queue("orders", visibility_timeout=600)


@pytest.fixture
def holder(path, impatient):
    with Program(HOLD, path) as program:
        yield program


def held(holder):
    holder.tell("begin")
    assert holder.hear() == "held"


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_sender_is_told_the_process_that_holds_the_write(queue, impatient, holder, end):
    queue.send("before")
    [message] = queue.receive()
    held(holder)
    for work in (
        lambda: impatient.send("no"),
        lambda: impatient.delete_many([message]),
        lambda: impatient.send_many(["no"]),
    ):
        with pytest.raises(Busy, match=rf"process {holder.pid} \(python.* has it"):
            work()
    assert len(impatient.peek()) == 0  # reading goes on
    holder.tell(end)
    assert holder.hear() == "over"
    message.delete()
    queue.send("after")
    assert bodies(queue) == (["with the row"] if end == "commit" else []) + ["after"]


def test_killed_holder_leaves_neither_row_nor_message_and_no_one_waits(queue, impatient, holder, connection):
    held(holder)
    with pytest.raises(Busy, match=str(holder.pid)):
        impatient.send("no")
    holder.kill()
    queue.send("after")
    assert bodies(queue) == ["after"]
    assert connection.execute("SELECT count(*) FROM items").fetchone() == (0,)


def test_killed_holder_frees_those_who_wait_in_line(path, sqs, queue, holder):
    """In this process and in another one."""
    with Program(CONSUME, path) as consumer:
        consumer.hear()
        queue.send("first")
        assert consumer.hear() == "first"
        held(holder)
        waiting = [Task(queue.send, f"{number}") for number in range(3)]
        turnstile = sqs._store.file.turnstile
        until(lambda: turnstile._waiting_room.is_out or turnstile._turn.is_out)
        holder.kill()
        for task in waiting:
            task.outcome()
        assert sorted(consumer.hear() for _ in waiting) == ["0", "1", "2"]
        assert_whole(sqs)


def test_consumer_that_waits_wakes_when_a_long_write_commits(queue, impatient, holder):
    """Others were refused meanwhile: waiting writes nothing."""
    waiting = Task(lambda: [message.body for message in queue.receive(wait=20)])
    until(lambda: queue._store.waker._waiters)
    held(holder)
    with pytest.raises(Busy):
        impatient.send("no")
    assert waiting.is_alive()
    holder.tell("commit")
    assert waiting.outcome() == ["with the row"]


def test_consumer_of_another_process_wakes_when_a_long_write_commits(path, impatient, holder):
    with Program(CONSUME, path) as consumer:
        consumer.hear()
        held(holder)
        with pytest.raises(Busy):
            impatient.send("no")
        holder.tell("commit")
        assert consumer.hear() == "with the row"


def test_a_thread_that_holds_a_write_makes_others_of_its_process_busy(path, sqs, queue, impatient):
    begun, end = threading.Event(), threading.Event()

    def hold():
        own = dbapi.connect(path, isolation_level="IMMEDIATE")
        own.execute("INSERT INTO items VALUES ('slow')")
        begun.set()
        assert end.wait(600)
        queue.send("with the row", connection=own)
        own.commit()
        own.close()

    holder = Task(hold)
    assert begun.wait(600)
    with pytest.raises(Busy, match=rf"been writing for ({TIMEOUT} s|the whole busy_timeout)"):
        impatient.send("no")
    own = dbapi.connect(path, timeout=TIMEOUT, isolation_level="IMMEDIATE")
    with pytest.raises(dbapi.OperationalError, match=r"locked: .*another thread has been writing"):
        own.execute("INSERT INTO items VALUES ('b')")
    own.close()
    end.set()
    holder.outcome()
    queue.send("after")
    assert bodies(queue) == ["with the row", "after"]
    assert_whole(sqs)


def test_a_session_that_forgets_to_commit_is_ended_by_its_engine(queue, impatient, engine):
    """A connection that goes back to its pool is rolled back, so others write again."""
    begun = engine.connect()
    begun.execute(text("INSERT INTO items VALUES ('forgotten')"))
    with pytest.raises(Busy):
        Task(impatient.send, "no").outcome()
    begun.close()
    queue.send("after")
    assert bodies(queue) == ["after"]
