# SPDX-License-Identifier: Apache-2.0
"""Order in FIFO queues: one group after another, each in order, and none past its message in flight."""

import pytest

from tests.behaviour.bound_queue import BoundQueue


@pytest.fixture
def three_groups(fifo, clock):
    """Groups one, two and three, of three messages each, begun in this order and sent interleaved."""
    for number in range(3):
        for group in ("one", "two", "three"):
            fifo.send_group(group, f"{group}-{number}")
            clock.advance(ms=1)
    return fifo


def group_of(message):
    return message["Attributes"]["MessageGroupId"]


def delete_all(queue, messages):
    for message in messages:
        queue.delete(message)


# Inside a group


@pytest.mark.rule("fifo-order.1")
def test_a_group_comes_in_the_order_it_was_sent(fifo):
    fifo.send_group("g", *"abcdefghij")
    assert "".join(fifo.bodies(10)) == "abcdefghij"


@pytest.mark.rule("fifo-order.4")
def test_a_group_comes_in_order_one_by_one(fifo):
    fifo.send_group("g", *"abcde")
    taken = []
    while messages := fifo.receive():
        taken += [message["Body"] for message in messages]
        delete_all(fifo, messages)
    assert taken == list("abcde")


@pytest.mark.rule("fifo-send.4")
def test_sequence_numbers_of_a_receive_grow(fifo):
    fifo.send_group("g", *"abcde")
    numbers = [message["Attributes"]["SequenceNumber"] for message in fifo.receive(10)]
    assert numbers == sorted(set(numbers))


@pytest.mark.rule("fifo-order.1")
def test_a_batch_is_sent_in_the_order_of_its_entries(fifo):
    fifo.send_batch(*({"MessageBody": body, "MessageGroupId": "g"} for body in "jihgfedcba"))
    assert "".join(fifo.bodies()) == "jihgfedcba"


def test_the_order_outlives_the_client(open_sqs):
    client = open_sqs()
    queue = BoundQueue.create_fifo(client)
    queue.send_group("g", "a", "b")
    client.close()
    again = BoundQueue(open_sqs(), queue.url)
    again.send_group("g", "c")
    assert again.bodies() == ["a", "b", "c"]


# A message in flight blocks its group


@pytest.mark.rule("fifo-order.2")
def test_a_message_in_flight_blocks_the_rest_of_its_group(fifo):
    """Messages sent later are blocked too."""
    fifo.send_group("g", "a", "b")
    fifo.receive_one()
    fifo.send_group("g", "c")
    assert fifo.bodies() == []


@pytest.mark.rule("fifo-order.2")
def test_other_consumers_find_the_group_blocked(fifo, open_sqs):
    fifo.send_group("g", "a", "b")
    fifo.receive_one()
    assert BoundQueue(open_sqs(), fifo.url).bodies() == []


@pytest.mark.rule("fifo-queue.10")
def test_blocked_messages_count_as_visible(fifo):
    """Only received messages are in flight."""
    fifo.send_group("g", *"abcde")
    fifo.receive(2)
    assert fifo.counts == (3, 2, 0)


@pytest.mark.rule("fifo-order.3")
def test_a_blocked_group_does_not_block_the_others(three_groups):
    three_groups.receive(3)
    assert three_groups.bodies(3) == ["two-0", "two-1", "two-2"]
    assert three_groups.bodies(3) == ["three-0", "three-1", "three-2"]
    assert three_groups.bodies(3) == []


@pytest.mark.rule("fifo-order.4")
def test_deleting_all_messages_in_flight_releases_the_group_at_once(fifo):
    fifo.send_group("g", *"abcd")
    delete_all(fifo, fifo.receive(2))
    assert fifo.bodies() == ["c", "d"]


@pytest.mark.rule("fifo-order.5")
@pytest.mark.parametrize("deleted", [0, 1, 2])
def test_a_group_waits_until_its_last_message_in_flight_is_deleted(fifo, deleted):
    """Whichever message was deleted before."""
    fifo.send_group("g", *"abcd")
    held = fifo.receive(3)
    fifo.delete(held.pop(deleted))
    assert fifo.bodies() == []
    fifo.delete(held.pop(deleted - 1))
    assert fifo.bodies() == []
    fifo.delete(held.pop())
    assert fifo.bodies() == ["d"]


@pytest.mark.rule("fifo-order.1")
@pytest.mark.parametrize("deleted", ["a", "b", "c"])
def test_undeleted_messages_are_received_again_before_the_rest(fifo, clock, deleted):
    fifo.send_group("g", *"abcd")
    [done] = [message for message in fifo.receive(3) if message["Body"] == deleted]
    fifo.delete(done)
    clock.advance(30, ms=-1)
    assert fifo.bodies() == []
    clock.advance(ms=1)
    assert fifo.bodies() == [body for body in "abcd" if body != deleted]


@pytest.mark.rule("fifo-order.2", "fifo-order.3")
def test_a_message_that_is_not_deleted_blocks_its_group_again_and_again(fifo, clock):
    """Its group never passes it, but other groups do."""
    fifo.send_group("g", "poison", "behind")
    for number in range(5):
        assert fifo.bodies(1) == ["poison"]
        fifo.send_group("other", f"passes {number}")
        assert fifo.bodies() == [f"passes {number}"]
        clock.advance(30)
        delete_all(fifo, [message for message in fifo.receive(10) if group_of(message) == "other"])
        clock.advance(30)
    assert fifo.bodies() == ["poison", "behind"]


