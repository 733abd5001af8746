# SPDX-License-Identifier: Apache-2.0
"""CloudWatch's metrics: each number exact, at one instant of a clock that stands still."""

import pytest

import sqsqlite
from sqsqlite import errors

STANDARD_ONLY = {
    "ApproximateNumberOfNoisyGroups",
    "ApproximateNumberOfMessagesVisibleInQuietGroups",
    "ApproximateNumberOfMessagesNotVisibleInQuietGroups",
    "ApproximateNumberOfMessagesDelayedInQuietGroups",
    "ApproximateAgeOfOldestMessageInQuietGroups",
}
FIFO_ONLY = {"ApproximateNumberOfGroupsWithInflightMessages", "NumberOfDeduplicatedSentMessages"}
EVERY_QUEUE = {
    "ApproximateAgeOfOldestMessage",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesVisible",
    "NumberOfEmptyReceives",
    "NumberOfMessagesDeleted",
    "NumberOfMessagesReceived",
    "NumberOfMessagesSent",
    "SentMessageSize",
}


@pytest.fixture
def fifo(sqs):
    return sqs.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)


def group(name, *bodies):
    return [{"body": body, "group_id": name} for body in bodies]


def quiet(queue):
    """(noisy groups; then, of the others: visible, in flight, delayed, age)."""
    found = queue.metrics()
    return (
        found.approximate_number_of_noisy_groups,
        found.approximate_number_of_messages_visible_in_quiet_groups,
        found.approximate_number_of_messages_not_visible_in_quiet_groups,
        found.approximate_number_of_messages_delayed_in_quiet_groups,
        found.approximate_age_of_oldest_message_in_quiet_groups,
    )


def states(queue):
    """(visible, in flight, delayed)."""
    found = queue.metrics()
    return (
        found.approximate_number_of_messages_visible,
        found.approximate_number_of_messages_not_visible,
        found.approximate_number_of_messages_delayed,
    )


def age(queue):
    return queue.metrics().approximate_age_of_oldest_message


def test_metrics_have_cloudwatchs_names(queue, fifo):
    assert queue.metrics().cloudwatch().keys() == EVERY_QUEUE | STANDARD_ONLY
    assert fifo.metrics().cloudwatch().keys() == EVERY_QUEUE | FIFO_ONLY
    assert set(fifo.metrics().cloudwatch().values()) == {0}


def test_messages_are_counted_by_state_at_this_instant(queue, clock):
    queue.send_many(["a", "b", "c", {"body": "late", "delay": 10}])
    queue.receive(2, visibility_timeout=5)
    assert states(queue) == (1, 2, 1)
    clock.advance(5)
    assert states(queue) == (3, 0, 1)
    clock.advance(5)
    assert states(queue) == (4, 0, 0)


def test_the_age_is_that_of_the_oldest_message(queue, clock):
    assert age(queue) == 0
    queue.send_many(["a", "b"])
    clock.advance(2, ms=500)
    queue.send("c")
    clock.advance(1)
    assert age(queue) == 3.5
    for message in queue.receive(2):
        message.delete()
    assert age(queue) == 1.0


def test_an_age_is_never_negative(sqs, queue):
    """Another process may send between the look at the clock and the look at the file."""
    queue.send("a")
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_leases SET sent_at = sent_at + 3")
    assert age(queue) == 0


def test_expired_messages_are_not_counted(sqs, clock):
    queue = sqs.create_queue("short", message_retention_period=60)
    queue.send("old")
    clock.advance(59)
    queue.send("new")
    clock.advance(1)
    assert (states(queue), age(queue)) == ((1, 0, 0), 1.0)


@pytest.fixture
def dead(sqs, clock):
    """A dead-letter queue with one message, sent 100 s and moved 40 s ago."""
    dead = sqs.create_queue("dead")
    queue = sqs.create_queue("failing", dead_letter_queue=dead, max_receive_count=1)
    queue.send("poison")
    queue.receive(visibility_timeout=0)
    clock.advance(60)
    queue.receive()
    clock.advance(40)
    return dead


def test_in_a_dead_letter_queue_the_age_counts_from_the_move(dead):
    assert age(dead) == 40.0
    assert quiet(dead) == (0, 1, 0, 0, 40.0)


def test_a_message_that_fails_again_and_again_is_the_oldest_until_it_dies(sqs, clock):
    """It keeps its place in the queue, so it keeps its age. A dead-letter queue ends both."""
    dead = sqs.create_queue("dead")
    queue = sqs.create_queue("failing", dead_letter_queue=dead, max_receive_count=5)
    queue.send("poison")
    clock.advance(100)
    queue.send("good")
    for _ in range(5):
        queue.receive(visibility_timeout=0)
    assert age(queue) == 100
    assert [message.body for message in queue.receive()] == ["good"]
    assert (age(queue), age(dead)) == (0, 0)


def test_age_of_a_message_sent_to_a_dead_letter_queue_counts_from_its_send(sqs, dead, clock):
    dead.send("by hand")
    clock.advance(1)
    assert age(dead) == 41.0
    [poison, _] = dead.receive(2)
    poison.delete()
    assert age(dead) == 1.0


def test_a_message_sent_to_a_dead_letter_queue_before_the_first_move_is_the_oldest(sqs, clock):
    dead = sqs.create_queue("dead")
    queue = sqs.create_queue("failing", dead_letter_queue=dead, max_receive_count=1)
    queue.send("poison")
    clock.advance(10)
    dead.send("by hand")
    clock.advance(10)
    queue.receive(visibility_timeout=0)
    queue.receive()
    clock.advance(10)
    assert age(dead) == 20.0


