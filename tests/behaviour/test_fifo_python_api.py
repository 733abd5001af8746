# SPDX-License-Identifier: Apache-2.0
"""FIFO queues through `sqsqlite.connect()`: arguments, fields, and sends within the caller's own transaction."""

import pytest

import sqsqlite
from sqsqlite import ManualClock, errors


class Cancelled(Exception):
    """The application raises this to roll back."""


@pytest.fixture
def clock():
    return ManualClock(patience=600.0)


@pytest.fixture
def sqs(tmp_path, clock):
    with sqsqlite.connect(tmp_path / "queues.db", clock=clock, synchronous="NORMAL") as sqs:
        yield sqs


@pytest.fixture
def queue(sqs):
    return sqs.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)


def bodies(queue, **arguments):
    return [message.body for message in queue.receive(10, **arguments)]


def test_create_queue_takes_each_attribute_of_a_fifo_queue(sqs):
    queue = sqs.create_queue(
        "orders.fifo",
        fifo=True,
        content_based_deduplication=True,
        deduplication_scope="messageGroup",
        fifo_throughput_limit="perMessageGroupId",
    )
    expected = {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "true",
        "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId",
    }
    assert expected.items() <= queue.attributes.items()
    assert (queue.name, queue.arn.rpartition(":")[2]) == ("orders.fifo", "orders.fifo")
    assert sqs.create_queue("orders.fifo", fifo=True).url == queue.url


def test_fifo_without_its_suffix_is_refused_in_sqss_words(sqs):
    with pytest.raises(errors.InvalidParameterValue, match=r"must end with \.fifo suffix"):
        sqs.create_queue("orders", fifo=True)


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("orders.fifo", {}, "Can only include alphanumeric characters"),
        ("orders", {"content_based_deduplication": True}, "Unknown Attribute ContentBasedDeduplication"),
        ("orders", {"deduplication_scope": "queue"}, "only when FifoQueue is set to true"),
    ],
)
def test_refusal_of_a_fifo_attribute_has_a_note_about_fifo(sqs, name, given, text):
    """SQS's own words are unchanged."""
    with pytest.raises(errors.SQSError, match=text) as refused:
        sqs.create_queue(name, **given)
    [note] = refused.value.__notes__
    assert note.endswith("fifo=True makes one")


def test_refusal_of_another_attribute_has_no_note_about_fifo(sqs):
    for name, given in (("orders.fifo", {"fifo": True, "visibility_timeout": -1}), ("no name", {})):
        with pytest.raises(errors.SQSError) as refused:
            sqs.create_queue(name, **given)
        assert not hasattr(refused.value, "__notes__")


def test_attributes_of_fifo_queues_need_fifo(sqs):
    with pytest.raises(errors.InvalidAttributeName):
        sqs.create_queue("orders", content_based_deduplication=True)


def test_sent_and_received_messages_have_the_same_sequence_number(queue):
    sent = queue.send("a", group_id="customer-1", deduplication_id="order-1")
    [message] = queue.receive()
    assert (message.message_id, message.sequence_number) == (sent.message_id, sent.sequence_number)
    assert (message.group_id, message.deduplication_id) == ("customer-1", "order-1")
    assert len(sent.sequence_number) == 20


def test_no_sequence_number_contains_the_default_accounts_id(queue):
    """Tools that redact accounts in recorded answers would mistake it for one.

    In old files, numbers continue to grow.
    """
    sent = queue.send("a", group_id="customer-1", deduplication_id="order-1")
    assert "0000" not in sent.sequence_number
    assert int(sent.sequence_number) > 10**19 + 2**63


def test_a_duplicate_is_the_message_sent_first(queue):
    assert queue.send("a", group_id="g") == queue.send("a", group_id="g")
    assert len(queue) == 1


def test_a_message_without_group_or_deduplication_id_is_refused(sqs):
    queue = sqs.create_queue("orders.fifo", fifo=True)
    with pytest.raises(errors.MissingParameter, match="MessageGroupId"):
        queue.send("a", deduplication_id="d")
    with pytest.raises(errors.InvalidParameterValue, match="ContentBasedDeduplication"):
        queue.send("a", group_id="g")
    assert len(queue) == 0


def test_send_many_sends_groups_in_order(queue):
    """More than SQS's ten, in one transaction."""
    sent = queue.send_many(
        {"body": f"{group}{number}", "group_id": group} for number in range(8) for group in "xyz"
    )
    numbers = [one.sequence_number for one in sent]
    assert numbers == sorted(set(numbers))
    received = []
    while messages := queue.receive(8):
        received += [message.body for message in messages]
        for message in messages:
            message.delete()
    assert received == [f"{group}{number}" for group in "xyz" for number in range(8)]


