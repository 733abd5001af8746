# SPDX-License-Identifier: Apache-2.0
"""Queues: create, find, list, delete, purge."""

import re

import pytest

from tests.behaviour.bound_queue import BoundQueue, without_metadata
from tests.behaviour.refusals import INVALID, MISSING, NO_SUCH_QUEUE, out_of_range, refused

BAD_NAME = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
RECENTLY = "You must wait 60 seconds after deleting a queue before you can create another with the same name."


def test_a_new_queues_url_ends_in_account_and_name(sqs):
    answer = sqs.create_queue(QueueName="orders")
    assert answer["QueueUrl"].endswith("/000000000000/orders")
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


@pytest.mark.rule("queue.1")
@pytest.mark.parametrize("name", ["a", "A-b_9", "x" * 80])
def test_a_name_has_1_to_80_letters_digits_hyphens_and_underscores(sqs, name):
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    assert sqs.list_queues()["QueueUrls"] == [url]


@pytest.mark.rule("queue.2", "queue.3")
@pytest.mark.parametrize("name", ["", "x" * 81, "a b", "a/b", "a.b", "ö", "orders.fifo"])
def test_any_other_name_is_refused(sqs, name):
    """Also `.fifo` without FifoQueue."""
    with refused(sqs, INVALID, BAD_NAME):
        sqs.create_queue(QueueName=name)


@pytest.mark.rule("queue.4")
@pytest.mark.parametrize("name", ["orders", ".fifo", "a b.fifo", "x" * 76 + ".fifo"])
def test_a_fifo_queues_name_ends_in_fifo_and_has_80_characters_with_it(sqs, name):
    with refused(
        sqs,
        INVALID,
        "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with "
        ".fifo suffix and be 1 to 80 in length.",
    ):
        sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})


@pytest.mark.rule("queue.5")
def test_names_differ_by_letter_case(make_queue):
    """Queue names and URLs are case-sensitive."""
    small, capital = make_queue("orders"), make_queue("Orders")
    small.send("for the small one")
    assert capital.receive() == []
    assert small.bodies() == ["for the small one"]


@pytest.mark.rule("queue.7")
def test_creating_a_queue_again_gives_its_url_and_leaves_its_messages(queue):
    queue.send("kept")
    assert queue.client.create_queue(QueueName="q")["QueueUrl"] == queue.url
    assert queue.bodies() == ["kept"]


@pytest.mark.rule("queue.8", "queue.9", "error.2")
def test_creating_again_compares_the_attributes_supplied_with_the_current_ones(queue):
    """After SetQueueAttributes the new values count. Omitted attributes are not compared."""
    queue.set(VisibilityTimeout=60, DelaySeconds=5)
    assert BoundQueue.create(queue.client, VisibilityTimeout=60).url == queue.url
    with refused(
        queue.client,
        "QueueNameExists",
        "A queue already exists with the same name and a different value for attribute VisibilityTimeout",
    ):
        BoundQueue.create(queue.client, DelaySeconds=5, VisibilityTimeout=30)


@pytest.mark.rule("queue.10")
def test_a_refused_creation_changes_nothing(make_queue):
    queue = make_queue(VisibilityTimeout=60)
    before = queue.attributes("All")
    with refused(queue.client, "QueueNameExists", re.compile("attribute VisibilityTimeout$")):
        make_queue(VisibilityTimeout=61, DelaySeconds=7)
    assert queue.attributes("All") == before


@pytest.mark.rule("queue.11")
def test_tags_are_not_compared_when_a_queue_is_created_again(sqs):
    first = sqs.create_queue(QueueName="q", tags={"team": "blue"})["QueueUrl"]
    assert sqs.create_queue(QueueName="q", tags={"team": "red"})["QueueUrl"] == first
    assert sqs.list_queue_tags(QueueUrl=first)["Tags"] == {"team": "blue"}


@pytest.mark.rule("queue.12")
def test_a_queue_is_found_by_name(queue):
    assert queue.client.get_queue_url(QueueName="q")["QueueUrl"] == queue.url
    owner = {"QueueOwnerAWSAccountId": "000000000000"}
    assert queue.client.get_queue_url(QueueName="q", **owner)["QueueUrl"] == queue.url


