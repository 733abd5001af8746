# SPDX-License-Identifier: Apache-2.0
"""How many statements a look at many queues runs: each locks the file's index of snapshots."""

import pytest

import sqsqlite
from sqsqlite import ManualClock
from sqsqlite.errors import QueueDoesNotExist


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def sqs(tmp_path, clock):
    with sqsqlite.connect(tmp_path / "queues.db", clock=clock, synchronous="OFF") as sqs:
        yield sqs


@pytest.fixture
def statements(sqs):
    """The statements on the connection for reads, from the first read on."""
    sqs.queues()
    run = []
    with sqs._store.file.readers.lent() as connection:
        connection.set_trace_callback(run.append)
    return run


def test_all_queues_are_listed_by_one_statement(sqs, statements):
    for number in range(100):
        sqs.create_queue(f"q{number:02}")
    statements.clear()
    assert [queue.name for queue in sqs.queues()] == [f"q{number:02}" for number in range(100)]
    assert len(statements) == 3  # begin, select, rollback


def test_queues_are_listed_by_prefix_in_one_statement(sqs):
    for name in ("a", "ab", "abc", "b"):
        sqs.create_queue(name)
    assert [queue.name for queue in sqs.queues("ab")] == ["ab", "abc"]


def test_a_queue_is_counted_by_one_statement(sqs, statements):
    queue = sqs.create_queue("orders")
    queue.send_many(["visible", "in flight", "third"])
    queue.receive()
    queue.send("delayed", delay=60)
    statements.clear()
    assert len(queue) == 4
    assert len(statements) == 3  # begin, select, rollback


@pytest.fixture
def many(sqs, clock):
    """Fifteen queues of every kind, each with messages in some states. In two queues all messages have expired."""
    for number in range(3):
        dead = sqs.create_queue(f"dead{number}")
        failing = sqs.create_queue(f"failing{number}", dead_letter_queue=dead, max_receive_count=1)
        failing.send("poison")
        failing.receive(visibility_timeout=0)
        failing.receive()
        dead.send("by hand")
        sqs.create_queue(f"short{number}", message_retention_period=60).send_many(["a", "b"])
        tenants = sqs.create_queue(f"tenants{number}")
        tenants.send_many([{"body": str(body), "group_id": f"g{body // 40}"} for body in range(80)])
        tenants.receive(10)
        fifo = sqs.create_queue(f"f{number}.fifo", fifo=True, content_based_deduplication=True)
        fifo.send_many([{"body": str(body), "group_id": f"g{body % 3}"} for body in range(9)])
        fifo.receive()
        clock.advance(30)
        for queue in (dead, failing):
            queue.send_many(["visible", "in flight", {"body": "delayed", "delay": 600}])
            queue.receive(visibility_timeout=20)


@pytest.mark.parametrize(("look", "most"), [("stats", 3), ("metrics", 7)])
def test_all_queues_are_measured_by_a_few_statements(sqs, many, statements, look, most):
    statements.clear()
    found = getattr(sqs, look)()
    assert len(found) == 15
    run = len(statements)
    # Begin and rollback; two of the queues hold expired messages, and each of these is counted by itself.
    assert run <= most + 4
    # Each queue alone has the same numbers.
    assert [one for queue in found for one in getattr(sqs, look)(queue.name)] == found


def test_what_is_beyond_its_retention_is_not_counted(sqs, clock):
    queue = sqs.create_queue("orders", message_retention_period=60)
    queue.send_many(["a", "b"])
    clock.advance(59)
    queue.send("c")
    clock.advance(1)
    assert len(queue) == 1


def test_a_queue_that_was_deleted_cannot_be_counted(sqs):
    queue = sqs.create_queue("orders")
    queue.delete()
    with pytest.raises(QueueDoesNotExist) as caught:
        len(queue)
    assert "No queue 'orders'" in caught.value.__notes__[0]


def test_a_message_of_the_same_transaction_is_counted(sqs):
    queue = sqs.create_queue("orders")
    with sqs.transaction():
        queue.send("a")
        assert len(queue) == 1
