# SPDX-License-Identifier: Apache-2.0
"""Message move tasks: their start, the messages that they move, their end, and their errors."""

import base64
import json
import uuid

import pytest

from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.moving import cancel, ended, let_die, moved, policy, start, tasks
from tests.behaviour.refusals import INVALID, MISSING, bad_value, out_of_range, refused
from tests.store.waiting import until

ARN = "arn:aws:sqs:us-east-1:000000000000:"
NO_SUCH_SOURCE = "The resource that you specified for the SourceArn parameter doesn't exist."
NO_SUCH_DESTINATION = "The resource that you specified for the DestinationArn parameter doesn't exist."
BAD_HANDLE = "Value for parameter TaskHandle is invalid."


@pytest.fixture
def dead(make_queue):
    return make_queue("dead")


@pytest.fixture
def source(make_queue, dead):
    return make_queue("source", RedrivePolicy=policy(dead))


@pytest.fixture
def other(make_queue, dead):
    """A second queue with the same dead-letter queue."""
    return make_queue("other", RedrivePolicy=policy(dead))


# The messages that move, and their destinations


@pytest.mark.rule("move.1")
def test_each_message_goes_back_to_the_queue_it_came_from(dead, source, other):
    let_die(source, "a", "b")
    let_die(other, "c")
    start(dead)
    assert ended(dead)["Status"] == "COMPLETED"
    assert (source.bodies(), other.bodies(), dead.counts) == (["a", "b"], ["c"], (0, 0, 0))


@pytest.mark.rule("move.2")
def test_a_destination_gets_all_messages(dead, source, other, make_queue):
    let_die(source, "a")
    let_die(other, "b")
    dead.send("sent to it directly")
    target = make_queue("target")
    start(dead, target.arn)
    assert ended(dead)["Status"] == "COMPLETED"
    assert target.bodies() == ["a", "b", "sent to it directly"]
    assert [queue.counts for queue in (dead, source, other)] == [(0, 0, 0)] * 3


@pytest.mark.rule("move.3", "move.4", "move.5", "move.6")
def test_a_moved_message_is_a_new_one_with_the_same_content(dead, source, clock):
    """New id, new time of sending, a receive count of 0. Body, attributes, group and trace header stay."""
    content = {
        "MessageAttributes": {"width": {"DataType": "Number", "StringValue": "320"}},
        "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}},
        "MessageGroupId": "tenant",
    }
    let_die(source, "cat.png", **content)
    died = dead.receive_one(VisibilityTimeout=0, MessageAttributeNames=["All"])
    clock.advance(100)
    start(dead)
    assert ended(dead)["Status"] == "COMPLETED"
    again = source.receive_one(MessageAttributeNames=["All"])
    for member in ("Body", "MD5OfBody", "MessageAttributes", "MD5OfMessageAttributes"):
        assert again[member] == died[member]
    assert again["MessageId"] != died["MessageId"]
    assert uuid.UUID(again["MessageId"]).version == 4
    assert again["Attributes"] == {
        "ApproximateFirstReceiveTimestamp": str(clock.now_ms()),
        "ApproximateReceiveCount": "1",
        "AWSTraceHeader": "Root=1",
        "MessageGroupId": "tenant",
        "SenderId": "000000000000",
        "SentTimestamp": str(clock.now_ms()),
    }


@pytest.mark.rule("move.4")
def test_retention_begins_anew_with_the_move(make_queue, dead, clock):
    source = make_queue("source", RedrivePolicy=policy(dead), MessageRetentionPeriod=100)
    let_die(source, "a")
    clock.advance(90)
    start(dead)
    ended(dead)
    clock.advance(90)
    assert source.counts == (1, 0, 0)
    clock.advance(10)
    assert source.counts == (0, 0, 0)


def test_a_moved_message_can_die_again(dead, source):
    let_die(source, "a")
    start(dead)
    ended(dead)
    source.receive_one(VisibilityTimeout=0)
    assert source.receive() == []
    [died] = dead.receive(VisibilityTimeout=0)
    assert died["Attributes"]["DeadLetterQueueSourceArn"] == source.arn
    start(dead)
    assert ended(dead)["Status"] == "COMPLETED"
    assert source.bodies() == ["a"]


