# SPDX-License-Identifier: Apache-2.0
"""Bodies in S3 and pointers in the queue: send, batch, visibility, delete."""

import json

import boto3
import botocore.session
import sqs_extended_client  # noqa: F401

BUCKET = "bodies"
LARGE = "Zürich " * 60_000
ATTRIBUTES = {"City": {"DataType": "String", "StringValue": "Zürich"}}

sqs = boto3.client("sqs")
plain = botocore.session.get_session().create_client("sqs")
s3 = boto3.client("s3")


def keys():
    return [found["Key"] for found in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def left(url):
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    return set(plain.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values())


sqs.large_payload_support = BUCKET
sqs.delete_payload_from_s3 = True
url = sqs.create_queue(QueueName="work")["QueueUrl"]

sent = sqs.send_message(QueueUrl=url, MessageBody=LARGE, MessageAttributes=dict(ATTRIBUTES))
[pointer] = plain.receive_message(QueueUrl=url, MessageAttributeNames=["All"], VisibilityTimeout=0)[
    "Messages"
]
assert json.loads(pointer["Body"]) == [
    "software.amazon.payloadoffloading.PayloadS3Pointer",
    {"s3BucketName": BUCKET, "s3Key": keys()[0]},
]
assert pointer["MessageAttributes"]["ExtendedPayloadSize"] == {
    "DataType": "Number",
    "StringValue": str(len(LARGE.encode())),
}

[got] = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
assert (got["Body"], got["MessageId"], got["MessageAttributes"]) == (LARGE, sent["MessageId"], ATTRIBUTES)
assert BUCKET in got["ReceiptHandle"]
sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=0)
[again] = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["City"])["Messages"]
sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
assert (keys(), left(url)) == ([], {"0"})

entries = [{"Id": "large", "MessageBody": LARGE}, {"Id": "small", "MessageBody": "small"}]
assert len(sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 2
assert len(keys()) == 1
received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])[
    "Messages"
]
assert sorted(one["Body"] for one in received) == sorted([LARGE, "small"])
handles = [{"Id": one["MessageId"], "ReceiptHandle": one["ReceiptHandle"]} for one in received]
changed = sqs.change_message_visibility_batch(
    QueueUrl=url, Entries=[{**handle, "VisibilityTimeout": 60} for handle in handles]
)
assert len(changed["Successful"]) == 2
assert len(sqs.delete_message_batch(QueueUrl=url, Entries=handles)["Successful"]) == 2
assert (keys(), left(url)) == ([], {"0"})
