# SPDX-License-Identifier: Apache-2.0
"""Message move tasks between FIFO queues, and of messages with groups on standard ones."""

import pytest

from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.moving import ended, let_die, moved, policy, start
from tests.behaviour.refusals import INVALID, bad_value, refused
from tests.store.waiting import until


@pytest.fixture
def dead(make_fifo):
    return make_fifo("dead.fifo")


@pytest.fixture
def source(make_fifo, dead):
    return make_fifo("source.fifo", RedrivePolicy=policy(dead))


def let_group_die(queue, group_id, *bodies):
    """Let the messages of a group die one after the other, each at the head of its group."""
    for body in bodies:
        let_die(queue, body, MessageGroupId=group_id)


@pytest.mark.rule("move.1")
def test_a_group_goes_back_in_its_order(dead, source):
    let_group_die(source, "g", "a", "b", "c")
    start(dead)
    assert ended(dead)["Status"] == "COMPLETED"
    assert (source.bodies(), dead.counts) == (["a", "b", "c"], (0, 0, 0))


@pytest.mark.rule("move.42")
def test_a_moved_message_gets_a_new_sequence_number_and_keeps_its_group(dead, source):
    let_group_die(source, "g", "a")
    died = dead.receive_one(VisibilityTimeout=0)["Attributes"]
    last = source.send("b", MessageGroupId="other")
    start(dead)
    ended(dead)
    [moved_one] = [message for message in source.receive(10) if message["Body"] == "a"]
    attributes = moved_one["Attributes"]
    assert attributes["MessageGroupId"] == "g"
    assert attributes["SequenceNumber"] > last["SequenceNumber"] > died["SequenceNumber"]
    assert attributes["MessageDeduplicationId"] == died["MessageDeduplicationId"]


@pytest.mark.rule("move.43")
def test_moved_messages_neither_are_duplicates_nor_cause_them(dead, source):
    """The body was accepted within the last five minutes, and the queue deduplicates by it."""
    let_group_die(source, "g", "a")
    start(dead)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 1
    [message] = source.receive()
    source.delete(message)
    again = source.send("a", MessageGroupId="g", MessageDeduplicationId=message["MessageId"])
    assert again["MessageId"] != message["MessageId"]
    assert source.bodies() == ["a"]


@pytest.mark.rule("move.44")
def test_moved_messages_come_last_in_their_group(dead, source):
    let_group_die(source, "g", "old")
    source.send_group("g", "new")
    start(dead)
    ended(dead)
    assert source.bodies() == ["new", "old"]


@pytest.mark.rule("move.44")
def test_moved_messages_wait_behind_their_groups_messages_in_flight(dead, source):
    let_group_die(source, "g", "old")
    source.send_group("g", "new")
    [held] = source.receive()
    start(dead)
    ended(dead)
    assert source.receive() == []
    source.delete(held)
    assert source.bodies() == ["old"]


def test_a_group_whose_first_message_is_in_flight_stays(dead, source):
    """The messages behind it could not be received either."""
    let_group_die(source, "g", "a", "b")
    let_group_die(source, "h", "c")
    [held] = dead.receive()
    assert held["Body"] == "a"
    start(dead)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 1
    assert source.bodies() == ["c"]
    dead.delete(held)
    assert dead.bodies() == ["b"]


@pytest.mark.rule("move.47")
def test_messages_behind_a_hidden_one_stay(dead, source):
    """The first of three in flight was given back, and moves alone."""
    let_group_die(source, "g", "a", "b", "c", "d")
    held = dead.receive(3)
    dead.change(held[0], 0)
    start(dead)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 1
    assert source.bodies() == ["a"]
    dead.delete(held[1])
    dead.delete(held[2])
    assert dead.bodies() == ["d"]


@pytest.mark.rule("move.45")
def test_a_dead_letter_before_its_groups_messages_in_flight_stays(dead, source):
    """It is visible and the first of its group, but it could not be received either."""
    source.send("a", MessageGroupId="g")
    source.receive_one(VisibilityTimeout=0)
    dead.send("b", MessageGroupId="g")
    [held] = dead.receive()
    assert source.receive() == []
    start(dead)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 0
    dead.delete(held)
    assert dead.bodies() == ["a"]


@pytest.mark.rule("move.51")
def test_the_rest_of_a_group_stays_once_an_earlier_message_is_hidden(dead, make_fifo, clock):
    """In mid-move a consumer receives two messages that the task left for lack of a source, and gives one back."""
    source = make_fifo("going.fifo", RedrivePolicy=policy(dead))
    dead.send_group("g", "direct", "too")
    let_group_die(source, "g", "a", "b")
    start(dead, rate=1)
    clock.advance(1)
    until(lambda: moved(dead) == 1)
    held = dead.receive(2)
    assert [message["Body"] for message in held] == ["direct", "too"]
    dead.change(held[0], 0)
    clock.advance(1)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 1
    assert source.bodies() == ["a"]
    dead.delete(held[1])
    assert dead.bodies() == ["direct", "b"]


