# SPDX-License-Identifier: Apache-2.0
"""Dead letters of FIFO queues: the move frees the group, and the group continues in the dead-letter queue."""

import json
import re

import pytest

from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.refusals import INVALID, bad_value, expired, refused

DAY = 86_400


@pytest.fixture
def dead(make_fifo):
    return make_fifo("dead.fifo")


@pytest.fixture
def source(make_fifo, dead):
    """A queue whose messages move after two receives."""
    return make_fifo("source.fifo", RedrivePolicy=policy(dead.arn, 2))


def policy(arn, count):
    return {"deadLetterTargetArn": arn, "maxReceiveCount": count}


def receive_and_fail(queue, clock, times=1, max_messages=1):
    for _ in range(times):
        assert queue.receive(max_messages)
        clock.advance(30)


def shown(message, *names):
    return tuple(message["Attributes"][name] for name in names)


# Types and allowed sources


@pytest.mark.rule("fifo-redrive.1")
@pytest.mark.parametrize(
    ("source", "target"), [("source", "dead.fifo"), ("source.fifo", "dead")], ids=["standard", "fifo"]
)
def test_a_dead_letter_queue_is_of_its_sources_type(sqs, source, target):
    """Refused at creation and at a change, and neither leaves anything behind."""

    def create(name, **attributes):
        if name.endswith(".fifo"):
            return BoundQueue.create_fifo(sqs, name, **attributes)
        return BoundQueue.create(sqs, name, **attributes)

    dead = create(target)
    text = json.dumps(policy(dead.arn, 3))
    refusal = bad_value(text, "RedrivePolicy", "Dead-letter queue must be same type of queue as the source.")
    with refused(sqs, INVALID, refusal):
        create(source, RedrivePolicy=text)
    assert sqs.list_queues()["QueueUrls"] == [dead.url]
    queue = create(source)
    with refused(sqs, INVALID, refusal):
        queue.set(RedrivePolicy=text)
    assert queue.attributes("RedrivePolicy") == {}


def test_sources_of_a_fifo_queue_are_listed(source, dead):
    assert dead.client.list_dead_letter_source_queues(QueueUrl=dead.url)["queueUrls"] == [source.url]


def test_a_fifo_queue_says_which_sources_it_takes(make_fifo, dead):
    dead.set(RedriveAllowPolicy={"redrivePermission": "denyAll"})
    with refused(dead.client, INVALID, re.compile("permission")):
        make_fifo(RedrivePolicy=policy(dead.arn, 3))


# The move


@pytest.mark.rule("fifo-redrive.2", "fifo-redrive.3")
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_receive_that_would_exceed_the_count_moves_the_message(make_fifo, dead, clock, count):
    queue = make_fifo(RedrivePolicy=policy(dead.arn, count))
    queue.send_group("g", "poison")
    receive_and_fail(queue, clock, count)
    assert dead.counts == (0, 0, 0)
    assert queue.receive(10) == []
    assert queue.counts == (0, 0, 0)
    assert dead.bodies() == ["poison"]


@pytest.mark.rule("fifo-redrive.4")
def test_the_move_frees_the_group(source, dead, clock):
    """In the same receive: the messages behind the poison one are returned at once."""
    source.send_group("g", "poison", "good", "better")
    receive_and_fail(source, clock, 2)
    assert source.bodies() == ["good", "better"]
    assert dead.counts == (1, 0, 0)
    assert source.counts == (0, 2, 0)


def test_after_the_move_the_group_is_in_order_and_blocks_again(source, clock):
    source.send_group("g", "poison", "a", "b")
    receive_and_fail(source, clock, 2)
    held = source.receive_one()
    assert held["Body"] == "a"
    assert source.bodies() == []
    source.delete(held)
    assert source.bodies() == ["b"]


def test_a_whole_group_of_poison_moves_in_one_receive(source, dead, clock):
    source.send_group("g", *"abcdefghijkl")
    for _ in range(2):
        receive_and_fail(source, clock, max_messages=10)
    assert source.bodies() == ["k", "l"]
    assert dead.bodies() == list("abcdefghij")
    assert dead.counts == (0, 10, 0)