@pytest.mark.rule("move.7")
def test_the_queues_delay_does_not_hide_moved_messages(make_queue, dead, clock):
    source = make_queue("source", RedrivePolicy=policy(dead))
    let_die(source, "a")
    source.set(DelaySeconds=60)
    start(dead)
    ended(dead)
    assert source.bodies() == ["a"]


@pytest.mark.rule("move.8")
def test_messages_in_flight_or_delayed_stay(dead, source):
    let_die(source, "held", "free")
    dead.send("delayed", DelaySeconds=60)
    [held] = dead.receive()
    start(dead)
    task = ended(dead)
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1)
    assert (source.counts, dead.counts) == ((1, 0, 0), (0, 1, 1))
    dead.delete(held)
    assert dead.counts == (0, 0, 1)


def test_messages_that_returned_from_flight_are_moved(dead, source, clock):
    """Its row still says hidden, because no receive has come since."""
    let_die(source, "a")
    dead.receive_one(VisibilityTimeout=10)
    clock.advance(10)
    start(dead)
    ended(dead)
    assert (source.counts, dead.counts) == ((1, 0, 0), (0, 0, 0))


@pytest.mark.rule("move.10")
def test_a_message_beyond_its_retention_is_not_moved(make_queue, clock):
    dead = make_queue("dead", MessageRetentionPeriod=60)
    source = make_queue("source", RedrivePolicy=policy(dead))
    let_die(source, "old")
    clock.advance(60)
    start(dead)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 0
    assert source.counts == (0, 0, 0)


def test_an_old_handle_does_not_reach_the_moved_message(dead, source):
    let_die(source, "a")
    died = dead.receive_one(VisibilityTimeout=0)
    start(dead)
    ended(dead)
    dead.delete(died)
    assert source.bodies() == ["a"]


@pytest.mark.rule("move.11")
def test_a_moved_message_ends_a_long_poll(dead, source, background, no_safety_net, clock):
    let_die(source, "a")
    waiting = background(source.receive, WaitTimeSeconds=20)
    clock.until_waiting()
    start(dead)
    assert [message["Body"] for message in waiting.result(20)] == ["a"]


@pytest.mark.rule("move.2")
def test_many_messages_keep_their_order(dead, source, make_queue):
    """More messages than one transaction moves."""
    bodies = [str(number) for number in range(1300)]
    for first in range(0, len(bodies), 10):
        dead.send_batch(*[{"MessageBody": body} for body in bodies[first : first + 10]])
    target = make_queue("target")
    start(dead, target.arn)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 1300
    received = [body for _ in range(130) for body in target.bodies()]
    assert received == bodies


@pytest.mark.rule("move.2")
def test_large_messages_are_moved_too(dead, source, make_queue):
    """Each of them alone fills a transaction."""
    bodies = [letter * 1_048_576 for letter in "abc"]
    for body in bodies:
        dead.send(body)
    target = make_queue("target")
    start(dead, target.arn)
    ended(dead)
    assert [target.receive_one()["Body"] == body for body in bodies] == [True] * 3


def test_an_empty_source_is_done_at_once(dead, source):
    start(dead)
    task = ended(dead)
    assert task["Status"] == "COMPLETED"
    assert task["ApproximateNumberOfMessagesMoved"] == task["ApproximateNumberOfMessagesToMove"] == 0


# The rate


@pytest.mark.rule("move.12")
def test_a_rate_is_kept_second_by_second(dead, source, clock):
    let_die(source, *"abcdefgh")
    start(dead, rate=3)
    assert (moved(dead), source.counts, dead.counts) == (0, (0, 0, 0), (8, 0, 0))
    for so_far in (3, 6):
        clock.advance(1)
        until(lambda so_far=so_far: moved(dead) == so_far)
        assert (source.counts, dead.counts) == ((so_far, 0, 0), (8 - so_far, 0, 0))
    clock.advance(1)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 8


def test_a_paused_task_makes_up_for_one_second_at_most(dead, source, clock):
    """For example after a pause of the whole machine: the rate protects the consumers of the messages."""
    let_die(source, *"abcdefgh")
    start(dead, rate=2)
    clock.advance(3600)
    until(lambda: moved(dead) == 2)
    clock.until_waiting()
    assert moved(dead) == 2


