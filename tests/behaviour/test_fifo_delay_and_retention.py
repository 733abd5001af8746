# SPDX-License-Identifier: Apache-2.0
"""Delay and retention in FIFO queues. The queue's delay also applies to messages that are already stored."""

import pytest

from tests.behaviour.refusals import INVALID, does_not_exist, refused

TWELVE_HOURS = 43_200


# Delays: the queue's own, which also applies to stored messages


@pytest.mark.rule("fifo-visibility.9")
def test_a_queues_delay_hides_each_message_from_its_send_on(make_fifo, clock):
    queue = make_fifo(DelaySeconds=10)
    queue.send_group("g", "a")
    clock.advance(4)
    queue.send_group("g", "b")
    clock.advance(5.999)
    assert queue.counts == (0, 0, 2)
    assert queue.bodies() == []
    clock.advance(ms=1)
    assert queue.counts == (1, 0, 1)
    assert queue.bodies() == ["a"]


def test_a_new_delay_keeps_the_place_of_a_group_whose_first_message_is_older(make_fifo, clock):
    queue = make_fifo()
    queue.send_group("first", "a")
    queue.send_group("second", "b")
    clock.advance(5)
    queue.send_group("first", "late")
    queue.set(DelaySeconds=5)
    assert queue.counts == (2, 0, 1)
    assert queue.bodies(1) == ["a"]
    assert queue.bodies(1) == ["b"]


def test_a_delayed_message_waits_behind_one_in_flight_and_for_its_own_time(make_fifo, clock):
    queue = make_fifo(DelaySeconds=10)
    queue.send_group("g", "a")
    clock.advance(10)
    queue.send_group("g", "b")
    held = queue.receive_one()
    queue.delete(held)
    assert queue.bodies() == []
    clock.advance(9.999)
    assert queue.bodies() == []
    clock.advance(ms=1)
    assert queue.bodies() == ["b"]


@pytest.mark.rule("fifo-visibility.10")
def test_a_longer_delay_hides_stored_messages(fifo, clock):
    """Counted from the send of each message."""
    fifo.send_group("g", "a")
    clock.advance(5)
    fifo.set(DelaySeconds=60)
    assert fifo.counts == (0, 0, 1)
    assert fifo.bodies() == []
    clock.advance(55, ms=-1)
    assert fifo.bodies() == []
    clock.advance(ms=1)
    assert fifo.counts == (1, 0, 0)
    assert fifo.bodies() == ["a"]


def test_a_longer_delay_hides_no_older_message(fifo, clock):
    fifo.send_group("g", "old")
    clock.advance(30)
    fifo.send_group("g", "young")
    clock.advance(30)
    fifo.set(DelaySeconds=60)
    assert fifo.counts == (1, 0, 1)
    assert fifo.bodies() == ["old"]


@pytest.mark.rule("fifo-visibility.10")
def test_a_shorter_delay_shows_stored_messages(make_fifo, clock):
    queue = make_fifo(DelaySeconds=900)
    queue.send_group("g", "a")
    clock.advance(5)
    queue.send_group("g", "b")
    queue.set(DelaySeconds=10)
    assert queue.counts == (0, 0, 2)
    clock.advance(5)
    assert queue.bodies() == ["a"]
    queue.set(DelaySeconds=0)
    assert queue.counts == (1, 1, 0)


@pytest.mark.rule("fifo-visibility.10")
def test_removing_the_delay_shows_all_messages_at_once(make_fifo):
    queue = make_fifo(DelaySeconds=900)
    queue.send_group("one", "a", "b")
    queue.send_group("two", "c")
    queue.set(DelaySeconds=0)
    assert queue.counts == (3, 0, 0)
    assert queue.bodies() == ["a", "b", "c"]


@pytest.mark.parametrize("delay", [0, 2])
def test_a_delay_that_hides_nothing_leaves_the_groups_in_their_turns(fifo, clock, delay):
    for group in "abc":
        fifo.send_group(group, f"{group}0", f"{group}1")
        clock.advance(1)
    held = fifo.receive_one()
    clock.advance(1)
    fifo.delete(held)
    clock.advance(1)
    fifo.set(DelaySeconds=delay)
    assert [fifo.bodies(1) for _ in range(3)] == [["b0"], ["c0"], ["a1"]]


