# SPDX-License-Identifier: Apache-2.0
"""The visibility timeout: who sets it, its start, and its effect on later receives."""

import pytest

from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.refusals import INVALID, beyond_12_hours, out_of_range, refused

TWELVE_HOURS = 43_200


def hidden_for(queue, clock, seconds):
    """Assert that the message is hidden for `seconds`, to the millisecond, and visible then. It is not received."""
    clock.advance(seconds, ms=-1)
    assert queue.counts[0] == 0
    clock.advance(ms=1)
    assert queue.counts[0] == 1


@pytest.mark.rule("attribute.2", "visibility.1")
def test_a_received_message_is_hidden_from_everybody_for_30_seconds(queue, clock, open_sqs):
    queue.send("hello")
    assert queue.bodies() == ["hello"]
    other = BoundQueue(open_sqs(), queue.url)
    clock.advance(29.999)
    assert queue.bodies() == []
    assert other.bodies() == []
    clock.advance(ms=1)
    assert other.bodies() == ["hello"]


@pytest.mark.rule("receive.16", "receive.31", "visibility.6")
def test_a_message_that_is_not_deleted_comes_back_again_and_again(queue, clock):
    """Without a RedrivePolicy for ever: a failing consumer loses no message."""
    sent = queue.send("hello")
    for count in range(1, 50):
        message = queue.receive_one()
        assert (message["MessageId"], message["Attributes"]["ApproximateReceiveCount"]) == (
            sent["MessageId"],
            str(count),
        )
        clock.advance(30)


def test_consumers_at_the_same_time_never_get_the_same_message(queue, background):
    """Four threads take 200 messages between them, each once."""
    for _ in range(20):
        queue.client.send_message_batch(
            QueueUrl=queue.url, Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(10)]
        )

    def consume():
        taken = []
        while messages := queue.receive(7):
            taken += [message["MessageId"] for message in messages]
        return taken

    consumers = [background(consume) for _ in range(4)]
    taken = [message_id for consumer in consumers for message_id in consumer.result(50)]
    assert len(taken) == len(set(taken)) == 200


@pytest.mark.rule("visibility.1")
def test_the_clock_starts_when_the_message_is_returned(queue, clock):
    """It does not start when the message was sent."""
    queue.send()
    clock.advance(1000)
    queue.receive_one()
    hidden_for(queue, clock, 30)


@pytest.mark.rule("visibility.2")
@pytest.mark.parametrize("timeout", [1, 60, TWELVE_HOURS])
def test_a_queues_own_timeout_is_set_when_it_is_created(make_queue, clock, timeout):
    queue = make_queue(VisibilityTimeout=timeout)
    queue.send()
    queue.receive_one()
    hidden_for(queue, clock, timeout)


@pytest.mark.rule("visibility.4")
def test_a_queues_own_timeout_of_0_hides_nothing(make_queue):
    queue = make_queue(VisibilityTimeout=0)
    queue.send("hello")
    assert queue.bodies() == queue.bodies() == ["hello"]
    assert queue.counts == (1, 0, 0)


@pytest.mark.rule("visibility.3")
@pytest.mark.parametrize("timeout", [1, 7, TWELVE_HOURS])
def test_a_receive_sets_the_timeout_of_its_own_messages(queue, clock, timeout):
    queue.send_all("a", "b")
    queue.receive_one(VisibilityTimeout=timeout)
    assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "30"}
    queue.delete(queue.receive_one())
    hidden_for(queue, clock, timeout)


@pytest.mark.rule("visibility.4")
def test_a_receives_timeout_of_0_returns_the_message_and_leaves_it_visible(queue):
    """The receive still counts."""
    queue.send("hello")
    first = queue.receive_one(VisibilityTimeout=0)
    assert queue.counts == (1, 0, 0)
    second = queue.receive_one()
    assert first["Attributes"]["ApproximateReceiveCount"] == "1"
    assert second["Attributes"]["ApproximateReceiveCount"] == "2"


@pytest.mark.rule("visibility.2", "visibility.5")
def test_a_queues_new_timeout_is_for_later_receives_only(queue, clock):
    """Messages in flight keep the time they were received with."""
    queue.send("held")
    queue.receive_one()
    queue.set(VisibilityTimeout=300)
    hidden_for(queue, clock, 30)
    queue.receive_one()
    hidden_for(queue, clock, 300)


@pytest.mark.rule("visibility.5")
def test_a_queues_shorter_timeout_does_not_free_messages_in_flight(make_queue, clock):
    queue = make_queue(VisibilityTimeout=300)
    queue.send("held")
    queue.receive_one()
    queue.set(VisibilityTimeout=0)
    hidden_for(queue, clock, 300)


# ChangeMessageVisibility


