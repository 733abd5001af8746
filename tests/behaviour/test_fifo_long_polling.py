# SPDX-License-Identifier: Apache-2.0
"""Waiting receives on FIFO queues: they end when a group is released, and continue while it is blocked."""

import pytest

from sqsqlite.actions import opening
from sqsqlite.contract.limits import SQS
from tests.behaviour.bound_queue import BoundQueue

pytestmark = pytest.mark.usefixtures("no_safety_net")


@pytest.fixture
def poll(background, until_waiting):
    """Start a receive of 20 s on another thread, and return when it sleeps."""

    def poll(queue, **params):
        future = background(queue.bodies, WaitTimeSeconds=20, **params)
        until_waiting()
        return future

    return poll


def test_a_send_to_a_free_group_ends_the_wait(fifo, poll):
    waiting = poll(fifo)
    fifo.send_group("g", "at last")
    assert waiting.result(20) == ["at last"]


@pytest.mark.rule("fifo-order.12")
def test_a_send_to_a_blocked_group_does_not_end_the_wait(fifo, poll, clock):
    fifo.send_group("blocked", "a")
    fifo.receive_one()
    waiting = poll(fifo)
    fifo.send_group("blocked", "b")
    clock.until_waiting()
    assert not waiting.done()
    fifo.send_group("free", "c")
    assert waiting.result(20) == ["c"]


@pytest.mark.rule("deduplication.9")
def test_a_duplicate_does_not_end_the_wait(fifo, poll, clock):
    fifo.send_group("g", "a")
    fifo.delete(fifo.receive_one())
    waiting = poll(fifo)
    fifo.send_group("g", "a")
    clock.until_waiting()
    assert not waiting.done()
    fifo.send_group("g", "b")
    assert waiting.result(20) == ["b"]


@pytest.mark.rule("fifo-order.13")
def test_a_delete_that_releases_the_group_ends_the_wait(fifo, poll):
    fifo.send_group("g", "a", "b")
    held = fifo.receive_one()
    waiting = poll(fifo)
    fifo.delete(held)
    assert waiting.result(20) == ["b"]


def test_the_delete_of_the_last_in_flight_ends_the_wait(fifo, poll, clock):
    """The delete of the first of two does not end it."""
    fifo.send_group("g", "a", "b", "c")
    first, second = fifo.receive(2)
    waiting = poll(fifo)
    fifo.delete(first)
    clock.until_waiting()
    assert not waiting.done()
    fifo.delete(second)
    assert waiting.result(20) == ["c"]


def test_a_batch_of_deletes_that_releases_a_group_ends_the_wait(fifo, poll):
    fifo.send_group("g", "a", "b", "c")
    held = fifo.receive(2)
    waiting = poll(fifo)
    fifo.delete_batch(*(message["ReceiptHandle"] for message in held))
    assert waiting.result(20) == ["c"]


def test_a_message_given_back_ends_the_wait(fifo, poll):
    fifo.send_group("g", "a", "b")
    held = fifo.receive_one()
    waiting = poll(fifo)
    fifo.change(held, 0)
    assert waiting.result(20) == ["a", "b"]


def test_the_end_of_a_visibility_timeout_ends_the_wait(fifo, poll, clock):
    fifo.send_group("g", "a", "b")
    fifo.receive_one(VisibilityTimeout=5)
    waiting = poll(fifo)
    clock.advance(5)
    assert waiting.result(20) == ["a", "b"]


def test_a_shortened_timeout_ends_the_wait_at_its_new_end(fifo, poll, clock):
    fifo.send_group("g", "a")
    held = fifo.receive_one()
    waiting = poll(fifo)
    fifo.change(held, 5)
    clock.advance(5)
    assert waiting.result(20) == ["a"]


def test_the_end_of_a_timeout_behind_an_extended_message_does_not_end_the_wait(fifo, poll, clock):
    fifo.send_group("g", "a", "b")
    first, _ = fifo.receive(2, VisibilityTimeout=5)
    fifo.change(first, 10)
    waiting = poll(fifo)
    clock.advance(5)
    clock.until_waiting()
    assert not waiting.done()
    clock.advance(5)
    assert waiting.result(20) == ["a", "b"]


def test_the_end_of_a_delay_ends_the_wait(make_fifo, poll, clock):
    queue = make_fifo(DelaySeconds=5)
    queue.send_group("g", "a")
    waiting = poll(queue)
    clock.advance(5)
    assert waiting.result(20) == ["a"]


@pytest.mark.rule("fifo-visibility.10")
def test_a_shorter_delay_of_the_queue_ends_the_wait(make_fifo, poll):
    queue = make_fifo(DelaySeconds=900)
    queue.send_group("g", "a")
    waiting = poll(queue)
    queue.set(DelaySeconds=0)
    assert waiting.result(20) == ["a"]


def test_expiry_of_a_message_in_flight_ends_the_wait_for_those_behind_it(make_fifo, poll, clock):
    queue = make_fifo(MessageRetentionPeriod=60)
    queue.send_group("g", "old")
    clock.advance(55)
    queue.send_group("g", "young")
    queue.receive_one(VisibilityTimeout=3600)
    waiting = poll(queue)
    clock.advance(5)
    assert waiting.result(20) == ["young"]


def test_the_wait_ends_empty_while_the_group_is_blocked(fifo, poll, clock):
    fifo.send_group("g", "a", "b")
    fifo.receive_one()
    waiting = poll(fifo)
    clock.advance(20)
    assert waiting.result(20) == []


@pytest.mark.parametrize("compat", ["docs", "aws"])
def test_at_the_limit_of_messages_in_flight_a_wait_sleeps(monkeypatch, open_sqs, poll, clock, compat):
    """Also if a message becomes visible meanwhile: the limit leaves no room for it."""
    limits = SQS._replace(fifo_in_flight_count=1, fifo_in_flight_aws_count=1)
    monkeypatch.setitem(opening.LIMITS, "one", limits)
    queue = BoundQueue.create_fifo(open_sqs(limits="one", compat=compat))
    queue.send_group("one", "a")
    queue.receive_one(VisibilityTimeout=3600)
    queue.set(DelaySeconds=5)
    queue.send_group("two", "b")
    waiting = poll(queue)
    clock.advance(5)
    clock.until_waiting()
    assert not waiting.done()
    clock.advance(15)
    assert waiting.result(20) == []


def test_two_waiting_receives_take_a_group_each(fifo, background, until_waiting):
    waiting = [background(fifo.bodies, 1, WaitTimeSeconds=20) for _ in range(2)]
    until_waiting(2)
    fifo.send_group("one", "a")
    fifo.send_group("two", "b")
    assert sorted(body for future in waiting for body in future.result(20)) == ["a", "b"]
