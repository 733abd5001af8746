# SPDX-License-Identifier: Apache-2.0
"""Dead letters: the receive that moves a message, the content that moves along, and the sources that are allowed."""

import json
import re

import pytest

from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.refusals import INVALID, NO_SUCH_QUEUE, bad_value, refused

DAY = 86_400


@pytest.fixture
def dead(make_queue):
    return make_queue("dead")


@pytest.fixture
def source(make_queue, dead):
    """A queue whose messages move after two receives."""
    return make_queue("source", RedrivePolicy=policy(dead.arn, 2))


def policy(arn, count):
    return {"deadLetterTargetArn": arn, "maxReceiveCount": count}


def receive_and_fail(queue, clock, times=1):
    for _ in range(times):
        queue.receive_one()
        clock.advance(30)


# RedrivePolicy


@pytest.mark.rule("redrive.1", "redrive.2")
def test_a_policy_is_shown_as_compact_json_with_a_whole_number(make_queue, dead):
    """Also if it was set as a text."""
    queue = make_queue(RedrivePolicy=policy(dead.arn, "3"))
    shown = queue.attributes("RedrivePolicy")["RedrivePolicy"]
    assert shown == f'{{"deadLetterTargetArn":"{dead.arn}","maxReceiveCount":3}}'


@pytest.mark.rule("redrive.9")
def test_there_is_no_policy_unless_set(queue):
    assert "RedrivePolicy" not in queue.attributes("All")


@pytest.mark.rule("redrive.3")
@pytest.mark.parametrize("count", [1, 1000])
def test_max_receive_count_is_1_to_1000(make_queue, dead, count):
    queue = make_queue(RedrivePolicy=policy(dead.arn, count))
    assert json.loads(queue.attributes("RedrivePolicy")["RedrivePolicy"])["maxReceiveCount"] == count


@pytest.mark.rule("redrive.3")
@pytest.mark.parametrize("count", [0, -1, 1001])
def test_other_counts_are_refused(make_queue, dead, count):
    text = json.dumps(policy(dead.arn, count))
    with refused(
        dead.client,
        INVALID,
        bad_value(
            text,
            "RedrivePolicy",
            f"Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both inclusive.",
        ),
    ):
        make_queue(RedrivePolicy=text)


@pytest.mark.parametrize("count", ["many", 1.5, True, None, [], ""])
def test_a_count_that_is_not_a_whole_number_is_refused(make_queue, dead, count):
    with refused(dead.client, INVALID, re.compile("Invalid value for maxReceiveCount")):
        make_queue(RedrivePolicy=policy(dead.arn, count))


@pytest.mark.rule("redrive.4")
@pytest.mark.parametrize(
    "text", ["no json", "[]", "3", "{}", '{"maxReceiveCount": 3}', '{"deadLetterTargetArn": "ARN"}']
)
def test_a_policy_is_json_with_both_members(make_queue, dead, text):
    """SQS documents a default for the count, but refuses to use it."""
    text = text.replace("ARN", dead.arn)
    with refused(
        dead.client, INVALID, re.compile(f"^Value {re.escape(text)} for parameter RedrivePolicy is invalid.")
    ):
        make_queue(RedrivePolicy=text)
    with refused(dead.client, INVALID, re.compile("for parameter RedrivePolicy is invalid")):
        dead.set(RedrivePolicy=text)


@pytest.mark.rule("redrive.5")
def test_a_dead_letter_queue_must_exist(make_queue, dead):
    for arn in (f"{dead.arn}-not", dead.arn.replace("000000000000", "111111111111")):
        text = json.dumps(policy(arn, 3))
        with refused(
            dead.client, INVALID, bad_value(text, "RedrivePolicy", "Dead letter target does not exist.")
        ):
            make_queue(RedrivePolicy=text)
    assert dead.client.list_queues()["QueueUrls"] == [dead.url]


@pytest.mark.rule("redrive.6")
def test_a_dead_letter_queue_is_in_the_same_region(make_queue, dead):
    text = json.dumps(policy(dead.arn.replace("us-east-1", "eu-west-1"), 3))
    with refused(
        dead.client, INVALID, bad_value(text, "RedrivePolicy", "Dead letter target does not exist.")
    ):
        make_queue(RedrivePolicy=text)


@pytest.mark.rule("redrive.7")
def test_a_queue_is_not_its_own_dead_letter_queue(queue):
    with refused(queue.client, INVALID, re.compile("must not be the source queue itself")):
        queue.set(RedrivePolicy=policy(queue.arn, 3))


