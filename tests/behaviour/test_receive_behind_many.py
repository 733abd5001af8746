# SPDX-License-Identifier: Apache-2.0
"""Receives that must first get past hundreds of messages, or after hundreds became visible at once."""

import pytest

import sqsqlite


@pytest.fixture
def native(tmp_path, clock):
    """Without Amazon's limits, so that one call sends or receives thousands."""
    with sqsqlite.connect(tmp_path / "native.db", clock=clock, limits="native", synchronous="OFF") as sqs:
        yield sqs


@pytest.fixture
def served(make_queue):
    return make_queue("source"), make_queue("dead")


def fill(queue, count):
    for first in range(0, count, 10):
        queue.send_batch(*[{"MessageBody": f"m{number:04}"} for number in range(first, first + 10)])


def exhaust(source, dead, count, clock):
    """Make the next receive of each exceed its count."""
    fill(source, count)
    for _ in range(0, count, 10):
        assert len(source.receive(10)) == 10
    clock.advance(30)
    source.set(RedrivePolicy={"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1})


@pytest.mark.parametrize(("count", "asked"), [(150, 1), (1_200, 10)])
def test_exhausted_messages_are_never_handed_out_however_many(served, clock, count, asked):
    source, dead = served
    exhaust(source, dead, count, clock)
    assert source.receive(asked) == []
    assert (source.counts, dead.counts) == ((0, 0, 0), (count, 0, 0))


@pytest.mark.slow
def test_a_receive_without_a_wait_gets_past_any_number_of_exhausted_messages(served, clock):
    source, dead = served
    exhaust(source, dead, 2_100, clock)
    source.send("good")
    assert source.bodies() == ["good"]
    assert (source.counts, dead.counts) == ((0, 1, 0), (2_100, 0, 0))


def lay_poison(clock, queue, dead, messages):
    """Store messages that have been received once, which already exceeds their count."""
    queue.send_many(messages)
    received = [queue.receive(1_000, visibility_timeout=1) for _ in range(0, len(messages), 1_000)]
    assert sum(map(len, received)) == len(messages)
    clock.advance(1)
    queue.set_attributes({"RedrivePolicy": {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1}})


def bodies(messages):
    return [message.body for message in messages]


def test_a_receive_without_a_wait_gets_past_exhausted_groups(native, clock):
    queue = native.create_queue("jobs.fifo", fifo=True, content_based_deduplication=True)
    dead = native.create_queue("dead.fifo", fifo=True)
    lay_poison(
        clock,
        queue,
        dead,
        [{"body": str(number), "group_id": f"g{number // 1_000}"} for number in range(1_800)],
    )
    queue.send("good", group_id="h")
    assert bodies(queue.receive()) == ["good"]
    assert (len(queue), len(dead)) == (1, 1_800)


def test_a_receive_without_a_wait_gets_past_an_expired_group(native, clock):
    queue = native.create_queue(
        "jobs.fifo", fifo=True, content_based_deduplication=True, message_retention_period=60
    )
    queue.send_many([{"body": str(number), "group_id": "g"} for number in range(2_500)])
    clock.advance(30)
    queue.send("good", group_id="g")
    clock.advance(30)
    assert bodies(queue.receive()) == ["good"]


@pytest.mark.parametrize("kind", ["standard", "fifo"])
def test_a_receive_in_a_transaction_gets_past_them_too(native, clock, kind):
    fifo = kind == "fifo"
    suffix, options = (".fifo", {"content_based_deduplication": True}) if fifo else ("", {})
    queue = native.create_queue("jobs" + suffix, fifo=fifo, **options)
    dead = native.create_queue("dead" + suffix, fifo=fifo)
    poison = [{"body": str(number), "group_id": f"g{number // 1_000}"} for number in range(1_500)]
    lay_poison(clock, queue, dead, poison if fifo else [message["body"] for message in poison])
    queue.send("good", group_id="g0" if fifo else None)
    with native.transaction():
        assert bodies(queue.receive()) == ["good"]
    with native.engine.begin() as connection:
        queue.receive(connection=connection)
    assert (len(queue), len(dead)) == (1, 1_500)


@pytest.mark.parametrize("count", [110, 990])
def test_messages_whose_timeouts_end_together_come_in_order_of_age(make_queue, clock, count):
    """The messages received last have the earliest timeouts."""
    queue = make_queue()
    fill(queue, count)
    received = [message for _ in range(0, count, 10) for message in queue.receive(10, VisibilityTimeout=100)]
    for message in reversed(received):
        queue.change(message, 10)
        clock.advance(0.001)
    clock.advance(10)
    again = [body for _ in range(0, count, 10) for body in queue.bodies()]
    assert again == [f"m{number:04}" for number in range(count)]


@pytest.mark.parametrize("group_id", [None, "tenant"])
def test_without_amazons_limits_a_receive_returns_all_returned_messages(native, clock, group_id):
    queue = native.create_queue("jobs")
    queue.send_many([{"body": str(number), "group_id": group_id} for number in range(300)])
    assert len(queue.receive(1_000, visibility_timeout=30)) == 300
    clock.advance(30)
    assert bodies(queue.receive(1_000)) == [str(number) for number in range(300)]
