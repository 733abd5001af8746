# SPDX-License-Identifier: Apache-2.0
"""Message move tasks by the Python API: the task as an object, and filters."""

import copy
import pickle

import pytest

import sqsqlite
from sqsqlite import MoveFilter, errors
from tests.store.waiting import until


@pytest.fixture
def clock():
    return sqsqlite.ManualClock()


@pytest.fixture
def sqs(tmp_path, clock):
    with sqsqlite.connect(tmp_path / "queues.db", clock=clock, synchronous="NORMAL") as sqs:
        yield sqs


@pytest.fixture
def dead(sqs):
    return sqs.create_queue("dead")


@pytest.fixture
def first(sqs, dead):
    return sqs.create_queue("first", dead_letter_queue=dead, max_receive_count=1)


@pytest.fixture
def second(sqs, dead):
    """A queue whose messages die at the third receive."""
    return sqs.create_queue("second", dead_letter_queue=dead, max_receive_count=3)


def let_die(queue, receives, *bodies):
    queue.send_many(bodies)
    for _ in range(receives):
        assert len(queue.receive(10, visibility_timeout=0)) == len(bodies)
    assert queue.receive() == []


def bodies(queue):
    return sorted(message.body for message in queue.peek(100))


def test_a_task_is_started_awaited_and_listed(dead, first, clock):
    let_die(first, 1, "a", "b")
    task = dead.start_move_task()
    assert (task.status, task.moved_count, task.to_move_count) in [("RUNNING", 0, 2), ("COMPLETED", 2, 2)]
    done = task.wait(timeout=20)
    assert (done.status, done.moved_count, done.failure_reason) == ("COMPLETED", 2, None)
    assert (done.source_arn, done.destination_arn, done.max_messages_per_second) == (dead.arn, None, None)
    assert (done.task_handle, done.started_at) == (task.task_handle, clock.now_ms())
    assert dead.move_tasks() == [done]
    assert bodies(first) == ["a", "b"]


def test_a_wait_for_an_unfinished_task_returns_its_present_state(dead, first):
    let_die(first, 1, "a")
    assert dead.start_move_task(max_messages_per_second=1).wait(timeout=0).status == "RUNNING"


def test_a_task_is_cancelled(dead, first, clock):
    let_die(first, 1, "a", "b")
    task = dead.start_move_task(max_messages_per_second=1)
    clock.advance(1)
    until(lambda: task.refreshed().moved_count == 1)
    assert task.cancel() == 1
    assert task.refreshed().status == "CANCELLED"
    with pytest.raises(errors.ResourceNotFoundException, match="CANCELLED"):
        task.cancel()


def test_a_task_is_neither_pickled_nor_copied(dead, first):
    task = dead.start_move_task()
    for refused in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"can't be pickled or copied: .* by its task_handle"):
            refused(task)


@pytest.mark.parametrize("name", ["itself", "name", "url", "arn"])
def test_a_destination_is_a_queue_its_name_url_or_arn(sqs, dead, first, name):
    dead.send("direct")
    target = sqs.create_queue("target")
    dead.start_move_task(target if name == "itself" else getattr(target, name)).wait(20)
    assert bodies(target) == ["direct"]


def test_the_eleventh_task_before_is_forgotten(dead, first, clock):
    oldest = dead.start_move_task()
    oldest.wait(20)
    for _ in range(10):
        clock.advance(1)
        dead.start_move_task().wait(20)
    assert len(dead.move_tasks()) == 10
    with pytest.raises(errors.ResourceNotFoundException, match=r"Task does not exist\."):
        oldest.refreshed()


# Filters


@pytest.fixture
def buried(dead, first, second, clock):
    """Five messages: two of each source, a second apart, and one sent directly. Returns the instant of the first."""
    began_at = clock.now_ms()
    let_die(first, 1, "cat", "dog")
    clock.advance(1)
    let_die(second, 3, "cats", "fox")
    clock.advance(1)
    dead.send("cat, directly")
    return began_at