def test_counts_are_exact_where_many_move_at_once(make_fifo, dead, clock):
    """150 messages in 15 groups, all with expired timeouts: more than one receive processes."""
    queue = make_fifo(RedrivePolicy=policy(dead.arn, 1))
    for number in range(10):
        for group in range(15):
            queue.send_group(f"g{group}", f"{group} {number}")
    while queue.receive(10):
        pass
    clock.advance(30)
    assert queue.receive(10) == []
    assert (queue.counts, dead.counts) == ((0, 0, 0), (150, 0, 0))
    assert dead.bodies() == [f"0 {number}" for number in range(10)]


@pytest.mark.rule("fifo-redrive.4")
def test_poison_of_several_groups_moves_and_others_take_its_place(source, dead, clock):
    for group in "xyz":
        source.send_group(group, f"{group} poison")
    receive_and_fail(source, clock, 2, max_messages=10)
    source.send_group("w", "w good")
    source.send_group("y", "y good")
    assert sorted(source.bodies()) == ["w good", "y good"]
    assert sorted(dead.bodies()) == ["x poison", "y poison", "z poison"]


def test_a_message_behind_one_in_flight_does_not_move(source, dead, clock):
    """However often it was received: only a receive that reaches it moves it."""
    source.send_group("g", "a", "b")
    receive_and_fail(source, clock, max_messages=2)
    first, _ = source.receive(2)
    source.change(first, 3600)
    clock.advance(30)
    assert source.receive(10) == []
    assert (source.counts, dead.counts) == ((1, 1, 0), (0, 0, 0))


def test_time_alone_moves_nothing(source, dead, clock):
    source.send_group("g", "poison", "behind")
    receive_and_fail(source, clock, 2)
    clock.advance(DAY)
    assert (source.counts, dead.counts) == ((2, 0, 0), (0, 0, 0))


@pytest.mark.rule("fifo-redrive.2", "fifo-redrive.4")
def test_giving_a_message_back_counts_towards_the_move(source, dead):
    source.send_group("g", "poison", "good")
    for _ in range(2):
        source.change(source.receive_one(), 0)
    assert source.bodies() == ["good"]
    assert dead.bodies() == ["poison"]


@pytest.mark.rule("fifo-redrive.2")
def test_a_lowered_count_holds_from_the_next_receive_on(source, dead, clock):
    source.send_group("g", "poison", "good")
    receive_and_fail(source, clock)
    source.set(RedrivePolicy=policy(dead.arn, 1))
    assert source.bodies() == ["good"]
    assert dead.bodies() == ["poison"]


def test_without_a_policy_a_failing_message_blocks_its_group_for_ever(source, dead, clock):
    source.send_group("g", "poison", "behind")
    receive_and_fail(source, clock, 2)
    source.set(RedrivePolicy="")
    receive_and_fail(source, clock, 5)
    assert source.bodies(1) == ["poison"]
    assert dead.counts == (0, 0, 0)


@pytest.mark.rule("fifo-redrive.10")
def test_without_its_dead_letter_queue_a_message_stays_first_of_its_group(source, dead, clock):
    source.send_group("g", "poison", "behind")
    receive_and_fail(source, clock, 2)
    dead.client.delete_queue(QueueUrl=dead.url)
    [message] = source.receive()
    assert (message["Body"], shown(message, "ApproximateReceiveCount")) == ("poison", ("3",))


# What moves along


def test_group_body_and_attributes_move_along(source, dead, clock):
    attributes = {"n": {"DataType": "Number", "StringValue": "1"}}
    source.send("poison", MessageGroupId="g", MessageDeduplicationId="d", MessageAttributes=attributes)
    before = source.receive_one(MessageAttributeNames=["All"])
    clock.advance(30)
    receive_and_fail(source, clock)
    source.receive()
    after = dead.receive_one(MessageAttributeNames=["All"])
    for name in ("MessageId", "Body", "MD5OfBody", "MessageAttributes", "MD5OfMessageAttributes"):
        assert after[name] == before[name]
    assert shown(after, "MessageGroupId", "SenderId") == shown(before, "MessageGroupId", "SenderId")
    assert shown(after, "DeadLetterQueueSourceArn") == (source.arn,)
    assert "DeadLetterQueueSourceArn" not in before["Attributes"]


