# SPDX-License-Identifier: Apache-2.0
"""Another program keeps the write lock: writers wait for a limited time, then get Busy and leave nothing behind."""

import time

import pytest

import sqsqlite
from sqsqlite.errors import Busy
from tests.store.inspection import assert_whole, bodies, rows
from tests.store.processes import HOLD_WRITE_LOCK, Program
from tests.store.waiting import Task

TIMEOUT = 0.3


@pytest.fixture
def sqs(path):
    with sqsqlite.connect(path, busy_timeout=TIMEOUT) as opened:
        yield opened


@pytest.fixture
def message(queue):
    queue.send("first")
    [message] = queue.receive(visibility_timeout=600)
    queue.send("second")
    return message


@pytest.fixture
def lock(sqs, queue, message, path):
    with Program(HOLD_WRITE_LOCK, path) as program:
        assert program.hear() == "held"
        yield program


OPERATIONS = {
    "send": lambda sqs, queue, message: queue.send("x"),
    "send_many": lambda sqs, queue, message: queue.send_many(["x", "y"]),
    "receive": lambda sqs, queue, message: queue.receive(),
    "delete": lambda sqs, queue, message: message.delete(),
    "change_visibility": lambda sqs, queue, message: message.change_visibility(0),
    "purge": lambda sqs, queue, message: queue.purge(),
    "create_queue": lambda sqs, queue, message: sqs.create_queue("another"),
    "delete_queue": lambda sqs, queue, message: queue.delete(),
    "tag": lambda sqs, queue, message: queue.tag({"a": "b"}),
    "transaction": lambda sqs, queue, message: sqs.transaction().__enter__(),
    "engine": lambda sqs, queue, message: sqs.engine.connect().begin(),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_operation_waits_for_busy_timeout_and_is_then_refused_and_undone(
    sqs, queue, message, lock, operation
):
    started = time.monotonic()
    with pytest.raises(Busy, match="busy_timeout"):
        operation(sqs, queue, message)
    assert TIMEOUT * 0.9 < time.monotonic() - started < 25  # shorter than the 30 s of other files
    lock.tell()
    assert lock.hear() == "free"
    assert [each.name for each in sqs.queues()] == ["orders"]
    message.delete()
    assert bodies(queue) == ["second"]
    assert_whole(sqs)


def test_reads_do_not_wait(path, lock):
    """A read that waited would be refused after ten minutes."""
    started = time.monotonic()
    with sqsqlite.connect(path, busy_timeout=600) as sqs:
        queue = sqs.queue("orders")
        assert queue.attributes["ApproximateNumberOfMessages"] == "1"
        assert [each.body for each in queue.peek()] == ["second"]
        assert len(sqs.stats()) == 1
        assert rows(sqs, "SELECT count(*) FROM sqs_messages") == [(2,)]
    assert time.monotonic() - started < 300


def test_lock_released_in_time_causes_no_error(path, lock, queue):
    with sqsqlite.connect(path, busy_timeout=30) as patient:
        task = Task(patient.queue("orders").send, "third")
        task.join(TIMEOUT)
        assert task.is_alive()
        lock.tell()
        task.outcome()
    assert bodies(queue) == ["second", "third"]


def test_file_opens_while_the_lock_is_held(path, lock):
    with sqsqlite.connect(path, busy_timeout=TIMEOUT) as second:
        assert len(second.queue("orders")) == 2


def test_close_does_not_wait_for_the_lock(sqs, queue, lock):
    """Even if there is something to write: the receives that found nothing."""
    sqs._store.transactions.remember_empty_receive(1)
    sqs.close()
    with pytest.raises(sqsqlite.errors.StoreClosed):
        queue.send("late")