def test_a_group_that_comes_free_in_mid_move_stays_whole(dead, source, clock):
    """A consumer held its first message when the group's turn came."""
    let_group_die(source, "g", "1")
    let_group_die(source, "other", "x", "y", "z")
    let_group_die(source, "g", "2", "3")
    assert dead.bodies(1, VisibilityTimeout=3) == ["1"]
    start(dead, rate=1)
    for count in (1, 2, 3):
        clock.advance(1)
        until(lambda count=count: moved(dead) == count)
    assert ended(dead)["Status"] == "COMPLETED"
    assert (source.bodies(), dead.bodies()) == (["x", "y", "z"], ["1", "2", "3"])


@pytest.mark.rule("move.48")
def test_a_group_moves_in_the_order_of_sending_not_of_dying(aws, clock):
    """compat="aws": they count as sent when they died, the later one first."""
    dead = BoundQueue.create_fifo(aws, "dead.fifo")
    target = BoundQueue.create_fifo(aws, "target.fifo")
    first, second = (
        BoundQueue.create_fifo(aws, f"{name}.fifo", RedrivePolicy=policy(dead))
        for name in ("first", "second")
    )
    first.send("1", MessageGroupId="g")
    let_die(second, "2", MessageGroupId="g")
    clock.advance(1)
    first.receive_one(VisibilityTimeout=0)
    assert first.receive() == []
    start(dead, target.arn)
    ended(dead)
    assert target.bodies() == ["1", "2"]


def test_the_rest_of_a_group_can_be_received_in_mid_move(dead, source, clock):
    let_group_die(source, "g", "a", "b")
    start(dead, rate=1)
    clock.advance(1)
    until(lambda: moved(dead) == 1)
    assert (source.bodies(), dead.bodies()) == (["a"], ["b"])


def test_a_group_that_left_the_source_can_begin_again_there(dead, source):
    let_group_die(source, "g", "a")
    start(dead)
    ended(dead)
    dead.send("direct", MessageGroupId="g")
    assert dead.bodies() == ["direct"]


@pytest.mark.rule("move.50")
@pytest.mark.parametrize("delay", [9, 20])
def test_a_changed_delay_does_not_hide_moved_messages(dead, make_fifo, clock, delay):
    source = make_fifo("slow.fifo", DelaySeconds=10, RedrivePolicy=policy(dead))
    source.send("moved", MessageGroupId="g")
    clock.advance(10)
    source.receive_one(VisibilityTimeout=0)
    assert source.receive() == []
    start(dead)
    ended(dead)
    source.send("sent", MessageGroupId="g")
    clock.advance(1)
    source.set(DelaySeconds=delay)
    assert source.counts == (1, 0, 1)
    [message] = source.receive(10)
    assert message["Body"] == "moved"
    source.delete(message)
    clock.advance(delay - 1, ms=-1)
    assert source.bodies() == []
    clock.advance(ms=1)
    assert source.bodies() == ["sent"]


@pytest.mark.rule("move.2")
def test_a_fifo_destination_takes_messages_sent_directly_to_the_source(dead, source, make_fifo):
    """More messages than one transaction moves, in many groups."""
    for first in range(0, 1300, 10):
        dead.send_batch(
            *[
                {"MessageBody": str(number), "MessageGroupId": f"g{number % 7}"}
                for number in range(first, first + 10)
            ]
        )
    target = make_fifo("target.fifo")
    start(dead, target.arn)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 1300
    received = []
    while found := target.receive(10):
        received += [(message["Attributes"]["MessageGroupId"], int(message["Body"])) for message in found]
        for message in found:
            target.delete(message)
    assert sorted(received, key=lambda one: (one[0], received.index(one))) == sorted(received)
    assert len(received) == 1300


@pytest.mark.rule("move.22")
@pytest.mark.parametrize("kind", ["standard", "fifo"])
def test_a_destination_of_the_other_type_is_refused(make_queue, make_fifo, kind):
    make, other = (
        (make_queue, make_fifo("other.fifo")) if kind == "standard" else (make_fifo, make_queue("other"))
    )
    ending = "" if kind == "standard" else ".fifo"
    dead = make(f"dead{ending}")
    make(f"source{ending}", RedrivePolicy=policy(dead))
    with refused(
        dead.client,
        INVALID,
        bad_value(other.arn, "DestinationArn", "Destination must be same type of queue as the source."),
    ):
        start(dead, other.arn)


@pytest.mark.rule("move.46")
def test_moved_messages_of_a_tenant_take_turns_with_the_others(make_queue):
    """A flood that moves back waits behind itself, not in front of quiet tenants."""
    dead = make_queue("dead")
    make_queue("source", RedrivePolicy=policy(dead))
    target = make_queue("target")
    for number in range(20):
        dead.send(f"noisy {number}", MessageGroupId="noisy")
    start(dead, target.arn)
    ended(dead)
    target.send("quiet", MessageGroupId="quiet")
    assert target.bodies(2) == ["noisy 0", "quiet"]
