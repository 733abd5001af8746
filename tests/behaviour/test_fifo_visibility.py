# SPDX-License-Identifier: Apache-2.0
"""Visibility in FIFO queues: timeouts of messages in a group, handles, and the limit in flight."""

import re

import pytest

from sqsqlite.actions import opening
from sqsqlite.contract.limits import SQS
from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.refusals import INVALID, beyond_12_hours, does_not_exist, expired, refused

TWELVE_HOURS = 43_200


@pytest.fixture
def any_mode(either):
    """A FIFO queue in each mode."""
    return BoundQueue.create_fifo(either)


@pytest.fixture
def five(fifo):
    """One group of five messages."""
    fifo.send_group("g", *"abcde")
    return fifo


# Timeouts


@pytest.mark.rule("fifo-order.2")
def test_a_group_is_blocked_for_its_visibility_timeout(five, clock):
    assert five.bodies(2) == ["a", "b"]
    clock.advance(29.999)
    assert five.bodies() == []
    clock.advance(ms=1)
    assert five.bodies() == list("abcde")


@pytest.mark.rule("fifo-visibility.4")
def test_a_timeout_of_0_returns_messages_and_leaves_them_visible(five):
    """Each is returned once in a receive, and the group is free."""
    assert five.bodies(2, VisibilityTimeout=0) == ["a", "b"]
    assert five.counts == (5, 0, 0)
    assert five.bodies(VisibilityTimeout=0) == list("abcde")
    counts = [message["Attributes"]["ApproximateReceiveCount"] for message in five.receive(10)]
    assert counts == ["3", "3", "2", "2", "2"]


@pytest.mark.rule("fifo-visibility.4")
def test_a_queues_own_timeout_of_0_blocks_nothing(make_fifo):
    queue = make_fifo(VisibilityTimeout=0)
    queue.send_group("g", "a", "b")
    assert queue.bodies(1) == queue.bodies(1) == ["a"]


@pytest.mark.rule("fifo-visibility.5")
def test_the_receive_count_rises_at_each_receive_of_the_message_itself(five, clock):
    """Messages that are blocked behind it are not counted."""
    five.receive_one()
    clock.advance(30)
    counts = [message["Attributes"]["ApproximateReceiveCount"] for message in five.receive(10)]
    assert counts == ["2", "1", "1", "1", "1"]


# ChangeMessageVisibility


@pytest.mark.rule("fifo-visibility.1")
def test_the_first_of_two_given_back_comes_again_while_the_second_stays_hidden(five):
    first, _ = five.receive(2)
    five.change(first, 0)
    assert five.counts == (4, 1, 0)
    assert five.bodies() == ["a"]
    assert five.bodies() == []


@pytest.mark.rule("fifo-visibility.2")
def test_the_second_of_two_given_back_waits_for_the_first(five, clock):
    """It is visible itself, but an earlier message blocks the group."""
    first, second = five.receive(2)
    five.change(second, 0)
    assert five.counts == (4, 1, 0)
    assert five.bodies() == []
    five.delete(first)
    assert five.bodies() == list("bcde")


@pytest.mark.rule("fifo-visibility.1")
def test_both_given_back_come_again_in_order(five):
    for message in reversed(five.receive(2)):
        five.change(message, 0)
    assert five.bodies() == list("abcde")


@pytest.mark.rule("fifo-visibility.3")
def test_an_extended_message_holds_back_those_behind_it(five, clock):
    """Of three messages received together the second is extended.

    When the others' timeout ends, only the first returns.
    """
    _, second, _ = five.receive(3)
    five.change(second, 60)
    clock.advance(30)
    assert five.counts == (4, 1, 0)
    held = five.receive(10)
    assert [message["Body"] for message in held] == ["a"]
    five.delete(held[0])
    assert five.bodies() == []
    clock.advance(29.999)
    assert five.bodies() == []
    clock.advance(ms=1)
    assert five.bodies() == list("bcde")


def test_an_extended_first_message_holds_back_the_whole_group(five, clock):
    first, _ = five.receive(2)
    five.change(first, 60)
    clock.advance(59.999)
    assert five.bodies() == []
    clock.advance(ms=1)
    assert five.bodies() == list("abcde")


def test_a_deleted_extended_message_holds_nothing_back_any_more(five, clock):
    _, second, _ = five.receive(3)
    five.change(second, 3600)
    clock.advance(30)
    assert five.bodies(1, VisibilityTimeout=0) == ["a"]
    five.delete(second)
    assert five.bodies() == list("acde")


def test_a_shortened_timeout_releases_the_group_early(five, clock):
    five.change(five.receive_one(), 5)
    clock.advance(4.999)
    assert five.bodies() == []
    clock.advance(ms=1)
    assert five.bodies() == list("abcde")


