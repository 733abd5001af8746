# SPDX-License-Identifier: Apache-2.0
"""The everyday commands on FIFO queues, and on standard ones with groups."""

import pytest


@pytest.fixture
def fifo(run, sqs):
    """A queue with three messages of two groups."""
    assert run("create", "orders.fifo", "-a", "ContentBasedDeduplication=true").code == 0
    for group, body in (("blue", "a"), ("red", "b"), ("blue", "c")):
        assert run("send", "orders.fifo", body, "--group", group).code == 0
    return sqs.queue("orders.fifo")


def test_a_name_that_ends_in_fifo_creates_a_fifo_queue(run, sqs):
    for words in (["create", "one.fifo"], ["create", "one.fifo", "-a", "FifoQueue=true"]):
        assert run(*words).code == 0
    assert sqs.queue("one.fifo").attributes["FifoQueue"] == "true"
    assert run("create", "orders", "-a", "FifoQueue=true").code == 1


def test_what_only_a_fifo_queue_can_have_is_refused_with_a_hint(run, path):
    for words in (
        ["--queue-name", "one.fifo"],
        ["--queue-name", "one", "--attributes", "DeduplicationScope=queue"],
    ):
        refused = run("create-queue", *words)
        assert refused.code == 1
        assert refused.err.endswith("--attributes FifoQueue=true makes one\n")
    refused = run("create", "one", "-a", "ContentBasedDeduplication=true")
    assert (refused.code, "ends in .fifo" in refused.err) == (1, True)
    refused = run("create-queue", "--queue-name", "no name")
    assert (refused.code, "hint" in refused.err) == (1, False)


def test_send_creates_a_fifo_queue_too(run, sqs):
    words = ["--create", "--group", "g", "--deduplication-id", "1"]
    assert run("send", "new.fifo", "a", *words).rows[0]["sequence_number"] is not None
    assert run("send", "new.fifo", "b", *words).code == 0
    assert [message.body for message in sqs.queue("new.fifo").peek()] == ["a"]


def test_a_deduplication_id_for_all_lines_of_the_input_is_refused(run, fifo):
    for form in ([], ["--jsonl"], ["--nul"]):
        refused = run("send", "orders.fifo", "-", "--group", "g", "--deduplication-id", "1", *form, input="")
        assert refused.code == 2
        assert "duplicates" in refused.err
    whole = run(
        "send", "orders.fifo", "-", "--raw", "--group", "g", "--deduplication-id", "1", input="a\nb\n"
    )
    assert (whole.code, len(fifo)) == (0, 4)


def test_messages_show_group_sequence_number_and_deduplication_id(run, fifo):
    """`peek` and `receive` show the same messages."""
    names = ("message_id", "group_id", "deduplication_id", "sequence_number")
    looked_at = [[row[name] for name in names] for row in run("peek", "orders.fifo").rows]
    assert [row[1] for row in looked_at] == ["blue", "red", "blue"]
    assert [len(row[2]) for row in looked_at] == [64, 64, 64]
    assert sorted(row[3] for row in looked_at) == [row[3] for row in looked_at]
    assert [[row[name] for name in names] for row in run("tail", "orders.fifo").rows] == looked_at
    received = [[row[name] for name in names] for row in run("receive", "orders.fifo", "-n", 10).rows]
    assert sorted(received, key=lambda row: row[3]) == looked_at


@pytest.mark.parametrize("verb", ["peek", "tail", "receive"])
def test_tables_show_the_group(run, fifo, verb):
    heading, first, *_ = [
        line.split() for line in run(verb, "orders.fifo", "--output", "table").out.splitlines()
    ]
    assert heading[-2:] == ["group", "body"]
    assert first[-2:] == ["blue", "a"]


@pytest.mark.parametrize("verb", ["peek", "tail", "receive"])
def test_tables_of_a_standard_queue_show_groups_where_there_are_any(run, sqs, verb):
    sqs.queue("orders").send("a")
    heading = run(verb, "orders", "--output", "table").out.splitlines()[0].split()
    assert "group" not in heading
    sqs.queue("orders").send("b", group_id="tenant")
    heading, *_, last = run(verb, "orders", "--output", "table").out.splitlines()
    assert heading.split()[-2:] == ["group", "body"]
    assert last.split()[-2:] == ["tenant", "b"]


def test_peek_shows_messages_behind_one_in_flight_as_visible(run, fifo):
    assert [message.body for message in fifo.receive(1)] == ["a"]
    assert [(row["body"], row["state"]) for row in run("peek", "orders.fifo").rows] == [
        ("b", "visible"),
        ("c", "visible"),
    ]
    assert [row["body"] for row in run("peek", "orders.fifo", "--hidden").rows] == ["a"]


def test_follow_shows_messages_in_order_of_sending(fifo):
    followed = fifo.follow(2)
    assert [next(followed).body for _ in range(2)] == ["b", "c"]
    fifo.send("d", group_id="red")
    assert next(followed).body == "d"


def test_a_command_per_message_gets_a_group_in_order(run, fifo, tmp_path):
    """Each message is deleted before the next one of its group is received."""
    ran = run("receive", "orders.fifo", "-n", 10, "--exec", "echo $SQSQLITE_GROUP_ID $(cat) >> seen")
    assert ran.code == 0
    seen = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    assert [body for group, body in seen if group == "blue"] == ["a", "c"]
    assert len(seen) == 3


def test_a_receive_gets_ten_of_a_group_and_a_command_all(run, sqs, tmp_path):
    queue = sqs.create_queue("long.fifo", fifo=True, content_based_deduplication=True)
    queue.send_many([{"body": str(number), "group_id": "g"} for number in range(15)])
    received = run("receive", "long.fifo", "-n", 15, "--visibility-timeout", 600)
    assert [row["body"] for row in received.rows] == [str(number) for number in range(10)]
    other = sqs.create_queue("other.fifo", fifo=True, content_based_deduplication=True)
    other.send_many([{"body": f"{number}\n", "group_id": "g"} for number in range(15)])
    assert run("receive", "other.fifo", "-n", 15, "--exec", "cat >> seen").code == 0
    assert (tmp_path / "seen").read_text().split() == [str(number) for number in range(15)]


def test_peek_shows_tenants_in_order_of_service(run, sqs):
    """One tenant's backlog does not come before another's only message."""
    queue = sqs.queue("orders")
    queue.send_many([{"body": f"noisy {number}", "group_id": "noisy"} for number in range(3)])
    queue.send("quiet", group_id="quiet")
    looked_at = [row["body"] for row in run("peek", "orders").rows]
    assert looked_at == [message.body for message in queue.receive(10)]
    assert looked_at.index("quiet") < 2


def test_peek_shows_a_returned_message_of_a_tenant_last(run, sqs):
    queue = sqs.queue("orders")
    queue.send_many([{"body": f"noisy {number}", "group_id": "noisy"} for number in range(3)])
    queue.receive(visibility_timeout=0)
    looked_at = [row["body"] for row in run("peek", "orders").rows]
    assert looked_at == [message.body for message in queue.receive(10)]


def test_counts_and_activity_are_shown(run, fifo):
    fifo.receive(1)
    [row] = run("stats", "orders.fifo").rows
    assert (row["visible"], row["in_flight"], row["sent"], row["received"]) == (2, 1, 3, 1)
    assert [row["queue"] for row in run("queues").rows] == ["orders", "orders.fifo"]
    assert run("purge", "orders.fifo", "--yes").code == 0
    assert len(fifo) == 0
    assert run("delete", "orders.fifo", "--yes").code == 0