@pytest.mark.rule("fifo-redrive.6")
def test_the_deduplication_id_of_a_dead_letter_is_its_message_id(source, dead, clock):
    """So two messages that had one id, more than five minutes apart, stay two there."""
    sent = source.send("poison", MessageGroupId="g", MessageDeduplicationId="d")
    receive_and_fail(source, clock, 2)
    source.receive()
    assert shown(dead.receive_one(), "MessageDeduplicationId") == (sent["MessageId"],)


def test_a_dead_letter_gets_a_sequence_number(source, dead, clock):
    source.send_group("g", "a", "b")
    receive_and_fail(source, clock, 2, max_messages=2)
    source.receive()
    numbers = [shown(message, "SequenceNumber")[0] for message in dead.receive(10)]
    assert numbers == sorted(set(numbers))
    assert all(re.fullmatch("[0-9]{20}", number) for number in numbers)


@pytest.mark.rule("fifo-redrive.7")
def test_the_receive_count_continues_in_the_fifo_dead_letter_queue(make_fifo, dead, clock):
    queue = make_fifo(RedrivePolicy=policy(dead.arn, 1))
    queue.send_group("g", "poison")
    receive_and_fail(queue, clock)
    queue.receive()
    assert shown(dead.receive_one(), "ApproximateReceiveCount") == ("2",)
    clock.advance(30)
    assert shown(dead.receive_one(), "ApproximateReceiveCount") == ("3",)


@pytest.mark.rule("fifo-redrive.12")
def test_a_moved_message_is_receivable_at_once_despite_a_delay_there(make_fifo, clock):
    dead = make_fifo("dead.fifo", DelaySeconds=900)
    queue = make_fifo(RedrivePolicy=policy(dead.arn, 1))
    queue.send_group("g", "poison")
    receive_and_fail(queue, clock)
    queue.receive()
    assert dead.counts == (1, 0, 0)
    assert dead.bodies() == ["poison"]


@pytest.mark.rule("fifo-redrive.11")
def test_the_source_still_deduplicates_moved_messages(source, dead):
    """A sender that tries again adds no second message behind the first."""
    [first] = source.send_group("g", "poison")
    for _ in range(2):
        source.change(source.receive_one(), 0)
    assert source.receive() == []
    assert source.send_group("g", "poison")[0]["MessageId"] == first["MessageId"]
    assert (source.counts, dead.counts) == ((0, 0, 0), (1, 0, 0))


def test_the_old_handle_settles_nothing_in_the_dead_letter_queue(source, dead, clock):
    source.send_group("g", "poison")
    receive_and_fail(source, clock)
    late = source.receive_one()
    clock.advance(30)
    source.receive()
    with refused(source.client, INVALID, expired(late)):
        source.delete(late)
    with refused(source.client, "MessageNotInflight", re.compile("not in flight")):
        source.change(late, 0)
    assert dead.bodies() == ["poison"]


# Groups in the dead-letter queue


@pytest.mark.rule("fifo-redrive.5")
def test_the_group_is_in_order_in_the_dead_letter_queue_and_blocks(source, dead, clock):
    source.send_group("g", "a", "b")
    source.send_group("other", "c")
    receive_and_fail(source, clock, 2, max_messages=10)
    source.receive()
    first = dead.receive_one()
    assert first["Body"] == "a"
    assert dead.bodies() == ["c"]
    dead.delete(first)
    assert dead.bodies() == ["b"]