@pytest.mark.rule("visibility.7")
def test_an_extension_counts_from_the_call(queue, clock):
    """Received at 0 with 30 s, extended by 60 s at 20: hidden until 80."""
    queue.send()
    message = queue.receive_one()
    clock.advance(20)
    queue.change(message, 60)
    hidden_for(queue, clock, 60)


@pytest.mark.rule("visibility.7")
def test_a_shortening_counts_from_the_call(make_queue, clock):
    """Received at 0 with 60 s, shortened to 10 s at 15: visible at 25."""
    queue = make_queue(VisibilityTimeout=60)
    queue.send()
    message = queue.receive_one()
    clock.advance(15)
    queue.change(message, 10)
    hidden_for(queue, clock, 10)


@pytest.mark.rule("visibility.8")
def test_0_makes_the_message_visible_at_once(queue):
    queue.send("hello")
    queue.change(queue.receive_one(), 0)
    assert queue.counts == (1, 0, 0)
    assert queue.bodies() == ["hello"]


@pytest.mark.rule("visibility.10")
def test_a_change_touches_one_message_alone(queue, clock):
    queue.send_all("a", "b")
    first, _ = queue.receive(2)
    queue.change(first, 60)
    clock.advance(30)
    assert queue.bodies() == ["b"]


@pytest.mark.rule("visibility.9")
def test_a_change_is_not_remembered(queue, clock):
    """The next receive hides the message for the queue's time again."""
    queue.send()
    message = queue.receive_one()
    queue.change(message, 300)
    clock.advance(300)
    queue.receive_one()
    hidden_for(queue, clock, 30)


@pytest.mark.rule("visibility.7")
def test_a_heartbeat_keeps_a_message_for_as_long_as_it_beats(queue, clock):
    """Two minutes, renewed every minute; when it stops, the message is back within two minutes."""
    queue.send()
    message = queue.receive_one(VisibilityTimeout=120)
    for _ in range(30):
        clock.advance(60)
        queue.change(message, 120)
    hidden_for(queue, clock, 120)


@pytest.mark.rule("visibility.11")
@pytest.mark.parametrize("timeout", [-1, 43_201])
def test_a_timeout_is_0_to_43200_seconds(queue, timeout):
    """Refused, not clipped: the message keeps its timeout."""
    queue.send()
    message = queue.receive_one()
    with refused(queue.client, INVALID, out_of_range("VisibilityTimeout", timeout, 0, 43_200)):
        queue.change(message, timeout)
    assert queue.counts == (0, 1, 0)


@pytest.mark.rule("visibility.13")
def test_12_hours_at_the_very_instant_of_the_receive_are_allowed(queue, clock):
    queue.send()
    queue.change(queue.receive_one(), TWELVE_HOURS)
    hidden_for(queue, clock, TWELVE_HOURS)


@pytest.mark.rule("visibility.12")
def test_12_hours_are_the_most_in_all(queue, clock):
    """From the receive: one millisecond later 43,200 is too much, and nothing is clipped."""
    queue.send()
    message = queue.receive_one()
    clock.advance(ms=1)
    with refused(queue.client, INVALID, beyond_12_hours(TWELVE_HOURS)):
        queue.change(message, TWELVE_HOURS)
    clock.advance(9, ms=999)
    with refused(queue.client, INVALID, beyond_12_hours(TWELVE_HOURS - 9)):
        queue.change(message, TWELVE_HOURS - 9)
    queue.change(message, TWELVE_HOURS - 10)
    hidden_for(queue, clock, TWELVE_HOURS - 10)


@pytest.mark.rule("visibility.12")
def test_extensions_add_up_to_12_hours(queue, clock):
    """However small each one is."""
    queue.send()
    message = queue.receive_one(VisibilityTimeout=3600)
    for _ in range(11):
        clock.advance(3599)
        queue.change(message, 3600)
    clock.advance(3599)
    with refused(queue.client, INVALID, beyond_12_hours(3600)):
        queue.change(message, 3600)


@pytest.mark.rule("visibility.13", "visibility.14")
def test_the_12_hours_begin_anew_with_the_next_receive(queue, clock):
    """They do not begin with the send."""
    queue.send()
    clock.advance(3600)
    queue.receive_one(VisibilityTimeout=TWELVE_HOURS)
    clock.advance(TWELVE_HOURS)
    queue.change(queue.receive_one(), TWELVE_HOURS)
    hidden_for(queue, clock, TWELVE_HOURS)


@pytest.mark.rule("visibility.15")
def test_a_change_does_not_count_as_a_receive(queue, clock):
    queue.send()
    message = queue.receive_one()
    queue.change(message, 60)
    queue.change(message, 0)
    assert queue.receive_one()["Attributes"]["ApproximateReceiveCount"] == "2"