def test_a_dead_letter_beyond_its_retention_has_no_age(sqs, dead, clock):
    clock.advance(345_600 - 100, ms=-1)
    assert age(dead) == 345_600 - 60 - 0.001
    clock.advance(ms=1)
    assert (states(dead), age(dead)) == ((0, 0, 0), 0)


def test_groups_with_a_message_in_flight_are_counted(fifo, clock):
    fifo.send_many([*group("g1", "a", "b", "c"), *group("g2", "d"), *group("g3", "e")])
    fifo.receive(2, visibility_timeout=5)
    assert fifo.metrics().approximate_number_of_groups_with_inflight_messages == 1
    fifo.receive(10, visibility_timeout=10)
    assert fifo.metrics().approximate_number_of_groups_with_inflight_messages == 3
    clock.advance(5)
    assert fifo.metrics().approximate_number_of_groups_with_inflight_messages == 2


def test_a_delayed_group_is_not_in_flight(sqs):
    fifo = sqs.create_queue("late.fifo", fifo=True, content_based_deduplication=True, delay_seconds=60)
    fifo.send_many(group("g", "a"))
    assert states(fifo) == (0, 0, 1)
    assert fifo.metrics().approximate_number_of_groups_with_inflight_messages == 0


def in_flight(queue, *senders):
    """Send messages and have them all received."""
    queue.send_many([message for sent in senders for message in sent])
    count = sum(len(sent) for sent in senders)
    while count:
        count -= len(queue.receive(10, visibility_timeout=100))


@pytest.mark.parametrize(("own", "noisy"), [(29, 0), (30, 1)])
def test_a_group_is_noisy_from_thirty_messages_in_flight_on(queue, own, noisy):
    in_flight(queue, group("tenant", *["x"] * own), group("other", "y", "z"))
    assert quiet(queue) == (noisy, 0, 2 if noisy else own + 2, 0, 0)


@pytest.mark.parametrize(("others", "noisy"), [(269, 1), (270, 0)])
def test_a_group_is_noisy_above_a_tenth_of_all_messages_in_flight(queue, others, noisy):
    """30 of 299 are noisy, 30 of 300 are not."""
    in_flight(queue, group("tenant", *["x"] * 30), ["y"] * others)
    assert quiet(queue)[:3] == (noisy, 0, others if noisy else others + 30)


def test_quiet_groups_are_counted_without_the_noisy_ones(queue, clock):
    """In every state, and by their own age. Each message without a group is a quiet group of its own."""
    queue.send_many(group("noisy", *["x"] * 31))
    clock.advance(7)
    queue.send_many(["no group"] * 40)
    held = 0
    while held < 71:
        held += len(queue.receive(10, visibility_timeout=100))
    clock.advance(3)
    queue.send_many([*group("noisy", "x", "x"), *group("calm", "y"), "z"])
    queue.send("later", group_id="calm", delay=60)
    queue.send("later", group_id="noisy", delay=60)
    assert (states(queue), age(queue)) == ((4, 71, 2), 10.0)
    assert quiet(queue) == (1, 2, 40, 1, 3.0)


def test_a_group_without_messages_in_flight_any_more_is_quiet(queue, clock):
    in_flight(queue, group("tenant", *["x"] * 30))
    assert quiet(queue) == (1, 0, 0, 0, 0)
    clock.advance(100)
    assert quiet(queue) == (0, 30, 0, 0, 100.0)


def test_activity_covers_the_current_minute_and_the_previous_one(queue, clock):
    clock.advance(ms=60_000 - clock.now_ms() % 60_000)
    began = clock.now_ms()
    queue.send_many(["four", "five!"])
    clock.advance(60)
    queue.receive()[0].delete()
    queue.receive()
    queue.receive()
    queue.send("?")  # Empty receives are written with the next commit.
    found = queue.metrics()
    assert (
        found.activity_since,
        found.number_of_messages_sent,
        found.sent_message_size,
        found.number_of_messages_received,
        found.number_of_empty_receives,
        found.number_of_messages_deleted,
        found.number_of_deduplicated_sent_messages,
    ) == (began, 3, 10, 2, 1, 1, None)
    clock.advance(60)
    found = queue.metrics()
    assert (found.number_of_messages_sent, found.number_of_messages_deleted) == (1, 1)


def test_duplicates_are_not_counted_as_sent(fifo):
    fifo.send_many(group("g", "a", "a", "b", "a"))
    found = fifo.metrics()
    assert (found.number_of_messages_sent, found.number_of_deduplicated_sent_messages) == (2, 2)


def test_a_dead_letter_is_not_counted_as_sent(dead):
    assert dead.metrics().number_of_messages_sent == 0


def test_metrics_cover_all_queues_or_those_with_a_prefix(sqs, queue, fifo, dead):
    assert [found.name for found in sqs.metrics()] == ["dead", "failing", "orders", "orders.fifo"]
    assert [found.name for found in sqs.metrics("orders")] == ["orders", "orders.fifo"]
    assert queue.metrics() == sqs.metrics("orders")[0]


def test_a_deleted_queue_has_no_metrics(queue):
    queue.delete()
    with pytest.raises(errors.QueueDoesNotExist) as caught:
        queue.metrics()
    assert "orders" in caught.value.__notes__[0]


def test_measuring_changes_nothing(path, clock, queue):
    queue.send("a")
    with sqsqlite.connect(path, clock=clock) as other:
        before = other.stats()
        other.metrics()
        assert other.stats() == before
    assert [message.receive_count for message in queue.receive()] == [1]