def test_send_many_sends_a_duplicate_among_them_once(queue):
    first, second, again = queue.send_many([{"body": body, "group_id": "g"} for body in "aba"])
    assert again == first != second
    assert bodies(queue) == ["a", "b"]


@pytest.mark.parametrize("scope", ["queue", "messageGroup"])
def test_send_many_knows_each_of_many_duplicates(sqs, scope):
    """Those sent before and those within the list, at any place."""
    queue = sqs.create_queue(
        "many.fifo", fifo=True, content_based_deduplication=True, deduplication_scope=scope
    )
    messages = [{"body": f"{number}", "group_id": f"g{number % 3}"} for number in range(25)]
    first = queue.send_many(messages)
    new = [{"body": f"new {number}", "group_id": "g0"} for number in range(13)]
    mixed = [one for pair in zip(reversed(messages[:13]), new, strict=True) for one in pair]
    answers = queue.send_many([*mixed, *mixed])
    assert answers[0:26:2] == list(reversed(first[:13]))
    assert answers[26:] == answers[:26]
    assert len({one.message_id for one in answers[1:26:2]} | {one.message_id for one in first}) == 38
    assert len(queue) == 38


@pytest.mark.parametrize("wrong", ["b", {"body": "b"}, {"body": "b", "group_id": "g", "delay": 5}])
def test_send_many_sends_all_or_none(queue, wrong):
    """Unsent messages leave no deduplication ids."""
    with pytest.raises(errors.SQSError):
        queue.send_many([{"body": "a", "group_id": "g"}, wrong])
    assert len(queue) == 0
    queue.send("a", group_id="g")
    assert bodies(queue) == ["a"]


def test_a_group_waits_for_its_message_in_flight(queue):
    queue.send_many([{"body": body, "group_id": "g"} for body in "ab"])
    [message] = queue.receive()
    assert queue.receive() == []
    message.delete()
    assert bodies(queue) == ["b"]


def test_a_receive_is_repeated_by_its_attempt_id(queue):
    queue.send_many([{"body": body, "group_id": "g"} for body in "abc"])
    first = queue.receive(2, attempt_id="try")
    again = queue.receive(2, attempt_id="try")
    assert [(one.body, one.receipt_handle, one.receive_count) for one in first] == [
        (one.body, one.receipt_handle, one.receive_count) for one in again
    ]
    again[0].delete()
    with pytest.raises(errors.InvalidParameterValue, match="not retryable"):
        queue.receive(2, attempt_id="try")


def test_dead_letters_of_a_fifo_queue_by_the_short_form(sqs, clock):
    dead = sqs.create_queue("dead.fifo", fifo=True)
    queue = sqs.create_queue("jobs.fifo", fifo=True, dead_letter_queue=dead, max_receive_count=1)
    sent = queue.send("poison", group_id="g", deduplication_id="d")
    queue.receive()
    clock.advance(30)
    assert queue.receive() == []
    [message] = dead.receive()
    assert (message.body, message.group_id, message.deduplication_id) == ("poison", "g", sent.message_id)
    assert message.dead_letter_source_arn == queue.arn


@pytest.mark.parametrize("groups", [1, 500])
def test_a_long_poll_gets_past_any_number_of_expired_messages(sqs, clock, groups):
    queue = sqs.create_queue(
        "short.fifo", fifo=True, content_based_deduplication=True, message_retention_period=60
    )
    queue.send_many({"body": f"old {number}", "group_id": f"g{number % groups}"} for number in range(3_000))
    clock.advance(59)
    queue.send("young", group_id="g0")
    clock.advance(1)
    assert bodies(queue, wait=1) == ["young"]
    assert len(queue) == 1


@pytest.mark.parametrize("groups", [1, 500])
def test_a_long_poll_gets_past_any_number_of_exhausted_messages(tmp_path, clock, groups):
    """Afterwards they are all dead letters."""
    with sqsqlite.connect(tmp_path / "native.db", clock=clock, limits="native", synchronous="NORMAL") as sqs:
        queue = sqs.create_queue("jobs.fifo", fifo=True, content_based_deduplication=True)
        dead = sqs.create_queue("dead.fifo", fifo=True)
        queue.send_many(
            {"body": f"poison {number}", "group_id": f"g{number % groups}"} for number in range(1_000)
        )
        assert len(queue.receive(1_000, visibility_timeout=0)) == 1_000
        queue.send("good", group_id=f"g{groups - 1}")
        queue.set_attributes({"RedrivePolicy": {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1}})
        assert bodies(queue, wait=1) == ["good"]
        assert (len(queue), len(dead)) == (1, 1_000)


