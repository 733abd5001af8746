# SPDX-License-Identifier: Apache-2.0
"""Receipt handles: which handle may do what, row by row of the table of outcomes, in both modes.

compat="docs" keeps the reference documents' promise: a handle whose timeout has ended, or that a newer receive
replaced, cannot settle a message that another consumer may hold by now. compat="aws" is as lenient as Amazon's
standard queues.
"""

import re

import pytest

from tests.behaviour.bound_queue import BoundQueue, without_metadata
from tests.behaviour.refusals import INVALID, MISSING, does_not_exist, expired, refused

NOT_IN_FLIGHT = re.compile("not in flight")
HOUR = 3600
GARBAGE = [
    "garbage",
    "AQEBzWwaftRI0KuVm4tP+nn7q1rGgNqicHq=",
    "x" * 60,
    "A" * 60,
    "=" * 60,
    "ä" * 60,
    "x" * 1024,
    "'; DROP TABLE sqs_messages; --",
]


def never_issued(handle):
    return f'The input receipt handle "{handle}" is not a valid receipt handle.'


@pytest.fixture
def strict(sqs):
    """A queue in the default mode."""
    return BoundQueue.create(sqs)


@pytest.fixture
def lenient(aws):
    """A queue in compat="aws"."""
    return BoundQueue.create(aws)


@pytest.fixture
def any_mode(either):
    return BoundQueue.create(either)


def received(queue, **params):
    queue.send("hello")
    return queue.receive_one(**params)


# In both modes


@pytest.mark.rule("handle.1")
def test_a_handle_is_short_text_without_a_hyphen(any_mode):
    """At most 1,024 characters; the convention of extended clients needs a handle without `-`."""
    for _ in range(20):
        handle = received(any_mode)["ReceiptHandle"]
        assert handle.isascii()
        assert len(handle) <= 1024
        assert "-" not in handle


@pytest.mark.rule("handle.2")
def test_each_receive_gives_a_new_handle(any_mode, clock):
    first = received(any_mode)
    clock.advance(30)
    second = any_mode.receive_one()
    assert second["MessageId"] == first["MessageId"]
    assert second["ReceiptHandle"] != first["ReceiptHandle"]


@pytest.mark.rule("handle.3")
def test_the_latest_handle_deletes_in_flight(any_mode, clock):
    message = received(any_mode)
    clock.advance(29.999)
    assert without_metadata(any_mode.delete(message)) == {}
    assert any_mode.counts == (0, 0, 0)
    clock.advance(HOUR)
    assert any_mode.receive() == []


def test_the_latest_handle_changes_the_timeout_in_flight(any_mode, clock):
    message = received(any_mode)
    clock.advance(29.999)
    assert without_metadata(any_mode.change(message, 60)) == {}
    clock.advance(59.999)
    assert any_mode.receive() == []
    clock.advance(ms=1)
    assert any_mode.bodies() == ["hello"]


@pytest.mark.rule("visibility.7", "handle.4")
def test_extending_keeps_the_handle_valid(any_mode, clock):
    """Past the timeout of its receive, as often as it is extended."""
    message = received(any_mode)
    for _ in range(5):
        clock.advance(25)
        any_mode.change(message, 30)
    clock.advance(29)
    any_mode.delete(message)
    assert any_mode.counts == (0, 0, 0)


@pytest.mark.rule("handle.5", "handle.6")
def test_deleting_twice_is_no_error(any_mode):
    message = received(any_mode)
    any_mode.delete(message)
    any_mode.delete(message)
    with refused(any_mode.client, INVALID, does_not_exist(message)):
        any_mode.change(message, 60)


@pytest.mark.rule("handle.5", "handle.6")
def test_any_handle_of_a_deleted_message_deletes_without_error(any_mode, clock):
    """Also an older one: it can harm nothing any more."""
    older = received(any_mode)
    clock.advance(30)
    any_mode.delete(any_mode.receive_one())
    any_mode.delete(older)
    with refused(any_mode.client, INVALID, does_not_exist(older)):
        any_mode.change(older, 60)


@pytest.mark.rule("handle.5", "handle.6")
def test_a_handle_of_a_purged_message_deletes_without_error(any_mode):
    message = received(any_mode)
    any_mode.client.purge_queue(QueueUrl=any_mode.url)
    any_mode.send("another")
    any_mode.delete(message)
    with refused(any_mode.client, INVALID, does_not_exist(message)):
        any_mode.change(message, 60)
    assert any_mode.counts == (1, 0, 0)


@pytest.mark.rule("handle.7")
@pytest.mark.parametrize("swept", [False, True])
def test_a_handle_of_an_expired_message_deletes_without_error(either, clock, swept):
    """Whether its row still exists or not."""
    queue = BoundQueue.create(either, MessageRetentionPeriod=60)
    message = received(queue, VisibilityTimeout=HOUR)
    clock.advance(60)
    if swept:
        assert queue.receive() == []
    with refused(queue.client, INVALID, does_not_exist(message)):
        queue.change(message, 60)
    queue.delete(message)