def test_a_blocked_group_stays_blocked_when_the_file_is_opened_again(open_sqs, clock):
    client = open_sqs()
    queue = BoundQueue.create_fifo(client)
    queue.send_group("g", "a", "b")
    queue.receive_one()
    client.close()
    clock.advance(29.999)
    again = BoundQueue(open_sqs(), queue.url)
    assert again.bodies() == []
    clock.advance(ms=1)
    assert again.bodies() == ["a", "b"]


# Among groups


@pytest.mark.rule("fifo-order.6", "fifo-order.7")
def test_a_receive_takes_all_it_can_of_one_group_before_the_next(three_groups):
    assert three_groups.bodies(8) == [
        *("one-0", "one-1", "one-2"),
        *("two-0", "two-1", "two-2"),
        *("three-0", "three-1"),
    ]
    assert three_groups.bodies() == []


@pytest.mark.rule("fifo-order.6")
def test_a_group_that_is_only_partly_taken_waits_for_the_rest(three_groups):
    assert three_groups.bodies(2) == ["one-0", "one-1"]
    assert three_groups.bodies(4) == ["two-0", "two-1", "two-2", "three-0"]
    assert three_groups.bodies() == []


@pytest.mark.rule("fifo-order.8")
def test_the_group_that_waits_longest_comes_first(fifo, clock):
    for group in ("z", "a", "m"):
        fifo.send_group(group, f"of {group}")
        clock.advance(ms=1)
    assert [fifo.bodies(1) for _ in range(3)] == [["of z"], ["of a"], ["of m"]]


@pytest.mark.rule("fifo-order.9")
@pytest.mark.parametrize("way", ["deleted", "given back", "timed out"])
def test_a_released_group_goes_behind_those_that_wait(three_groups, clock, way):
    message = three_groups.receive_one(VisibilityTimeout=5)
    clock.advance(4)
    if way == "deleted":
        three_groups.delete(message)
    elif way == "given back":
        three_groups.change(message, 0)
    clock.advance(1)
    again = "one-1" if way == "deleted" else "one-0"
    assert [three_groups.bodies(1) for _ in range(3)] == [["two-0"], ["three-0"], [again]]


def test_deleting_a_later_message_keeps_its_groups_place(fifo, clock):
    """The group waits since its first message was given back."""
    fifo.send_group("one", "a", "b")
    first, second = fifo.receive(2)
    clock.advance(1)
    fifo.change(first, 0)
    clock.advance(1)
    fifo.send_group("two", "c")
    clock.advance(1)
    fifo.delete(second)
    assert fifo.bodies() == ["a", "c"]


@pytest.mark.rule("fifo-order.8", "fifo-order.9")
def test_groups_take_turns(three_groups, clock):
    """Served one message at a time, no group waits for the end of another."""
    taken = []
    while messages := three_groups.receive():
        taken += [message["Body"] for message in messages]
        clock.advance(ms=1)
        delete_all(three_groups, messages)
        clock.advance(ms=1)
    assert taken == [f"{group}-{number}" for number in range(3) for group in ("one", "two", "three")]


def test_a_released_group_goes_before_one_that_is_new(fifo, clock):
    fifo.send_group("old", "a", "b")
    held = fifo.receive_one()
    clock.advance(1)
    fifo.delete(held)
    clock.advance(1)
    fifo.send_group("new", "c")
    assert [fifo.bodies(1), fifo.bodies(1)] == [["b"], ["c"]]


def test_a_group_that_was_empty_counts_as_new(fifo, clock):
    """Its past does not place it before others."""
    fifo.send_group("g", "a")
    fifo.delete(fifo.receive_one())
    clock.advance(1)
    fifo.send_group("other", "b")
    clock.advance(1)
    fifo.send_group("g", "c")
    assert fifo.bodies() == ["b", "c"]


@pytest.mark.rule("fifo-order.3", "fifo-order.10")
def test_a_receive_looks_past_any_number_of_blocked_groups(fifo):
    """It also looks past a long backlog of one blocked group."""
    for number in range(25):
        fifo.send_group(f"blocked-{number}", f"head {number}")
    while fifo.receive(10):
        pass
    for number in range(25):
        fifo.send_group("blocked-0", f"behind {number}")
        fifo.send_group(f"blocked-{number}", f"after {number}")
    fifo.send_group("free", "found")
    assert fifo.bodies() == ["found"]


@pytest.mark.rule("fifo-order.7")
def test_a_receive_may_take_one_message_of_each_of_ten_groups(fifo):
    for number in range(12):
        fifo.send_group(f"g{number}", f"first {number}")
    assert len({group_of(message) for message in fifo.receive(10)}) == 10
    assert len(fifo.receive(10)) == 2


@pytest.mark.rule("fifo-order.11")
def test_queues_have_groups_each_of_their_own(fifo, make_fifo):
    other = make_fifo("other.fifo")
    fifo.send_group("g", "a", "b")
    other.send_group("g", "c")
    fifo.receive_one()
    assert other.bodies() == ["c"]


def test_consumers_at_the_same_time_see_each_group_in_order(fifo, background):
    """Four threads, eight groups of twelve: each group comes whole and in order, and each message to one thread."""
    for number in range(12):
        fifo.send_batch(
            *({"MessageBody": f"{group} {number}", "MessageGroupId": f"g{group}"} for group in range(8))
        )
    taken = []

    def consume():
        while fifo.counts[0]:
            for message in (messages := fifo.receive(3)):
                # Appended before another message of its group can be received.
                taken.append(message["Body"])
            delete_all(fifo, messages)

    for consumer in [background(consume) for _ in range(4)]:
        consumer.result(100)
    for group in range(8):
        of_group = [body for body in taken if body.startswith(f"{group} ")]
        assert of_group == [f"{group} {number}" for number in range(12)]
    assert fifo.counts == (0, 0, 0)
