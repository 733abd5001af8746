# SPDX-License-Identifier: Apache-2.0
"""The three batches on FIFO queues: order, duplicates within a batch, and errors of the whole batch."""

import re

import pytest

from tests.behaviour.bound_queue import BoundQueue, without_metadata
from tests.behaviour.refusals import INVALID, NO_DEDUPLICATION, NO_GROUP, expired, no_delay_in_fifo, refused


def entry(body, group_id="g", **params):
    return {"MessageBody": body, "MessageGroupId": group_id, **params}


def failures(answer):
    return [(failed["Id"], failed["Code"], failed["SenderFault"]) for failed in answer["Failed"]]


# SendMessageBatch


@pytest.mark.rule("fifo-send.3", "fifo-send.17")
def test_each_entry_is_answered_with_its_sequence_number_in_order(fifo):
    answer = fifo.send_batch(*(entry(body) for body in "abcdefghij"))
    assert "Failed" not in answer
    messages = fifo.receive(10)
    assert [(sent["Id"], sent["MessageId"], sent["SequenceNumber"]) for sent in answer["Successful"]] == [
        (str(place), message["MessageId"], message["Attributes"]["SequenceNumber"])
        for place, message in enumerate(messages)
    ]
    numbers = [sent["SequenceNumber"] for sent in answer["Successful"]]
    assert numbers == sorted(set(numbers))
    assert all(re.fullmatch("[0-9]{20}", number) for number in numbers)


@pytest.mark.rule("fifo-order.6")
def test_entries_of_several_groups_keep_the_order_of_each(fifo):
    fifo.send_batch(*(entry(f"{group}{number}", group) for number in range(3) for group in "xyz"))
    assert fifo.bodies() == [f"{group}{number}" for group in "xyz" for number in range(3)]


@pytest.mark.rule("deduplication.1", "deduplication.12")
def test_duplicates_within_a_batch_are_one_message(fifo):
    """Each duplicate gets the answer of the first."""
    answer = fifo.send_batch(entry("a"), entry("b"), entry("a"), entry("c"), entry("a", "other"))
    sent = [(one["MessageId"], one["SequenceNumber"]) for one in answer["Successful"]]
    assert [one["Id"] for one in answer["Successful"]] == list("01234")
    assert sent[0] == sent[2] == sent[4]
    assert len(set(sent)) == 3
    assert fifo.bodies() == ["a", "b", "c"]


@pytest.mark.rule("deduplication.4")
def test_explicit_ids_within_a_batch_decide(make_fifo):
    queue = make_fifo(ContentBasedDeduplication="false")
    queue.send_batch(
        entry("a", MessageDeduplicationId="1"),
        entry("b", MessageDeduplicationId="1"),
        entry("a", MessageDeduplicationId="2"),
    )
    assert queue.bodies() == ["a", "a"]


@pytest.mark.rule("deduplication.13")
def test_with_scope_message_group_each_group_of_a_batch_has_its_own(make_fifo):
    queue = make_fifo(DeduplicationScope="messageGroup")
    queue.send_batch(entry("a", "one"), entry("a", "two"), entry("a", "one"))
    assert queue.bodies() == ["a", "a"]


@pytest.mark.rule("deduplication.1", "deduplication.2", "deduplication.3")
def test_a_repeated_batch_gets_the_same_answer(fifo):
    entries = [entry(body) for body in "abc"]
    first = fifo.send_batch(*entries)
    assert fifo.send_batch(*entries)["Successful"] == first["Successful"]
    assert fifo.bodies() == ["a", "b", "c"]


@pytest.mark.rule("deduplication.2")
def test_only_the_new_entries_of_a_repeated_batch_are_sent(fifo):
    [before] = fifo.send_group("g", "b")
    answer = fifo.send_batch(entry("a"), entry("b"), entry("c"))
    assert answer["Successful"][1]["MessageId"] == before["MessageId"]
    assert fifo.bodies() == ["b", "a", "c"]