@pytest.mark.rule("redrive.27", "redrive.28")
@pytest.mark.parametrize("suffix", ["", ".fifo"])
def test_amazons_queue_may_be_its_own_dead_letter_queue(aws, clock, suffix):
    """A failing message stays receivable: one receive follows another, and no move is counted."""
    queue = (BoundQueue.create_fifo if suffix else BoundQueue.create)(aws, f"q{suffix}")
    queue.set(RedrivePolicy=policy(queue.arn, 1))
    assert json.loads(queue.attributes("All")["RedrivePolicy"]) == policy(queue.arn, 1)
    assert aws.list_dead_letter_source_queues(QueueUrl=queue.url)["queueUrls"] == [queue.url]
    for body in ("a", "b"):
        queue.send(body, **{"MessageGroupId": "g"} if suffix else {})
    for count in ("1", "2", "3"):
        received = queue.receive(10)
        assert [(one["Body"], one["Attributes"]["ApproximateReceiveCount"]) for one in received] == [
            ("a", count),
            ("b", count),
        ]
        assert not any("DeadLetterQueueSourceArn" in one["Attributes"] for one in received)
        clock.advance(30)


def test_a_refused_policy_leaves_the_old_one(source):
    before = source.attributes("All")
    with refused(source.client, INVALID, re.compile("Dead letter target does not exist")):
        source.set(RedrivePolicy=policy("arn:aws:sqs:us-east-1:000000000000:nobody", 3), DelaySeconds=5)
    assert source.attributes("All") == before


# The move


@pytest.mark.rule("redrive.10", "redrive.11")
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_receive_that_would_exceed_the_count_moves_the_message(make_queue, dead, clock, count):
    """With maxReceiveCount n the n-th receive returns it, and the next one finds nothing."""
    queue = make_queue(RedrivePolicy=policy(dead.arn, count))
    queue.send("poison")
    receive_and_fail(queue, clock, count)
    assert dead.counts == (0, 0, 0)
    assert queue.receive(10) == []
    assert queue.counts == (0, 0, 0)
    assert dead.bodies() == ["poison"]


def test_time_alone_moves_nothing(source, dead, clock):
    """A receive moves the message, not the end of a timeout: until then it is visible in its own queue."""
    source.send("poison")
    receive_and_fail(source, clock, 2)
    clock.advance(DAY)
    assert source.counts == (1, 0, 0)
    assert dead.counts == (0, 0, 0)


@pytest.mark.rule("redrive.11")
def test_a_message_that_is_deleted_in_time_never_moves(source, dead, clock):
    source.send("fine")
    receive_and_fail(source, clock)
    source.delete(source.receive_one())
    clock.advance(DAY)
    assert source.receive() == []
    assert dead.counts == (0, 0, 0)


def test_a_moved_message_makes_room_for_the_next_in_the_same_receive(source, dead, clock):
    """A poison message in front does not cost the consumer its receive."""
    source.send("poison")
    receive_and_fail(source, clock, 2)
    source.send_all("good", "better")
    assert source.bodies(2) == ["good", "better"]
    assert dead.counts == (1, 0, 0)


def test_many_exhausted_messages_move_in_one_receive(source, dead, clock):
    source.send_all(*"abcdefghijklmno")
    for _ in range(2):
        source.receive(10)
        source.receive(10)
        clock.advance(30)
    source.send("good")
    assert source.bodies() == ["good"]
    assert dead.counts == (15, 0, 0)
    assert "".join(dead.bodies() + dead.bodies()) == "abcdefghijklmno"


@pytest.mark.rule("redrive.12", "redrive.13", "redrive.16")
def test_id_body_attributes_and_digests_move_along(source, dead, clock):
    """A receive also shows the queue that it came from."""
    attributes = {"b": {"DataType": "Binary", "BinaryValue": b"\0"}}
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}
    source.send("poison", MessageAttributes=attributes, MessageSystemAttributes=trace, MessageGroupId="g")
    before = source.receive_one(MessageAttributeNames=["All"])
    clock.advance(30)
    receive_and_fail(source, clock)
    source.receive()
    after = dead.receive_one(MessageAttributeNames=["All"])
    for name in ("MessageId", "Body", "MD5OfBody", "MessageAttributes", "MD5OfMessageAttributes"):
        assert after[name] == before[name]
    kept = ("SentTimestamp", "SenderId", "AWSTraceHeader", "MessageGroupId")
    assert {name: after["Attributes"][name] for name in kept} == {
        name: before["Attributes"][name] for name in kept
    }
    assert "DeadLetterQueueSourceArn" not in before["Attributes"]
    assert after["Attributes"]["DeadLetterQueueSourceArn"] == source.arn


