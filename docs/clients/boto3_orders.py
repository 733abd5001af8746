# SPDX-License-Identifier: Apache-2.0
"""boto3 with an endpoint of SQSQLite's: send, receive, delete; and a message that failed and is seen again.

    sqsqlite serve --db queues.db          in another terminal
    python boto3_orders.py

It is the program that one writes for Amazon SQS; only `endpoint_url` is new, and boto3 finds the credentials in the
environment as well. From boto3 1.28 on, the variable AWS_ENDPOINT_URL says the address too, and the program stays as it
is. With a key of `sqsqlite keys add`: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
"""

import os

import boto3

sqs = boto3.client(
    "sqs",
    endpoint_url=os.environ.get("AWS_ENDPOINT_URL", "http://localhost:9324"),
    region_name="us-east-1",
    # anyone: as long as the server has no keys
    aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID", "anyone"),
    aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "anything"),
)
url = sqs.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "60"})["QueueUrl"]

sqs.send_message(
    QueueUrl=url,
    MessageBody="two chairs",
    MessageAttributes={"priority": {"DataType": "Number", "StringValue": "1"}},
)
[order] = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20, MessageAttributeNames=["All"])["Messages"]
print("received:", order["Body"], order["MessageAttributes"]["priority"]["StringValue"])

# The work failed: show the message again at once instead of after 60 seconds.
sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=order["ReceiptHandle"], VisibilityTimeout=0)
[again] = sqs.receive_message(QueueUrl=url, AttributeNames=["ApproximateReceiveCount"])["Messages"]
print("receive", again["Attributes"]["ApproximateReceiveCount"], "of:", again["Body"])

sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
print(
    "left:",
    sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"][
        "ApproximateNumberOfMessages"
    ],
)
