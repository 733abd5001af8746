# SPDX-License-Identifier: Apache-2.0
"""Payloads and transactions: a payload goes after the commit that deletes its message, and never without it."""

import contextlib

import pytest
import sqlalchemy
from sqlalchemy.orm import Session

import sqsqlite
from sqsqlite import boto, dbapi
from sqsqlite.payloads import PayloadStore, extend, sweep
from tests.store.processes import Program

BIG = "x" * 2_000
INSERT = "INSERT INTO orders (item) VALUES ('lamp')"


class Undo(Exception):
    """Rolls a block back."""


@contextlib.contextmanager
def rolled_back(sqs):
    """A block in a transaction that rolls back."""
    with contextlib.suppress(Undo), sqs.transaction():
        yield
        raise Undo


@pytest.fixture
def own_engine(path, sqs):
    """An engine of the application's own."""
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", module=dbapi)
    yield engine
    engine.dispose()


def test_a_block_sends_and_removes_when_it_commits(sqs, queue, kept):
    with sqs.transaction() as connection:
        connection.execute(INSERT)
        queue.send(BIG)
        assert list(kept().values()) == [BIG]
    with sqs.transaction() as connection:
        connection.execute(INSERT)
        [message] = queue.receive()
        message.delete()
        assert list(kept().values()) == [BIG]
    assert (kept(), len(queue)) == ({}, 0)


@pytest.mark.parametrize("many", [False, True])
def test_a_block_that_rolls_back_leaves_the_payload(sqs, queue, kept, many):
    queue.send(BIG)
    [message] = queue.receive()
    with rolled_back(sqs):
        if many:
            queue.delete_many([message])
        else:
            message.delete()
    assert list(kept().values()) == [BIG]
    message.delete()
    assert (kept(), len(queue)) == ({}, 0)


def test_a_clients_delete_in_a_block_that_rolls_back_leaves_the_payload(sqs, queue, kept, store):
    client = extend(sqs.client, store)
    queue.send(BIG)
    [message] = client.receive_message(QueueUrl="orders")["Messages"]
    with rolled_back(sqs):
        client.delete_message(QueueUrl="orders", ReceiptHandle=message["ReceiptHandle"])
    assert list(kept().values()) == [BIG]
    with sqs.transaction():
        client.delete_message_batch(
            QueueUrl="orders", Entries=[{"Id": "1", "ReceiptHandle": message["ReceiptHandle"]}]
        )
        assert list(kept().values()) == [BIG]
    assert (kept(), len(queue)) == ({}, 0)


@pytest.mark.parametrize("kind", ["engine", "session", "own engine", "own session"])
def test_an_engines_transaction_removes_when_it_commits(sqs, queue, kept, own_engine, kind):
    engine = own_engine if kind.startswith("own") else sqs.engine
    begin = (lambda: Session(engine)) if kind.endswith("session") else engine.connect
    with begin() as connection:
        queue.send(BIG, connection=connection)
        connection.commit()
    [message] = queue.receive()
    with begin() as connection:
        connection.execute(sqlalchemy.text(INSERT))
        message.delete(connection=connection)
        connection.rollback()
    assert (list(kept().values()), len(queue)) == ([BIG], 1)
    with begin() as connection:
        connection.execute(sqlalchemy.text(INSERT))
        queue.delete_many([message], connection=connection)
        assert list(kept().values()) == [BIG]
        connection.commit()
    assert (kept(), len(queue)) == ({}, 0)


def test_a_savepoint_that_is_rolled_back_leaves_the_payload(sqs, queue, kept):
    """The transaction commits, but the delete is not part of it any more."""
    queue.send(BIG)
    [message] = queue.receive()
    with sqs.transaction() as connection:
        connection.execute("SAVEPOINT try")
        message.delete()
        connection.execute("ROLLBACK TO try")
        connection.execute("RELEASE try")
    assert (list(kept().values()), len(queue)) == ([BIG], 1)
    message.delete()
    assert (kept(), len(queue)) == ({}, 0)


def test_a_send_that_rolls_back_leaves_an_orphan_for_the_sweep(sqs, queue, kept, store):
    queue.send("kept " + BIG)
    with rolled_back(sqs):
        queue.send(BIG)
    assert sorted(kept().values()) == ["kept " + BIG, BIG]
    assert sweep(sqs, store).removed == 0
    swept = sweep(sqs, store, older_than=0, dry_run=True)
    assert (swept.found, swept.referred, swept.removed, swept.removed_bytes) == (2, 1, 1, 2_000)
    assert len(kept()) == 2
    assert sweep(sqs, store, older_than=0) == swept
    assert list(kept().values()) == ["kept " + BIG]


# Stops at the place given, prints its name, and continues when told to. If it is killed there, it never continues.
WORK = """
import sqsqlite
from sqsqlite.payloads import PayloadStore, extend

def stop(place):
    if place == sys.argv[3]:
        say(place)
        input()

class Store(PayloadStore):
    def remove(self, pointer):
        stop("before the removal")
        super().remove(pointer)

sqs = sqsqlite.connect(sys.argv[1])
queue = extend(sqs.queue("orders"), Store(sys.argv[2], threshold=1_000))
with sqs.transaction() as connection:
    queue.send("x" * 2_000)
    stop("before the send's commit")
stop("after the send")
[message] = queue.receive()
with sqs.transaction() as connection:
    message.delete()
    stop("before the delete's commit")
say("never told")
"""


@pytest.mark.parametrize(
    ("place", "messages", "orphans"),
    [
        ("before the send's commit", 0, 1),
        ("after the send", 1, 0),
        ("before the delete's commit", 1, 0),
        ("before the removal", 0, 1),
    ],
)
def test_a_program_that_is_killed_leaves_a_message_with_its_payload_or_an_orphan(
    tmp_path, folder, kept, place, messages, orphans
):
    path = tmp_path / "killed.db"
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders", visibility_timeout=1)
    with Program(WORK, path, folder, place) as program:
        assert program.hear() == place
        program.kill()
    with sqsqlite.connect(path) as sqs:
        store = PayloadStore(folder)
        queue = extend(sqs.queue("orders"), store)
        assert (len(queue), len(kept())) == (messages, 1)
        assert sweep(sqs, store, older_than=0).removed == orphans
        assert len(kept()) == messages
        assert [message.body for message in queue.receive(wait=5 * messages)] == [BIG] * messages


def test_a_boto3_client_of_the_same_open_file_keeps_the_rules(sqs, queue, store, kept):
    """As pytest's fixture `sqs_client` is one: its calls join the thread's transaction."""
    client = extend(boto.client_over(sqs._store), store)
    queue.send(BIG)
    (message,) = client.receive_message(QueueUrl="orders")["Messages"]
    with rolled_back(sqs):
        client.delete_message(QueueUrl="orders", ReceiptHandle=message["ReceiptHandle"])
    assert list(kept().values()) == [BIG]
    client.delete_message(QueueUrl="orders", ReceiptHandle=message["ReceiptHandle"])
    assert kept() == {}