@pytest.mark.rule("redrive.14")
def test_the_receive_count_continues_in_the_dead_letter_queue(make_queue, dead, clock):
    """maxReceiveCount 1: its first receive there is its second."""
    queue = make_queue(RedrivePolicy=policy(dead.arn, 1))
    queue.send()
    receive_and_fail(queue, clock)
    queue.receive()
    assert dead.receive_one()["Attributes"]["ApproximateReceiveCount"] == "2"
    clock.advance(30)
    assert dead.receive_one()["Attributes"]["ApproximateReceiveCount"] == "3"


@pytest.mark.rule("redrive.17")
def test_a_moved_message_is_receivable_at_once_despite_a_delay_there(make_queue, clock):
    dead = make_queue("dead", DelaySeconds=900)
    queue = make_queue(RedrivePolicy=policy(dead.arn, 1))
    queue.send("poison")
    receive_and_fail(queue, clock)
    queue.receive()
    assert dead.bodies() == ["poison"]


@pytest.mark.rule("poll.9")
def test_a_move_ends_a_wait_at_the_dead_letter_queue(no_safety_net, source, dead, clock, background):
    source.send("poison")
    receive_and_fail(source, clock, 2)
    waiting = background(dead.bodies, WaitTimeSeconds=20)
    clock.until_waiting()
    source.receive()
    assert waiting.result(20) == ["poison"]


@pytest.mark.rule("redrive.13", "redrive.14", "redrive.15")
def test_a_message_may_move_on_along_a_chain_of_queues(make_queue, clock):
    """Each queue counts its own receives. The reported count is their sum."""
    last = make_queue("last")
    middle = make_queue("middle", RedrivePolicy=policy(last.arn, 2))
    first = make_queue("first", RedrivePolicy=policy(middle.arn, 1))
    first.send("poison")
    receive_and_fail(first, clock)
    assert first.receive() == []
    receive_and_fail(middle, clock, 2)
    assert middle.receive() == []
    attributes = last.receive_one()["Attributes"]
    assert attributes["ApproximateReceiveCount"] == "4"
    assert attributes["DeadLetterQueueSourceArn"] == middle.arn


@pytest.mark.parametrize("suffix", ["", ".fifo"], ids=["standard", "fifo"])
def test_two_queues_may_be_each_others_dead_letter_queue_and_lose_nothing(
    make_queue, make_fifo, clock, suffix
):
    """A message moves back and forth between them, and its receive count goes on growing."""
    make = make_fifo if suffix else make_queue
    one = make(f"one{suffix}")
    other = make(f"other{suffix}", RedrivePolicy=policy(one.arn, 1))
    one.set(RedrivePolicy=policy(other.arn, 1))
    one.send("poison", MessageGroupId="g")
    for count, queue in enumerate((one, other, one, other, one), start=1):
        assert queue.receive_one()["Attributes"]["ApproximateReceiveCount"] == str(count)
        clock.advance(30)
        assert queue.receive(10) == []
    assert (one.counts, other.counts) == ((0, 0, 0), (1, 0, 0))


def test_messages_of_a_whole_chain_move_one_queue_at_a_time(make_queue, clock):
    """A receive moves only messages that are exhausted in its own queue."""
    last = make_queue("last")
    middle = make_queue("middle", RedrivePolicy=policy(last.arn, 1))
    first = make_queue("first", RedrivePolicy=policy(middle.arn, 1))
    first.send_all("a", "b", "c")
    for queue in (first, middle):
        assert len(queue.receive(10)) == 3
        clock.advance(30)
        assert queue.receive(10) == []
    assert (first.counts, middle.counts, last.counts) == ((0, 0, 0), (0, 0, 0), (3, 0, 0))
    assert last.bodies() == ["a", "b", "c"]


def test_a_policy_may_be_changed_to_another_queue(source, dead, make_queue, clock):
    """Moved messages stay where they are. Later ones move to the new queue."""
    other = make_queue("other")
    source.send("first")
    receive_and_fail(source, clock, 2)
    assert source.receive() == []
    source.set(RedrivePolicy=policy(other.arn, 2))
    source.send("second")
    receive_and_fail(source, clock, 2)
    assert source.receive() == []
    assert (dead.bodies(), other.bodies()) == (["first"], ["second"])


def test_two_sources_may_share_a_dead_letter_queue(make_queue, dead, clock):
    """Each message shows its own source."""
    sources = [make_queue(name, RedrivePolicy=policy(dead.arn, 1)) for name in ("one", "two")]
    for queue in sources:
        queue.send(queue.name)
        receive_and_fail(queue, clock)
        assert queue.receive() == []
    told = {
        message["Body"]: message["Attributes"]["DeadLetterQueueSourceArn"] for message in dead.receive(10)
    }
    assert told == {queue.name: queue.arn for queue in sources}


