# SPDX-License-Identifier: Apache-2.0
"""Every action that this boto3 knows, its errors, batches and a long poll; prints what was run, as JSON.

Runs in environments with old versions of boto3, which is why nothing of ours is imported.
"""

import hashlib
import json
import os
import threading

import boto3
import botocore
from botocore.exceptions import ClientError

QUEUE_ARN = "arn:aws:sqs:us-east-1:000000000000:{}"


class Counted:
    """A client that notes which actions were answered."""

    def __init__(self):
        self._client = boto3.client("sqs", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
        self.known = set(self._client.meta.service_model.operation_names)
        self.protocol = self._client.meta.service_model.protocol
        self.answered = set()
        self._client.meta.events.register("after-call.sqs", self._note)

    def _note(self, http_response, model, **_):
        if http_response.status_code == 200:
            self.answered.add(model.name)

    def __getattr__(self, name):
        return getattr(self._client, name)


def error_of(call, parameters):
    try:
        call(**parameters)
    except ClientError as error:
        return error
    raise AssertionError(f"not refused: {parameters}")


def refused(call, **parameters):
    response = error_of(call, parameters).response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def queues(sqs):
    url = sqs.create_queue(QueueName="work", Attributes={"VisibilityTimeout": "60"}, tags={"a": "é"})[
        "QueueUrl"
    ]
    assert sqs.get_queue_url(QueueName="work")["QueueUrl"] == url
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "90", "DelaySeconds": "0"})
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (found["VisibilityTimeout"], found["QueueArn"]) == ("90", QUEUE_ARN.format("work"))
    sqs.tag_queue(QueueUrl=url, Tags={"b": "a+b /@"})
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"a": "é", "b": "a+b /@"}
    sqs.untag_queue(QueueUrl=url, TagKeys=["a"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"b": "a+b /@"}
    sqs.add_permission(QueueUrl=url, Label="l", AWSAccountIds=["111122223333"], Actions=["SendMessage"])
    assert "Policy" in sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]
    sqs.remove_permission(QueueUrl=url, Label="l")
    for number in range(3):
        sqs.create_queue(QueueName=f"page-{number}")
    pages = sqs.get_paginator("list_queues").paginate(
        QueueNamePrefix="page", PaginationConfig={"PageSize": 2}
    )
    assert [len(page["QueueUrls"]) for page in pages] == [2, 1]
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName="page-0")["QueueUrl"])
    return url


def messages(sqs, url):
    body = 'Zürich & <b>"\n\t\r</b> 𝄞 %20+'
    attributes = {
        "City": {"DataType": "String", "StringValue": "Zürich"},
        "n": {"DataType": "Number", "StringValue": "42"},
        "Blob": {"DataType": "Binary.gif", "BinaryValue": b"\x00\xff"},
    }
    sent = sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)
    assert sent["MD5OfMessageBody"] == hashlib.md5(body.encode()).hexdigest()
    assert sent["MD5OfMessageAttributes"] == "384e95b09b07bd783252164424eef92b"
    [got] = receive(sqs, url, MessageAttributeNames=["All"], AttributeNames=["All"])
    assert (got["Body"], got["MessageAttributes"], got["MessageId"]) == (body, attributes, sent["MessageId"])
    assert got["Attributes"]["ApproximateReceiveCount"] == "1"
    assert receive(sqs, url) == []
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=0)
    [again] = receive(sqs, url)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.purge_queue(QueueUrl=url)