@pytest.mark.rule("fifo-send.7")
def test_one_entry_without_a_group_refuses_the_whole_batch(fifo):
    with refused(fifo.client, INVALID, NO_GROUP):
        fifo.send_batch(entry("a"), {"MessageBody": "b"}, entry("c"))
    assert fifo.counts == (0, 0, 0)


@pytest.mark.rule("fifo-send.8")
def test_one_entry_without_a_deduplication_id_refuses_the_whole_batch(make_fifo):
    queue = make_fifo(ContentBasedDeduplication="false")
    with refused(queue.client, INVALID, NO_DEDUPLICATION):
        queue.send_batch(entry("a", MessageDeduplicationId="1"), entry("b"))
    assert queue.counts == (0, 0, 0)


@pytest.mark.rule("fifo-send.7")
def test_a_refused_batch_leaves_no_deduplication_ids(fifo):
    with refused(fifo.client, INVALID, NO_GROUP):
        fifo.send_batch(entry("a"), {"MessageBody": "b"})
    fifo.send_group("g", "a")
    assert fifo.bodies() == ["a"]


@pytest.mark.rule("fifo-send.13")
def test_an_entry_refused_by_itself_leaves_the_others_in_order(make_fifo):
    queue = make_fifo(MaximumMessageSize=1024)
    answer = queue.send_batch(
        entry("a"),
        entry("x" * 1025),
        entry("b", DelaySeconds=5),
        entry("c"),
        entry("d", "no group"),
        entry("e", MessageDeduplicationId="no id"),
        entry("f", DelaySeconds=0),
    )
    assert [sent["Id"] for sent in answer["Successful"]] == ["0", "3", "6"]
    assert failures(answer) == [(place, "InvalidParameterValue", True) for place in "1245"]
    assert answer["Failed"][1]["Message"] == no_delay_in_fifo("5")
    assert queue.bodies() == ["a", "c", "f"]


@pytest.mark.rule("fifo-send.16")
def test_a_refused_entry_leaves_no_deduplication_id(fifo):
    """The same body later in the batch is sent."""
    answer = fifo.send_batch(entry("a", DelaySeconds=5), entry("a"))
    assert [sent["Id"] for sent in answer["Successful"]] == ["1"]
    assert fifo.bodies() == ["a"]


@pytest.mark.rule("fifo-visibility.9")
def test_a_batch_has_the_queues_delay(make_fifo, clock):
    queue = make_fifo(DelaySeconds=5)
    queue.send_batch(entry("a"), entry("b"))
    assert queue.counts == (0, 0, 2)
    clock.advance(5)
    assert queue.bodies() == ["a", "b"]


def test_a_batch_is_checked_as_on_every_queue(fifo):
    with refused(fifo.client, "TooManyEntriesInBatchRequest", re.compile("You have sent 11")):
        fifo.send_batch(*(entry(str(number)) for number in range(11)))
    with refused(fifo.client, "EmptyBatchRequest", re.compile("at least one")):
        fifo.send_batch()


# DeleteMessageBatch