@pytest.mark.rule("redrive.10")
def test_a_timeout_of_0_counts_towards_the_move(source, dead):
    source.send("poison")
    assert [source.bodies(VisibilityTimeout=0) for _ in range(3)] == [["poison"], ["poison"], []]
    assert dead.bodies() == ["poison"]


@pytest.mark.rule("redrive.10")
def test_giving_a_message_back_counts_towards_the_move(source, dead):
    source.send("poison")
    for _ in range(2):
        source.change(source.receive_one(), 0)
    assert source.receive() == []
    assert dead.bodies() == ["poison"]


def test_a_deleted_dead_letter_is_gone(source, dead, clock):
    source.send("poison")
    receive_and_fail(source, clock, 2)
    source.receive()
    dead.delete(dead.receive_one())
    clock.advance(30)
    assert dead.counts == (0, 0, 0)
    assert source.counts == (0, 0, 0)


# Changes of the policy


@pytest.mark.rule("redrive.8")
def test_without_a_policy_a_message_is_received_for_ever(source, dead, clock):
    """An empty text removes the policy, also if the queue has none."""
    source.send("poison")
    receive_and_fail(source, clock, 2)
    source.set(RedrivePolicy="")
    source.set(RedrivePolicy="")
    assert "RedrivePolicy" not in source.attributes("All")
    receive_and_fail(source, clock, 3)
    assert dead.counts == (0, 0, 0)


def test_a_lowered_count_holds_from_the_next_receive_on(source, dead, clock):
    source.send("poison")
    receive_and_fail(source, clock)
    source.set(RedrivePolicy=policy(dead.arn, 1))
    assert source.receive() == []
    assert dead.bodies() == ["poison"]


@pytest.mark.rule("redrive.18")
def test_while_its_dead_letter_queue_is_missing_a_message_stays_where_it_is(source, dead, clock):
    """The message is received again, not lost. A new queue of the name takes it."""
    source.send("poison")
    receive_and_fail(source, clock, 2)
    dead.client.delete_queue(QueueUrl=dead.url)
    assert source.receive_one()["Attributes"]["ApproximateReceiveCount"] == "3"
    clock.advance(60)
    again = BoundQueue.create(dead.client, "dead")
    assert source.receive() == []
    assert again.bodies() == ["poison"]


def test_a_purge_of_the_source_leaves_its_dead_letters(source, dead, clock):
    source.send("poison")
    receive_and_fail(source, clock, 2)
    source.receive()
    source.client.purge_queue(QueueUrl=source.url)
    assert dead.bodies() == ["poison"]


# Retention


@pytest.mark.rule("redrive.16")
def test_retention_counts_from_the_send_in_the_dead_letter_queue_too(make_queue, clock):
    """One day in the source, four days' retention in the dead-letter queue: it expires three days after the move."""
    dead = make_queue("dead", MessageRetentionPeriod=4 * DAY)
    source = make_queue("source", RedrivePolicy=policy(dead.arn, 1))
    source.send("poison")
    receive_and_fail(source, clock)
    clock.advance(DAY - 30)
    assert source.receive() == []
    clock.advance(3 * DAY, ms=-1)
    assert dead.bodies(VisibilityTimeout=0) == ["poison"]
    clock.advance(ms=1)
    assert dead.bodies() == []
    assert dead.counts == (0, 0, 0)


def test_a_message_beyond_the_dead_letter_queues_retention_is_gone_when_it_moves(make_queue, clock):
    """So a dead-letter queue should have the longer retention."""
    dead = make_queue("dead", MessageRetentionPeriod=60)
    source = make_queue("source", RedrivePolicy=policy(dead.arn, 1))
    source.send("poison")
    receive_and_fail(source, clock)
    clock.advance(30)
    assert source.receive() == []
    assert dead.bodies() == []


# RedriveAllowPolicy


def test_an_allow_policy_is_shown_as_set_and_removed_by_an_empty_text(dead):
    dead.set(RedriveAllowPolicy={"redrivePermission": "denyAll"})
    assert dead.attributes("RedriveAllowPolicy") == {"RedriveAllowPolicy": '{"redrivePermission":"denyAll"}'}
    dead.set(RedriveAllowPolicy="")
    assert dead.attributes("RedriveAllowPolicy") == {}