FILTERS = {
    "by source": (lambda at: {"source_arn": "arn:aws:sqs:us-east-1:000000000000:first"}, {"cat", "dog"}),
    "by body": (lambda at: {"body": "cat"}, {"cat", "cats", "cat, directly"}),
    "by receives": (lambda at: {"minimum_receive_count": 2}, {"cats", "fox"}),
    "from an instant on": (lambda at: {"moved_from": at + 1000}, {"cats", "fox"}),
    "before an instant": (lambda at: {"moved_before": at + 1000}, {"cat", "dog"}),
    "by two conditions": (lambda at: {"body": "cat", "moved_before": at + 1000}, {"cat"}),
    "no condition": (lambda at: {}, {"cat", "dog", "cats", "fox", "cat, directly"}),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_moves_the_matching_messages_alone(sqs, dead, buried, name):
    conditions, taken = FILTERS[name]
    target = sqs.create_queue("target")
    every = set(bodies(dead))
    done = dead.start_move_task(target, only=MoveFilter(**conditions(buried))).wait(20)
    assert (done.status, done.moved_count) == ("COMPLETED", len(taken))
    assert (set(bodies(target)), set(bodies(dead))) == (taken, every - taken)


@pytest.mark.parametrize("name", ["itself", "name", "url", "arn"])
def test_the_source_of_a_filter_is_a_queue_its_name_url_or_arn(dead, first, buried, name):
    only = MoveFilter(source_arn=first if name == "itself" else getattr(first, name))
    done = dead.start_move_task(only=only).wait(20)
    assert (done.status, bodies(first)) == ("COMPLETED", ["cat", "dog"])


def test_an_impossible_source_name_is_an_error(dead, buried):
    with pytest.raises(errors.QueueDoesNotExist):
        dead.start_move_task(only=MoveFilter(source_arn="no name"))


def test_an_invalid_filter_is_an_error_with_an_example(dead, first):
    for given in ("cat", {"body": "cat"}):
        with pytest.raises(TypeError, match="a MoveFilter is allowed"):
            dead.start_move_task(only=given)
    assert dead.move_tasks() == []


def test_a_message_left_by_the_filter_does_not_fail_the_task(dead, first, buried):
    """The message that was sent directly has no source, but the filter does not select it."""
    done = dead.start_move_task(only=MoveFilter(source_arn=first.arn)).wait(20)
    assert (done.status, bodies(first)) == ("COMPLETED", ["cat", "dog"])


def test_a_filter_finds_the_last_of_many(sqs, dead, first):
    """It comes after more messages than one step looks at."""
    dead.send_many(["hay"] * 1700 + ["needle"])
    target = sqs.create_queue("target")
    done = dead.start_move_task(target, only=MoveFilter(body="needle")).wait(20)
    assert (done.moved_count, bodies(target), len(dead)) == (1, ["needle"], 1700)


@pytest.mark.parametrize(
    "given", [{"body": 5}, {"source_arn": b"x"}, {"minimum_receive_count": "2"}, {"moved_from": 1.5}]
)
def test_a_condition_of_another_type_is_an_error(given):
    with pytest.raises(TypeError, match="is allowed"):
        MoveFilter(**given)


# In a transaction of the caller


def test_a_task_begins_with_the_transaction_it_was_started_in(sqs, dead, first):
    let_die(first, 1, "a")

    def start_and_fail():
        with sqs.transaction():
            dead.start_move_task()
            raise RuntimeError("changed my mind")

    with pytest.raises(RuntimeError, match="changed my mind"):
        start_and_fail()
    assert (dead.move_tasks(), len(dead)) == ([], 1)
    with sqs.transaction():
        task = dead.start_move_task()
        assert task.status == "RUNNING"
        assert task.to_move_count == 1
    assert task.wait(20).status == "COMPLETED"


def test_messages_sent_by_the_transaction_are_moved_too(sqs, dead, first):
    target = sqs.create_queue("target")
    with sqs.transaction():
        dead.send("a")
        task = dead.start_move_task(target)
    assert (task.to_move_count, task.wait(20).moved_count) == (1, 1)


def test_a_wait_inside_a_transaction_is_refused_at_once(sqs, dead, first):
    """The transaction holds the turn that the task needs: the wait would never end."""
    let_die(first, 1, "a")
    task = dead.start_move_task(max_messages_per_second=1)
    with sqs.transaction():
        assert task.refreshed().status == "RUNNING"
        with pytest.raises(errors.TransactionInProgress, match="wait"):
            task.wait()
    with sqs.engine.begin(), pytest.raises(errors.TransactionInProgress, match="wait"):
        task.wait()
    assert task.wait(0).status == "RUNNING"
