# SPDX-License-Identifier: Apache-2.0
"""FIFO queues as queues: their names, their attributes, and which of them can change."""

import re

import pytest

from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.refusals import INVALID, refused

NAMELESS = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
NOT_FIFO = (
    "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo "
    "suffix and be 1 to 80 in length."
)
HIGH_THROUGHPUT = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}


@pytest.fixture
def create(sqs):
    """Make a queue with exactly these attributes."""
    return lambda name, **attributes: BoundQueue.create(sqs, name, **attributes)


# Names


@pytest.mark.parametrize("name", ["a.fifo", "x" * 75 + ".fifo", "A-b_9.fifo", "-.fifo"])
def test_a_fifo_queue_has_a_name_of_up_to_80_characters_with_its_suffix(create, name):
    queue = create(name, FifoQueue="true")
    assert queue.name == name
    assert queue.arn.endswith(f":{name}")
    assert queue.client.get_queue_url(QueueName=name)["QueueUrl"] == queue.url
    assert queue.client.list_queues()["QueueUrls"] == [queue.url]


@pytest.mark.parametrize("name", ["a", "a.FIFO", ".fifo", "a.b.fifo", "x" * 76 + ".fifo", "a.fifo.fifo"])
def test_other_names_are_refused(sqs, create, name):
    with refused(sqs, INVALID, NOT_FIFO):
        create(name, FifoQueue="true")


def test_the_suffix_needs_the_attribute(sqs, create):
    """Also for an existing queue: the type is part of the request."""
    with refused(sqs, INVALID, NAMELESS):
        create("a.fifo")
    create("a.fifo", FifoQueue="true")
    with refused(sqs, INVALID, NAMELESS):
        create("a.fifo")


def test_fifo_queue_false_is_refused_on_a_standard_queue(sqs, create):
    for value in ("false", "False"):
        with refused(sqs, "InvalidAttributeName", "Unknown Attribute FifoQueue."):
            create("a", FifoQueue=value)


def test_a_fifo_and_a_standard_queue_are_two_queues(create):
    fifo, standard = create("a.fifo", FifoQueue="true"), create("a")
    standard.send("here")
    assert (fifo.counts, standard.counts) == ((0, 0, 0), (1, 0, 0))


@pytest.mark.rule("fifo-queue.8")
@pytest.mark.parametrize("value", ["true", "True", "TRUE"])
def test_fifo_queue_is_true_in_any_letter_case_and_shown_in_small_ones(create, value):
    assert create("a.fifo", FifoQueue=value).attributes("FifoQueue") == {"FifoQueue": "true"}


def test_a_deleted_name_is_free_again_after_60_seconds(sqs, create, clock):
    queue = create("a.fifo", FifoQueue="true")
    sqs.delete_queue(QueueUrl=queue.url)
    clock.advance(59)
    with refused(sqs, "QueueDeletedRecently", re.compile("wait 60 seconds")):
        create("a.fifo", FifoQueue="true")
    clock.advance(1)
    assert create("a.fifo", FifoQueue="true").url == queue.url


# Attributes


@pytest.mark.rule("fifo-queue.1", "fifo-queue.2", "fifo-queue.8")
def test_a_new_fifo_queue_has_exactly_these_attributes(create, clock):
    now = str(clock.now_ms() // 1000)
    assert create("a.fifo", FifoQueue="true").attributes("All") == {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ContentBasedDeduplication": "false",
        "CreatedTimestamp": now,
        "DeduplicationScope": "queue",
        "DelaySeconds": "0",
        "FifoQueue": "true",
        "FifoThroughputLimit": "perQueue",
        "LastModifiedTimestamp": now,
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "QueueArn": "arn:aws:sqs:us-east-1:000000000000:a.fifo",
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
        "VisibilityTimeout": "30",
    }


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("ContentBasedDeduplication", "true", "true"),
        ("ContentBasedDeduplication", "True", "true"),
        ("ContentBasedDeduplication", "false", "false"),
        ("DeduplicationScope", "messageGroup", "messageGroup"),
        ("DeduplicationScope", "queue", "queue"),
        ("FifoThroughputLimit", "perQueue", "perQueue"),
    ],
)
def test_an_attribute_is_set_at_creation_and_later_alike(create, name, value, shown):
    created = create("a.fifo", FifoQueue="true", **{name: value})
    changed = create("b.fifo", FifoQueue="true")
    changed.set(**{name: value})
    assert created.attributes(name) == changed.attributes(name) == {name: shown}