def test_a_rate_of_500_moves_fifty_in_a_tenth_of_a_second(dead, source, clock, make_queue):
    for _ in range(12):
        dead.send_batch(*[{"MessageBody": "x"}] * 10)
    target = make_queue("target")
    start(dead, target.arn, rate=500)
    clock.advance(ms=99)
    assert moved(dead) == 0
    clock.advance(ms=1)
    until(lambda: moved(dead) == 50)
    clock.advance(1)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 120


# Start


@pytest.mark.rule("move.14")
def test_a_handle_names_the_task_and_its_source(dead, source):
    """Base64 of compact JSON, as recorded of Amazon."""
    text = base64.b64decode(start(dead)).decode()
    task_id = json.loads(text)["taskId"]
    assert text == f'{{"taskId":"{task_id}","sourceArn":"{dead.arn}"}}'
    assert str(uuid.UUID(task_id)) == task_id


@pytest.mark.rule("move.15")
@pytest.mark.parametrize(
    "arn", ["dead", "http://localhost:9324/000000000000/dead", ARN, "arn:aws:sns:x:1:dead"]
)
def test_a_source_is_named_by_its_arn(dead, source, arn):
    with refused(
        dead.client,
        INVALID,
        "You must use this format to specify the SourceArn: "
        "arn:<partition>:<service>:<region>:<account-id>:<resource-id>",
    ):
        dead.client.start_message_move_task(SourceArn=arn)


@pytest.mark.rule("move.16")
def test_an_empty_source_arn_is_missing(sqs):
    with refused(sqs, MISSING, "The request must contain the parameter SourceArn."):
        sqs.start_message_move_task(SourceArn="")


ELSEWHERE = pytest.mark.parametrize(
    "arn",
    [ARN + "nobody", "arn:aws:sqs:eu-west-1:000000000000:dead", "arn:aws:sqs:us-east-1:111111111111:dead"],
    ids=["no queue", "another region", "another account"],
)


@pytest.mark.rule("move.17", "move.18")
@ELSEWHERE
def test_a_source_must_exist(dead, source, arn):
    with refused(dead.client, "ResourceNotFoundException", NO_SUCH_SOURCE):
        dead.client.start_message_move_task(SourceArn=arn)


@pytest.mark.rule("move.19")
def test_a_source_must_be_a_dead_letter_queue(queue):
    with refused(queue.client, INVALID, "Source queue must be configured as a Dead Letter Queue."):
        start(queue)


@pytest.mark.rule("move.19")
def test_a_queue_that_is_no_longer_a_dead_letter_queue_is_refused(dead, source):
    source.set(RedrivePolicy="")
    with refused(dead.client, INVALID, "Source queue must be configured as a Dead Letter Queue."):
        start(dead)


@pytest.mark.rule("move.18", "move.20")
@ELSEWHERE
def test_a_destination_must_exist(dead, source, arn):
    with refused(dead.client, "ResourceNotFoundException", NO_SUCH_DESTINATION):
        start(dead, arn)


def test_a_destination_is_named_by_its_arn(dead, source):
    with refused(
        dead.client,
        INVALID,
        "You must use this format to specify the DestinationArn: "
        "arn:<partition>:<service>:<region>:<account-id>:<resource-id>",
    ):
        start(dead, source.url)


@pytest.mark.rule("move.21")
def test_a_source_cannot_be_its_own_destination(dead, source):
    with refused(
        dead.client,
        INVALID,
        bad_value(dead.arn, "DestinationArn", "Destination must not be the source queue itself."),
    ):
        start(dead, dead.arn)


@pytest.mark.rule("move.19")
def test_the_source_is_checked_before_the_destination(queue):
    with refused(queue.client, INVALID, "Source queue must be configured as a Dead Letter Queue."):
        start(queue, ARN + "nobody")


@pytest.mark.rule("move.13")
@pytest.mark.parametrize("rate", [0, 501, -1])
def test_a_rate_is_1_to_500(dead, source, rate):
    with refused(dead.client, INVALID, out_of_range("MaxNumberOfMessagesPerSecond", rate, 1, 500)):
        start(dead, rate=rate)


