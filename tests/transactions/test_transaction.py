# SPDX-License-Identifier: Apache-2.0
"""`with sqs.transaction()`: the application's rows and the queue's messages commit together, or not at all."""

import threading

import pytest

import sqsqlite
from sqsqlite.errors import (
    InvalidParameterValue,
    MessageNotInflight,
    QueueDoesNotExist,
    TransactionInProgress,
)
from tests.store.inspection import assert_whole, bodies, rows
from tests.store.waiting import Task

ITEMS = "SELECT item FROM orders ORDER BY id"


class Changed(Exception):
    """The application raises this to give up."""


def place(connection, item):
    connection.execute("INSERT INTO orders (item) VALUES (?)", (item,))


def test_commit_keeps_the_row_and_the_message(sqs, queue):
    with sqs.transaction() as connection:
        place(connection, "lamp")
        queue.send("lamp ordered")
    assert rows(sqs, ITEMS) == [("lamp",)]
    assert bodies(queue) == ["lamp ordered"]
    assert_whole(sqs)


def test_exception_leaves_neither_row_nor_message(sqs, queue):
    queue.send("from before")
    with pytest.raises(Changed), sqs.transaction() as connection:  # noqa: PT012 - the block is the subject
        place(connection, "lamp")
        queue.send("lamp ordered")
        queue.send_many(["a", {"body": "b", "delay": 5}])
        raise Changed
    assert rows(sqs, ITEMS) == []
    assert_whole(sqs)
    assert bodies(queue) == ["from before"]


def test_others_see_nothing_before_the_commit(sqs, queue):
    with sqs.transaction() as connection:
        place(connection, "lamp")
        queue.send("lamp ordered")
        assert Task(rows, sqs, ITEMS).outcome() == []
        assert Task(lambda: len(queue)).outcome() == 0
        assert len(queue) == 1  # on this thread: the transaction's own view
    assert len(queue) == 1


def test_receive_and_delete_join(sqs, queue):
    """A rolled-back receive did not happen: the next receive gets the message, with its count unchanged."""
    queue.send("work")
    with pytest.raises(Changed), sqs.transaction() as connection:  # noqa: PT012
        [message] = queue.receive()
        message.delete()
        place(connection, "done")
        assert len(queue) == 0
        raise Changed
    [message] = queue.receive()
    assert (message.body, message.receive_count) == ("work", 1)
    with sqs.transaction() as connection:
        place(connection, "done")
        message.delete()
    assert rows(sqs, ITEMS) == [("done",)]
    assert len(queue) == 0
    assert_whole(sqs)


def test_message_sent_and_received_in_a_transaction_is_gone_after_the_rollback(sqs, queue):
    with pytest.raises(Changed), sqs.transaction():  # noqa: PT012
        queue.send("both")
        [message] = queue.receive()
        assert message.body == "both"
        message.change_visibility(100)
        raise Changed
    assert len(queue) == 0
    assert_whole(sqs)


def test_receive_in_a_transaction_does_not_wait(sqs, queue):
    """No other thread could send meanwhile: the clock stands still and the call returns."""
    with sqs.transaction():
        assert queue.receive(wait=20) == []


def test_refusal_in_a_transaction_leaves_it_usable(sqs, queue, clock):
    """The whole operation is done or nothing of it. Earlier and later operations are kept."""
    queue.send("old")
    [old] = queue.receive(visibility_timeout=30)
    clock.advance(seconds=31)
    with sqs.transaction() as connection:
        queue.send("before")
        with pytest.raises(MessageNotInflight):
            old.change_visibility(10)
        with pytest.raises(InvalidParameterValue):
            queue.send("x", delay=901)
        with pytest.raises(QueueDoesNotExist):
            sqs.queue("nowhere")
        with pytest.raises(InvalidParameterValue, match="message 1"):
            queue.send_many(["good", {"body": "bad", "deduplication_id": "d"}])
        place(connection, "lamp")
        queue.send("after")
    assert rows(sqs, ITEMS) == [("lamp",)]
    assert bodies(queue) == ["old", "before", "after"]
    assert_whole(sqs)


def test_savepoint_of_the_application_covers_its_messages_and_counts(sqs, queue):
    with sqs.transaction() as connection:
        queue.send("outer")
        connection.execute("SAVEPOINT mine")
        place(connection, "lamp")
        queue.send_many(["inner", "inner"])
        connection.execute("ROLLBACK TO mine")
        connection.execute("RELEASE mine")
        queue.send("outer again")
    assert rows(sqs, ITEMS) == []
    assert_whole(sqs)
    assert bodies(queue) == ["outer", "outer again"]


def test_queue_created_in_a_transaction_is_gone_after_the_rollback(sqs):
    with pytest.raises(Changed), sqs.transaction():  # noqa: PT012
        sqs.create_queue("new").send("hi")
        raise Changed
    assert sqs.queues() == []
    sqs.create_queue("new")


def test_interrupt_rolls_back(sqs, queue):
    with pytest.raises(KeyboardInterrupt), sqs.transaction():  # noqa: PT012
        queue.send("never")
        raise KeyboardInterrupt
    assert len(queue) == 0
    queue.send("next")
    assert_whole(sqs)


def test_commit_wakes_waiting_receives(sqs, queue, clock):
    waiting = Task(queue.receive, 1, 20)
    clock.until_waiting()
    with sqs.transaction():
        queue.send("wake up")
        assert waiting.is_alive()
    [message] = waiting.outcome()
    assert message.body == "wake up"


def test_rollback_causes_no_wake_up(sqs, queue, clock):
    waiting = Task(queue.receive, 1, 20)
    clock.until_waiting()
    with pytest.raises(Changed), sqs.transaction():  # noqa: PT012
        queue.send("never")
        raise Changed
    clock.advance(seconds=20)
    assert waiting.outcome() == []


def test_threads_outside_wait_for_the_commit(sqs, queue):
    begun = threading.Event()

    def send():
        begun.set()
        queue.send("second")

    with sqs.transaction():
        task = Task(send)
        assert begun.wait(300)
        queue.send("first")
        assert task.is_alive()
    task.outcome()
    assert bodies(queue) == ["first", "second"]


def test_other_object_on_the_same_file_is_refused_in_a_transaction(sqs, queue, path):
    with sqsqlite.connect(path) as other, sqs.transaction():
        with pytest.raises(TransactionInProgress):
            other.queue("orders").send("x")
        queue.send("kept")
    assert bodies(queue) == ["kept"]


def test_batch_in_a_transaction_keeps_its_good_entries(sqs, queue):
    entries = [{"Id": "good", "MessageBody": "a"}, {"Id": "bad", "MessageBody": "b", "DelaySeconds": 901}]
    with sqs.transaction():
        answer = sqs.client.send_message_batch(QueueUrl="orders", Entries=entries)
    assert [each["Id"] for each in answer["Successful"]] == ["good"]
    assert [each["Id"] for each in answer["Failed"]] == ["bad"]
    assert bodies(queue) == ["a"]
    assert_whole(sqs)