@pytest.mark.rule("handle.8")
def test_another_queues_handle_is_refused(any_mode):
    """404, and the message stays with its queue."""
    other = BoundQueue.create(any_mode.client, "other")
    handle = received(other)["ReceiptHandle"]
    reason = f'The receipt handle "{handle}" is not valid for this queue.'
    with refused(any_mode.client, "ReceiptHandleIsInvalid", reason):
        any_mode.delete({"ReceiptHandle": handle})
    with refused(any_mode.client, "ReceiptHandleIsInvalid", reason):
        any_mode.change({"ReceiptHandle": handle}, 0)
    assert other.counts == (0, 1, 0)


@pytest.mark.rule("handle.8")
def test_a_handle_of_a_deleted_queue_of_the_same_name_is_refused(any_mode, clock):
    handle = received(any_mode)["ReceiptHandle"]
    any_mode.client.delete_queue(QueueUrl=any_mode.url)
    clock.advance(60)
    again = BoundQueue.create(any_mode.client)
    message = received(again)
    with refused(again.client, "ReceiptHandleIsInvalid", re.compile("is not valid for this queue")):
        again.delete({"ReceiptHandle": handle})
    again.delete(message)


@pytest.mark.rule("handle.10")
def test_another_files_handle_was_never_issued(any_mode, open_sqs):
    """Handles are signed with a secret of their file."""
    handle = received(BoundQueue.create(open_sqs("other.db")))["ReceiptHandle"]
    any_mode.send()
    with refused(any_mode.client, "ReceiptHandleIsInvalid", never_issued(handle)):
        any_mode.delete({"ReceiptHandle": handle})


@pytest.mark.rule("handle.9", "error.5")
@pytest.mark.parametrize("handle", GARBAGE)
def test_a_made_up_handle_is_refused(any_mode, handle):
    with refused(any_mode.client, "ReceiptHandleIsInvalid", never_issued(handle)):
        any_mode.delete({"ReceiptHandle": handle})
    with refused(any_mode.client, "ReceiptHandleIsInvalid", never_issued(handle)):
        any_mode.change({"ReceiptHandle": handle}, 60)


@pytest.mark.rule("handle.10")
def test_a_handle_altered_anywhere_is_refused(strict):
    """One other character at any place: the message is untouched."""
    handle = received(strict)["ReceiptHandle"]
    for place, character in enumerate(handle):
        altered = handle[:place] + ("B" if character != "B" else "C") + handle[place + 1 :]
        with refused(strict.client, "ReceiptHandleIsInvalid", never_issued(altered)):
            strict.delete({"ReceiptHandle": altered})
    assert strict.counts == (0, 1, 0)


@pytest.mark.rule("handle.11")
def test_an_empty_handle_is_a_missing_parameter(any_mode):
    with refused(any_mode.client, MISSING, "The request must contain the parameter ReceiptHandle."):
        any_mode.delete({"ReceiptHandle": ""})
    with refused(any_mode.client, MISSING, "The request must contain the parameter ReceiptHandle."):
        any_mode.change({"ReceiptHandle": ""}, 60)


def test_a_handle_outlives_the_client(any_mode, open_sqs):
    """Another process may delete what this one received."""
    message = received(any_mode)
    BoundQueue(open_sqs(), any_mode.url).delete(message)
    assert any_mode.counts == (0, 0, 0)


# compat="docs": expired and replaced handles are errors


@pytest.mark.rule("handle.12", "handle.14")
def test_an_expired_handle_does_not_delete(strict, clock):
    """From the very millisecond at which the timeout ends; the message stays."""
    message = received(strict)
    clock.advance(30)
    with refused(strict.client, INVALID, expired(message)):
        strict.delete(message)
    assert strict.bodies() == ["hello"]


@pytest.mark.rule("handle.15", "error.8")
def test_an_expired_handle_does_not_change_the_timeout(strict, clock):
    message = received(strict)
    clock.advance(30)
    with refused(strict.client, "MessageNotInflight", NOT_IN_FLIGHT):
        strict.change(message, 60)
    assert strict.bodies() == ["hello"]


@pytest.mark.rule("handle.13", "handle.14")
def test_a_replaced_handle_does_not_delete_what_another_holds(strict, clock):
    older = received(strict)
    clock.advance(30)
    newer = strict.receive_one()
    with refused(strict.client, INVALID, expired(older)):
        strict.delete(older)
    assert strict.counts == (0, 1, 0)
    strict.delete(newer)
    assert strict.counts == (0, 0, 0)


