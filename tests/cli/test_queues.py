# SPDX-License-Identifier: Apache-2.0
"""Queues from the shell: list, create, purge, delete, and the commands that ask first."""

import json

import pytest

import sqsqlite
from sqsqlite.cli import command_line


@pytest.fixture
def terminal(monkeypatch):
    """A human at the terminal."""

    class Streams:
        stdin = stderr = type("Stream", (), {"isatty": staticmethod(lambda: True)})

    monkeypatch.setattr(command_line, "sys", Streams)


def test_queues_are_listed_with_their_counts(run, sqs):
    queue = sqs.queue("orders")
    queue.send_many(["a", "b", {"body": "c", "delay": 60}])
    queue.receive()
    sqs.create_queue("other")
    listed = run("queues").rows
    assert [(row["queue"], row["visible"], row["in_flight"], row["delayed"]) for row in listed] == [
        ("orders", 1, 1, 1),
        ("other", 0, 0, 0),
    ]
    assert [row["queue"] for row in run("queues", "oth").rows] == ["other"]
    assert run("queues", "x").err == "no queue's name begins with 'x'\n"


def test_create_makes_a_queue_with_its_options(run, path):
    run("create", "failed")
    words = [
        "-a",
        "VisibilityTimeout=60",
        "--tag",
        "team=sales",
        "--dead-letter-queue",
        "failed",
        "--max-receive-count",
        5,
    ]
    assert run("create", "orders", *words).code == 0
    with sqsqlite.connect(path) as sqs:
        queue = sqs.queue("orders")
        assert (queue.attributes["VisibilityTimeout"], queue.tags) == ("60", {"team": "sales"})
        assert '"maxReceiveCount":5' in queue.attributes["RedrivePolicy"]
    assert {row["queue"]: row["dead_letter_queue"] for row in run("queues").rows} == {
        "failed": None,
        "orders": "failed",
    }


def test_create_again_is_no_error_unless_an_attribute_differs(run):
    assert run("create", "q", "-a", "DelaySeconds=5").code == 0
    assert run("create", "q", "-a", "DelaySeconds=5").code == 0
    refused = run("create", "q", "-a", "DelaySeconds=6")
    assert (refused.code, refused.err.partition(":")[0]) == (1, "QueueNameExists")
    assert run("create", "q", "-a", "DelaySeconds").code == 2


def test_a_receive_count_without_a_dead_letter_queue_is_a_usage_error(run, path):
    refused = run("create", "q", "--max-receive-count", 5)
    assert refused.code == 2
    assert "--max-receive-count needs --dead-letter-queue" in refused.err
    assert not path.exists()


def test_a_receive_count_is_checked_by_the_request(run):
    run("create", "failed")
    refused = run("create", "q", "--dead-letter-queue", "failed", "--max-receive-count", 1001)
    assert refused.code == 1
    assert "maxReceiveCount" in refused.err
    assert [row["queue"] for row in run("queues").rows] == ["failed"]


def test_create_takes_the_usual_attributes_as_options(run, path):
    words = (
        "--visibility-timeout 60 --delay-seconds 5 --message-retention-period 90 --maximum-message-size 2048"
    )
    more = "--receive-message-wait-time-seconds 7 --content-based-deduplication true"
    assert run("create", "q.fifo", *words.split(), *more.split()).code == 0
    with sqsqlite.connect(path) as sqs:
        found = sqs.queue("q.fifo").attributes
    assert [found[name] for name in ("VisibilityTimeout", "DelaySeconds", "MessageRetentionPeriod")] == [
        "60",
        "5",
        "90",
    ]
    assert [found[name] for name in ("MaximumMessageSize", "ContentBasedDeduplication")] == ["2048", "true"]
    assert found["ReceiveMessageWaitTimeSeconds"] == "7"


def test_create_with_other_values_names_what_changes_a_queue(run):
    run("create", "q")
    assert "sqsqlite set q" in run("create", "q", "--delay-seconds", 5).err


def test_set_changes_the_given_attributes_alone(run, sqs):
    queue = sqs.queue("orders")
    sqs.create_queue("failed")
    queue.set_attributes(visibility_timeout=7)
    words = ["--delay-seconds", 5, "-a", "MaximumMessageSize=2048", "--tag", "team=sales"]
    ran = run("set", queue.arn, *words, "--dead-letter-queue", "failed", "--max-receive-count", 5)
    assert (ran.code, ran.out, ran.err) == (0, "", "orders: set\n")
    found = queue.attributes
    assert [found[name] for name in ("VisibilityTimeout", "DelaySeconds", "MaximumMessageSize")] == [
        "7",
        "5",
        "2048",
    ]
    assert (queue.tags, '"maxReceiveCount":5' in found["RedrivePolicy"]) == ({"team": "sales"}, True)