@pytest.mark.rule("fifo-order.5")
def test_a_batch_of_deletes_releases_the_group_when_none_is_left_in_flight(fifo):
    fifo.send_group("g", *"abcde")
    handles = [message["ReceiptHandle"] for message in fifo.receive(3)]
    fifo.delete_batch(*handles[:2])
    assert fifo.bodies() == []
    fifo.delete_batch(handles[2])
    assert fifo.bodies() == ["d", "e"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_batch_deletes_a_group_in_any_order(fifo, order):
    fifo.send_group("g", *"abcd")
    handles = [message["ReceiptHandle"] for message in fifo.receive(3)]
    answer = fifo.delete_batch(*(handles[place] for place in order))
    assert without_metadata(answer) == {"Successful": [{"Id": "0"}, {"Id": "1"}, {"Id": "2"}]}
    assert fifo.bodies() == ["d"]


@pytest.mark.rule("batch.28", "fifo-visibility.6")
def test_a_batch_deletes_what_it_can(either, clock):
    """In both modes: an expired handle fails by itself, and its message keeps its place."""
    queue = BoundQueue.create_fifo(either)
    queue.send_group("g", "a", "b")
    late, held = queue.receive(2)
    queue.change(late, 5)
    clock.advance(5)
    answer = queue.delete_batch(late["ReceiptHandle"], held["ReceiptHandle"], "garbage")
    assert answer["Successful"] == [{"Id": "1"}]
    assert failures(answer) == [
        ("0", "InvalidParameterValue", True),
        ("2", "ReceiptHandleIsInvalid", True),
    ]
    assert answer["Failed"][0]["Message"] == expired(late)
    assert queue.bodies() == ["a"]


def test_a_batch_deletes_from_several_groups(fifo):
    for group in "xyz":
        fifo.send_group(group, f"{group}0", f"{group}1")
    heads = [fifo.receive_one() for _ in range(3)]
    fifo.delete_batch(*(message["ReceiptHandle"] for message in heads))
    assert sorted(fifo.bodies()) == ["x1", "y1", "z1"]


def test_the_same_handle_twice_in_a_batch_is_no_failure(fifo):
    fifo.send_group("g", "a", "b")
    handle = fifo.receive_one()["ReceiptHandle"]
    answer = fifo.delete_batch(handle, handle)
    assert without_metadata(answer) == {"Successful": [{"Id": "0"}, {"Id": "1"}]}
    assert fifo.bodies() == ["b"]


def test_a_batch_of_mixed_handles_leaves_each_group_correct(fifo, clock):
    """Expired, gone, given twice: only the deleted messages count for their group."""
    for group in "xy":
        fifo.send_group(group, *(f"{group}{number}" for number in range(5)))
    handle = {message["Body"]: message["ReceiptHandle"] for message in fifo.receive(10)}
    fifo.send_group("x", "x5")
    fifo.send_group("y", "y5")
    fifo.change({"ReceiptHandle": handle["x0"]}, 1)
    fifo.delete({"ReceiptHandle": handle["x1"]})
    clock.advance(1)
    answer = fifo.delete_batch(
        *(handle[body] for body in ("y0", "x0", "x1", "x2", "y1", "y0", "x4", "x3", "y3", "y2"))
    )
    assert [one["Id"] for one in answer["Successful"]] == list("023456789")
    assert failures(answer) == [("1", "InvalidParameterValue", True)]
    assert fifo.counts == (3, 1, 0)
    assert fifo.bodies() == ["x0", "x5"]
    fifo.delete_batch(handle["y4"])
    assert fifo.bodies() == ["y5"]


# ChangeMessageVisibilityBatch


def test_a_batch_gives_each_message_of_a_group_a_timeout_of_its_own(fifo, clock):
    """The group still comes in order: the longest timeout in front holds back the rest."""
    fifo.send_group("g", *"abc")
    handles = [message["ReceiptHandle"] for message in fifo.receive(3)]
    fifo.change_batch((handles[2], 0), (handles[1], 10), (handles[0], 20))
    assert fifo.counts == (1, 2, 0)
    clock.advance(19.999)
    assert fifo.bodies() == []
    clock.advance(ms=1)
    assert fifo.bodies() == ["a", "b", "c"]


def test_a_batch_gives_a_whole_group_back(fifo):
    fifo.send_group("g", *"abc")
    fifo.change_batch(*((message["ReceiptHandle"], 0) for message in fifo.receive(3)))
    assert fifo.bodies() == ["a", "b", "c"]


@pytest.mark.rule("fifo-visibility.7")
def test_a_batch_changes_what_it_can(fifo, clock):
    fifo.send_group("one", "a", "b")
    fifo.send_group("two", "c")
    late, held, other = fifo.receive(3)
    fifo.change(late, 5)
    clock.advance(5)
    answer = fifo.change_batch(
        (late["ReceiptHandle"], 0), (held["ReceiptHandle"], 60), (other["ReceiptHandle"], 0)
    )
    assert answer["Successful"] == [{"Id": "1"}, {"Id": "2"}]
    assert failures(answer) == [("0", "AWS.SimpleQueueService.MessageNotInflight", True)]
    assert sorted(fifo.bodies()) == ["a", "c"]
