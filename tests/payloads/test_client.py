# SPDX-License-Identifier: Apache-2.0
"""Big bodies through clients with boto3's methods: ours, boto3 in process, and boto3 at an endpoint."""

import contextlib

import pytest

from sqsqlite.payloads import PayloadMissing, PayloadStoreDown, extend
from sqsqlite.testing.endpoint import served

BIG = "Zürich " * 300
CITY = {"City": {"DataType": "String", "StringValue": "Zürich"}}
KINDS = ["client", "boto3 in process", "boto3 at an endpoint"]


@pytest.fixture(params=KINDS)
def inner(request, sqs, path, plain, clock, monkeypatch):
    """The client without a store."""
    if request.param == "client":
        yield sqs.client
        return
    boto3 = pytest.importorskip("boto3")
    if request.param == "boto3 in process":
        from sqsqlite import boto

        with contextlib.closing(boto.client(path, clock=clock)) as client:
            yield client
        return
    for name, value in {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}.items():
        monkeypatch.setenv(name, value)
    with (
        served(sqs) as url,
        contextlib.closing(boto3.client("sqs", endpoint_url=url, region_name="us-east-1")) as client,
    ):
        yield client


@pytest.fixture
def client(inner, store):
    return extend(inner, store)


@pytest.fixture
def url(client):
    return client.get_queue_url(QueueName="orders")["QueueUrl"]


def test_a_big_body_makes_the_round_trip(client, url, kept, plain):
    client.send_message(QueueUrl=url, MessageBody=BIG, MessageAttributes=CITY)
    assert list(kept().values()) == [BIG]
    [message] = client.receive_message(QueueUrl=url, MessageAttributeNames=["City"])["Messages"]
    assert (message["Body"], message["MessageAttributes"]) == (BIG, CITY)
    client.change_message_visibility(
        QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=60
    )
    client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert (kept(), len(plain)) == ({}, 0)


@pytest.mark.parametrize("names", [None, [], ["All"], [".*"], ["City"], ["Nothing"]])
def test_the_reader_sees_only_the_attributes_asked_for(client, url, names):
    client.send_message(QueueUrl=url, MessageBody=BIG, MessageAttributes=CITY)
    asked = {} if names is None else {"MessageAttributeNames": names}
    [message] = client.receive_message(QueueUrl=url, **asked)["Messages"]
    assert message["Body"] == BIG
    assert message.get("MessageAttributes") == (CITY if {"All", ".*", "City"} & set(names or ()) else None)


def test_batches_make_the_round_trip(client, url, kept, plain):
    given = [
        {"Id": "big", "MessageBody": BIG, "MessageAttributes": CITY},
        {"Id": "small", "MessageBody": "small"},
    ]
    assert len(client.send_message_batch(QueueUrl=url, Entries=given)["Successful"]) == 2
    assert given[0] == {"Id": "big", "MessageBody": BIG, "MessageAttributes": CITY}  # the caller's own
    messages = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert sorted(message["Body"] for message in messages) == [BIG, "small"]
    entries = [
        {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
        for place, message in enumerate(messages)
    ]
    client.change_message_visibility_batch(
        QueueUrl=url, Entries=[{**entry, "VisibilityTimeout": 60} for entry in entries]
    )
    assert len(client.delete_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 2
    assert (kept(), len(plain)) == ({}, 0)


def test_a_failed_entry_of_a_delete_keeps_its_payload(client, url, kept, clock, plain):
    client.send_message_batch(
        QueueUrl=url, Entries=[{"Id": body, "MessageBody": BIG + body} for body in ("a", "b")]
    )
    [late] = client.receive_message(QueueUrl=url, VisibilityTimeout=1)["Messages"]
    clock.advance(2)
    entries = []
    while len(entries) < 2:
        for message in client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]:
            entries.append({"Id": str(len(entries)), "ReceiptHandle": message["ReceiptHandle"]})
            if message["MessageId"] == late["MessageId"]:
                entries[-1]["ReceiptHandle"] = late["ReceiptHandle"]
    answer = client.delete_message_batch(QueueUrl=url, Entries=entries)
    assert (len(answer["Successful"]), len(answer["Failed"])) == (1, 1)
    assert (list(kept().values()), len(plain)) == ([late["Body"]], 1)


def test_other_calls_and_errors_are_the_clients_own(client, url, inner):
    assert client.meta is inner.meta
    assert client.receive_message(QueueUrl=url).get("Messages", []) == []
    with pytest.raises(client.exceptions.QueueDoesNotExist):
        client.send_message(QueueUrl=url + "x", MessageBody=BIG)
    client.purge_queue(QueueUrl=url)
    with pytest.raises(AttributeError):
        client.send_letter(QueueUrl=url)


def test_a_lost_payload_is_an_error_and_the_others_are_delivered(client, url, folder, plain):
    client.send_message(QueueUrl=url, MessageBody=BIG)
    [path] = [found for found in folder.rglob("*") if found.is_file()]
    path.unlink()
    with pytest.raises(PayloadMissing):
        client.receive_message(QueueUrl=url, VisibilityTimeout=0)
    client.send_message(QueueUrl=url, MessageBody="small")
    messages = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [message["Body"] for message in messages] == ["small"]
    assert len(plain) == 2


def test_while_the_store_is_down_nothing_is_sent(client, url, folder, tmp_path, plain):
    folder.rename(tmp_path / "away")
    with pytest.raises(PayloadStoreDown):
        client.send_message(QueueUrl=url, MessageBody=BIG)
    with pytest.raises(PayloadStoreDown):
        client.send_message_batch(
            QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "small"}, {"Id": "2", "MessageBody": BIG}]
        )
    assert len(plain) == 0


def test_equal_big_bodies_are_deduplicated_by_their_content(client):
    url = client.create_queue(
        QueueName="steps.fifo", Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    )["QueueUrl"]
    entry = {"Id": "1", "MessageBody": BIG, "MessageGroupId": "a"}
    first = client.send_message(QueueUrl=url, MessageBody=BIG, MessageGroupId="a")
    again = client.send_message_batch(QueueUrl=url, Entries=[entry])["Successful"][0]
    assert first["MessageId"] == again["MessageId"]


def test_order_is_kept_when_a_payload_is_lost_and_the_groups_are_not_known(client, folder, sqs):
    url = client.create_queue(QueueName="steps.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    for place, body in enumerate(("first", BIG, "last")):
        client.send_message(
            QueueUrl=url, MessageBody=body, MessageGroupId="a", MessageDeduplicationId=str(place)
        )
    [path] = [found for found in folder.rglob("*") if found.is_file()]
    path.unlink()
    messages = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [message["Body"] for message in messages] == ["first"]
    assert len(sqs.queue("steps.fifo")) == 3


def test_python_reads_what_a_client_sent(client, url, sqs, store):
    """Their payloads have another owner in their keys, which is no matter to a reader."""
    client.send_message(QueueUrl=url, MessageBody=BIG)
    [message] = extend(sqs.queue("orders"), store).receive()
    assert message.body == BIG


def test_parameters_of_a_wrong_kind_get_the_clients_own_error(client, url, kept):
    with pytest.raises(Exception, match="MessageBody"):
        client.send_message(QueueUrl=url, MessageBody=3)
    with pytest.raises(Exception, match="ReceiptHandle"):
        client.delete_message(QueueUrl=url)
    assert kept() == {}