@pytest.mark.rule("fifo-redrive.5")
def test_a_dead_letter_that_moves_later_comes_last_in_its_group(source, dead, clock):
    source.send_group("g", "a", "b")
    receive_and_fail(source, clock, 2)
    assert source.bodies() == ["b"]
    clock.advance(30)
    receive_and_fail(source, clock)
    held = dead.receive_one()
    assert source.receive() == []
    assert dead.counts == (1, 1, 0)
    assert dead.bodies() == []
    dead.delete(held)
    assert dead.bodies() == ["b"]


@pytest.mark.rule("fifo-redrive.5")
def test_messages_sent_to_the_dead_letter_queue_share_its_groups(source, dead, clock):
    dead.send_group("g", "sent here")
    source.send_group("g", "poison")
    receive_and_fail(source, clock, 2)
    source.receive()
    dead.receive_one()
    assert dead.bodies() == []


def test_a_dead_letter_comes_before_messages_sent_there_later(make_fifo, clock):
    """It does not wait for that queue's delay."""
    dead = make_fifo("dead.fifo", DelaySeconds=900)
    source = make_fifo("source.fifo", RedrivePolicy=policy(dead.arn, 1))
    source.send_group("g", "poison")
    receive_and_fail(source, clock)
    dead.send_group("g", "sent there")
    assert source.receive() == []
    held = dead.receive_one()
    assert held["Body"] == "poison"
    clock.advance(900)
    assert dead.bodies() == ["poison", "sent there"]


@pytest.fixture
def late(source, dead, clock):
    """A dead letter that arrives before two messages of its group, both held by a consumer. Returns their handles."""
    source.send_group("g", "poison")
    source.receive()
    dead.send_group("g", "first", "second")
    held = dead.receive(10, VisibilityTimeout=600)
    clock.advance(30)
    receive_and_fail(source, clock)
    assert source.receive() == []
    assert dead.counts == (1, 2, 0)
    return held


@pytest.mark.rule("fifo-redrive.13")
def test_a_dead_letter_leaves_its_group_to_the_consumer_that_holds_it(dead, late):
    assert dead.bodies() == []
    dead.delete(late[0])
    assert dead.bodies() == []
    dead.delete(late[1])
    assert dead.bodies() == ["poison"]


@pytest.mark.rule("fifo-redrive.13")
def test_a_dead_letter_waits_until_the_last_of_its_group_comes_back(dead, late, clock):
    """One is given back at once, the other is held longer: the last one counts."""
    dead.change(late[1], 0)
    assert dead.bodies() == []
    dead.change(late[0], 900)
    clock.advance(900, ms=-1)
    assert dead.bodies() == []
    clock.advance(ms=1)
    assert dead.bodies() == ["poison", "first", "second"]


def test_a_dead_letter_is_visible_once_all_of_its_group_were_given_back(dead, late):
    for message in late:
        dead.change(message, 0)
    assert dead.bodies() == ["poison", "first", "second"]


@pytest.mark.rule("fifo-redrive.14")
def test_a_dead_letter_waits_for_the_batch_that_was_in_flight_around_it(source, dead, clock, make_fifo):
    """It arrives between two messages in flight, and the first of them is deleted."""
    older = make_fifo("older.fifo", RedrivePolicy=policy(dead.arn, 1))
    older.send_group("g", "a")
    source.send_group("g", "b")
    dead.send_group("g", "c")
    receive_and_fail(older, clock)
    assert older.receive() == []
    first, last = dead.receive(10, VisibilityTimeout=600)
    receive_and_fail(source, clock, 2)
    assert source.receive() == []
    dead.delete(first)
    assert dead.bodies() == []
    clock.advance(600 - 60, ms=-1)
    assert dead.bodies() == []
    clock.advance(ms=1)
    assert dead.bodies(VisibilityTimeout=0) == ["b", "c"]
    assert last["Body"] == "c"