@pytest.mark.rule("move.23")
def test_a_source_has_one_task_at_a_time(dead, source):
    let_die(source, "a")
    start(dead, rate=1)
    with refused(
        dead.client,
        INVALID,
        "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
    ):
        start(dead)


@pytest.mark.rule("move.24")
def test_another_source_may_have_a_task_of_its_own(dead, source, make_queue):
    let_die(source, "a")
    start(dead, rate=1)
    second = make_queue("second-dead")
    make_queue("second", RedrivePolicy=policy(second))
    start(second)
    assert ended(second)["Status"] == "COMPLETED"
    assert tasks(dead)[0]["Status"] == "RUNNING"


@pytest.mark.rule("move.25")
def test_a_hundred_tasks_are_active_at_most(make_queue, clock):
    for number in range(101):
        dead = make_queue(f"dead-{number}")
        make_queue(f"source-{number}", RedrivePolicy=policy(dead))
        dead.send("x")
        if number < 100:
            start(dead, rate=1)
    with refused(
        dead.client, "OverLimit", "100 message movement tasks are active, the maximum allowed is 100."
    ):
        start(dead)


# List


@pytest.mark.rule("move.26", "move.28")
def test_a_running_task_shows_all_its_parameters(dead, source, make_queue, clock):
    let_die(source, "a", "b")
    target = make_queue("target")
    handle = start(dead, target.arn, rate=1)
    started_at = clock.now_ms()
    clock.advance(1)
    until(lambda: moved(dead) == 1)
    assert tasks(dead) == [
        {
            "TaskHandle": handle,
            "Status": "RUNNING",
            "SourceArn": dead.arn,
            "DestinationArn": target.arn,
            "MaxNumberOfMessagesPerSecond": 1,
            "ApproximateNumberOfMessagesMoved": 1,
            "ApproximateNumberOfMessagesToMove": 2,
            "StartedTimestamp": started_at,
        }
    ]


@pytest.mark.rule("move.27", "move.28")
def test_a_finished_task_shows_neither_a_handle_nor_omitted_parameters(dead, source, clock):
    let_die(source, "a")
    start(dead)
    assert ended(dead) == {
        "Status": "COMPLETED",
        "SourceArn": dead.arn,
        "ApproximateNumberOfMessagesMoved": 1,
        "ApproximateNumberOfMessagesToMove": 1,
        "StartedTimestamp": clock.now_ms(),
    }


@pytest.mark.rule("move.29", "move.30")
def test_the_latest_task_is_listed_first_and_alone_by_default(dead, source, clock):
    started = []
    for _ in range(12):
        clock.advance(1)
        start(dead)
        started.append(ended(dead)["StartedTimestamp"])
    listed = [task["StartedTimestamp"] for task in tasks(dead, MaxResults=10)]
    assert listed == started[:1:-1]
    assert [task["StartedTimestamp"] for task in tasks(dead)] == started[-1:]


@pytest.mark.rule("move.31")
@pytest.mark.parametrize("count", [0, 11])
def test_at_most_ten_tasks_are_listed(dead, source, count):
    with refused(dead.client, INVALID, out_of_range("MaxResults", count, 1, 10)):
        tasks(dead, MaxResults=count)


@pytest.mark.rule("move.32")
def test_a_queue_without_tasks_has_an_empty_list(queue):
    assert tasks(queue) == []


@pytest.mark.rule("move.17")
def test_tasks_of_a_missing_queue_cannot_be_listed(sqs):
    with refused(sqs, "ResourceNotFoundException", NO_SUCH_SOURCE):
        sqs.list_message_move_tasks(SourceArn=ARN + "nobody")


# Cancel


@pytest.mark.rule("move.27", "move.33")
def test_a_cancelled_task_moves_no_more(dead, source, clock):
    """Moved messages stay moved."""
    let_die(source, "a", "b", "c")
    handle = start(dead, rate=1)
    clock.advance(1)
    until(lambda: moved(dead) == 1)
    assert cancel(dead, handle) == 1
    task = tasks(dead)[0]
    assert (task["Status"], "TaskHandle" in task) == ("CANCELLED", False)
    clock.advance(3600)
    start(dead)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 2
    assert [task["Status"] for task in tasks(dead, MaxResults=2)] == ["COMPLETED", "CANCELLED"]
    assert source.counts == (3, 0, 0)