def test_peek_looks_at_a_fifo_queue_without_receiving(queue, clock):
    queue.send_many([{"body": body, "group_id": "g"} for body in "abc"])
    seen = queue.peek()
    assert [(one.body, one.state, one.group_id) for one in seen] == [(body, "visible", "g") for body in "abc"]
    queue.receive()
    assert [one.body for one in queue.peek()] == ["b", "c"]
    assert [(one.body, one.state) for one in queue.peek(hidden=True)] == [("a", "in flight")]
    clock.advance(30)
    assert [message.receive_count for message in queue.receive(10)] == [2, 1, 1]


def test_statistics_show_which_queues_are_fifo(sqs, queue):
    queue.send_many([{"body": body, "group_id": "g"} for body in "abc"])
    queue.receive()
    [found] = sqs.stats()
    assert (found.name, bool(found.fifo)) == ("orders.fifo", True)
    assert (found.visible, found.in_flight, found.delayed) == (2, 1, 0)


# Within the caller's own transaction


def test_a_message_sent_in_a_transaction_is_there_when_it_commits(sqs, queue):
    with sqs.transaction():
        queue.send("a", group_id="g")
        queue.send_many([{"body": body, "group_id": "g"} for body in "bc"])
    assert bodies(queue) == ["a", "b", "c"]


def test_a_rolled_back_send_was_never_sent(sqs, queue):
    """Neither a message nor its deduplication id stays: the next try of the sender counts as the first."""
    with pytest.raises(Cancelled), sqs.transaction():  # noqa: PT012 - the block is the subject
        queue.send("a", group_id="g")
        raise Cancelled
    assert len(queue) == 0
    before = queue.send("before", group_id="g")
    after = queue.send("a", group_id="g")
    assert before.sequence_number < after.sequence_number
    assert bodies(queue) == ["before", "a"]


def test_a_duplicate_is_known_within_its_own_transaction(sqs, queue):
    with sqs.transaction():
        first = queue.send("a", group_id="g")
        assert queue.send("a", group_id="g") == first
    assert len(queue) == 1


def test_a_transaction_passes_a_message_from_group_to_group(sqs, queue):
    """Received, deleted and sent on by one commit, or not at all."""
    target = sqs.create_queue("shipping.fifo", fifo=True, content_based_deduplication=True)
    queue.send_many([{"body": body, "group_id": "g"} for body in "ab"])
    with pytest.raises(Cancelled), sqs.transaction():  # noqa: PT012 - the block is the subject
        [message] = queue.receive()
        target.send(message.body, group_id=message.group_id)
        message.delete()
        raise Cancelled
    assert (len(queue), len(target)) == (2, 0)
    with sqs.transaction():
        [message] = queue.receive()
        target.send(message.body, group_id=message.group_id)
        message.delete()
        assert bodies(queue, visibility_timeout=0) == ["b"]
    assert (bodies(queue), bodies(target)) == (["b"], ["a"])


def test_a_send_joins_a_sqlalchemy_connection(sqs, queue):
    with sqs.engine.connect() as connection:
        queue.send("a", group_id="g", connection=connection)
        connection.rollback()
        queue.send("a", group_id="g", connection=connection)
        queue.send("b", group_id="g", connection=connection)
        connection.commit()
    assert bodies(queue) == ["a", "b"]


# Tenants of a standard queue


def test_receives_of_a_transaction_count_for_the_turns_of_its_sends(sqs):
    queue = sqs.create_queue("orders")
    queue.send_many([{"body": f"noisy {number}", "group_id": "noisy"} for number in range(20)])
    with sqs.transaction():
        queue.receive(10)
        queue.send_many([{"body": f"quiet {number}", "group_id": "quiet"} for number in range(3)])
    assert bodies(queue)[:5] == ["quiet 0", "noisy 10", "quiet 1", "noisy 11", "quiet 2"]


def test_a_group_on_a_standard_queue_takes_turns_with_the_others(sqs):
    queue = sqs.create_queue("orders")
    queue.send_many([{"body": f"noisy {number}", "group_id": "noisy"} for number in range(5)])
    queue.send("quiet", group_id="quiet")
    queue.send("no group")
    assert bodies(queue)[:3] == ["noisy 0", "quiet", "no group"]
