# SPDX-License-Identifier: Apache-2.0
"""`dlq`: the dead letters, their sources and receive counts. It looks, and receives nothing."""

import pytest

import sqsqlite
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.operators.dead_letters import dead_letter_queues, dead_letters


def die(queue, *bodies):
    """Send messages, and receive each once more than allowed."""
    queue.send_many(bodies)
    for _ in range(3):
        queue.receive(10, visibility_timeout=0)


@pytest.fixture
def dead(sqs):
    """A dead-letter queue of two sources: two messages of `orders`, one of `mails`, one sent directly."""
    dead = sqs.create_queue("dead")
    sqs.queue("orders").set_attributes(policy(dead, 2))
    mails = sqs.create_queue("mails", dead_letter_queue=dead, max_receive_count=1)
    die(sqs.queue("orders"), "a", "b")
    die(mails, "c")
    dead.send("direct")
    return dead


def policy(dead, max_receive_count):
    return {"RedrivePolicy": {"deadLetterTargetArn": dead.arn, "maxReceiveCount": max_receive_count}}


def test_dead_letter_queues_are_listed_with_counts_by_source(run, sqs, dead):
    sqs.create_queue("idle", dead_letter_queue=dead, max_receive_count=1)
    rows = run("dlq").rows
    assert [(row["queue"], row["source"], row["messages"]) for row in rows] == [
        ("dead", "idle", 0),
        ("dead", "mails", 1),
        ("dead", "orders", 2),
        ("dead", None, 1),
    ]
    assert [row["oldest_moved_at"] is None for row in rows] == [True, False, False, True]


def test_dead_letters_are_shown_latest_move_first_with_receive_counts(run, dead):
    rows = run("dlq", "dead").rows
    assert [(row["body"], row["source"], row["receives"]) for row in rows] == [
        ("c", "mails", 1),
        ("b", "orders", 2),
        ("a", "orders", 2),
    ]
    assert all(row["moved_at"] >= row["sent_at"] for row in rows)
    assert [message.receive_count for message in dead.peek()] == [2, 2, 1, 0]


def test_dead_letters_of_one_source_are_selected_by_name_or_arn(run, sqs, dead):
    for source in ("orders", sqs.queue("orders").arn):
        assert [row["body"] for row in run("dlq", "dead", "--source", source).rows] == ["b", "a"]
    assert run("dlq", "dead", "--source", "rders").rows == []
    sqs.queue("orders").delete()
    assert [row["body"] for row in run("dlq", "dead", "--source", "orders").rows] == ["b", "a"]


def test_more_dead_letters_than_the_limit_are_mentioned(run, dead):
    ran = run("dlq", "dead", "--limit", 2)
    assert ([row["body"] for row in ran.rows], ran.err) == (
        ["c", "b"],
        "there are more than 2 messages: --limit shows more\n",
    )
    assert run("dlq", "dead", "-n", 3).err == ""


def test_tables_are_for_humans(run, dead):
    heading, first, *_ = run("dlq", "dead", "--output", "table").out.splitlines()
    assert heading.split() == ["message_id", "source", "receives", "moved", "(UTC)", "age", "body"]
    assert first.split()[1:3] + first.split()[-2:] == ["mails", "1", "0s", "c"]
    heading, *lines = run("dlq", "--output", "table").out.splitlines()
    assert heading.split()[:3] == ["queue", "source", "messages"]
    assert lines[-1].split() == ["dead", "1"]


def test_printed_dead_letters_can_be_sent_again(run, sqs, dead):
    shown = run("dlq", "dead").out
    assert run("send", "orders", "-", "--jsonl", input=shown).code == 0
    assert [message.body for message in sqs.queue("orders").peek()] == ["c", "b", "a"]


def test_a_fifo_queues_dead_letters_have_their_groups(run, sqs):
    dead = sqs.create_queue("dead.fifo", fifo=True)
    queue = sqs.create_queue(
        "orders.fifo",
        fifo=True,
        content_based_deduplication=True,
        dead_letter_queue=dead,
        max_receive_count=1,
    )
    die(queue, {"body": "a", "group_id": "blue"})
    [row] = run("dlq", "dead.fifo").rows
    assert (row["body"], row["group_id"], row["source"], row["receives"]) == ("a", "blue", "orders.fifo", 1)
    assert row["deduplication_id"] == row["message_id"]
    assert "group" in run("dlq", "dead.fifo", "--output", "table").out.splitlines()[0].split()


def test_a_file_without_dead_letters_is_reported_in_words(run, sqs):
    assert (run("dlq").out, run("dlq").err) == ("", "no dead-letter queues\n")
    dead = sqs.create_queue("dead")
    sqs.queue("orders").set_attributes(dead_letter_queue=dead, max_receive_count=1)
    assert (run("dlq", "dead").out, run("dlq", "dead").err) == ("", "dead: no dead letters\n")


def test_a_queue_that_is_not_a_dead_letter_queue_is_mentioned(run, sqs):
    sqs.queue("orders").send("alive")
    ran = run("dlq", "orders")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("orders: no queue sends its dead letters here")


def test_a_missing_dead_letter_queue_is_mentioned(run, sqs, dead):
    dead.delete()
    ran = run("dlq")
    assert [(row["queue"], row["source"], row["messages"]) for row in ran.rows] == [
        ("dead", "mails", 0),
        ("dead", "orders", 0),
    ]
    assert "orders: its dead-letter queue dead does not exist" in ran.err


def test_invalid_requests_are_explained(run, sqs, dead):
    assert run("dlq", "--source", "orders").code == 2
    for words in (["nowhere"], ["dead", "--source", "no name"]):
        ran = run("dlq", *words)
        assert (ran.code, ran.out) == (1, "")
        assert f"QueueDoesNotExist: {words[-1]}" in ran.err


def test_ages_and_moves_are_those_of_the_files_clock(path):
    """The age counts from the send. An expired message is no longer a dead letter."""
    clock = sqsqlite.ManualClock()
    with sqsqlite.connect(path, clock=clock) as sqs:
        dead = sqs.create_queue("dead", message_retention_period=60)
        queue = sqs.create_queue("orders", dead_letter_queue=dead, max_receive_count=1)
        queue.send("a")
        sent_at = clock.now_ms()
        queue.receive(visibility_timeout=0)
        clock.advance(20)
        queue.receive()
        [found] = dead_letters(sqs._store, "dead", LOCAL, 10)
        assert (found.message.sent_at, found.moved_at) == (sent_at, sent_at + 20_000)
        clock.advance(40)
        assert dead_letters(sqs._store, "dead", LOCAL, 10) == []
        [row] = dead_letter_queues(sqs._store, LOCAL)
        assert (row.source, row.messages) == ("orders", 0)
