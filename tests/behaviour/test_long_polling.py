# SPDX-License-Identifier: Apache-2.0
"""Waiting receives: the events that end a wait. A manual clock stands still meanwhile."""

import pytest

from sqsqlite.store import wake
from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.refusals import NO_SUCH_QUEUE, refused

pytestmark = pytest.mark.usefixtures("no_safety_net")


@pytest.fixture
def poll(background, until_waiting):
    """Start a receive of 20 s on another thread, and return when it sleeps."""

    def poll(queue, waiting=1, **params):
        future = background(queue.bodies, **{"WaitTimeSeconds": 20, **params})
        until_waiting(waiting)
        return future

    return poll


@pytest.mark.rule("poll.1")
def test_a_visible_message_is_returned_without_a_wait(queue, clock):
    """One message is enough: the wait is not for ten."""
    queue.send("there")
    before = clock.now_ms()
    assert queue.bodies(10, WaitTimeSeconds=20) == ["there"]
    assert clock.now_ms() == before


@pytest.mark.rule("poll.2")
def test_a_send_ends_the_wait(queue, poll):
    waiting = poll(queue)
    queue.send("at last")
    assert waiting.result(20) == ["at last"]


def test_a_send_by_another_client_on_the_file_ends_the_wait(queue, poll, open_sqs):
    waiting = poll(queue)
    BoundQueue(open_sqs(), queue.url).send("from elsewhere")
    assert waiting.result(20) == ["from elsewhere"]


@pytest.mark.rule("poll.3")
def test_a_batch_ends_the_wait_and_may_be_received_whole(queue, poll):
    waiting = poll(queue)
    queue.client.send_message_batch(
        QueueUrl=queue.url, Entries=[{"Id": name, "MessageBody": name} for name in "abc"]
    )
    assert waiting.result(20) == ["a", "b", "c"]


def test_a_send_to_another_queue_does_not_end_the_wait(queue, poll, make_queue, clock):
    waiting = poll(queue)
    make_queue("other").send("elsewhere")
    clock.until_waiting()
    assert not waiting.done()
    queue.send("here")
    assert waiting.result(20) == ["here"]


@pytest.mark.rule("poll.4")
def test_the_wait_ends_empty_after_its_time(queue, poll, clock):
    waiting = poll(queue)
    clock.advance(19.999)
    clock.until_waiting()
    assert not waiting.done()
    clock.advance(ms=1)
    assert waiting.result(20) == []


@pytest.mark.rule("poll.10")
def test_a_message_in_the_last_millisecond_of_the_wait_ends_it(queue, poll, clock):
    waiting = poll(queue)
    clock.advance(19.999)
    queue.send("just in time")
    assert waiting.result(20) == ["just in time"]


def test_without_a_wait_a_receive_answers_at_once(queue):
    assert queue.bodies(WaitTimeSeconds=0) == []


@pytest.mark.rule("poll.5", "poll.6")
def test_a_queues_own_wait_applies_to_a_receive_without_one(make_queue, background, clock):
    queue = make_queue(ReceiveMessageWaitTimeSeconds=7)
    began = clock.now_ms()
    assert queue.bodies(WaitTimeSeconds=0) == []
    assert clock.now_ms() == began  # A wait of the only thread would have moved the clock.
    waiting = background(queue.bodies)
    clock.until_waiting()
    clock.advance(7)
    assert waiting.result(20) == []


@pytest.mark.rule("poll.7")
def test_the_end_of_a_delay_ends_the_wait(queue, poll, clock):
    queue.send("later", DelaySeconds=5)
    waiting = poll(queue)
    clock.advance(5)
    assert waiting.result(20) == ["later"]


def test_the_end_of_a_delay_begun_during_the_wait_ends_it(queue, poll, clock):
    waiting = poll(queue)
    queue.send("later", DelaySeconds=5)
    clock.advance(5)
    assert waiting.result(20) == ["later"]


def test_the_end_of_a_visibility_timeout_ends_the_wait(queue, poll, clock):
    queue.send("again")
    queue.receive(VisibilityTimeout=5)
    waiting = poll(queue)
    clock.advance(5)
    assert waiting.result(20) == ["again"]


@pytest.mark.rule("poll.8")
def test_a_message_given_back_ends_the_wait(queue, poll):
    queue.send("back")
    held = queue.receive_one()
    waiting = poll(queue)
    queue.change(held, 0)
    assert waiting.result(20) == ["back"]


def test_a_shortened_timeout_ends_the_wait_earlier(queue, poll, clock):
    queue.send("sooner")
    held = queue.receive_one(VisibilityTimeout=3600)
    waiting = poll(queue)
    queue.change(held, 5)
    clock.advance(5)
    assert waiting.result(20) == ["sooner"]


def test_an_extended_timeout_does_not_end_the_wait(queue, poll, clock):
    queue.send("longer")
    held = queue.receive_one(VisibilityTimeout=5)
    waiting = poll(queue)
    queue.change(held, 3600)
    clock.advance(5)
    clock.until_waiting()
    assert not waiting.done()
    clock.advance(15)
    assert waiting.result(20) == []


def test_one_message_goes_to_one_of_two_waiting_receives(queue, poll):
    first, second = poll(queue, max_messages=1), poll(queue, waiting=2, max_messages=1)
    queue.send("one")
    queue.send("two")
    assert sorted(first.result(20) + second.result(20)) == ["one", "two"]


def test_a_long_poll_does_not_block_sends_and_receives(queue, poll, make_queue):
    """No transaction is open during the wait."""
    waiting = poll(queue)
    other = make_queue("other")
    other.send("meanwhile")
    assert other.bodies() == ["meanwhile"]
    queue.send("end")
    assert waiting.result(20) == ["end"]


def test_a_wait_on_a_queue_that_is_deleted_ends_with_the_error(queue, background, clock):
    waiting = background(queue.bodies, WaitTimeSeconds=20)
    clock.until_waiting()
    queue.client.delete_queue(QueueUrl=queue.url)
    with refused(queue.client, "QueueDoesNotExist", NO_SUCH_QUEUE):
        waiting.result(20)


def test_a_wait_survives_a_purge(queue, poll):
    queue.send("held")
    queue.receive()
    waiting = poll(queue)
    queue.client.purge_queue(QueueUrl=queue.url)
    queue.send("after")
    assert waiting.result(20) == ["after"]


def test_a_message_received_while_waiting_is_in_flight_from_then_on(queue, poll, clock):
    """Its timeout starts when the message is returned, not when the wait began."""
    waiting = poll(queue)
    clock.advance(15)
    queue.send("late")
    assert waiting.result(20) == ["late"]
    clock.advance(29.999)
    assert queue.bodies() == []
    clock.advance(ms=1)
    assert queue.bodies() == ["late"]


def test_closing_the_client_ends_its_waits(queue, background, clock):
    waiting = background(queue.bodies, WaitTimeSeconds=20)
    clock.until_waiting()
    queue.client.close()
    assert waiting.result(20) == []


def test_a_wake_up_for_a_later_instant_does_not_hide_one_for_a_message(queue, poll, monkeypatch):
    """Both events come before the waiter has woken: a message, then the end of another message's timeout."""
    hear = wake.Waker._hear

    def hear_of_a_timeout_too(waker, queue_id, visible_at):
        hear(waker, queue_id, visible_at)
        hear(waker, queue_id, 1 << 60)

    waiting = poll(queue)
    monkeypatch.setattr(wake.Waker, "_hear", hear_of_a_timeout_too)
    queue.send("not hidden")
    assert waiting.result(10) == ["not hidden"]