def test_set_changes_the_dead_letter_queue_and_its_count_independently(run, sqs):
    queue, failed, other = sqs.queue("orders"), sqs.create_queue("failed"), sqs.create_queue("other")

    def policy():
        return json.loads(queue.attributes["RedrivePolicy"])

    run("set", "orders", "--dead-letter-queue", "failed")
    assert policy() == {"deadLetterTargetArn": failed.arn, "maxReceiveCount": 3}
    run("set", "orders", "--max-receive-count", 5)
    assert policy() == {"deadLetterTargetArn": failed.arn, "maxReceiveCount": 5}
    run("set", "orders", "--dead-letter-queue", "other")
    assert policy() == {"deadLetterTargetArn": other.arn, "maxReceiveCount": 5}
    assert run("set", "orders", "-a", "RedrivePolicy=").code == 0
    assert "RedrivePolicy" not in queue.attributes


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["orders"], 2, "give at least one"),
        (["orders", "--max-receive-count", 5], 2, "orders does not have one"),
        (["orders", "--visibility-timeout", 5, "-a", "VisibilityTimeout=6"], 2, "given twice"),
        (["orders", "--tag", "x=y", "--visibility-timeout", 43_201], 1, "VisibilityTimeout"),
        (["orders", "--delay-seconds", 5, "--tag", "aws:x=y"], 1, "InvalidParameterValue"),
        (["orders", "--dead-letter-queue", "nosuch"], 1, "QueueDoesNotExist: nosuch"),
        (["nosuch", "--delay-seconds", 5], 1, "QueueDoesNotExist: nosuch: no such queue in"),
    ],
    ids=lambda part: " ".join(map(str, part)) if isinstance(part, list) else "",
)
def test_set_sets_all_or_nothing(run, sqs, words, code, text):
    queue = sqs.queue("orders")
    before = queue.attributes
    refused = run("set", *words)
    assert (refused.code, text in refused.err) == (code, True), refused.err
    assert (queue.attributes, queue.tags) == (before, {})


@pytest.mark.parametrize("verb", ["purge", "delete"])
def test_without_a_terminal_nothing_is_destroyed_unless_yes_is_given(run, sqs, verb):
    sqs.queue("orders").send_many(["a", "b"])
    refused = run(verb, "orders")
    assert refused.code == 2
    assert "2 messages" in refused.err
    assert len(sqs.queue("orders")) == 2
    assert run(verb, "orders", "--yes").code == 0
    assert sum(row["visible"] for row in run("queues").rows) == 0


@pytest.mark.parametrize("verb", ["purge", "delete"])
def test_a_dry_run_prints_its_plan_and_changes_nothing(run, sqs, verb):
    sqs.queue("orders").send_many(["a"] * 1234)
    ran = run(verb, "orders", "--dry-run")
    assert (ran.code, ran.out) == (0, "")
    assert "1,234 messages" in ran.err
    assert len(sqs.queue("orders")) == 1234


@pytest.mark.parametrize(
    ("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 1), ("\n", 1, 1), ("", 130, 1)]
)
def test_the_question_at_a_terminal_shows_the_count(run, sqs, terminal, answer, code, left):
    sqs.queue("orders").send("a")
    ran = run("purge", "orders", input=answer)
    assert ran.code == code
    assert "purge 1 message from orders?" in ran.err
    assert len(sqs.queue("orders")) == left


def test_delete_removes_the_queue(run, sqs):
    assert run("delete", "orders", "--yes").code == 0
    assert run("queues").rows == []
    assert run("delete", "orders", "--yes").err.partition(":")[0] == "QueueDoesNotExist"


def test_delete_warns_of_the_sources_of_a_dead_letter_queue(run, sqs, terminal):
    dead = sqs.create_queue("dead")
    for name in ("mails", "orders"):
        sqs.create_queue(name).set_attributes(dead_letter_queue=dead, max_receive_count=1)
    ran = run("delete", "dead", input="n\n")
    assert (ran.code, "delete dead with 0 messages, the dead-letter queue of mails, orders?" in ran.err) == (
        1,
        True,
    )
    assert run("delete", "dead", "--dry-run").err.endswith("the dead-letter queue of mails, orders\n")
    assert "dead-letter queue" not in run("delete", "orders", "--dry-run").err
    assert run("delete", "dead", "--yes").code == 0
