# SPDX-License-Identifier: Apache-2.0
"""The extended client with an endpoint of SQSQLite's: messages beyond 256 KiB, whose bodies are objects in S3.

    pip install amazon-sqs-extended-client
    sqsqlite serve --db queues.db          in another terminal
    python extended_orders.py BUCKET

SQS is where AWS_ENDPOINT_URL_SQS says. S3 is Amazon's, or where AWS_ENDPOINT_URL_S3 says, with the same credentials: if
the endpoint is to ask for keys, `sqsqlite serve --keys FILE` makes it take Amazon's.
SQSQLite itself takes messages of 1 MiB, so use this for larger ones only, or for a queue that is to move to Amazon.
"""

import os
import sys

import boto3
import sqs_extended_client  # noqa: F401 - it changes the SQS clients that boto3 makes

os.environ.setdefault("AWS_ENDPOINT_URL_SQS", "http://localhost:9324")
sqs = boto3.client("sqs", region_name="us-east-1")
sqs.large_payload_support = sys.argv[1]
sqs.delete_payload_from_s3 = True  # with the message; else the bucket keeps it
url = sqs.create_queue(QueueName="orders")["QueueUrl"]

sqs.send_message(QueueUrl=url, MessageBody="two chairs " * 60_000)
[order] = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
print("received:", len(order["Body"]), "bytes")
sqs.delete_message(QueueUrl=url, ReceiptHandle=order["ReceiptHandle"])
