# SPDX-License-Identifier: Apache-2.0
"""The plan of a move task predicts what the task does."""

import pytest

from sqsqlite import errors
from sqsqlite.actions.move_tasks import start_message_move_task
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.contract.move_filter import MoveFilter
from sqsqlite.contract.requests import StartMessageMoveTask
from sqsqlite.operators.dead_letters import PlannedMove, plan
from tests.store.waiting import until

ARN = "arn:aws:sqs:us-east-1:000000000000:"


@pytest.fixture
def dead(sqs):
    return sqs.create_queue("dead")


@pytest.fixture
def died(sqs, dead, clock):
    """Four messages of `orders` (received twice), then two of `mails` (once) 10 s later, and one sent directly."""
    orders = sqs.create_queue("orders", dead_letter_queue=dead, max_receive_count=2)
    mails = sqs.create_queue("mails", dead_letter_queue=dead, max_receive_count=1)
    die(orders, "red", "blue", "red and blue", "%")
    clock.advance(10)
    die(mails, "red", "green")
    dead.send("direct")
    return sqs


def die(queue, *messages):
    queue.send_many(messages)
    for _ in range(3):
        queue.receive(10, visibility_timeout=0)
    assert len(queue) == 0


def request(queue, to=None):
    return StartMessageMoveTask(source_arn=queue.arn, destination_arn=None if to is None else to.arn)


def planned(sqs, queue, to=None, **conditions):
    return plan(sqs._store, request(queue, to), LOCAL, MoveFilter(**conditions))


def moved(sqs, queue, to=None, **conditions):
    """The bodies of the messages that the task moves, and the reason of its failure."""
    before = {seen.message_id: seen.body for seen in queue.peek()}
    sqs._store.write(start_message_move_task, request(queue, to), LOCAL, MoveFilter(**conditions))

    def tasks():
        return sqs.client.list_message_move_tasks(SourceArn=queue.arn)["Results"]

    until(lambda: tasks()[0]["Status"] != "RUNNING")
    left = {seen.message_id for seen in queue.peek()}
    gone = [body for message_id, body in before.items() if message_id not in left]
    return sorted(gone), tasks()[0].get("FailureReason")


def test_the_plan_counts_messages_by_source_and_destination(died, dead):
    assert planned(died, dead) == [
        PlannedMove(None, None, 1, "of unknown origin"),
        PlannedMove("mails", "mails", 2, None),
        PlannedMove("orders", "orders", 4, None),
    ]
    assert moved(died, dead)[1] == "CouldNotDetermineMessageSource"
    assert [len(died.queue(name)) for name in ("dead", "mails", "orders")] == [1, 2, 4]


def test_a_destination_applies_to_all_messages(died, dead):
    target = died.create_queue("target")
    assert planned(died, dead, target) == [
        PlannedMove(None, "target", 1, None),
        PlannedMove("mails", "target", 2, None),
        PlannedMove("orders", "target", 4, None),
    ]
    assert moved(died, dead, target)[1] is None
    assert len(target) == 7


CONDITIONS = [
    ({"source_arn": ARN + "mails"}, ["green", "red"]),
    ({"source_arn": ARN + "nowhere"}, []),
    ({"minimum_receive_count": 1}, ["%", "blue", "green", "red", "red", "red and blue"]),
    ({"minimum_receive_count": 2}, ["%", "blue", "red", "red and blue"]),
    ({"minimum_receive_count": 3}, []),
    ({"body": "red"}, ["red", "red", "red and blue"]),
    ({"body": "RED"}, []),
    ({"body": "%"}, ["%"]),
    ({"body": "i", "source_arn": ARN + "mails"}, []),
    ({"body": "direct"}, ["direct"]),
    ({"moved_from": 1_800_000_010_000}, ["green", "red"]),
    ({"moved_before": 1_800_000_010_000}, ["%", "blue", "red", "red and blue"]),
    ({"body": "blue", "minimum_receive_count": 2}, ["blue", "red and blue"]),
]


@pytest.mark.parametrize(("conditions", "bodies"), CONDITIONS, ids=[str(each) for each, _ in CONDITIONS])
def test_the_task_takes_what_the_plan_has_counted(died, dead, conditions, bodies):
    target = died.create_queue("target")
    assert sum(part.messages for part in planned(died, dead, target, **conditions)) == len(bodies)
    assert moved(died, dead, target, **conditions) == (bodies, None)


def test_hidden_messages_stay(died, dead, clock):
    dead.send("late", delay=60)
    dead.receive(3, visibility_timeout=30)
    assert [(part.source, part.messages, part.kept_by) for part in planned(died, dead)] == [
        (None, 1, "of unknown origin"),
        (None, 1, "delayed"),
        ("mails", 2, None),
        ("orders", 1, None),
        ("orders", 3, "in flight"),
    ]
    clock.advance(30)
    assert ("orders", 4, None) in [(part.source, part.messages, part.kept_by) for part in planned(died, dead)]
    clock.advance(30)
    assert "delayed" not in [part.kept_by for part in planned(died, dead)]


def test_messages_of_a_deleted_source_queue_stay(died, dead):
    died.queue("mails").delete()
    assert planned(died, dead)[1] == PlannedMove("mails", "mails", 2, "the queue is gone")
    bodies, reason = moved(died, dead, minimum_receive_count=1)
    assert (len(bodies), reason) == (4, "AWS.SimpleQueueService.NonExistentQueue")


def test_messages_behind_a_hidden_one_of_their_group_stay(sqs):
    dead = sqs.create_queue("dead.fifo", fifo=True)
    queue = sqs.create_queue(
        "orders.fifo",
        fifo=True,
        content_based_deduplication=True,
        dead_letter_queue=dead,
        max_receive_count=1,
    )
    die(queue, *({"body": body, "group_id": body[0]} for body in ("a1", "a2", "a3", "b1")))
    [held] = dead.receive()
    assert [(part.messages, part.kept_by) for part in planned(sqs, dead)] == [
        (1, None),
        (2, "behind a hidden one of its group"),
        (1, "in flight"),
    ]
    assert moved(sqs, dead) == (["b1"], None)
    held.delete()
    assert planned(sqs, dead) == [PlannedMove("orders.fifo", "orders.fifo", 2, None)]


def test_what_is_beyond_its_retention_is_not_counted(died, dead, clock):
    dead.set_attributes({"MessageRetentionPeriod": 60})
    clock.advance(50)
    assert [part.source for part in planned(died, dead)] == [None, "mails"]
    clock.advance(10)
    assert planned(died, dead) == []


def test_a_task_that_could_not_start_has_no_plan(died, dead):
    fifo = died.create_queue("target.fifo", fifo=True)
    for queue, to in ((died.queue("orders"), None), (dead, dead), (dead, fifo)):
        with pytest.raises(errors.InvalidParameterValue):
            planned(died, queue, to)
    assert died.client.list_message_move_tasks(SourceArn=dead.arn)["Results"] == []
