# SPDX-License-Identifier: Apache-2.0
"""In a caller's transaction a settle either settles or raises, so the rows of a late worker are rolled back."""

import pickle

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

import sqsqlite
from sqsqlite.errors import (
    InvalidParameterValue,
    LeaseLost,
    MessageNotInflight,
    ReceiptHandleIsInvalid,
    SQSError,
    StoreError,
    UnsettledBatch,
)
from tests.store.inspection import assert_whole, bodies, rows

RESULTS = "SELECT item FROM orders ORDER BY id"


@pytest.fixture(params=["docs", "aws"])
def compat(request):
    return request.param


@pytest.fixture
def sqs(path, clock, compat):
    with sqsqlite.connect(path, clock=clock, compat=compat, synchronous="OFF") as opened:
        with opened.transaction() as connection:
            connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)")
        yield opened


@pytest.fixture(params=["standard", "fifo"])
def queue(request, sqs):
    """A queue with a dead-letter queue, whose third receive returns a message."""
    fifo = request.param == "fifo"
    ending = ".fifo" if fifo else ""
    failed = sqs.create_queue(f"failed{ending}", fifo=fifo)
    return sqs.create_queue(
        f"work{ending}", fifo=fifo, visibility_timeout=30, dead_letter_queue=failed, max_receive_count=2
    )


def send(queue, body):
    if queue.name.endswith(".fifo"):
        queue.send(body, group_id=body, deduplication_id=body)
    else:
        queue.send(body)


def receive_one(queue, body="work"):
    send(queue, body)
    [message] = queue.receive()
    return message


def gone(queue, clock):
    """Another worker has done the work."""
    clock.advance(seconds=31)
    [again] = queue.receive(10)
    again.delete()


def purged(queue, clock):
    queue.purge()


def replaced(queue, clock):
    clock.advance(seconds=31)
    assert len(queue.receive()) == 1


def ended(queue, clock):
    clock.advance(seconds=31)


def moved(queue, clock):
    for left in (1, 0):
        clock.advance(seconds=31)
        assert len(queue.receive()) == left


def redriven(queue, clock):
    """A redriven message is a new one, so the old handle's message is gone."""
    moved(queue, clock)
    task = sqsqlite.Queue(queue._store, queue.name.replace("work", "failed")).start_move_task()
    assert task.wait(timeout=60).moved_count == 1
    assert len(queue.receive()) == 1


LATE = [
    pytest.param(gone, "gone", id="gone"),
    pytest.param(purged, "gone", id="purged"),
    pytest.param(replaced, "replaced", id="replaced"),
    pytest.param(ended, "ended", id="ended"),
    pytest.param(moved, "moved", id="moved"),
    pytest.param(redriven, "gone", id="redriven"),
]


def note(connection, item):
    connection.execute("INSERT INTO orders (item) VALUES (?)", (item,))


def delete(sqs, queue, message):
    message.delete()


def change(sqs, queue, message):
    message.change_visibility(60)


def client_delete(sqs, queue, message):
    sqs.client.delete_message(QueueUrl=queue.url, ReceiptHandle=message.receipt_handle)


def client_change(sqs, queue, message):
    sqs.client.change_message_visibility(
        QueueUrl=queue.url, ReceiptHandle=message.receipt_handle, VisibilityTimeout=60
    )


def delete_many(sqs, queue, message):
    queue.delete_many([message])


def pipeline(sqs, queue, message):
    sqs.queue("out").send("next step")
    message.delete()


@pytest.mark.parametrize(
    "settle",
    [delete, change, client_delete, client_change, delete_many, pipeline],
    ids=lambda one: one.__name__,
)
@pytest.mark.parametrize(("lose", "reason"), LATE)
def test_late_settle_raises_and_the_block_rolls_back(sqs, queue, clock, compat, lose, reason, settle):
    out = sqs.create_queue("out")
    message = receive_one(queue)
    lose(queue, clock)
    with pytest.raises(LeaseLost) as caught, sqs.transaction() as connection:  # noqa: PT012 - the block is the subject
        note(connection, "a second time")
        settle(sqs, queue, message)
    error = caught.value
    assert error.reason == reason
    assert isinstance(error, (InvalidParameterValue, MessageNotInflight))
    if reason == "gone":
        assert isinstance(error, InvalidParameterValue)
        assert "Message does not exist" in error.message
    elif settle in (change, client_change) and compat == "docs":
        assert error.code == error.query_code == "MessageNotInflight" or error.query_code.endswith(
            "NotInflight"
        )
    else:
        assert error.response["Error"]["Code"] == "InvalidParameterValue"
    assert rows(sqs, RESULTS) == []
    assert len(out) == 0
    assert_whole(sqs)