def test_a_change_of_one_group_leaves_the_others_alone(fifo):
    for group in ("one", "two"):
        fifo.send_group(group, f"{group}-0", f"{group}-1")
    one, _ = fifo.receive_one(), fifo.receive_one()
    fifo.change(one, 0)
    assert fifo.bodies() == ["one-0", "one-1"]


def test_a_change_is_not_remembered(five, clock):
    five.change(five.receive_one(), 60)
    clock.advance(60)
    five.receive_one()
    clock.advance(30)
    assert five.bodies() == list("abcde")


@pytest.mark.rule("fifo-visibility.17")
def test_12_hours_from_the_receive_are_the_most_in_all(five, clock):
    message = five.receive_one()
    clock.advance(10)
    with refused(five.client, INVALID, beyond_12_hours(TWELVE_HOURS - 9)):
        five.change(message, TWELVE_HOURS - 9)
    five.change(message, TWELVE_HOURS - 10)
    clock.advance(TWELVE_HOURS - 10, ms=-1)
    assert five.bodies() == []
    clock.advance(ms=1)
    assert five.bodies() == list("abcde")


# Receipt handles


def test_the_latest_handle_deletes_and_changes_in_flight(any_mode, clock):
    any_mode.send_group("g", "a", "b")
    message = any_mode.receive_one()
    clock.advance(29.999)
    any_mode.change(message, 60)
    clock.advance(59.999)
    any_mode.delete(message)
    assert any_mode.bodies() == ["b"]


@pytest.mark.rule("fifo-visibility.6")
def test_an_expired_handle_does_not_delete_in_either_mode(any_mode, clock):
    """No work is done twice without the next consumer's knowledge: the message stays, first of its group."""
    any_mode.send_group("g", "a", "b")
    late = any_mode.receive_one()
    clock.advance(30)
    with refused(any_mode.client, INVALID, expired(late)):
        any_mode.delete(late)
    assert any_mode.bodies() == ["a", "b"]


@pytest.mark.rule("fifo-visibility.6")
def test_a_replaced_handle_does_not_delete_in_either_mode(any_mode, clock):
    any_mode.send_group("g", "a")
    late = any_mode.receive_one()
    clock.advance(30)
    current = any_mode.receive_one()
    with refused(any_mode.client, INVALID, expired(late)):
        any_mode.delete(late)
    any_mode.delete(current)
    assert any_mode.counts == (0, 0, 0)


@pytest.mark.rule("fifo-visibility.7")
@pytest.mark.parametrize("timeout", [0, 60])
@pytest.mark.parametrize("replaced", [False, True], ids=["expired", "replaced"])
def test_a_late_handle_does_not_change_the_timeout(fifo, clock, timeout, replaced):
    fifo.send_group("g", "a", "b")
    late = fifo.receive_one()
    clock.advance(30)
    if replaced:
        fifo.receive_one()
    with refused(fifo.client, "MessageNotInflight", re.compile("not in flight")):
        fifo.change(late, timeout)
    assert fifo.bodies() == ([] if replaced else ["a", "b"])


@pytest.mark.rule("fifo-visibility.8")
@pytest.mark.parametrize("timeout", [0, 60])
@pytest.mark.parametrize("replaced", [False, True], ids=["expired", "replaced"])
def test_a_late_handle_is_expired_at_amazon(aws, clock, timeout, replaced):
    """compat="aws": a FIFO queue is as strict as here, but has another error."""
    queue = BoundQueue.create_fifo(aws)
    queue.send_group("g", "a", "b")
    late = queue.receive_one()
    clock.advance(30)
    if replaced:
        queue.receive_one()
    with refused(aws, INVALID, expired(late)):
        queue.change(late, timeout)
    assert queue.bodies() == ([] if replaced else ["a", "b"])


@pytest.mark.rule("fifo-visibility.6")
def test_a_handle_received_with_no_timeout_is_expired(any_mode, clock):
    any_mode.send_group("g", "a")
    message = any_mode.receive_one(VisibilityTimeout=0)
    clock.advance(ms=1)
    with refused(any_mode.client, INVALID, expired(message)):
        any_mode.delete(message)
    assert any_mode.counts == (1, 0, 0)


def test_deleting_twice_is_no_error(any_mode):
    any_mode.send_group("g", "a", "b")
    message = any_mode.receive_one()
    any_mode.delete(message)
    any_mode.delete(message)
    assert any_mode.bodies() == ["b"]


@pytest.mark.parametrize("way", ["deleted", "purged"])
def test_the_timeout_of_a_deleted_or_purged_message_cannot_be_changed(any_mode, way):
    any_mode.send_group("g", "a")
    message = any_mode.receive_one()
    if way == "deleted":
        any_mode.delete(message)
    else:
        any_mode.client.purge_queue(QueueUrl=any_mode.url)
    any_mode.delete(message)
    with refused(any_mode.client, INVALID, does_not_exist(message)):
        any_mode.change(message, 60)


