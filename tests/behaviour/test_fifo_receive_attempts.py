# SPDX-License-Identifier: Apache-2.0
"""ReceiveRequestAttemptId: a receive whose answer was lost is repeated, and returns the same messages."""

import pytest

from sqsqlite.actions import opening
from sqsqlite.contract.limits import SQS
from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.refusals import INVALID, bad_identifier, bad_value, refused

FIVE_MINUTES = 300
NOT_RETRYABLE = bad_value(
    "try",
    "ReceiveRequestAttemptId",
    "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable.",
)


@pytest.fixture
def five(fifo):
    """One group of five messages."""
    fifo.send_group("g", *"abcde")
    return fifo


def attempt(queue, max_messages=2, attempt_id="try", **params):
    return queue.receive(max_messages, ReceiveRequestAttemptId=attempt_id, **params)


def handles(messages):
    return [message["ReceiptHandle"] for message in messages]


@pytest.mark.rule("attempt.1")
def test_the_same_attempt_gets_the_same_messages_under_the_same_handles(five):
    """They are received once: the receive count shows it."""
    first = attempt(five)
    assert [message["Body"] for message in first] == ["a", "b"]
    assert attempt(five) == first
    assert attempt(five) == first
    assert five.counts == (3, 2, 0)


def test_the_handles_settle_as_if_nothing_had_been_repeated(five):
    attempt(five)
    for message in attempt(five):
        five.delete(message)
    assert five.bodies() == ["c", "d", "e"]


@pytest.mark.rule("attempt.2")
def test_a_repeated_attempt_hides_its_messages_anew(five, clock):
    """For their whole timeout, counted from the repetition."""
    attempt(five)
    clock.advance(20)
    repeated = attempt(five)
    clock.advance(29.999)
    assert five.bodies() == []
    five.delete(repeated[1])
    clock.advance(ms=1)
    assert five.bodies() == ["a", "c", "d", "e"]


@pytest.mark.rule("attempt.2")
def test_an_attempt_can_be_repeated_again_after_its_first_timeout(five, clock):
    first = attempt(five)
    for _ in range(4):
        clock.advance(20)
        assert handles(attempt(five)) == handles(first)


def test_a_repeated_attempt_may_ask_for_another_timeout(five, clock):
    attempt(five, VisibilityTimeout=10)
    attempt(five, VisibilityTimeout=60)
    clock.advance(59.999)
    assert five.bodies() == []
    clock.advance(ms=1)
    assert five.bodies(VisibilityTimeout=0) == list("abcde")


def test_a_repeated_attempt_hides_nothing_beyond_12_hours_from_its_receive(five, clock):
    attempt(five, VisibilityTimeout=43_200)
    clock.advance(60)
    attempt(five, VisibilityTimeout=43_200)
    clock.advance(43_140, ms=-1)
    assert five.bodies() == []
    clock.advance(ms=1)
    assert five.bodies() == list("abcde")


def test_a_repeated_attempt_without_a_timeout_gives_its_messages_back(five):
    attempt(five)
    assert [message["Body"] for message in attempt(five, VisibilityTimeout=0)] == ["a", "b"]
    assert five.counts == (5, 0, 0)
    assert five.bodies() == list("abcde")


def test_at_the_limit_of_messages_in_flight_an_attempt_can_be_repeated(monkeypatch, open_sqs):
    monkeypatch.setitem(opening.LIMITS, "three", SQS._replace(fifo_in_flight_count=3))
    queue = BoundQueue.create_fifo(open_sqs(limits="three"))
    queue.send_group("g", *"abcd")
    first = attempt(queue, 10)
    assert len(first) == 3
    assert attempt(queue, 10) == first


@pytest.mark.rule("attempt.1")
def test_messages_of_several_groups_are_repeated_in_the_same_order(fifo):
    for group in ("one", "two", "three"):
        fifo.send_group(group, f"{group}-0", f"{group}-1")
    first = attempt(fifo, 5)
    assert len(first) == 5
    assert attempt(fifo, 5) == first


