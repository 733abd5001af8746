# SPDX-License-Identifier: Apache-2.0
"""Payloads in S3: Amazon's extended client reads ours, and the reverse; what is lost; no such bucket; a sweep."""

import asyncio
import json
import sys

import boto3
import botocore.session
import sqs_extended_client  # noqa: F401 # it changes the SQS clients that boto3 makes
from aiobotocore.session import get_session

import sqsqlite
from sqsqlite.payloads import (
    PayloadMissing,
    PayloadStore,
    PayloadStoreDown,
    Pointer,
    PointerRefused,
    extend,
    sweep,
)

BUCKET = "bodies"
LARGE = "Zürich " * 60_000
ATTRIBUTES = {"City": {"DataType": "String", "StringValue": "Zürich"}}

s3 = boto3.client("s3")
s3.create_bucket(Bucket=BUCKET)
amazons = boto3.client("sqs")
amazons.large_payload_support = BUCKET
amazons.delete_payload_from_s3 = True
plain = botocore.session.get_session().create_client("sqs")
url = plain.create_queue(QueueName="work", Attributes={"VisibilityTimeout": "600"})["QueueUrl"]
store = PayloadStore("s3://bodies")
ours = extend(plain, store)
below = PayloadStore("s3://bodies/app/large")


def keys():
    return sorted(found["Key"] for found in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []))


def left():
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    return set(plain.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values())


def receive(client):
    [message] = client.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    return message


def refused(kind, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


# Ours, read by Amazon's, with and without a prefix.
for sender, prefix in ((ours, "remote/"), (extend(plain, below), "app/large/remote/")):
    sender.send_message(QueueUrl=url, MessageBody=LARGE, MessageAttributes=ATTRIBUTES)
    [key] = keys()
    assert key.startswith(prefix), key
    message = receive(amazons)
    assert (message["Body"], message["MessageAttributes"]) == (LARGE, ATTRIBUTES)
    amazons.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert (keys(), left()) == ([], {"0"})

# Amazon's, read by ours, one by one and in a batch.
amazons.send_message(QueueUrl=url, MessageBody=LARGE, MessageAttributes=dict(ATTRIBUTES))
[key] = keys()
message = receive(ours)
assert (message["Body"], message["MessageAttributes"]) == (LARGE, ATTRIBUTES)
# Each client takes the handles of the other one.
amazons.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
message = receive(amazons)
ours.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
assert (keys(), left()) == ([], {"0"})
for use_legacy in (False, True):
    amazons.use_legacy_attribute = use_legacy
    entries = [{"Id": "large", "MessageBody": LARGE}, {"Id": "small", "MessageBody": "small"}]
    amazons.send_message_batch(QueueUrl=url, Entries=entries)
    received = ours.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert sorted(one["Body"] for one in received) == sorted([LARGE, "small"])
    handles = [{"Id": one["MessageId"], "ReceiptHandle": one["ReceiptHandle"]} for one in received]
    assert len(ours.delete_message_batch(QueueUrl=url, Entries=handles)["Successful"]) == 2
    assert (keys(), left()) == ([], {"0"})
amazons.use_legacy_attribute = False

# A store with a prefix reads nothing from outside of it.
amazons.send_message(QueueUrl=url, MessageBody=LARGE)
error = refused(PointerRefused, receive, extend(plain, below))
amazons.delete_message(QueueUrl=url, ReceiptHandle=error.receipt_handle)
s3.delete_object(Bucket=BUCKET, Key=error.pointer.key)

# An object that is gone; a bucket that is not there.
ours.send_message(QueueUrl=url, MessageBody=LARGE)
s3.delete_object(Bucket=BUCKET, Key=keys()[0])
error = refused(PayloadMissing, receive, ours)
assert "s3://bodies has no remote/" in str(error), error
ours.delete_message(QueueUrl=url, ReceiptHandle=error.receipt_handle)
elsewhere = PayloadStore("s3://nowhere")
refused(PayloadStoreDown, elsewhere.put, b"x")
refused(PayloadStoreDown, elsewhere.get, Pointer("nowhere", "x"))
assert (keys(), left()) == ([], {"0"})


# aiobotocore, which s3fs brings along: its methods are awaited.
async def extend_asynchronous():
    async with get_session().create_client("sqs") as client:
        refused(TypeError, extend, client, store)


asyncio.run(extend_asynchronous())

# The Python API, a transaction that rolls back, and a sweep.
with sqsqlite.connect(sys.argv[1]) as sqs:
    queue = extend(sqs.create_queue("local"), below)
    queue.send(LARGE)
    try:
        with sqs.transaction():
            queue.send(LARGE)
            raise KeyError
    except KeyError:
        pass
    below.put(b"a client's")
    assert sweep(sqs, below).young == 1
    swept = sweep(sqs, below, older_than=0)
    assert (swept.found, swept.referred, swept.removed) == (2, 1, 1), swept
    assert swept.removed_bytes == len(LARGE.encode())
    [local] = queue.receive()
    assert local.body == LARGE
    local.delete()
    assert sweep(sqs, below, older_than=0).found == 0
    assert sweep(sqs, below, older_than=0, owner="remote").removed == 1
print(json.dumps(keys()))