@pytest.mark.rule("fifo-queue.3", "fifo-queue.4")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ContentBasedDeduplication", "yes"),
        ("ContentBasedDeduplication", "1"),
        ("ContentBasedDeduplication", ""),
        ("DeduplicationScope", "group"),
        ("DeduplicationScope", "MessageGroup"),
        ("DeduplicationScope", ""),
        ("FifoThroughputLimit", "perMessageGroup"),
        ("FifoThroughputLimit", ""),
        ("FifoQueue", "yes"),
    ],
)
def test_other_values_are_refused(fifo, create, name, value):
    before = fifo.attributes("All")
    with refused(
        fifo.client, "InvalidAttributeValue", re.compile(f"^Invalid value for the parameter {name}.")
    ):
        fifo.set(**{name: value})
    assert fifo.attributes("All") == before


@pytest.mark.rule("fifo-queue.5")
def test_throughput_per_group_needs_the_scope_of_groups(create, fifo):
    """At creation, at a change, and if a change would remove the scope that it needs."""
    wrong = re.compile("^Invalid value for the parameter FifoThroughputLimit.")
    with refused(fifo.client, "InvalidAttributeValue", wrong):
        create("a.fifo", FifoQueue="true", FifoThroughputLimit="perMessageGroupId")
    with refused(fifo.client, "InvalidAttributeValue", wrong):
        fifo.set(FifoThroughputLimit="perMessageGroupId")
    fifo.set(**HIGH_THROUGHPUT)
    with refused(fifo.client, "InvalidAttributeValue", wrong):
        fifo.set(DeduplicationScope="queue")
    assert fifo.attributes(*HIGH_THROUGHPUT) == HIGH_THROUGHPUT
    assert (
        create("b.fifo", FifoQueue="true", **HIGH_THROUGHPUT).attributes(*HIGH_THROUGHPUT) == HIGH_THROUGHPUT
    )


def test_high_throughput_can_be_switched_off_again(make_fifo):
    queue = make_fifo(**HIGH_THROUGHPUT)
    queue.set(DeduplicationScope="queue", FifoThroughputLimit="perQueue")
    assert queue.attributes(*HIGH_THROUGHPUT) == {
        "DeduplicationScope": "queue",
        "FifoThroughputLimit": "perQueue",
    }


@pytest.mark.rule("fifo-queue.6", "fifo-queue.7")
def test_a_fifo_queue_cannot_become_a_standard_queue(fifo):
    fifo.set(FifoQueue="true")
    with refused(
        fifo.client,
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
    ):
        fifo.set(FifoQueue="false", VisibilityTimeout=5)
    assert fifo.attributes("FifoQueue", "VisibilityTimeout") == {
        "FifoQueue": "true",
        "VisibilityTimeout": "30",
    }


def test_a_standard_queue_can_not_become_a_fifo_queue(queue):
    for value in ("true", "false"):
        with refused(queue.client, "InvalidAttributeName", "Unknown Attribute FifoQueue."):
            queue.set(FifoQueue=value)


def test_a_fifo_queue_has_the_attributes_of_every_queue(create):
    values = {
        "DelaySeconds": "5",
        "MaximumMessageSize": "2048",
        "MessageRetentionPeriod": "60",
        "ReceiveMessageWaitTimeSeconds": "3",
        "VisibilityTimeout": "0",
    }
    assert create("a.fifo", FifoQueue="true", **values).attributes(*values) == values


