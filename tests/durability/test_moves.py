# SPDX-License-Identifier: Apache-2.0
"""Message move tasks whose processes are killed: no message is lost or doubled, and any process continues them."""

import time

import pytest

import sqsqlite
from sqsqlite.actions.moving import LEASE_MS, leave_moves, move_chunk, next_move_at
from sqsqlite.operators.check import check
from sqsqlite.store import upkeep
from tests.store.full_disks import fill_with_sends, small_disk
from tests.store.processes import Program
from tests.store.waiting import until

MOVER = """
import time, sqsqlite
sqs = sqsqlite.connect(sys.argv[1], synchronous="NORMAL")
queue = sqs.queue("dead")
before = -1
while True:
    [task] = sqs.client.list_message_move_tasks(SourceArn=queue.arn)["Results"]
    moved = task["ApproximateNumberOfMessagesMoved"]
    if moved != before or task["Status"] != "RUNNING":
        say(moved)
        before = moved
    time.sleep(0.001)
"""
"""Does nothing but look how far the task is: the work is its upkeep's."""
MESSAGES = 20_000


@pytest.fixture
def path(tmp_path):
    """A file with a dead-letter queue full of messages, two sources and another queue."""
    path = tmp_path / "queues.db"
    with sqsqlite.connect(path, synchronous="OFF") as sqs:
        dead = sqs.create_queue("dead")
        sqs.create_queue("target")
        for name in ("first", "second"):
            source = sqs.create_queue(name, dead_letter_queue=dead, max_receive_count=1)
            source.send_many([f"{name} {number}" for number in range(500)])
            for _ in range(2):
                for _ in range(50):
                    for message in source.receive(10, visibility_timeout=0):
                        assert message.receive_count == 1
            assert len(source) == 0
        dead.send_many([f"direct {number}" for number in range(MESSAGES)])
    return path


@pytest.fixture
def sqs(path):
    """The file, in a process that does not work on tasks itself."""
    with sqsqlite.connect(path, synchronous="OFF") as sqs:
        sqs._store.upkeep.close()
        yield sqs


def start(sqs, **params):
    sqs.client.start_message_move_task(SourceArn=sqs.queue("dead").arn, **params)


def task(sqs):
    [found] = sqs.client.list_message_move_tasks(SourceArn=sqs.queue("dead").arn)["Results"]
    return found


def moved(sqs):
    return task(sqs)["ApproximateNumberOfMessagesMoved"]


def bodies(sqs):
    """The bodies of all messages in the file, sorted, each with the name of its queue."""
    with sqs.read_engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT m.body, q.name FROM sqs_leases AS l JOIN sqs_messages AS m ON m.id = l.id "
            "JOIN sqs_queues AS q ON q.epoch_id = l.epoch_id ORDER BY m.body"
        )
        return [tuple(row) for row in rows]


def assert_sound(sqs):
    assert check(sqs._store) == []


def test_killed_mover_leaves_each_message_in_exactly_one_queue(sqs, path):
    """The mover is killed again and again, in mid-move. The last one is left alone and ends the task."""
    every = [body for body, _ in bodies(sqs)]
    start(sqs, DestinationArn=sqs.queue("target").arn)
    for _ in range(3):
        so_far = moved(sqs)
        with Program(MOVER, path) as mover:
            while int(mover.hear()) == so_far:
                pass
            mover.kill()
        assert task(sqs)["Status"] == "RUNNING"
        assert [body for body, _ in bodies(sqs)] == every
        assert len(sqs.queue("target")) == moved(sqs) > so_far
        assert_sound(sqs)
    with Program(MOVER, path):
        until(lambda: task(sqs)["Status"] == "COMPLETED")
    assert bodies(sqs) == [(body, "target") for body in every]
    assert_sound(sqs)


def test_two_processes_at_once_do_the_work_of_one(sqs, path):
    every = [body for body, _ in bodies(sqs)]
    start(sqs, DestinationArn=sqs.queue("target").arn)
    with Program(MOVER, path), Program(MOVER, path):
        until(lambda: task(sqs)["Status"] == "COMPLETED")
    assert bodies(sqs) == [(body, "target") for body in every]
    assert moved(sqs) == len(every)
    assert_sound(sqs)