@pytest.mark.rule("queue.13", "queue.14", "queue.15", "error.1", "error.11")
def test_an_unknown_name_is_a_missing_queue(queue):
    with refused(queue.client, "QueueDoesNotExist", NO_SUCH_QUEUE):
        queue.client.get_queue_url(QueueName="Q")
    with refused(queue.client, "QueueDoesNotExist", NO_SUCH_QUEUE):
        queue.client.get_queue_url(QueueName="q", QueueOwnerAWSAccountId="111111111111")
    with refused(queue.client, MISSING, "The request must contain the parameter QueueName."):
        queue.client.get_queue_url(QueueName="")


@pytest.mark.rule("queue.16", "queue.17", "queue.18")
@pytest.mark.parametrize(
    "address",
    [
        "q",
        "arn:aws:sqs:us-east-1:000000000000:q",
        "https://sqs.us-east-1.amazonaws.com/000000000000/q",
        "https://queue.amazonaws.com/000000000000/q",
        "http://localhost:4566/000000000000/q",
        "http://localhost:4566/queue/us-east-1/000000000000/q",
        "http://sqs.us-east-1.localhost:4566/000000000000/q",
    ],
)
def test_a_queue_is_known_by_name_arn_and_any_hosts_url(queue, address):
    """The host does not matter: account and name find the queue."""
    queue.client.send_message(QueueUrl=address, MessageBody="there")
    assert queue.bodies() == ["there"]


@pytest.mark.rule("queue.19")
@pytest.mark.parametrize("url", ["http://localhost:9324/000000000000/nobody", "not a name"])
@pytest.mark.parametrize(
    ("action", "params"),
    [
        ("send_message", {"MessageBody": ""}),
        ("send_message_batch", {"Entries": []}),
        ("receive_message", {"MaxNumberOfMessages": 11}),
        ("delete_message", {"ReceiptHandle": "x"}),
        ("change_message_visibility", {"ReceiptHandle": "x", "VisibilityTimeout": -1}),
        ("get_queue_attributes", {"AttributeNames": ["Nothing"]}),
        ("set_queue_attributes", {"Attributes": {"Nothing": "1"}}),
        ("purge_queue", {}),
        ("delete_queue", {}),
        ("list_queue_tags", {}),
        ("tag_queue", {"Tags": {}}),
        ("untag_queue", {"TagKeys": []}),
        ("list_dead_letter_source_queues", {"MaxResults": 0}),
    ],
)
def test_a_missing_queue_is_reported_before_any_other_error(sqs, action, params, url):
    with refused(sqs, "QueueDoesNotExist", NO_SUCH_QUEUE):
        getattr(sqs, action)(QueueUrl=url, **params)


@pytest.mark.rule("queue.20", "error.10")
def test_an_empty_queue_url_is_a_missing_parameter(sqs):
    with refused(sqs, MISSING, "The request must contain the parameter QueueUrl."):
        sqs.send_message(QueueUrl="", MessageBody="x")


@pytest.mark.rule("list.1", "list.2")
def test_queues_are_listed_by_name_and_by_prefix(make_queue, sqs):
    urls = {name: make_queue(name).url for name in ("beta", "alpha", "alpha-2", "Alpha")}
    assert sqs.list_queues()["QueueUrls"] == [urls[name] for name in sorted(urls)]
    assert sqs.list_queues(QueueNamePrefix="alpha")["QueueUrls"] == [urls["alpha"], urls["alpha-2"]]


@pytest.mark.rule("list.2")
def test_a_prefix_is_not_a_pattern(make_queue, sqs):
    """`_` and `%`, which SQL's LIKE treats as wildcards, match themselves only."""
    url = make_queue("a_b").url
    make_queue("axb")
    assert sqs.list_queues(QueueNamePrefix="a_")["QueueUrls"] == [url]
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix="a%")


@pytest.mark.rule("list.3")
def test_without_queues_the_answer_has_no_key(sqs):
    """As in SQS, an empty list's key is left out."""
    assert without_metadata(sqs.list_queues(QueueNamePrefix="nobody")) == {}