@pytest.mark.parametrize("name", ["Nothing", "fifoqueue", "ApproximateNumberOfMessages", "QueueArn"])
def test_an_unknown_or_read_only_attribute_is_refused(fifo, name):
    with refused(fifo.client, "InvalidAttributeName", f"Unknown Attribute {name}."):
        fifo.set(**{name: "1"})


# CreateQueue again


def test_an_equal_queue_is_found(create):
    queue = create("a.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    for attributes in ({}, {"ContentBasedDeduplication": "true"}, {"DeduplicationScope": "queue"}):
        assert create("a.fifo", FifoQueue="True", **attributes).url == queue.url


@pytest.mark.rule("fifo-queue.9")
@pytest.mark.parametrize(
    ("name", "value"), [("ContentBasedDeduplication", "true"), ("DeduplicationScope", "messageGroup")]
)
def test_a_queue_with_another_value_is_an_error(sqs, create, name, value):
    create("a.fifo", FifoQueue="true")
    with refused(
        sqs,
        "QueueNameExists",
        f"A queue already exists with the same name and a different value for attribute {name}",
    ):
        create("a.fifo", FifoQueue="true", **{name: value})


@pytest.mark.rule("fifo-queue.9")
def test_current_values_are_compared_not_first_ones(sqs, create):
    queue = create("a.fifo", FifoQueue="true")
    queue.set(ContentBasedDeduplication="true")
    assert create("a.fifo", FifoQueue="true", ContentBasedDeduplication="true").url == queue.url
    with refused(sqs, "QueueNameExists", re.compile("attribute ContentBasedDeduplication")):
        create("a.fifo", FifoQueue="true", ContentBasedDeduplication="false")


def test_a_fifo_queue_has_tags(sqs):
    answer = sqs.create_queue(QueueName="a.fifo", Attributes={"FifoQueue": "true"}, tags={"team": "blue"})
    assert sqs.list_queue_tags(QueueUrl=answer["QueueUrl"])["Tags"] == {"team": "blue"}


# Counts


@pytest.mark.rule("fifo-queue.10")
def test_counts_follow_a_group_through_its_life(make_fifo, clock):
    """(visible, in flight, delayed): messages that are blocked behind one in flight are visible."""
    queue = make_fifo(DelaySeconds=5)
    seen = [queue.counts]
    queue.send_group("g", "a", "b", "c")
    seen.append(queue.counts)
    clock.advance(5)
    seen.append(queue.counts)
    first, second = queue.receive(2)
    seen.append(queue.counts)
    queue.delete(first)
    seen.append(queue.counts)
    queue.change(second, 0)
    seen.append(queue.counts)
    queue.receive(10)
    seen.append(queue.counts)
    clock.advance(30)
    seen.append(queue.counts)
    assert seen == [
        (0, 0, 0),
        (0, 0, 3),
        (3, 0, 0),
        (1, 2, 0),
        (1, 1, 0),
        (2, 0, 0),
        (0, 2, 0),
        (2, 0, 0),
    ]


@pytest.mark.parametrize("delay", [0, 5], ids=["timeouts", "delays"])
def test_counts_are_exact_where_many_become_visible_at_once(make_fifo, clock, delay):
    """150 messages in 15 groups, more than one receive processes."""
    queue = make_fifo(DelaySeconds=delay)
    for number in range(10):
        queue.send_batch(
            *({"MessageBody": f"{group} {number}", "MessageGroupId": f"g{group}"} for group in range(10))
        )
        for group in range(10, 15):
            queue.send_group(f"g{group}", f"{group} {number}")
    if not delay:
        while queue.receive(10):
            pass
        assert queue.counts == (0, 150, 0)
    clock.advance(30)
    for received in range(15):
        assert queue.counts == (150 - 10 * received, 10 * received, 0)
        messages = queue.receive(10)
        assert [message["Body"] for message in messages] == [f"{received} {number}" for number in range(10)]
    assert queue.counts == (0, 150, 0)


def test_a_duplicate_is_not_counted(fifo):
    fifo.send_group("g", "a", "a", "a")
    assert fifo.counts == (1, 0, 0)
