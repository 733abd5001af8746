# SPDX-License-Identifier: Apache-2.0
"""Retention: a message expires at its age, in every state. Ages count from the send, to the millisecond."""

import pytest

from tests.behaviour.bound_queue import BoundQueue

FOUR_DAYS = 345_600


@pytest.fixture
def short(make_queue):
    """A queue with the shortest possible retention."""
    return make_queue("short", MessageRetentionPeriod=60)


@pytest.mark.rule("attribute.4", "retention.1")
def test_a_message_is_kept_for_four_days_by_default(queue, clock):
    queue.send("old")
    clock.advance(FOUR_DAYS, ms=-1)
    assert queue.bodies(VisibilityTimeout=0) == ["old"]
    clock.advance(ms=1)
    assert queue.bodies() == []
    assert queue.counts == (0, 0, 0)


@pytest.mark.rule("retention.1", "retention.2")
@pytest.mark.parametrize("period", [60, 1_209_600])
def test_a_queues_own_retention_is_1_minute_to_14_days(make_queue, clock, period):
    queue = make_queue(MessageRetentionPeriod=period)
    queue.send("old")
    clock.advance(period, ms=-1)
    assert queue.counts == (1, 0, 0)
    clock.advance(ms=1)
    assert queue.counts == (0, 0, 0)
    assert queue.bodies() == []


@pytest.mark.rule("retention.1", "retention.2")
def test_an_expired_message_in_flight_never_comes_back(short, clock):
    short.send("old")
    short.receive_one(VisibilityTimeout=59)
    assert short.counts == (0, 1, 0)
    clock.advance(60)
    assert short.counts == (0, 0, 0)
    assert short.bodies() == []


@pytest.mark.rule("retention.2")
def test_an_expired_message_leaves_the_flight_before_its_timeout_ends(short, clock):
    short.send("old")
    short.receive_one(VisibilityTimeout=3600)
    clock.advance(60)
    assert short.counts == (0, 0, 0)
    clock.advance(3600)
    assert short.bodies() == []


@pytest.mark.rule("retention.1", "retention.2", "retention.3")
def test_a_delayed_message_expires_too(short, clock):
    """Its age counts from the send, not from the end of its delay."""
    short.send("never seen", DelaySeconds=900)
    assert short.counts == (0, 0, 1)
    clock.advance(60)
    assert short.counts == (0, 0, 0)
    clock.advance(900)
    assert short.bodies() == []


@pytest.mark.rule("retention.1", "retention.2")
def test_younger_messages_stay(short, clock):
    short.send("old")
    clock.advance(30)
    short.send("young")
    clock.advance(30)
    assert short.counts == (1, 0, 0)
    assert short.bodies() == ["young"]


def test_a_receive_skips_any_number_of_expired_messages(short, clock):
    """As if they had been swept before."""
    for _ in range(30):
        short.client.send_message_batch(
            QueueUrl=short.url,
            Entries=[{"Id": str(number), "MessageBody": "old"} for number in range(10)],
        )
    clock.advance(60)
    short.send_all("young", "younger")
    assert short.bodies() == ["young", "younger"]
    assert short.counts == (0, 2, 0)


def test_a_receive_skips_expired_messages_between_others(make_queue, clock):
    """Old messages that return from flight stand among younger ones."""
    queue = make_queue(MessageRetentionPeriod=60)
    queue.send_all("old", "older")
    queue.receive(2, VisibilityTimeout=59)
    clock.advance(59)
    queue.send("young")
    clock.advance(1)
    assert queue.bodies() == ["young"]
    assert queue.counts == (0, 1, 0)


@pytest.mark.rule("retention.5")
def test_a_shorter_retention_applies_to_stored_messages(queue, clock):
    queue.send("an hour old")
    clock.advance(3600)
    queue.send("fresh")
    queue.set(MessageRetentionPeriod=3600)
    assert queue.counts == (1, 0, 0)
    assert queue.bodies() == ["fresh"]


@pytest.mark.rule("retention.5")
def test_a_longer_retention_keeps_stored_messages(short, clock):
    short.send("kept")
    clock.advance(59)
    short.set(MessageRetentionPeriod=3600)
    clock.advance(3540)
    assert short.bodies(VisibilityTimeout=0) == ["kept"]
    clock.advance(1)
    assert short.bodies() == []


@pytest.mark.rule("retention.1", "retention.4")
def test_receives_do_not_make_a_message_younger(short, clock):
    short.send("old")
    for _ in range(6):
        assert short.bodies(VisibilityTimeout=10) == ["old"]
        clock.advance(10)
    assert short.bodies() == []


def test_retention_continues_while_no_client_is_open(open_sqs, clock):
    client = open_sqs()
    queue = BoundQueue.create(client, MessageRetentionPeriod=60)
    queue.send("old")
    client.close()
    clock.advance(60)
    again = BoundQueue(open_sqs(), queue.url)
    assert again.counts == (0, 0, 0)
    assert again.bodies() == []


def test_a_waiting_receive_is_not_given_an_expired_message(short, clock, background):
    """Its timeout and its retention end at the same instant."""
    short.send("old")
    short.receive_one(VisibilityTimeout=60)
    for _ in range(3):
        waiting = background(short.bodies, WaitTimeSeconds=20)
        clock.until_waiting()
        clock.advance(20)
        assert waiting.result(20) == []
    assert short.counts == (0, 0, 0)


def test_the_queue_itself_does_not_expire(short, clock):
    clock.advance(10 * 365 * 86_400)
    short.send("still there")
    assert short.bodies() == ["still there"]
