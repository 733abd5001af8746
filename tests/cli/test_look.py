# SPDX-License-Identifier: Apache-2.0
"""`peek` and `tail` show messages without receiving them."""

import pytest

import sqsqlite
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.operators.inspect import last_messages


@pytest.fixture
def queue(sqs):
    return sqs.queue("orders")


def test_peek_shows_the_next_messages_and_changes_nothing(run, queue):
    queue.send_many(["a", "b", "c"])
    assert [row["body"] for row in run("peek", "orders", "-n", 2).rows] == ["a", "b"]
    assert [row["receive_count"] for row in run("peek", "orders").rows] == [0, 0, 0]
    assert [message.body for message in queue.receive(3)] == ["a", "b", "c"]


def test_peek_hidden_shows_delayed_messages_and_messages_in_flight(run, queue):
    queue.send_many(["a", {"body": "b", "delay": 60}, "c"])
    queue.receive()
    assert {row["body"]: row["state"] for row in run("peek", "orders", "--hidden").rows} == {
        "a": "in flight",
        "b": "delayed",
    }
    assert [row["body"] for row in run("peek", "orders").rows] == ["c"]


def test_peek_shows_a_tenants_returned_message_at_its_future_place(path):
    """It draws a new turn when a receive promotes it. Without a group it keeps its place."""
    clock = sqsqlite.ManualClock()
    with sqsqlite.connect(path, clock=clock) as sqs:
        queue = sqs.create_queue("orders")
        queue.send_many([{"body": str(number), "group_id": "noisy"} for number in range(3)])
        queue.send("alone")
        queue.receive(2, visibility_timeout=5)
        clock.advance(5)
        looked_at = [message.body for message in queue.peek()]
        assert sorted(looked_at) == ["0", "1", "2", "alone"]
        assert looked_at == [message.body for message in queue.receive(10)]


def test_an_empty_queue_is_reported_in_words(run, queue):
    ran = run("peek", "orders")
    assert (ran.code, ran.out, ran.err) == (0, "", "no visible messages\n")


def test_tail_shows_the_last_sends_in_every_state(run, queue):
    queue.send_many([str(number) for number in range(30)])
    queue.receive(10)
    assert [row["body"] for row in run("tail", "orders", "-n", 25).rows] == [
        str(number) for number in range(5, 30)
    ]
    assert [row["body"] for row in run("tail", "orders", "-n", 100).rows] == [
        str(number) for number in range(30)
    ]


@pytest.mark.parametrize("verb", ["peek", "tail"])
@pytest.mark.parametrize("number", ["0", "-1", "10001", "9" * 20])
def test_an_impossible_number_of_messages_is_a_usage_error(run, queue, verb, number):
    ran = run(verb, "orders", "-n", number)
    assert ran.code == 2
    assert "1<=x<=10000" in ran.err


def test_tail_looks_back_as_far_as_needed(path):
    """Messages sent hours apart."""
    clock = sqsqlite.ManualClock()
    with sqsqlite.connect(path, clock=clock) as sqs:
        queue = sqs.create_queue("orders")
        queue.send("old")
        clock.advance(seconds=7200)
        queue.send("new")
        for count, bodies in ((1, ["new"]), (2, ["old", "new"]), (3, ["old", "new"])):
            assert [message.body for message in last_messages(sqs._store, "orders", LOCAL, count)] == bodies


def test_tail_shows_no_expired_messages(path):
    clock = sqsqlite.ManualClock()
    with sqsqlite.connect(path, clock=clock) as sqs:
        queue = sqs.create_queue("orders", message_retention_period=60)
        queue.send("gone")
        clock.advance(seconds=60)
        queue.send("there")
        assert [message.body for message in last_messages(sqs._store, "orders", LOCAL, 9)] == ["there"]


def test_a_body_can_neither_break_a_line_nor_control_the_terminal(run, queue):
    queue.send("two\nlines\tand \x85")
    queue.send("text", attributes={"kind": "x\ny"})
    for form in ("text", "table"):
        shown = run("peek", "orders", "--output", form).out
        assert len(shown.splitlines()) == (3 if form == "table" else 2)
        assert r"two\nlines\tand \x85" in shown
