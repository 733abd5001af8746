# SPDX-License-Identifier: Apache-2.0
"""Deduplication in FIFO queues: which messages are the same, for how long, and within which scope."""

import hashlib

import pytest

from tests.behaviour.bound_queue import BoundQueue

FIVE_MINUTES = 300


@pytest.fixture
def explicit(make_fifo):
    """A FIFO queue whose senders name their deduplication ids."""
    return make_fifo("explicit.fifo", ContentBasedDeduplication="false")


def same(first, second):
    """Whether both sends got the same message as their answer."""
    return (first["MessageId"], first["SequenceNumber"]) == (second["MessageId"], second["SequenceNumber"])


def send(queue, body="a", group_id="g", deduplication_id="d"):
    return queue.send(body, MessageGroupId=group_id, MessageDeduplicationId=deduplication_id)


# The answer to a duplicate


@pytest.mark.rule("deduplication.1", "deduplication.2", "deduplication.3")
def test_a_duplicate_is_answered_as_its_original_and_not_stored(explicit):
    """Success, with the original's id and sequence number."""
    first = send(explicit)
    assert same(send(explicit), first)
    assert same(send(explicit), first)
    assert explicit.counts == (1, 0, 0)


@pytest.mark.rule("deduplication.1", "deduplication.4")
def test_the_id_decides_and_not_the_body(explicit):
    """The first body stays. The digest in the answer is that of the body just sent."""
    first = send(explicit, "test")
    second = send(explicit, "hello")
    assert same(first, second)
    assert first["MD5OfMessageBody"] == "098f6bcd4621d373cade4e832627b4f6"
    assert second["MD5OfMessageBody"] == "5d41402abc4b2a76b9719d911017c592"
    assert explicit.bodies() == ["test"]


@pytest.mark.rule("deduplication.4")
def test_equal_bodies_under_different_ids_are_two_messages(explicit):
    assert not same(send(explicit, deduplication_id="d"), send(explicit, deduplication_id="e"))
    assert explicit.bodies() == ["a", "a"]


@pytest.mark.rule("deduplication.16")
def test_ids_differ_by_letter_case(explicit):
    assert not same(send(explicit, deduplication_id="d"), send(explicit, deduplication_id="D"))


@pytest.mark.rule("deduplication.11")
def test_each_queue_has_deduplication_ids_of_its_own(explicit, make_fifo):
    other = make_fifo("other.fifo")
    assert not same(send(explicit), send(other))
    assert (explicit.counts, other.counts) == ((1, 0, 0), (1, 0, 0))


# By content


@pytest.mark.rule("deduplication.2")
def test_by_content_equal_bodies_are_duplicates(fifo):
    first, second = fifo.send_group("g", "a", "a")
    assert same(first, second)
    [other] = fifo.send_group("g", "b")
    assert not same(first, other)
    assert fifo.bodies() == ["a", "b"]


@pytest.mark.rule("deduplication.5")
def test_the_id_made_from_the_content_is_the_bodys_sha_256(fifo):
    """Of its UTF-8, in lower-case hexadecimal."""
    fifo.send_group("g", "grün")
    assert (
        fifo.receive_one()["Attributes"]["MessageDeduplicationId"]
        == hashlib.sha256("grün".encode()).hexdigest()
    )


@pytest.mark.rule("deduplication.6")
def test_attributes_do_not_count_as_content(fifo):
    first = fifo.send("a", MessageGroupId="g")
    attributes = {"n": {"DataType": "Number", "StringValue": "1"}}
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}
    assert same(first, fifo.send("a", MessageGroupId="g", MessageAttributes=attributes))
    assert same(first, fifo.send("a", MessageGroupId="g", MessageSystemAttributes=trace))
    assert fifo.counts == (1, 0, 0)


@pytest.mark.rule("deduplication.4")
def test_an_explicit_id_takes_precedence_over_the_content(fifo):
    first = fifo.send("a", MessageGroupId="g")
    assert not same(first, send(fifo, "a", deduplication_id="d"))
    assert same(send(fifo, "b", deduplication_id="d"), send(fifo, "c", deduplication_id="d"))
    assert fifo.bodies() == ["a", "a"]


