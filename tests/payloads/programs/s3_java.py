# SPDX-License-Identifier: Apache-2.0
"""Our end of the exchange with Amazon's extended client for Java: `send`, then `receive` what it has sent."""

import sys

import boto3

from sqsqlite.payloads import PayloadStore, extend

LARGE = "Zürich " * 60_000
CITY = {"City": {"DataType": "String", "StringValue": "Zürich"}}

sqs = extend(boto3.client("sqs"), PayloadStore("s3://bodies"))
url = sqs.create_queue(QueueName="work")["QueueUrl"]
s3 = boto3.client("s3")
if sys.argv[1] == "send":
    s3.create_bucket(Bucket="bodies")
    sqs.send_message(QueueUrl=url, MessageBody=LARGE, MessageAttributes=CITY)
else:
    found = {}
    while len(found) < 2:
        for message in sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"], WaitTimeSeconds=20)[
            "Messages"
        ]:
            found[message["Body"]] = message.get("MessageAttributes")
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert found == {LARGE + "1": CITY, LARGE + "2": None}
    print(s3.list_objects_v2(Bucket="bodies")["KeyCount"])