@pytest.mark.rule("move.34")
@pytest.mark.parametrize(
    "handle",
    [
        "not Base64!",
        base64.b64encode(b"not JSON").decode(),
        base64.b64encode(b"[1]").decode(),
        base64.b64encode(b'{"taskId":"x"}').decode(),
        base64.b64encode(b'{"taskId":1,"sourceArn":"x"}').decode(),
        base64.b64encode(b'{"taskId":"\\ud800","sourceArn":"x"}').decode(),
        base64.b64encode(b'{"taskId":"x","sourceArn":"\\udfff"}').decode(),
        "\u00e9",
    ],
)
def test_an_invalid_handle_cancels_nothing(sqs, handle):
    with refused(sqs, INVALID, BAD_HANDLE):
        sqs.cancel_message_move_task(TaskHandle=handle)


def handle_of(task_id, arn):
    return base64.b64encode(json.dumps({"taskId": task_id, "sourceArn": arn}).encode()).decode()


@pytest.mark.rule("move.17")
def test_a_handles_source_must_exist(dead, source):
    with refused(dead.client, "ResourceNotFoundException", NO_SUCH_SOURCE):
        cancel(dead, handle_of(str(uuid.uuid4()), ARN + "nobody"))


@pytest.mark.rule("move.35")
def test_a_handles_task_must_exist(dead, source):
    with refused(dead.client, "ResourceNotFoundException", "Task does not exist."):
        cancel(dead, handle_of(str(uuid.uuid4()), dead.arn))


@pytest.mark.rule("move.35")
def test_a_task_is_not_cancelled_by_another_queues_handle(dead, source):
    let_die(source, "a")
    task_id = json.loads(base64.b64decode(start(dead, rate=1)))["taskId"]
    with refused(dead.client, "ResourceNotFoundException", "Task does not exist."):
        cancel(dead, handle_of(task_id, source.arn))
    assert tasks(dead)[0]["Status"] == "RUNNING"


@pytest.mark.rule("move.36")
def test_a_task_that_is_over_cannot_be_cancelled(dead, source):
    handle = start(dead)
    ended(dead)
    with refused(
        dead.client,
        "ResourceNotFoundException",
        "Task is COMPLETED: only a task that is RUNNING can be cancelled.",
    ):
        cancel(dead, handle)


# Failures


@pytest.mark.rule("move.37")
def test_a_destination_deleted_in_mid_move_fails_the_task_and_loses_nothing(dead, source, make_queue, clock):
    let_die(source, "a", "b", "c")
    target = make_queue("target")
    start(dead, target.arn, rate=1)
    clock.advance(1)
    until(lambda: target.counts == (1, 0, 0))
    target.client.delete_queue(QueueUrl=target.url)
    clock.advance(1)
    task = ended(dead)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "AWS.SimpleQueueService.NonExistentQueue")
    assert task["ApproximateNumberOfMessagesMoved"] == 1
    assert dead.bodies() == ["b", "c"]


@pytest.mark.rule("move.37")
def test_messages_of_a_deleted_source_stay_and_the_others_move(dead, source, other):
    let_die(source, "a")
    let_die(other, "b")
    source.client.delete_queue(QueueUrl=source.url)
    start(dead)
    task = ended(dead)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "AWS.SimpleQueueService.NonExistentQueue")
    assert (dead.bodies(), other.bodies()) == (["a"], ["b"])


def test_a_source_deleted_and_made_again_gets_its_messages(dead, source, make_queue, clock):
    let_die(source, "a")
    source.client.delete_queue(QueueUrl=source.url)
    clock.advance(60)
    again = make_queue("source", RedrivePolicy=policy(dead))
    start(dead)
    assert ended(dead)["Status"] == "COMPLETED"
    assert again.bodies() == ["a"]


@pytest.mark.rule("move.38")
def test_messages_sent_to_the_dead_letter_queue_directly_stay(dead, source):
    """They stay, and the task fails at its end, after all others were moved."""
    dead.send("direct")
    let_die(source, "a")
    start(dead)
    task = ended(dead)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert (dead.bodies(), source.bodies()) == (["direct"], ["a"])


