# SPDX-License-Identifier: Apache-2.0
"""Fair queues: on a standard queue a message group is a tenant, and tenants take turns."""

import pytest

from tests.behaviour.bound_queue import BoundQueue

FIVE_MINUTES = 300


@pytest.fixture
def flooded(queue):
    """Twenty messages of one tenant: noisy-0, noisy-1, and so on."""
    queue.send_group("noisy", *(f"noisy-{number}" for number in range(20)))
    return queue


# A group on a standard queue is only a tenant


@pytest.mark.rule("fair.2")
def test_a_group_does_not_block(queue):
    """Several of its messages are in flight at once, with any consumers."""
    queue.send_group("g", "a", "b", "c")
    assert [queue.bodies(1), queue.bodies(1), queue.bodies(1)] == [["a"], ["b"], ["c"]]


@pytest.mark.rule("fair.3")
def test_equal_messages_of_a_group_are_not_duplicates(queue):
    assert len({sent["MessageId"] for sent in queue.send_group("g", "a", "a", "a")}) == 3
    assert queue.bodies() == ["a", "a", "a"]


@pytest.mark.rule("fair.1")
def test_the_group_comes_back_with_the_message(queue):
    queue.send_group("g", "a")
    assert queue.receive_one(AttributeNames=["MessageGroupId"])["Attributes"] == {"MessageGroupId": "g"}


def test_groups_do_not_change_the_counts(flooded, clock):
    flooded.send("later", MessageGroupId="quiet", DelaySeconds=5)
    held = flooded.receive(10)
    assert flooded.counts == (10, 10, 1)
    flooded.delete(held[0])
    flooded.change(held[1], 0)
    clock.advance(5)
    assert flooded.counts == (12, 8, 0)
    clock.advance(25)
    assert flooded.counts == (20, 0, 0)


def test_every_message_is_received_once(flooded):
    """No turn drops a message."""
    for number in range(5):
        flooded.send_group(f"quiet-{number}", "a", "b")
        flooded.send("no group")
    taken = [message["MessageId"] for _ in range(4) for message in flooded.receive(10)]
    assert len(set(taken)) == len(taken) == 35
    assert flooded.counts == (0, 35, 0)


# Turns


@pytest.mark.rule("fair.6")
def test_one_tenant_alone_is_served_in_order(flooded):
    assert flooded.bodies() + flooded.bodies() == [f"noisy-{number}" for number in range(20)]


@pytest.mark.rule("fair.4")
def test_two_tenants_take_turns(queue):
    queue.send_group("one", *"abcde")
    queue.send_group("two", "x", "y")
    assert queue.bodies() == ["a", "x", "b", "y", "c", "d", "e"]


@pytest.mark.rule("fair.4")
def test_a_flood_does_not_delay_tenants_that_come_after_it(flooded):
    """Each waits for one message of the flood, not for twenty."""
    for number in range(9):
        flooded.send_group(f"quiet-{number}", f"quiet-{number}")
    assert flooded.bodies() == ["noisy-0", *(f"quiet-{number}" for number in range(9))]


@pytest.mark.rule("fair.4")
def test_a_new_tenant_is_next_during_a_backlog(flooded):
    flooded.receive(10)
    flooded.send_group("quiet", "quiet")
    assert flooded.bodies(2) == ["quiet", "noisy-10"]


@pytest.mark.rule("fair.4")
def test_each_message_of_a_quiet_tenant_is_next_during_a_backlog(flooded):
    for number in range(10):
        flooded.send_group("quiet", f"quiet-{number}")
        assert f"quiet-{number}" in flooded.bodies(2)


@pytest.mark.rule("fair.4")
def test_a_tenant_with_most_messages_in_flight_does_not_delay_others(flooded):
    flooded.send_group("noisy", *(f"more-{number}" for number in range(20)))
    for _ in range(3):
        flooded.receive(10, VisibilityTimeout=3600)
    flooded.send_group("quiet", "quiet")
    assert flooded.bodies(1) == ["quiet"]


@pytest.mark.rule("fair.4")
def test_several_flooding_tenants_take_turns(queue):
    for tenant in "xyz":
        queue.send_group(tenant, *(f"{tenant}{number}" for number in range(5)))
    assert queue.bodies(9) == [f"{tenant}{number}" for number in range(3) for tenant in "xyz"]


def test_a_quiet_tenant_saves_up_no_turns(queue):
    """It takes turns from now on, and does not catch up on the past."""
    queue.send_group("noisy", *(f"noisy-{number}" for number in range(30)))
    queue.send_group("quiet", "early")
    assert len(queue.bodies() + queue.bodies()) == 20
    queue.send_group("third", "x", "y")
    queue.send_group("quiet", "a", "b", "c")
    assert queue.bodies(8) == ["x", "a", "noisy-19", "y", "b", "noisy-20", "c", "noisy-21"]


@pytest.mark.rule("fair.4")
def test_a_batch_of_several_tenants_takes_turns_too(queue):
    queue.send_batch(*({"MessageBody": f"a{number}", "MessageGroupId": "a"} for number in range(5)))
    queue.send_batch(*({"MessageBody": f"b{number}", "MessageGroupId": "b"} for number in range(2)))
    assert queue.bodies() == ["a0", "b0", "a1", "b1", "a2", "a3", "a4"]


def test_the_turns_outlive_the_client(open_sqs):
    client = open_sqs()
    queue = BoundQueue.create(client)
    queue.send_group("noisy", *"abcde")
    client.close()
    again = BoundQueue(open_sqs(), queue.url)
    again.send_group("noisy", "f")
    again.send_group("quiet", "quiet")
    assert again.bodies() == ["a", "quiet", *"bcdef"]