@pytest.mark.rule("list.4", "list.5")
def test_pages_hold_max_results_and_the_last_has_no_token(make_queue, sqs):
    urls = [make_queue(f"q{n}").url for n in range(5)]
    first = sqs.list_queues(MaxResults=2)
    second = sqs.list_queues(MaxResults=2, NextToken=first["NextToken"])
    third = sqs.list_queues(MaxResults=2, NextToken=second["NextToken"])
    assert [page["QueueUrls"] for page in (first, second, third)] == [urls[:2], urls[2:4], urls[4:]]
    assert "NextToken" not in third
    assert "NextToken" not in sqs.list_queues(MaxResults=5)


@pytest.mark.rule("list.6")
def test_without_max_results_there_is_no_token(make_queue, sqs):
    for n in range(3):
        make_queue(f"q{n}")
    assert "NextToken" not in sqs.list_queues()


@pytest.mark.rule("list.7")
def test_without_max_results_at_most_1000_queues_are_listed(make_queue, sqs):
    urls = [make_queue(f"q{n:04}").url for n in range(1001)]
    assert sqs.list_queues()["QueueUrls"] == urls[:1000]


@pytest.mark.rule("list.4")
def test_the_next_page_is_correct_after_queues_were_created_or_deleted(make_queue, sqs):
    for name in ("a", "b", "d"):
        make_queue(name)
    first = sqs.list_queues(MaxResults=2)
    sqs.delete_queue(QueueUrl="b")
    url = make_queue("c").url
    second = sqs.list_queues(MaxResults=2, NextToken=first["NextToken"])
    assert second["QueueUrls"] == [url, make_queue("d").url]


@pytest.mark.rule("list.10")
def test_the_paginator_lists_all_pages(make_queue, sqs):
    urls = [make_queue(f"q{n}").url for n in range(5)]
    pages = sqs.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 2})
    assert [url for page in pages for url in page["QueueUrls"]] == urls


@pytest.mark.rule("list.8", "error.9")
@pytest.mark.parametrize("number", [0, -1, 1001])
def test_max_results_is_1_to_1000(sqs, number):
    with refused(sqs, INVALID, out_of_range("MaxResults", number, 1, 1_000)):
        sqs.list_queues(MaxResults=number)


@pytest.mark.rule("list.9")
def test_a_made_up_token_is_refused(sqs):
    with refused(sqs, INVALID, re.compile("^Value made up for parameter NextToken is invalid.")):
        sqs.list_queues(MaxResults=1, NextToken="made up")


@pytest.mark.rule("queue.21")
def test_a_deleted_queue_is_gone_with_its_messages(queue):
    queue.send("lost")
    assert without_metadata(queue.client.delete_queue(QueueUrl=queue.url)) == {}
    with refused(queue.client, "QueueDoesNotExist", NO_SUCH_QUEUE):
        queue.receive()
    assert "QueueUrls" not in queue.client.list_queues()
    with refused(queue.client, "QueueDoesNotExist", NO_SUCH_QUEUE):
        queue.client.delete_queue(QueueUrl=queue.url)


@pytest.mark.rule("queue.22", "queue.23")
def test_a_deleted_queues_name_is_free_again_after_60_seconds(queue, clock, make_queue):
    queue.send("lost")
    queue.client.delete_queue(QueueUrl=queue.url)
    clock.advance(59.999)
    with refused(queue.client, "QueueDeletedRecently", RECENTLY):
        make_queue()
    clock.advance(ms=1)
    again = make_queue()
    assert again.url == queue.url
    assert again.counts == (0, 0, 0)
    assert again.receive() == []


def test_a_new_queue_of_an_old_name_has_none_of_its_settings(make_queue, clock):
    old = make_queue(VisibilityTimeout=77)
    old.client.tag_queue(QueueUrl=old.url, Tags={"team": "blue"})
    old.client.delete_queue(QueueUrl=old.url)
    clock.advance(60)
    new = make_queue()
    assert new.attributes("VisibilityTimeout") == {"VisibilityTimeout": "30"}
    assert "Tags" not in new.client.list_queue_tags(QueueUrl=new.url)


