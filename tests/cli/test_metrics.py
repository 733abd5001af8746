# SPDX-License-Identifier: Apache-2.0
"""`metrics`: CloudWatch's names, in every format."""

import csv


def test_each_queue_is_an_object_with_cloudwatchs_names(run, sqs):
    queue = sqs.queue("orders")
    queue.send_many(["a", "b", "c"])
    queue.receive()[0].delete()
    [row] = run("metrics", "orders", "--output", "json").json
    assert row["QueueName"] == "orders"
    assert row["ApproximateNumberOfMessagesVisible"] == 2
    assert (row["NumberOfMessagesSent"], row["NumberOfMessagesDeleted"], row["SentMessageSize"]) == (3, 1, 3)
    assert row["ApproximateNumberOfNoisyGroups"] == 0
    assert "NumberOfDeduplicatedSentMessages" not in row


def test_queues_of_both_kinds_have_the_same_columns(run, sqs):
    sqs.create_queue("orders.fifo", fifo=True)
    standard, fifo = run("metrics").rows
    assert list(standard) == list(fifo)
    assert standard["ApproximateNumberOfGroupsWithInflightMessages"] is None
    assert fifo["ApproximateNumberOfNoisyGroups"] is None
    header, *rows = csv.reader(run("metrics", "--output", "csv").out.splitlines())
    assert header == list(standard)
    assert [row[0] for row in rows] == ["orders", "orders.fifo"]


def test_a_table_has_a_line_for_each_metric(run, sqs):
    sqs.queue("orders").send("a")
    heading, *lines = [line.split() for line in run("metrics", "--output", "table").out.splitlines()]
    assert heading == ["queue", "metric", "value"]
    assert ["orders", "ApproximateNumberOfMessagesVisible", "1"] in lines
    assert {line[0] for line in lines} == {"orders"}


def test_metrics_of_some_queues_can_be_selected(run, sqs):
    ran = run("metrics", "orders", "--query", "[0].NumberOfMessagesSent", "--output", "json")
    assert (ran.code, ran.out) == (0, "0\n")


def test_a_missing_queue_is_an_error(run, sqs):
    ran = run("metrics", "ordesr")
    assert (ran.code, ran.out) == (1, "")
    assert "QueueDoesNotExist: ordesr" in ran.err