@pytest.mark.rule("fair.11")
def test_each_queue_has_turns_of_its_own(flooded, make_queue):
    other = make_queue("other")
    other.send_group("noisy", "a")
    other.send_group("quiet", "b")
    assert other.bodies() == ["a", "b"]


@pytest.mark.rule("fair.11")
def test_a_purge_forgets_the_turns(flooded):
    flooded.client.purge_queue(QueueUrl=flooded.url)
    flooded.send_group("noisy", "a")
    flooded.send_group("quiet", "b")
    assert flooded.bodies() == ["a", "b"]


# Messages without a group


@pytest.mark.rule("fair.5")
def test_each_message_without_a_group_is_a_quiet_tenant_of_its_own(flooded):
    flooded.send_all("one", "two", "three")
    assert flooded.bodies(5) == ["noisy-0", "one", "two", "three", "noisy-1"]


@pytest.mark.rule("fair.5")
def test_messages_without_a_group_keep_their_order_and_their_place(flooded, clock):
    """One that comes back is received before those sent after it."""
    flooded.send_all("one", "two", "three")
    assert flooded.bodies(2, VisibilityTimeout=5) == ["noisy-0", "one"]
    clock.advance(5)
    assert [body for body in flooded.bodies() if not body.startswith("noisy")] == ["one", "two", "three"]


# Messages that come back, or come later


@pytest.mark.rule("fair.9")
@pytest.mark.parametrize("way", ["given back", "timed out"])
def test_a_returned_message_draws_a_new_turn(queue, clock, way):
    """The message goes behind its own tenant's backlog, which may wait with it. Other tenants do not wait."""
    queue.send_group("one", "a", "b", "c")
    held = queue.receive_one(VisibilityTimeout=5)
    if way == "given back":
        queue.change(held, 0)
    else:
        clock.advance(5)
    queue.send_group("two", "x")
    assert queue.bodies() == ["x", "b", "c", "a"]


def test_messages_of_a_tenant_that_always_fails_do_not_delay_others(queue, clock):
    """However many come back at once."""
    queue.send_group("failing", *(f"failing-{number}" for number in range(10)))
    for _ in range(5):
        queue.receive(10, VisibilityTimeout=10)
        queue.send_group("quiet", "first", "second")
        clock.advance(10)
        done = queue.receive(3)
        assert {"first", "second"} <= {message["Body"] for message in done}
        for message in done:
            if message["Body"] in ("first", "second"):
                queue.delete(message)
            else:
                queue.change(message, 0)


@pytest.mark.rule("fair.10")
def test_a_delayed_message_draws_its_turn_when_it_becomes_visible(queue, clock):
    """Until then it is not part of a backlog that delays its tenant."""
    for number in range(10):
        queue.send(f"later-{number}", MessageGroupId="one", DelaySeconds=5)
    queue.send_group("one", "now")
    queue.send_group("two", "x", "y", "z")
    assert queue.bodies(2) == ["now", "x"]
    clock.advance(5)
    queue.send_group("three", "quiet")
    assert "quiet" in queue.bodies(4)


# Five quiet minutes


@pytest.mark.rule("fair.7")
def test_a_backlog_is_forgiven_after_5_minutes_without_a_send(flooded, clock):
    """The tenant's next send is then as early as any other tenant's."""
    clock.advance(FIVE_MINUTES, ms=1)
    flooded.send_group("noisy", "anew")
    assert flooded.bodies(2) == ["noisy-0", "anew"]


@pytest.mark.rule("fair.8")
def test_a_tenant_waits_behind_its_backlog_for_5_minutes(flooded, clock):
    """Each send begins the five minutes again."""
    clock.advance(200)
    flooded.send_group("noisy", "more")
    clock.advance(299)
    flooded.send_group("noisy", "still more")
    flooded.send_group("quiet", "quiet")
    taken = [body for _ in range(3) for body in flooded.bodies(10)]
    assert taken[1] == "quiet"
    assert taken[-2:] == ["more", "still more"]


@pytest.mark.rule("fair.13")
def test_a_delayed_send_counts_as_a_send(queue, clock):
    """A tenant whose messages are all delayed has a backlog when the delays end, and waits behind it like any other."""
    for number in range(12):
        queue.send(f"later-{number}", MessageGroupId="one", DelaySeconds=5)
    clock.advance(5)
    assert queue.bodies(1) == ["later-0"]
    queue.send_group("one", "at once")
    assert [body for _ in range(2) for body in queue.bodies(10)][-1] == "at once"


# With the rest of a queue


def test_a_send_of_a_tenant_ends_a_wait(no_safety_net, queue, background, clock):
    waiting = background(queue.bodies, WaitTimeSeconds=20)
    clock.until_waiting()
    queue.send_group("g", "a")
    assert waiting.result(20) == ["a"]


@pytest.mark.rule("fair.12")
def test_dead_letters_keep_their_group_and_come_in_order_of_sending(make_queue, clock):
    dead = make_queue("dead")
    queue = make_queue(RedrivePolicy={"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1})
    queue.send_group("noisy", "a", "b", "c")
    queue.send_group("quiet", "d")
    queue.receive(10)
    clock.advance(30)
    assert queue.receive(10) == []
    messages = dead.receive(10)
    assert [message["Body"] for message in messages] == ["a", "b", "c", "d"]
    assert [message["Attributes"]["MessageGroupId"] for message in messages] == ["noisy"] * 3 + ["quiet"]


def test_expired_messages_of_a_flood_are_skipped(make_queue, clock):
    queue = make_queue(MessageRetentionPeriod=60)
    for number in range(15):
        queue.send_group("noisy", *(f"{number}-{n}" for n in range(10)))
    clock.advance(60)
    queue.send_group("quiet", "quiet")
    assert queue.counts == (1, 0, 0)
    assert queue.bodies() == ["quiet"]