@pytest.mark.rule("handle.16")
@pytest.mark.parametrize("timeout", [0, 60])
def test_a_replaced_handle_does_not_change_what_another_holds(strict, clock, timeout):
    older = received(strict)
    clock.advance(30)
    strict.receive_one()
    with refused(strict.client, "MessageNotInflight", NOT_IN_FLIGHT):
        strict.change(older, timeout)
    clock.advance(29.999)
    assert strict.counts == (0, 1, 0)
    clock.advance(ms=1)
    assert strict.counts == (1, 0, 0)


@pytest.mark.rule("handle.14", "handle.15")
def test_a_handle_is_expired_once_its_message_was_given_back(strict):
    message = received(strict)
    strict.change(message, 0)
    with refused(strict.client, INVALID, expired(message)):
        strict.delete(message)
    with refused(strict.client, "MessageNotInflight", NOT_IN_FLIGHT):
        strict.change(message, 60)


@pytest.mark.rule("handle.14", "handle.15")
def test_a_handle_received_with_no_timeout_is_expired_at_once(strict):
    message = received(strict, VisibilityTimeout=0)
    with refused(strict.client, INVALID, expired(message)):
        strict.delete(message)
    with refused(strict.client, "MessageNotInflight", NOT_IN_FLIGHT):
        strict.change(message, 60)


@pytest.mark.rule("handle.14", "handle.17")
def test_a_handle_of_a_message_moved_to_its_dead_letter_queue_is_expired(strict, clock):
    message = moved_to_dead_letters(strict, clock)
    with refused(strict.client, INVALID, expired(message)):
        strict.delete(message)
    with refused(strict.client, "MessageNotInflight", NOT_IN_FLIGHT):
        strict.change(message, 60)
    assert BoundQueue(strict.client, "dead").bodies() == ["hello"]


# compat="aws": softer


@pytest.mark.rule("handle.18")
def test_an_expired_handle_deletes_in_aws(lenient, clock):
    message = received(lenient)
    clock.advance(30)
    lenient.delete(message)
    assert lenient.counts == (0, 0, 0)
    assert lenient.receive() == []


@pytest.mark.rule("handle.19")
def test_an_expired_handle_does_not_change_the_timeout_in_aws(lenient, clock):
    message = received(lenient)
    clock.advance(30)
    assert without_metadata(lenient.change(message, 60)) == {}
    assert lenient.counts == (1, 0, 0)
    assert lenient.bodies() == ["hello"]


@pytest.mark.rule("handle.18")
def test_a_replaced_handle_deletes_in_aws(lenient, clock):
    older = received(lenient)
    clock.advance(30)
    lenient.receive_one()
    lenient.delete(older)
    assert lenient.counts == (0, 0, 0)


@pytest.mark.rule("handle.20")
def test_a_replaced_handle_acts_on_the_message_in_aws(lenient, clock):
    older = received(lenient)
    clock.advance(30)
    newer = lenient.receive_one()
    lenient.change(older, 0)
    assert lenient.counts == (1, 0, 0)
    again = lenient.receive_one()
    assert again["MessageId"] == newer["MessageId"]


@pytest.mark.rule("handle.20")
def test_a_replaced_handles_12_hours_count_from_the_latest_receive_in_aws(lenient, clock):
    """Eleven hours after the first receive the message is received again. From then on there are 12 h again."""
    older = received(lenient)
    clock.advance(11 * HOUR)
    lenient.receive_one()
    lenient.change(older, 12 * HOUR)
    clock.advance(12 * HOUR, ms=-1)
    assert lenient.counts == (0, 1, 0)


@pytest.mark.rule("handle.21")
def test_a_handle_older_than_12_hours_is_expired_in_aws_too(lenient, clock):
    message = received(lenient, VisibilityTimeout=12 * HOUR)
    clock.advance(12 * HOUR, ms=1)
    with refused(lenient.client, INVALID, expired(message)):
        lenient.delete(message)
    with refused(lenient.client, INVALID, expired(message)):
        lenient.change(message, 60)
    assert lenient.counts == (1, 0, 0)


@pytest.mark.rule("handle.22", "handle.23")
def test_a_handle_of_a_moved_message_does_nothing_in_aws(lenient, clock):
    message = moved_to_dead_letters(lenient, clock)
    lenient.delete(message)
    with refused(lenient.client, INVALID, does_not_exist(message)):
        lenient.change(message, 60)
    assert BoundQueue(lenient.client, "dead").bodies() == ["hello"]


def moved_to_dead_letters(queue, clock):
    """Receive a message, let it be moved, and return the received message."""
    dead = BoundQueue.create(queue.client, "dead")
    queue.set(RedrivePolicy={"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1})
    message = received(queue)
    clock.advance(30)
    assert queue.receive() == []
    return message
