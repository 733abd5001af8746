# SPDX-License-Identifier: Apache-2.0
"""Chains of dead-letter queues, and the redrives that move messages back step by step."""

import pytest

from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.moving import ended, let_die, policy, start


def chain(make_queue, *names: str) -> list[BoundQueue]:
    """Queues of which each is the dead-letter queue of the previous one."""
    queues = [make_queue(names[-1])]
    for name in reversed(names[:-1]):
        queues.insert(0, make_queue(name, RedrivePolicy=policy(queues[0])))
    return queues


def die_on(queue: BoundQueue) -> None:
    """Move the only message on to the next dead-letter queue."""
    queue.receive_one(VisibilityTimeout=0)
    assert queue.receive() == []


def redrive(queue: BoundQueue, destination: str | None = None) -> None:
    start(queue, destination)
    assert ended(queue)["Status"] == "COMPLETED"


def source_seen(queue: BoundQueue) -> str | None:
    """The DeadLetterQueueSourceArn of the only message, from a receive with a timeout of zero."""
    [message] = queue.receive(VisibilityTimeout=0)
    found: str | None = message["Attributes"].get("DeadLetterQueueSourceArn")
    return found


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_each_redrive_undoes_one_step_of_a_chain(make_queue, names):
    """From the last dead-letter queue back to the queue where the message died first."""
    queues = chain(make_queue, *names)
    let_die(queues[0], "a")
    for queue in queues[1:-1]:
        die_on(queue)
    while len(queues) > 1:
        redrive(queues.pop())
        assert queues[-1].counts == (1, 0, 0)
    assert source_seen(queues[0]) is None
    assert queues[0].counts == (1, 0, 0)


def test_each_redrive_undoes_one_step_of_a_fifo_chain(make_fifo):
    """The group stays, in its order."""
    last = make_fifo("c.fifo")
    middle = make_fifo("b.fifo", RedrivePolicy=policy(last))
    first = make_fifo("a.fifo", RedrivePolicy=policy(middle))
    for body in ("1", "2"):
        first.send(body, MessageGroupId="g")
    for queue in (first, middle):
        queue.receive(10, VisibilityTimeout=0)
        assert queue.receive(10) == []
    assert last.counts == (2, 0, 0)
    redrive(last)
    redrive(middle)
    assert first.bodies() == ["1", "2"]
    assert [queue.counts for queue in (middle, last)] == [(0, 0, 0)] * 2


def test_a_receive_in_the_middle_of_a_chain_shows_the_first_source(make_queue):
    first, middle, last = chain(make_queue, "a", "b", "c")
    let_die(first, "a")
    die_on(middle)
    redrive(last)
    assert source_seen(middle) == first.arn


def test_a_message_that_dies_again_on_a_chain_can_move_back_again(make_queue):
    first, middle, last = chain(make_queue, "a", "b", "c")
    let_die(first, "a")
    for _ in range(3):
        die_on(middle)
        assert source_seen(last) == middle.arn
        redrive(last)
    redrive(middle)
    assert first.counts == (1, 0, 0)


def test_a_destination_that_is_the_last_step_of_a_chain_undoes_it(make_queue):
    """Given or omitted, it is the queue from which the message came."""
    first, middle, last = chain(make_queue, "a", "b", "c")
    let_die(first, "a")
    die_on(middle)
    redrive(last, middle.arn)
    redrive(middle)
    assert first.counts == (1, 0, 0)


def test_another_destination_begins_a_new_chain(make_queue):
    """The message's earlier queues do not follow it there."""
    first, middle, last = chain(make_queue, "a", "b", "c")
    let_die(first, "a")
    die_on(middle)
    other, its_dead = make_queue("other"), make_queue("other-dead")
    make_queue("its-source", RedrivePolicy=policy(other))
    redrive(last, other.arn)
    start(other)
    assert ended(other)["FailureReason"] == "CouldNotDetermineMessageSource"
    other.set(RedrivePolicy=policy(its_dead))
    die_on(other)
    redrive(its_dead)
    start(other)
    assert ended(other)["FailureReason"] == "CouldNotDetermineMessageSource"


def test_a_chain_survives_a_new_queue_in_its_middle(make_queue, clock):
    """As everywhere, a dead letter goes back to the queue of that name."""
    first, middle, last = chain(make_queue, "a", "b", "c")
    let_die(first, "a")
    die_on(middle)
    middle.client.delete_queue(QueueUrl=middle.url)
    clock.advance(61)
    middle = make_queue("b", RedrivePolicy=policy(last))
    redrive(last)
    redrive(middle)
    assert first.counts == (1, 0, 0)


def test_a_ring_remembers_the_last_eight_steps(make_queue):
    """Two queues are each other's dead-letter queue: the steps of a circling message do not pile up."""
    [one, two] = chain(make_queue, "one", "two")
    two.set(RedrivePolicy=policy(one))
    one.send("a")
    for _ in range(10):
        die_on(one)
        die_on(two)
    here, there = one, two
    for _ in range(9):
        redrive(here)
        here, there = there, here
        assert (here.counts, there.counts) == ((1, 0, 0), (0, 0, 0))
    start(here)
    assert ended(here)["FailureReason"] == "CouldNotDetermineMessageSource"