def test_a_repeated_attempt_does_not_count_towards_the_dead_letter_queue(make_fifo):
    dead = make_fifo("dead.fifo")
    queue = make_fifo(RedrivePolicy={"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1})
    queue.send_group("g", "a")
    first = attempt(queue)
    assert attempt(queue) == first
    assert dead.counts == (0, 0, 0)


@pytest.mark.rule("attempt.7")
def test_another_attempt_is_another_receive(five):
    """While the group is blocked it finds nothing."""
    attempt(five)
    assert attempt(five, attempt_id="other") == []
    assert five.receive() == []


@pytest.mark.rule("attempt.7")
def test_other_attempts_do_not_change_an_attempt(fifo):
    fifo.send_group("one", "a")
    fifo.send_group("two", "b")
    first = attempt(fifo, 1)
    second = attempt(fifo, 1, "other")
    assert [message["Body"] for message in first + second] == ["a", "b"]
    assert attempt(fifo, 1) == first
    assert attempt(fifo, 1, "other") == second


@pytest.mark.parametrize("wait", [0, 20])
def test_an_empty_receive_does_not_change_an_attempt(five, wait):
    """Only their own attempt can get the messages, with a wait or without."""
    first = attempt(five)
    assert five.receive() == []
    assert attempt(five, WaitTimeSeconds=wait) == first


@pytest.mark.rule("attempt.8")
def test_attempts_are_each_queues_own(five, make_fifo):
    other = make_fifo("other.fifo")
    other.send_group("g", "elsewhere")
    attempt(five)
    assert [message["Body"] for message in attempt(other)] == ["elsewhere"]


@pytest.mark.rule("attempt.9")
def test_an_attempt_that_found_nothing_may_find_something(fifo):
    assert attempt(fifo) == []
    fifo.send_group("g", "a")
    assert [message["Body"] for message in attempt(fifo)] == ["a"]


@pytest.mark.rule("attempt.1")
def test_messages_sent_meanwhile_do_not_join_an_attempt(fifo):
    fifo.send_group("g", "a")
    first = attempt(fifo)
    fifo.send_group("g", "b")
    fifo.send_group("other", "c")
    assert attempt(fifo) == first


# For five minutes


@pytest.mark.rule("attempt.3")
def test_an_attempt_is_remembered_for_5_minutes(five, clock):
    """To the millisecond, however often it was repeated. Afterwards it is a new receive."""
    first = attempt(five, VisibilityTimeout=3600)
    clock.advance(FIVE_MINUTES, ms=-1)
    assert handles(attempt(five, VisibilityTimeout=3600)) == handles(first)
    clock.advance(ms=1)
    assert attempt(five) == []


def test_an_attempt_is_remembered_when_the_file_is_opened_again(open_sqs):
    client = open_sqs()
    queue = BoundQueue.create_fifo(client)
    queue.send_group("g", "a", "b")
    first = attempt(queue)
    client.close()
    assert attempt(BoundQueue(open_sqs(), queue.url)) == first


# Attempts that cannot be repeated


@pytest.mark.rule("attempt.4")
def test_an_attempt_cannot_be_repeated_after_a_delete(five):
    """Although the other of the two is still in flight."""
    five.delete(attempt(five)[0])
    with refused(five.client, INVALID, NOT_RETRYABLE):
        attempt(five)
    assert five.counts == (3, 1, 0)


@pytest.mark.rule("attempt.4", "attempt.5")
@pytest.mark.parametrize("timeout", [0, 30, 60])
def test_an_attempt_cannot_be_repeated_after_a_change_of_the_timeout(five, clock, timeout):
    first = attempt(five)
    clock.advance(1)
    five.change(first[1], timeout)
    with refused(five.client, INVALID, NOT_RETRYABLE):
        attempt(five)


@pytest.mark.rule("attempt.11")
def test_an_attempt_cannot_be_repeated_after_its_messages_expired(make_fifo, clock):
    """Expired messages are gone, in flight or not."""
    queue = make_fifo(MessageRetentionPeriod=60)
    queue.send_group("g", "a", "b")
    attempt(queue, VisibilityTimeout=3600)
    clock.advance(60)
    with refused(queue.client, INVALID, NOT_RETRYABLE):
        attempt(queue, VisibilityTimeout=3600)
    assert queue.counts == (0, 0, 0)


@pytest.mark.rule("attempt.4")
def test_a_refused_repetition_changes_nothing(five, clock):
    first = attempt(five)
    clock.advance(10)
    five.delete(first[0])
    with refused(five.client, INVALID, NOT_RETRYABLE):
        attempt(five)
    clock.advance(20)
    assert five.bodies() == ["b", "c", "d", "e"]


@pytest.mark.rule("attempt.6")
def test_an_attempt_after_its_timeout_is_a_new_receive(five, clock):
    """New handles, and the receive count grows by one."""
    first = attempt(five)
    clock.advance(30)
    again = attempt(five)
    assert [message["Body"] for message in again] == ["a", "b"]
    assert [message["Attributes"]["ApproximateReceiveCount"] for message in again] == ["2", "2"]
    assert not set(handles(first)) & set(handles(again))
    assert attempt(five) == again


def test_an_attempt_after_another_consumers_receive_is_a_new_receive(five, clock):
    """The new receive finds the group blocked."""
    attempt(five)
    clock.advance(30)
    five.receive_one()
    assert attempt(five) == []


def test_a_repeated_attempt_takes_no_message_from_another_consumer(fifo):
    """Given back and received again within the same millisecond, it is hidden until the same instant."""
    fifo.send_group("g", "a")
    [first] = attempt(fifo)
    fifo.change(first, 0)
    other = fifo.receive_one()
    with refused(fifo.client, INVALID, NOT_RETRYABLE):
        attempt(fifo)
    fifo.delete(other)
    assert fifo.counts == (0, 0, 0)


def test_an_attempt_after_a_purge_is_a_new_receive(five):
    attempt(five)
    five.client.purge_queue(QueueUrl=five.url)
    five.send_group("g", "f")
    assert [message["Body"] for message in attempt(five)] == ["f"]


# The id itself


@pytest.mark.rule("attempt.10")
@pytest.mark.parametrize("attempt_id", ["", "i" * 129, "a b", "ä"])
def test_an_attempt_id_has_1_to_128_letters_digits_and_punctuation_characters(five, attempt_id):
    assert len(attempt(five, attempt_id="i" * 128)) == 2
    with refused(five.client, INVALID, bad_identifier("ReceiveRequestAttemptId", attempt_id)):
        attempt(five, attempt_id=attempt_id)