@pytest.mark.rule("fifo-redrive.13")
def test_a_dead_letter_is_visible_once_the_message_in_flight_expires(make_fifo, clock):
    dead = make_fifo("dead.fifo", MessageRetentionPeriod=100)
    source = make_fifo("source.fifo", RedrivePolicy=policy(dead.arn, 1))
    fresh = make_fifo("fresh.fifo", RedrivePolicy=policy(dead.arn, 1))
    source.send_group("g", "old")
    clock.advance(10)
    fresh.send_group("g", "new")
    receive_and_fail(fresh, clock)
    assert fresh.receive() == []
    [held] = dead.receive(VisibilityTimeout=600)
    assert held["Body"] == "new"
    receive_and_fail(source, clock)
    assert source.receive() == []
    assert dead.bodies() == []
    clock.advance(30)
    assert dead.counts == (0, 1, 0)
    assert dead.bodies() == []
    dead.send_group("g", "newest")
    clock.advance(10)
    assert dead.bodies() == ["newest"]


def test_a_move_ends_a_wait_at_the_fifo_dead_letter_queue(no_safety_net, source, dead, clock, background):
    source.send_group("g", "poison")
    receive_and_fail(source, clock, 2)
    waiting = background(dead.bodies, WaitTimeSeconds=20)
    clock.until_waiting()
    source.receive()
    assert waiting.result(20) == ["poison"]


@pytest.mark.rule("fifo-redrive.6", "fifo-redrive.7")
def test_a_message_may_move_on_along_a_chain_of_queues(make_fifo, clock):
    """Each queue counts its own receives. The reported count is their sum, and the group stays the same."""
    last = make_fifo("last.fifo")
    middle = make_fifo("middle.fifo", RedrivePolicy=policy(last.arn, 2))
    first = make_fifo("first.fifo", RedrivePolicy=policy(middle.arn, 1))
    sent = first.send("poison", MessageGroupId="g")
    receive_and_fail(first, clock)
    assert first.receive() == []
    receive_and_fail(middle, clock, 2)
    assert middle.receive() == []
    message = last.receive_one()
    assert shown(message, "ApproximateReceiveCount", "DeadLetterQueueSourceArn", "MessageGroupId") == (
        "4",
        middle.arn,
        "g",
    )
    assert message["MessageId"] == shown(message, "MessageDeduplicationId")[0] == sent["MessageId"]


def test_a_deleted_dead_letter_is_gone(source, dead, clock):
    source.send_group("g", "poison")
    receive_and_fail(source, clock, 2)
    source.receive()
    dead.delete(dead.receive_one())
    clock.advance(30)
    assert (source.counts, dead.counts) == ((0, 0, 0), (0, 0, 0))


# Its age


def old_poison(client, clock):
    """A message a day old in a source that keeps four days, moved to a dead-letter queue that keeps four days."""
    dead = BoundQueue.create_fifo(client, "dead.fifo", MessageRetentionPeriod=4 * DAY)
    source = BoundQueue.create_fifo(client, "source.fifo", RedrivePolicy=policy(dead.arn, 1))
    source.send_group("g", "poison")
    sent_at = clock.now_ms()
    receive_and_fail(source, clock)
    clock.advance(DAY - 30)
    assert source.receive() == []
    return dead, sent_at


@pytest.mark.rule("fifo-redrive.8")
def test_a_moved_message_keeps_its_age(sqs, clock):
    """As in a standard queue, the message expires three days after the move."""
    dead, sent_at = old_poison(sqs, clock)
    clock.advance(3 * DAY, ms=-1)
    assert shown(dead.receive_one(VisibilityTimeout=0), "SentTimestamp") == (str(sent_at),)
    clock.advance(ms=1)
    assert dead.bodies() == []
    assert dead.counts == (0, 0, 0)


@pytest.mark.rule("fifo-redrive.9")
def test_in_aws_mode_a_moved_message_begins_a_new_age(aws, clock):
    """compat="aws": the whole retention counts from the move."""
    dead, sent_at = old_poison(aws, clock)
    clock.advance(4 * DAY, ms=-1)
    assert shown(dead.receive_one(VisibilityTimeout=0), "SentTimestamp") == (str(sent_at + DAY * 1000),)
    clock.advance(ms=1)
    assert dead.bodies() == []