def batches(sqs, url):
    entries = [{"Id": str(number), "MessageBody": f"body {number}"} for number in range(9)]
    too_late = {"Id": "late", "MessageBody": "x", "DelaySeconds": 901}
    sent = sqs.send_message_batch(QueueUrl=url, Entries=[*entries, too_late])
    assert [entry["Id"] for entry in sent["Successful"]] == [entry["Id"] for entry in entries]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in sent["Failed"]] == [
        ("late", "InvalidParameterValue", True)
    ]
    got = receive(sqs, url, MaxNumberOfMessages=10)
    assert len(got) == 9
    handles = [{"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]} for number, one in enumerate(got)]
    changed = sqs.change_message_visibility_batch(
        QueueUrl=url, Entries=[{**handle, "VisibilityTimeout": 30} for handle in handles]
    )
    assert len(changed["Successful"]) == 9
    assert len(sqs.delete_message_batch(QueueUrl=url, Entries=handles)["Successful"]) == 9


def long_poll(sqs, url):
    """A message that is sent while a receive waits reaches it. Without that, this takes the 20 seconds and fails."""
    other = Counted()
    sender = threading.Timer(0.5, other.send_message, kwargs={"QueueUrl": url, "MessageBody": "awaited"})
    sender.start()
    [got] = receive(sqs, url, WaitTimeSeconds=20)
    sender.join()
    assert got["Body"] == "awaited"
    sqs.delete_message(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"])


def groups(sqs):
    url = sqs.create_queue(
        QueueName="work.fifo", Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    )["QueueUrl"]
    numbers = [
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g")["SequenceNumber"]
        for body in ("first", "second", "first")
    ]
    assert numbers[0] == numbers[2] < numbers[1]
    [first] = receive(sqs, url, AttributeNames=["MessageGroupId"])
    assert (first["Body"], first["Attributes"]) == ("first", {"MessageGroupId": "g"})
    assert receive(sqs, url) == []
    sqs.delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
    assert [one["Body"] for one in receive(sqs, url)] == ["second"]


def dead_letters(sqs, url):
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    policy = {"deadLetterTargetArn": QUEUE_ARN.format("dead"), "maxReceiveCount": 1}
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": json.dumps(policy)})
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [url]
    sqs.send_message(QueueUrl=url, MessageBody="poison")
    for _ in range(2):
        for got in receive(sqs, url):
            sqs.change_message_visibility(
                QueueUrl=url, ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=0
            )
    found = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["ApproximateNumberOfMessages"])
    assert found["Attributes"] == {"ApproximateNumberOfMessages": "1"}
    if "StartMessageMoveTask" not in sqs.known:
        return
    # So slow that there is time to cancel it: 2 messages at 1 a second.
    sqs.send_message(QueueUrl=dead, MessageBody="other")
    handle = sqs.start_message_move_task(
        SourceArn=QUEUE_ARN.format("dead"),
        DestinationArn=QUEUE_ARN.format("page-1"),
        MaxNumberOfMessagesPerSecond=1,
    )["TaskHandle"]
    assert "ApproximateNumberOfMessagesMoved" in sqs.cancel_message_move_task(TaskHandle=handle)
    [task] = sqs.list_message_move_tasks(SourceArn=QUEUE_ARN.format("dead"))["Results"]
    assert task["Status"] in {"CANCELLING", "CANCELLED"}


def errors(sqs, url):
    assert refused(sqs.get_queue_url, QueueName="nobody") == ("AWS.SimpleQueueService.NonExistentQueue", 400)
    assert isinstance(error_of(sqs.get_queue_url, {"QueueName": "nobody"}), sqs.exceptions.QueueDoesNotExist)
    missing = {"QueueUrl": url + "-2", "ReceiptHandle": "x"}
    assert refused(sqs.delete_message, **missing) == ("AWS.SimpleQueueService.NonExistentQueue", 400)
    handle = {"QueueUrl": url, "ReceiptHandle": "none of ours"}
    assert refused(sqs.delete_message, **handle) == ("ReceiptHandleIsInvalid", 404)
    assert refused(sqs.receive_message, QueueUrl=url, MaxNumberOfMessages=11) == (
        "InvalidParameterValue",
        400,
    )
    assert refused(sqs.create_queue, QueueName="work", Attributes={"DelaySeconds": "7"}) == (
        "QueueAlreadyExists",
        400,
    )
    batch = {"QueueUrl": url, "Entries": [{"Id": "a", "MessageBody": "x"}] * 2}
    assert refused(sqs.send_message_batch, **batch) == (
        "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
        400,
    )


def receive(sqs, url, **parameters):
    return sqs.receive_message(QueueUrl=url, **parameters).get("Messages", [])


def main():
    sqs = Counted()
    url = queues(sqs)
    messages(sqs, url)
    batches(sqs, url)
    long_poll(sqs, url)
    groups(sqs)
    errors(sqs, url)
    dead_letters(sqs, url)
    assert sqs.known == sqs.answered, sqs.known ^ sqs.answered
    told = {"version": boto3.__version__, "botocore": botocore.__version__, "protocol": sqs.protocol}
    print(json.dumps({**told, "actions": len(sqs.answered)}))


if __name__ == "__main__":
    main()