def test_a_process_that_only_receives_continues_a_task_of_another(sqs, path):
    """It was there before the task began, and commits nothing.

    From time to time its empty receives make it look for tasks.
    """
    receiver = """
import sqsqlite
sqs = sqsqlite.connect(sys.argv[1], synchronous="NORMAL")
target = sqs.queue("target")
say("open")
while not target.receive(wait=1):
    pass
say("received")
"""
    with Program(receiver, path) as program:
        assert program.hear() == "open"
        start(sqs, DestinationArn=sqs.queue("target").arn)
        assert program.hear() == "received"


def test_a_task_waits_for_space_on_a_full_disk_and_needs_little(tmp_path, monkeypatch):
    """Sends are refused before the disk is full. The task then needs only the space of one message."""
    monkeypatch.setattr(upkeep, "LOOK_EVERY", 0.01)
    with small_disk(tmp_path / "disk", size_mib=2) as disk, sqsqlite.connect(disk / "queues.db") as sqs:
        dead, target = sqs.create_queue("dead"), sqs.create_queue("target")
        sqs.create_queue("source", dead_letter_queue=dead, max_receive_count=1)
        sent = fill_with_sends(dead, "x" * 3_000)
        task = dead.start_move_task(target)
        assert task.wait(timeout=0.1).status == "RUNNING"
        for message in dead.receive(5):
            message.delete()
        assert task.wait(timeout=300).status == "COMPLETED"
        assert (len(dead), len(target)) == (0, len(sent) - 5)
        assert_sound(sqs)


# --- chunk by chunk


def work(sqs, worker):
    """Move one chunk. Returns the number of moved messages."""
    before = moved(sqs)
    sqs._store.write(move_chunk, worker)
    return moved(sqs) - before


@pytest.fixture
def frozen(path):
    """The file, under a clock that stands still."""
    clock = sqsqlite.ManualClock(time.time_ns() // 1_000_000)
    with sqsqlite.connect(path, synchronous="OFF", clock=clock) as sqs:
        sqs._store.upkeep.close()
        yield sqs, clock


@pytest.mark.slow
def test_a_task_belongs_to_one_worker_until_its_lease_ends(frozen):
    sqs, clock = frozen
    start(sqs, DestinationArn=sqs.queue("target").arn)
    assert work(sqs, b"one") > 0
    assert work(sqs, b"two") == 0
    clock.advance(ms=LEASE_MS - 1)
    assert work(sqs, b"two") == 0
    assert work(sqs, b"one") > 0
    clock.advance(ms=LEASE_MS)
    assert work(sqs, b"two") > 0
    assert work(sqs, b"one") == 0


def test_a_worker_that_leaves_ends_its_lease(frozen):
    sqs, clock = frozen
    start(sqs, DestinationArn=sqs.queue("target").arn)
    work(sqs, b"one")
    with sqs._store.reading() as connection:
        assert next_move_at(connection, b"two") == clock.now_ms() + LEASE_MS
    sqs._store.write(leave_moves, b"one")
    assert work(sqs, b"two") > 0


def test_tasks_take_turns(frozen):
    """The task that has waited longest comes next."""
    sqs, clock = frozen
    other = sqs.create_queue("other-dead")
    sqs.create_queue("other", dead_letter_queue=other, max_receive_count=1)
    other.send_many(["x"] * 2000)
    target = sqs.queue("target")
    start(sqs, DestinationArn=target.arn)
    sqs.client.start_message_move_task(SourceArn=other.arn, DestinationArn=target.arn)
    counts = []
    for _ in range(4):
        clock.advance(ms=1)
        sqs._store.write(move_chunk, b"one")
        counts.append((len(other), moved(sqs)))
    assert counts == [(2000, 500), (1500, 500), (1500, 1000), (1000, 1000)]


@pytest.mark.slow
def test_a_chunk_of_several_sources_is_one_transaction(frozen):
    sqs, _ = frozen
    start(sqs)
    while task(sqs)["Status"] == "RUNNING":
        work(sqs, b"one")
        assert_sound(sqs)
    assert (len(sqs.queue("first")), len(sqs.queue("second"))) == (500, 500)
    assert task(sqs)["FailureReason"] == "CouldNotDetermineMessageSource"