@pytest.mark.rule("deduplication.5")
def test_an_explicit_id_may_equal_an_id_made_from_content(fifo):
    first = fifo.send("a", MessageGroupId="g")
    assert same(first, send(fifo, "b", deduplication_id=hashlib.sha256(b"a").hexdigest()))


@pytest.mark.rule("deduplication.5")
def test_explicit_ids_are_remembered_after_content_decides(explicit):
    first = send(explicit, "a", deduplication_id=hashlib.sha256(b"a").hexdigest())
    explicit.set(ContentBasedDeduplication="true")
    assert same(first, explicit.send("a", MessageGroupId="g"))


# For five minutes


@pytest.mark.rule("deduplication.7")
def test_an_id_is_remembered_for_5_minutes_to_the_millisecond(explicit, clock):
    first = send(explicit)
    clock.advance(FIVE_MINUTES, ms=-1)
    assert same(send(explicit), first)
    clock.advance(ms=1)
    second = send(explicit)
    assert not same(second, first)
    assert second["SequenceNumber"] > first["SequenceNumber"]
    assert explicit.counts == (2, 0, 0)


@pytest.mark.rule("deduplication.7", "deduplication.8")
def test_the_5_minutes_begin_at_the_first_send_and_duplicates_do_not_extend_them(explicit, clock):
    first = send(explicit)
    for _ in range(4):
        clock.advance(60)
        assert same(send(explicit), first)
    clock.advance(60)
    assert not same(send(explicit), first)


@pytest.mark.rule("deduplication.7")
def test_after_5_minutes_the_id_is_remembered_anew(explicit, clock):
    send(explicit)
    clock.advance(FIVE_MINUTES)
    second = send(explicit)
    clock.advance(FIVE_MINUTES, ms=-1)
    assert same(send(explicit), second)
    clock.advance(ms=1)
    assert not same(send(explicit), second)


@pytest.mark.rule("deduplication.1", "deduplication.9")
def test_a_message_that_is_in_flight_or_deleted_is_remembered(explicit):
    """Work that was done is not done twice because the sender tried again."""
    first = send(explicit)
    message = explicit.receive_one()
    assert same(send(explicit), first)
    explicit.delete(message)
    assert same(send(explicit), first)
    assert explicit.counts == (0, 0, 0)
    assert explicit.receive() == []


def test_a_delayed_message_is_remembered(make_fifo, clock):
    queue = make_fifo(DelaySeconds=900)
    first = send(queue)
    assert same(send(queue), first)
    clock.advance(FIVE_MINUTES)
    assert not same(send(queue), first)
    assert queue.counts == (0, 0, 2)


def test_a_message_beyond_its_retention_is_remembered(make_fifo, clock):
    queue = make_fifo(MessageRetentionPeriod=60)
    first = send(queue)
    clock.advance(60)
    assert same(send(queue), first)
    assert queue.counts == (0, 0, 0)


def test_ids_are_remembered_when_the_file_is_opened_again(open_sqs, clock):
    client = open_sqs()
    queue = BoundQueue.create_fifo(client)
    first = send(queue)
    client.close()
    clock.advance(FIVE_MINUTES, ms=-1)
    again = BoundQueue(open_sqs(), queue.url)
    assert same(send(again), first)
    again.client.close()
    clock.advance(ms=1)
    assert not same(send(BoundQueue(open_sqs(), queue.url)), first)


def test_another_client_of_the_file_sends_the_same_duplicates(explicit, open_sqs):
    first = send(explicit)
    assert same(send(BoundQueue(open_sqs(), explicit.url)), first)
    assert explicit.counts == (1, 0, 0)


def test_one_of_several_simultaneous_senders_is_the_first(explicit, background):
    sends = [background(send, explicit) for _ in range(8)]
    answers = [sent.result(50) for sent in sends]
    assert all(same(answer, answers[0]) for answer in answers)
    assert explicit.counts == (1, 0, 0)