@pytest.mark.rule("move.39")
def test_a_running_task_shows_no_failure_yet(dead, source, clock):
    dead.send("direct")
    let_die(source, "a", "b")
    start(dead, rate=1)
    clock.advance(1)
    until(lambda: moved(dead) == 1)
    assert "FailureReason" not in tasks(dead)[0]


def test_a_source_purged_in_mid_move_is_done(dead, source, clock):
    let_die(source, "a", "b")
    start(dead, rate=1)
    clock.advance(1)
    until(lambda: moved(dead) == 1)
    dead.client.purge_queue(QueueUrl=dead.url)
    dead.send("sent after the purge")
    clock.advance(1)
    assert ended(dead)["Status"] == "COMPLETED"
    assert (source.bodies(), dead.bodies()) == (["a"], ["sent after the purge"])


def test_a_source_deleted_in_mid_move_ends_its_task(dead, source, clock, make_queue):
    let_die(source, "a", "b")
    start(dead, rate=1)
    dead.client.delete_queue(QueueUrl=dead.url)
    clock.advance(60)
    again = make_queue("dead")
    assert ended(again)["Status"] == "COMPLETED"
    assert source.counts == (0, 0, 0)


def test_a_purged_destination_gets_the_messages_moved_later(dead, source, clock):
    let_die(source, "a", "b")
    start(dead, rate=1)
    clock.advance(1)
    until(lambda: moved(dead) == 1)
    source.client.purge_queue(QueueUrl=source.url)
    clock.advance(1)
    assert ended(dead)["Status"] == "COMPLETED"
    assert source.bodies() == ["b"]


@pytest.mark.rule("move.40")
def test_a_task_that_runs_for_36_hours_ends(dead, source, clock):
    let_die(source, "a", "b")
    start(dead, rate=1)
    clock.advance(36 * 3600)
    task = ended(dead)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "MaximumTaskDurationExceeded")
    assert dead.bodies() == ["a", "b"]


# Other events during a task


@pytest.mark.rule("move.9")
def test_messages_sent_after_the_start_are_not_moved(dead, source, clock, make_queue):
    let_die(source, "a")
    target = make_queue("target")
    start(dead, target.arn, rate=1)
    dead.send("later")
    clock.advance(1)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 1
    assert (target.bodies(), dead.bodies()) == (["a"], ["later"])


@pytest.mark.rule("move.49")
def test_messages_that_die_after_the_start_are_not_moved(dead, source, clock):
    """Although they were sent before, to their own queue."""
    let_die(source, "a")
    source.send("b")
    start(dead, rate=1)
    clock.advance(ms=500)
    source.receive_one(VisibilityTimeout=0)
    assert source.receive() == []
    clock.advance(ms=500)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 1
    assert (source.bodies(), dead.bodies()) == (["a"], ["b"])


def test_a_task_ends_although_its_messages_die_again(dead, source, clock):
    """They return behind the task, with new times of sending."""
    let_die(source, "a", "b")
    start(dead, rate=1)
    clock.advance(1)
    until(lambda: moved(dead) == 1)
    source.receive_one(VisibilityTimeout=0)
    assert source.receive() == []
    clock.advance(1)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 2
    assert (dead.counts, source.counts) == ((1, 0, 0), (1, 0, 0))


def test_a_message_deleted_in_mid_move_is_gone(dead, source, clock):
    let_die(source, "a", "b")
    held = dead.receive_one()
    start(dead, rate=1)
    dead.delete(held)
    clock.advance(1)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 1
    assert (source.bodies(), dead.counts) == (["b"], (0, 0, 0))


@pytest.mark.rule("move.41")
def test_a_file_opened_again_continues_its_tasks(open_sqs, dead, source, clock):
    let_die(source, "a", "b")
    start(dead, rate=1)
    dead.client.close()
    clock.advance(1)
    again = BoundQueue(open_sqs(), dead.url)
    until(lambda: moved(again) == 1)
    clock.advance(1)
    assert ended(again)["Status"] == "COMPLETED"