def test_another_queues_handle_is_refused(fifo, make_fifo):
    other = make_fifo("other.fifo")
    other.send_group("g", "a")
    handle = other.receive_one()["ReceiptHandle"]
    with refused(
        fifo.client,
        "ReceiptHandleIsInvalid",
        f'The receipt handle "{handle}" is not valid for this queue.',
    ):
        fifo.delete({"ReceiptHandle": handle})


@pytest.mark.rule("fifo-visibility.18")
def test_a_purge_frees_every_group(fifo):
    fifo.send_group("g", "a", "b")
    fifo.receive_one()
    fifo.client.purge_queue(QueueUrl=fifo.url)
    assert fifo.counts == (0, 0, 0)
    fifo.send_group("g", "c")
    assert fifo.bodies() == ["c"]


# The limit of messages in flight


@pytest.fixture
def three_in_flight(monkeypatch, open_sqs):
    """A FIFO queue with a limit of 3 messages in flight instead of 20,000. Ten groups of one message wait."""
    limits = SQS._replace(fifo_in_flight_count=3, fifo_in_flight_aws_count=5)
    monkeypatch.setitem(opening.LIMITS, "three", limits)

    def make(**options):
        queue = BoundQueue.create_fifo(open_sqs(limits="three", **options))
        for body in "abcdefghij":
            queue.send_group(body, body)
        return queue

    return make


@pytest.mark.rule("fifo-visibility.13")
def test_the_limit_is_20000_in_flight_in_a_fifo_queue():
    """120,000 with compat="aws"."""
    assert (SQS.fifo_in_flight_count, SQS.fifo_in_flight_aws_count) == (20_000, 120_000)


@pytest.mark.rule("fifo-visibility.14", "fifo-visibility.15", "fifo-visibility.16")
@pytest.mark.parametrize(("compat", "limit"), [("docs", 3), ("aws", 5)])
def test_near_the_limit_a_receive_returns_fewer_and_at_it_none(three_in_flight, compat, limit):
    queue = three_in_flight(compat=compat)
    assert queue.bodies(2) == ["a", "b"]
    assert len(queue.bodies(10)) == limit - 2
    assert queue.bodies(10) == []
    assert queue.counts == (10 - limit, limit, 0)


@pytest.mark.rule("fifo-visibility.15", "fifo-visibility.16")
def test_the_limit_may_cut_a_group_in_two(three_in_flight):
    queue = three_in_flight()
    queue.client.purge_queue(QueueUrl=queue.url)
    queue.send_group("g", *"abcde")
    assert queue.bodies() == ["a", "b", "c"]
    assert queue.bodies() == []


@pytest.mark.rule("receive.30")
@pytest.mark.parametrize("way", ["deleted", "given back", "timed out"])
def test_messages_that_leave_flight_make_room(three_in_flight, clock, way):
    queue = three_in_flight()
    messages = queue.receive(3)
    clock.advance(1)
    if way == "deleted":
        queue.delete(messages[0])
    elif way == "given back":
        queue.change(messages[0], 0)
    else:
        clock.advance(29)
    assert len(queue.bodies()) == (3 if way == "timed out" else 1)


def test_expired_messages_in_flight_make_room(three_in_flight, clock):
    queue = three_in_flight()
    queue.set(MessageRetentionPeriod=60)
    queue.receive(3, VisibilityTimeout=3600)
    clock.advance(60)
    queue.send_group("g", "young")
    assert queue.counts == (1, 0, 0)
    assert queue.bodies() == ["young"]


@pytest.mark.rule("fifo-visibility.19")
def test_at_the_limit_a_long_poll_waits_for_room(no_safety_net, three_in_flight, clock, background):
    queue = three_in_flight()
    held = queue.receive(3)
    waiting = background(queue.bodies, WaitTimeSeconds=20)
    clock.until_waiting()
    queue.delete(held[0])
    assert waiting.result(20) == ["d"]


def test_at_the_limit_a_long_poll_ends_empty_after_its_time(three_in_flight, clock, background):
    queue = three_in_flight()
    queue.receive(3)
    waiting = background(queue.bodies, WaitTimeSeconds=20)
    clock.until_waiting()
    clock.advance(20)
    assert waiting.result(20) == []


def test_blocked_and_delayed_messages_do_not_count_as_in_flight(three_in_flight):
    queue = three_in_flight()
    queue.client.purge_queue(QueueUrl=queue.url)
    queue.send_group("one", *"abcde")
    queue.receive(2)
    queue.send_group("two", "f")
    assert queue.counts == (4, 2, 0)
    assert queue.bodies() == ["f"]