@pytest.mark.rule("fifo-visibility.11")
def test_a_new_delay_does_not_touch_received_messages(fifo, clock):
    """In flight or given back, a message has had its delay. Only messages never received get the new one."""
    fifo.send_group("one", "in flight", "behind")
    fifo.receive_one()
    fifo.send_group("two", "given back")
    fifo.change(fifo.receive_one(), 0)
    fifo.set(DelaySeconds=900)
    assert fifo.counts == (1, 1, 1)
    assert fifo.bodies() == ["given back"]
    clock.advance(30)
    assert sorted(fifo.bodies()) == ["given back", "in flight"]
    clock.advance(870)
    assert fifo.counts[2] == 0


@pytest.mark.rule("fifo-visibility.10")
def test_the_latest_delay_holds_for_the_whole_group(fifo, clock):
    """Also if the delay was changed between the sends."""
    fifo.set(DelaySeconds=10)
    fifo.send_group("g", "a")
    fifo.set(DelaySeconds=0)
    fifo.send_group("g", "b")
    fifo.set(DelaySeconds=20)
    clock.advance(19.999)
    assert fifo.bodies() == []
    clock.advance(ms=1)
    assert fifo.bodies() == ["a", "b"]


# Retention


@pytest.mark.rule("fifo-visibility.12")
def test_an_expired_message_in_flight_frees_its_group(make_fifo, clock):
    """At the instant of its expiry, however long its timeout is."""
    queue = make_fifo(MessageRetentionPeriod=60)
    queue.send_group("g", "old")
    clock.advance(30)
    queue.send_group("g", "young")
    queue.receive_one(VisibilityTimeout=3600)
    clock.advance(29.999)
    assert queue.counts == (1, 1, 0)
    assert queue.bodies() == []
    clock.advance(ms=1)
    assert queue.counts == (1, 0, 0)
    assert queue.bodies() == ["young"]


def test_a_receive_skips_expired_messages_of_a_group(make_fifo, clock):
    queue = make_fifo(MessageRetentionPeriod=60)
    for number in range(12):
        queue.send_batch(
            *({"MessageBody": f"{number} {n}", "MessageGroupId": f"g{number % 3}"} for n in range(10))
        )
    clock.advance(59)
    queue.send_group("g0", "young")
    clock.advance(1)
    assert queue.counts == (1, 0, 0)
    assert queue.bodies() == ["young"]


def test_a_group_whose_messages_all_expired_continues_with_the_next(make_fifo, clock):
    queue = make_fifo(MessageRetentionPeriod=60)
    queue.send_group("g", "a", "b")
    clock.advance(60)
    assert queue.bodies() == []
    assert queue.counts == (0, 0, 0)
    queue.send_group("g", "c")
    assert queue.bodies() == ["c"]


def test_a_delayed_message_expires_too_and_frees_its_group(make_fifo, clock):
    queue = make_fifo(MessageRetentionPeriod=60, DelaySeconds=900)
    queue.send_group("g", "never seen")
    clock.advance(60)
    assert queue.counts == (0, 0, 0)
    queue.set(DelaySeconds=0)
    queue.send_group("g", "seen")
    assert queue.bodies() == ["seen"]


@pytest.mark.rule("handle.7")
def test_a_handle_of_an_expired_message_deletes_without_error(make_fifo, clock):
    queue = make_fifo(MessageRetentionPeriod=60)
    queue.send_group("g", "a")
    message = queue.receive_one(VisibilityTimeout=3600)
    clock.advance(60)
    with refused(queue.client, INVALID, does_not_exist(message)):
        queue.change(message, 60)
    queue.delete(message)


@pytest.mark.rule("fifo-visibility.12")
def test_a_shorter_retention_frees_a_group_behind_its_message_in_flight(fifo, clock):
    fifo.send_group("g", "old")
    clock.advance(3600)
    fifo.send_group("g", "young")
    fifo.receive_one(VisibilityTimeout=TWELVE_HOURS)
    assert fifo.bodies() == []
    fifo.set(MessageRetentionPeriod=3600)
    assert fifo.bodies() == ["young"]