@pytest.mark.parametrize(("lose", "reason"), LATE)
def test_late_settle_of_an_engine_transaction_raises(sqs, queue, clock, lose, reason):
    message = receive_one(queue)
    lose(queue, clock)
    for settle in (
        lambda session: message.delete(connection=session),
        lambda session: message.change_visibility(60, connection=session),
        lambda session: queue.delete_many([message], connection=session),
    ):
        with pytest.raises(LeaseLost) as caught, Session(sqs.engine) as session, session.begin():  # noqa: PT012
            session.execute(text("INSERT INTO orders (item) VALUES ('a second time')"))
            settle(session)
        assert caught.value.reason == reason
    assert rows(sqs, RESULTS) == []


@pytest.mark.parametrize(("lose", "reason"), [late for late in LATE if late.id != "purged"])
@pytest.mark.parametrize("action", ["delete", "change"])
def test_late_batch_fails_in_its_answer_and_the_block_does_not_commit(
    sqs, queue, clock, lose, reason, action
):
    late, message = receive_one(queue, "late"), receive_one(queue, "current")
    message.change_visibility(600)
    lose(queue, clock)

    def batch():
        entries = [
            {"Id": str(n), "ReceiptHandle": one.receipt_handle} for n, one in enumerate([late, message])
        ]
        if action == "delete":
            return sqs.client.delete_message_batch(QueueUrl=queue.url, Entries=entries)
        entries = [{**entry, "VisibilityTimeout": 60} for entry in entries]
        return sqs.client.change_message_visibility_batch(QueueUrl=queue.url, Entries=entries)

    with pytest.raises(UnsettledBatch, match="accept_unsettled") as caught, sqs.transaction() as connection:  # noqa: PT012
        note(connection, "a second time")
        answer = batch()
    assert [entry["Id"] for entry in answer["Failed"]] == ["0"]
    assert [entry["Id"] for entry in answer["Successful"]] == ["1"]
    assert isinstance(caught.value, LeaseLost)
    assert caught.value.reason == reason
    assert rows(sqs, RESULTS) == []

    with sqs.transaction() as connection:  # the same by a caller that checks the answer
        answer = batch()
        [failure] = sqs.accept_unsettled()
        assert (failure.reason, failure.query_code) == (reason, answer["Failed"][0]["Code"])
        note(connection, "the current one alone")
    assert rows(sqs, RESULTS) == [("the current one alone",)]
    assert_whole(sqs)


def test_batch_entry_refused_otherwise_keeps_the_block_from_committing(sqs, queue):
    message = receive_one(queue)
    with pytest.raises(UnsettledBatch) as caught, sqs.transaction():
        sqs.client.change_message_visibility_batch(
            QueueUrl=queue.url,
            Entries=[
                {"Id": "a", "ReceiptHandle": message.receipt_handle, "VisibilityTimeout": 99_999},
                {"Id": "b", "ReceiptHandle": "never issued", "VisibilityTimeout": 1},
            ],
        )
    assert caught.value.reason == "invalid"
    assert [type(one) for one in caught.value.failures] == [InvalidParameterValue, ReceiptHandleIsInvalid]


def test_accepting_covers_what_failed_so_far(sqs, queue, clock):
    message = receive_one(queue)
    ended(queue, clock)
    entry = {"Id": "a", "ReceiptHandle": message.receipt_handle}
    with pytest.raises(UnsettledBatch), sqs.transaction():  # noqa: PT012
        sqs.client.delete_message_batch(QueueUrl=queue.url, Entries=[entry])
        assert len(sqs.accept_unsettled()) == 1
        sqs.client.delete_message_batch(QueueUrl=queue.url, Entries=[entry])
    with sqs.transaction():
        assert sqs.accept_unsettled() == []
    with pytest.raises(StoreError, match="inside"):
        sqs.accept_unsettled()


def test_the_caller_may_catch_a_late_settle_and_commit(sqs, queue, clock):
    message = receive_one(queue)
    gone(queue, clock)
    with sqs.transaction() as connection:
        try:
            message.delete()
        except LeaseLost:
            note(connection, "was late")
    assert rows(sqs, RESULTS) == [("was late",)]


@pytest.mark.parametrize(("lose", "reason"), LATE)
def test_missing_ok_ignores_missing_messages_alone(sqs, queue, clock, lose, reason):
    message = receive_one(queue)
    lose(queue, clock)
    for settle in (message.delete, lambda **options: queue.delete_many([message], **options)):
        if reason == "gone":
            with sqs.transaction() as connection:
                settle(missing_ok=True)
                note(connection, "known to be done")
        else:
            with pytest.raises(LeaseLost), sqs.transaction():
                settle(missing_ok=True)
    assert rows(sqs, RESULTS) == [("known to be done",)] * (2 if reason == "gone" else 0)


def test_a_message_settles_during_its_lease(sqs, queue, clock):
    first, second, third = (receive_one(queue, body) for body in ("a", "b", "c"))
    with sqs.transaction() as connection:
        first.change_visibility(60)
        clock.advance(seconds=40)
        first.delete()
        note(connection, "a")
    clock.advance(seconds=31)
    assert sorted(message.body for message in queue.receive(10)) == ["b", "c"]
    assert rows(sqs, RESULTS) == [("a",)]
    del second, third
    assert_whole(sqs)