@pytest.mark.rule("redrive.19")
def test_deny_all_refuses_every_source(make_queue, dead):
    dead.set(RedriveAllowPolicy={"redrivePermission": "denyAll"})
    with refused(dead.client, INVALID, re.compile("permission")):
        make_queue(RedrivePolicy=policy(dead.arn, 3))


@pytest.mark.rule("redrive.20")
def test_allow_all_takes_every_source(make_queue, dead):
    dead.set(RedriveAllowPolicy={"redrivePermission": "allowAll"})
    assert "RedrivePolicy" in make_queue(RedrivePolicy=policy(dead.arn, 3)).attributes("All")


@pytest.mark.rule("redrive.21")
def test_by_queue_takes_the_named_sources_alone(make_queue, dead):
    named, other = make_queue("named"), make_queue("other")
    dead.set(RedriveAllowPolicy={"redrivePermission": "byQueue", "sourceQueueArns": [named.arn]})
    named.set(RedrivePolicy=policy(dead.arn, 3))
    with refused(dead.client, INVALID, re.compile("permission")):
        other.set(RedrivePolicy=policy(dead.arn, 3))


def arns(count):
    return [f"arn:aws:sqs:us-east-1:000000000000:q{number}" for number in range(count)]


@pytest.mark.rule("redrive.22", "redrive.23", "redrive.24")
@pytest.mark.parametrize(
    "wrong",
    [
        "no json",
        "[]",
        {},
        {"redrivePermission": "some"},
        {"redrivePermission": "byQueue"},
        {"redrivePermission": "byQueue", "sourceQueueArns": []},
        {"redrivePermission": "byQueue", "sourceQueueArns": arns(11)},
        {"redrivePermission": "byQueue", "sourceQueueArns": ["q"]},
        {"redrivePermission": "allowAll", "sourceQueueArns": arns(1)},
        {"redrivePermission": "denyAll", "sourceQueueArns": arns(1)},
    ],
)
def test_an_allow_policy_names_1_to_10_sources_with_by_queue_and_only_then(dead, wrong):
    dead.set(RedriveAllowPolicy={"redrivePermission": "byQueue", "sourceQueueArns": arns(10)})
    before = dead.attributes("RedriveAllowPolicy")
    with refused(dead.client, INVALID, re.compile("for parameter RedriveAllowPolicy is invalid")):
        dead.set(RedriveAllowPolicy=wrong)
    assert dead.attributes("RedriveAllowPolicy") == before


# ListDeadLetterSourceQueues


@pytest.mark.rule("redrive.25", "redrive.26")
def test_sources_are_listed_by_name(make_queue, dead):
    """The key is there even if the list is empty. Only this key begins with a small q."""
    assert dead.client.list_dead_letter_source_queues(QueueUrl=dead.url)["queueUrls"] == []
    sources = [make_queue(name, RedrivePolicy=policy(dead.arn, 3)) for name in ("b", "a")]
    make_queue("c")
    listed = dead.client.list_dead_letter_source_queues(QueueUrl=dead.url)["queueUrls"]
    assert listed == [sources[1].url, sources[0].url]
    sources[0].set(RedrivePolicy="")
    assert dead.client.list_dead_letter_source_queues(QueueUrl=dead.url)["queueUrls"] == [sources[1].url]


@pytest.mark.rule("list.4", "list.5", "list.10")
def test_sources_come_in_pages(make_queue, dead):
    urls = [make_queue(f"q{n}", RedrivePolicy=policy(dead.arn, 3)).url for n in range(3)]
    ask = dead.client.list_dead_letter_source_queues
    first = ask(QueueUrl=dead.url, MaxResults=2)
    second = ask(QueueUrl=dead.url, MaxResults=2, NextToken=first["NextToken"])
    assert (first["queueUrls"], second["queueUrls"]) == (urls[:2], urls[2:])
    assert "NextToken" not in second
    pages = dead.client.get_paginator("list_dead_letter_source_queues").paginate(
        QueueUrl=dead.url, PaginationConfig={"PageSize": 1}
    )
    assert [url for page in pages for url in page["queueUrls"]] == urls


@pytest.mark.rule("list.8")
@pytest.mark.parametrize("number", [0, 1001])
def test_max_results_of_sources_is_1_to_1000(dead, number):
    with refused(dead.client, INVALID, re.compile(f"^Value {number} for parameter MaxResults is invalid.")):
        dead.client.list_dead_letter_source_queues(QueueUrl=dead.url, MaxResults=number)


def test_sources_of_an_unknown_queue(dead):
    with refused(dead.client, "QueueDoesNotExist", NO_SUCH_QUEUE):
        dead.client.list_dead_letter_source_queues(QueueUrl="nobody")