@pytest.mark.rule("queue.24")
def test_a_purge_removes_visible_in_flight_and_delayed_messages(queue, clock):
    queue.send_all("visible", "in flight")
    held = queue.receive_one()
    queue.send("delayed", DelaySeconds=10)
    assert queue.counts == (1, 1, 1)
    assert without_metadata(queue.client.purge_queue(QueueUrl=queue.url)) == {}
    assert queue.counts == (0, 0, 0)
    clock.advance(60)
    assert queue.receive(10) == []
    queue.delete(held)


@pytest.mark.rule("queue.24")
def test_messages_sent_after_a_purge_stay(queue):
    queue.send("before")
    queue.client.purge_queue(QueueUrl=queue.url)
    queue.send("after")
    assert queue.counts == (1, 0, 0)
    assert queue.bodies() == ["after"]


def test_a_purge_leaves_other_queues_alone(make_queue):
    one, other = make_queue("one"), make_queue("other")
    one.send("gone")
    other.send("stays")
    one.client.purge_queue(QueueUrl=one.url)
    assert other.bodies() == ["stays"]


@pytest.mark.rule("queue.27")
def test_a_purge_keeps_attributes_and_tags(make_queue):
    queue = make_queue(VisibilityTimeout=77)
    queue.client.tag_queue(QueueUrl=queue.url, Tags={"team": "blue"})
    queue.client.purge_queue(QueueUrl=queue.url)
    assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "77"}
    assert queue.client.list_queue_tags(QueueUrl=queue.url)["Tags"] == {"team": "blue"}


def test_without_cooldowns_a_name_and_a_purge_are_free_at_once(open_sqs):
    sqs = open_sqs(cooldowns=False)
    url = sqs.create_queue(QueueName="q")["QueueUrl"]
    sqs.purge_queue(QueueUrl=url)
    sqs.purge_queue(QueueUrl=url)
    sqs.delete_queue(QueueUrl=url)
    assert sqs.create_queue(QueueName="q")["QueueUrl"] == url


@pytest.mark.rule("queue.25", "queue.26", "error.3")
def test_a_queue_is_purged_once_in_60_seconds(queue, clock, make_queue):
    queue.client.purge_queue(QueueUrl=queue.url)
    clock.advance(59.999)
    with refused(
        queue.client,
        "PurgeQueueInProgress",
        "Only one PurgeQueue operation on q is allowed every 60 seconds.",
    ):
        queue.client.purge_queue(QueueUrl=queue.url)
    other = make_queue("other")
    other.client.purge_queue(QueueUrl=other.url)
    clock.advance(ms=1)
    queue.send("gone")
    queue.client.purge_queue(QueueUrl=queue.url)
    assert queue.counts == (0, 0, 0)


def test_another_client_on_the_same_file_sees_the_same_queues(queue, open_sqs):
    """The file is the state: no process caches it."""
    queue.send("shared")
    other = BoundQueue(open_sqs(), queue.url)
    assert other.bodies() == ["shared"]
    assert queue.counts == (0, 1, 0)


def test_queues_and_messages_outlive_the_client(open_sqs):
    """Message states too: after the restart a message in flight is still in flight, under the same handle."""
    first = open_sqs()
    queue = BoundQueue.create(first)
    queue.send_all("in flight", "waiting")
    held = queue.receive_one()
    first.close()
    again = BoundQueue(open_sqs(), queue.url)
    assert again.counts == (1, 1, 0)
    again.delete(held)
    assert again.bodies() == ["waiting"]


def test_without_amazons_limits_there_is_no_pause_after_a_delete_or_a_purge(open_sqs):
    sqs = open_sqs(limits="native")
    url = sqs.create_queue(QueueName="q")["QueueUrl"]
    for _ in range(2):
        sqs.send_message(QueueUrl=url, MessageBody="a")
        sqs.purge_queue(QueueUrl=url)
        assert "Messages" not in sqs.receive_message(QueueUrl=url)
    sqs.delete_queue(QueueUrl=url)
    assert sqs.create_queue(QueueName="q")["QueueUrl"] == url