@pytest.mark.rule("deduplication.10")
def test_a_purge_forgets_every_id(explicit):
    first = send(explicit)
    explicit.client.purge_queue(QueueUrl=explicit.url)
    assert not same(send(explicit), first)
    assert explicit.counts == (1, 0, 0)


def test_a_queue_of_the_same_name_remembers_nothing(fifo, clock):
    first = send(fifo)
    fifo.client.delete_queue(QueueUrl=fifo.url)
    clock.advance(60)
    again = BoundQueue.create_fifo(fifo.client)
    assert not same(send(again), first)
    assert again.counts == (1, 0, 0)


# Within a scope


@pytest.mark.rule("fifo-queue.2", "deduplication.12")
def test_by_default_an_id_is_remembered_for_the_whole_queue(explicit):
    """The same id in another group is a duplicate; the message stays in its first group."""
    first = send(explicit, group_id="one")
    assert same(send(explicit, group_id="two"), first)
    assert [message["Attributes"]["MessageGroupId"] for message in explicit.receive(10)] == ["one"]


@pytest.mark.rule("deduplication.13")
@pytest.mark.parametrize("throughput", ["perQueue", "perMessageGroupId"])
def test_with_scope_message_group_each_group_has_ids_of_its_own(make_fifo, throughput):
    """With each throughput limit."""
    queue = make_fifo(DeduplicationScope="messageGroup", FifoThroughputLimit=throughput)
    first = send(queue, group_id="one")
    second = send(queue, group_id="two")
    assert not same(first, second)
    assert same(send(queue, group_id="one"), first)
    assert same(send(queue, group_id="two"), second)
    assert queue.counts == (2, 0, 0)


@pytest.mark.rule("deduplication.13")
def test_each_groups_ids_end_with_their_own_5_minutes(make_fifo, clock):
    queue = make_fifo(DeduplicationScope="messageGroup")
    first = send(queue, group_id="one")
    clock.advance(60)
    second = send(queue, group_id="two")
    clock.advance(240)
    assert not same(send(queue, group_id="one"), first)
    assert same(send(queue, group_id="two"), second)


@pytest.mark.rule("deduplication.12", "deduplication.13", "deduplication.14")
def test_a_new_scope_holds_for_later_sends(make_fifo):
    queue = make_fifo()
    queue.set(DeduplicationScope="messageGroup")
    assert not same(send(queue, group_id="one"), send(queue, group_id="two"))
    queue.set(DeduplicationScope="queue")
    assert same(
        send(queue, group_id="one", deduplication_id="e"), send(queue, group_id="two", deduplication_id="e")
    )


@pytest.mark.parametrize(("old", "new"), [("queue", "messageGroup"), ("messageGroup", "queue")])
def test_a_message_sent_again_across_a_change_of_the_scope_is_still_a_duplicate(make_fifo, old, new):
    """The same id in the same group is one under either scope."""
    queue = make_fifo(DeduplicationScope=old)
    first = send(queue)
    queue.set(DeduplicationScope=new)
    assert same(send(queue), first)
    assert queue.counts == (1, 0, 0)


def test_a_duplicate_is_matched_within_its_own_group_first(make_fifo):
    queue = make_fifo(DeduplicationScope="messageGroup")
    first = {group: send(queue, group_id=group) for group in ("one", "two", "three")}
    queue.set(DeduplicationScope="queue")
    for group, answer in first.items():
        assert same(send(queue, group_id=group), answer)
    assert send(queue, group_id="four")["MessageId"] in {answer["MessageId"] for answer in first.values()}
    assert queue.counts == (3, 0, 0)


@pytest.mark.rule("deduplication.15")
@pytest.mark.parametrize(("old", "new"), [("queue", "messageGroup"), ("messageGroup", "queue")])
def test_in_aws_mode_a_queue_keeps_its_original_scope(aws, old, new):
    """compat="aws": the attribute shows the new scope, but it has no effect."""
    queue = BoundQueue.create_fifo(aws, DeduplicationScope=old)
    queue.set(DeduplicationScope=new)
    assert queue.attributes("DeduplicationScope") == {"DeduplicationScope": new}
    assert same(send(queue, group_id="one"), send(queue, group_id="two")) == (old == "queue")