def test_second_delete_in_one_block_finds_the_message_gone(sqs, queue):
    message = receive_one(queue)
    with pytest.raises(LeaseLost), sqs.transaction():  # noqa: PT012
        message.delete()
        message.delete()
    with sqs.transaction():
        message.delete()
    assert len(queue) == 0


def test_block_repeated_after_its_commit_held_raises(sqs, queue):
    """After CommitInDoubt the same worker tries again: a gone message proves that its own commit succeeded."""
    message = receive_one(queue)

    def work():
        with sqs.transaction() as connection:
            note(connection, "work")
            message.delete()

    work()
    with pytest.raises(LeaseLost) as caught:
        work()
    assert caught.value.reason == "gone"
    assert rows(sqs, RESULTS) == [("work",)]


def test_delete_many_deletes_all_or_none(sqs, queue, clock, compat):
    late = receive_one(queue, "late")
    clock.advance(seconds=31)
    [again] = queue.receive()
    kept = [receive_one(queue, f"m{number}") for number in range(12)]
    with sqs.transaction() as connection:
        with pytest.raises(LeaseLost, match="message 12: ") as caught:
            queue.delete_many([*kept, late])
        assert caught.value.reason == "replaced"
        assert len(queue) == 13
        queue.delete_many([*kept[:2], kept[0], again.receipt_handle])
        note(connection, "three")
    assert (len(queue), rows(sqs, RESULTS)) == (10, [("three",)])
    assert_whole(sqs)
    if compat == "docs" or queue.name.endswith(".fifo"):
        other = receive_one(queue, "other")
        clock.advance(seconds=31)
        with pytest.raises(InvalidParameterValue, match="message 0: "):
            queue.delete_many([other])
        assert len(queue) == 11
        queue.purge()
    assert_whole(sqs)


def test_delete_many_outside_a_transaction_is_sqs_s_delete(sqs, queue, clock):
    """A missing message is not an error, and the limit of ten does not apply."""
    first = receive_one(queue, "first")
    first.delete()
    others = [receive_one(queue, f"m{number}") for number in range(25)]
    queue.delete_many(message for message in [first, *others])
    queue.delete_many([])
    assert len(queue) == 0
    assert_whole(sqs)


def test_delete_many_refuses_other_objects_than_messages(sqs, queue):
    message = receive_one(queue)
    with pytest.raises(TypeError, match="iterable"):
        queue.delete_many(message)
    with pytest.raises(TypeError, match="iterable"):
        queue.delete_many(message.receipt_handle)
    with pytest.raises(TypeError, match="message 1 is 5"):
        queue.delete_many([message, 5])
    with pytest.raises(ReceiptHandleIsInvalid, match="message 1: "):
        queue.delete_many([message, "never issued"])
    with pytest.raises(ReceiptHandleIsInvalid, match="not valid for this queue"):
        sqs.create_queue("other").delete_many([message])
    assert len(queue) == 1


def test_an_expired_message_can_be_deleted_during_its_lease(sqs, clock):
    queue = sqs.create_queue("short", message_retention_period=60, visibility_timeout=600)
    one, two = receive_one(queue, "one"), receive_one(queue, "two")
    with sqs.transaction():
        clock.advance(seconds=61)  # In the block: before it, upkeep may have swept the messages away.
        one.delete()
        queue.delete_many([two])
    assert bodies(queue) == []
    assert_whole(sqs)


def test_outside_a_transaction_settles_are_as_lenient_as_sqs(sqs, queue, clock, compat):
    message = receive_one(queue)
    gone(queue, clock)
    message.delete()
    answer = sqs.client.delete_message_batch(
        QueueUrl=queue.url, Entries=[{"Id": "a", "ReceiptHandle": message.receipt_handle}]
    )
    assert [entry["Id"] for entry in answer["Successful"]] == ["a"]
    late = receive_one(queue, "late")
    ended(queue, clock)
    if compat == "aws" and not queue.name.endswith(".fifo"):
        late.change_visibility(60)
        late.delete()
        assert len(queue) == 0
    else:
        with pytest.raises(InvalidParameterValue, match="expired") as caught:
            late.delete()
        assert isinstance(caught.value, LeaseLost)
        assert caught.value.reason == "ended"


def test_errors_travel_between_processes(sqs, queue, clock):
    message = receive_one(queue)
    ended(queue, clock)
    with pytest.raises(LeaseLost) as lost, sqs.transaction():
        message.delete()
    entry = {"Id": "a", "ReceiptHandle": message.receipt_handle}
    with pytest.raises(UnsettledBatch) as unsettled, sqs.transaction():
        sqs.client.delete_message_batch(QueueUrl=queue.url, Entries=[entry])
    for error in (lost.value, unsettled.value):
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), copied.reason, str(copied)) == (type(error), "ended", str(error))
        assert isinstance(copied, SQSError)
    assert sqs.client.exceptions.LeaseLost is LeaseLost
