# SPDX-License-Identifier: Apache-2.0
"""Dicts and JSON to requests, judged by boto3's own validator; results back to dicts."""

import base64
import io
import json
import subprocess
import sys

import botocore.session
import pytest
from botocore.exceptions import ParamValidationError as BotocoreError
from botocore.validate import ParamValidator

from sqsqlite import errors
from sqsqlite.contract import responses
from sqsqlite.contract.limits import SQS
from sqsqlite.contract.message_attributes import MessageAttributeValue
from sqsqlite.contract.shapes import ACTIONS, parse, parse_json, to_dict

MODEL = botocore.session.get_session().get_service_model("sqs")
SEND = {"QueueUrl": "q", "MessageBody": "x"}


class Text(str):
    __slots__ = ()


BAD = [
    ("SendMessage", {}),
    ("SendMessage", {"QueueUrl": 1}),
    ("SendMessage", {"QueueUrl": None, "MessageBody": b"x"}),
    ("SendMessage", {**SEND, "Foo": 1, "Bar": 2}),
    ("SendMessage", {**SEND, "queue_url": "q"}),
    ("SendMessage", {**SEND, "DelaySeconds": "5"}),
    ("SendMessage", {**SEND, "DelaySeconds": 5.0}),
    ("SendMessage", {**SEND, "DelaySeconds": None}),
    ("SendMessage", {**SEND, "MessageAttributes": []}),
    ("SendMessage", {**SEND, "MessageAttributes": {"a": "x"}}),
    (
        "SendMessage",
        {**SEND, "MessageAttributes": {"a": {"StringValue": 1}, "b": {"DataType": "String", "X": 1}}},
    ),
    ("SendMessage", {**SEND, "MessageAttributes": {"a": {"DataType": "Binary", "BinaryValue": 5}}}),
    ("SendMessage", {**SEND, "MessageAttributes": {"a": {"DataType": "String", "StringValue": None}}}),
    (
        "SendMessage",
        {**SEND, "MessageAttributes": {"a": {"DataType": "String", "StringListValues": [1, "x", None]}}},
    ),
    (
        "SendMessage",
        {**SEND, "MessageAttributes": {"a": {"DataType": "String", "BinaryListValues": [b"", 1]}}},
    ),
    ("SendMessage", {**SEND, "MessageAttributes": {1: {"DataType": "String"}}}),
    ("SendMessage", {**SEND, "MessageSystemAttributes": {"AWSTraceHeader": {}}}),
    ("SendMessageBatch", {"QueueUrl": "q"}),
    ("SendMessageBatch", {"QueueUrl": "q", "Entries": {}}),
    ("SendMessageBatch", {"QueueUrl": "q", "Entries": "ab"}),
    ("SendMessageBatch", {"QueueUrl": "q", "Entries": ["a", {"Id": "a"}, {"Id": 1, "MessageBody": "x"}]}),
    (
        "SendMessageBatch",
        {"QueueUrl": "q", "Entries": [{"Id": "a", "MessageBody": "x", "DelaySeconds": None}]},
    ),
    (
        "SendMessageBatch",
        {"QueueUrl": "q", "Entries": [{"Id": "a", "MessageBody": "x", "MessageAttributes": {"k": {"Y": 1}}}]},
    ),
    ("DeleteMessageBatch", {"QueueUrl": "q", "Entries": ({"ReceiptHandle": "h"},)}),
    ("ChangeMessageVisibility", {"QueueUrl": "q", "VisibilityTimeout": "1"}),
    ("ChangeMessageVisibilityBatch", {"QueueUrl": "q", "Entries": [{"Id": "a", "VisibilityTimeout": None}]}),
    ("ReceiveMessage", {"QueueUrl": "q", "AttributeNames": "All"}),
    ("ReceiveMessage", {"QueueUrl": "q", "AttributeNames": ["All", 1, None]}),
    ("CreateQueue", {"QueueName": "q", "Attributes": {"DelaySeconds": 5}, "Tags": {}}),
    ("CreateQueue", {"QueueName": "q", "tags": {"a": None, 2: "x"}}),
    ("GetQueueUrl", {"QueueName": "q", "QueueOwnerAwsAccountId": "1"}),
    ("AddPermission", {"AWSAccountIds": ["1"], "AwsAccountIds": []}),
    ("SetQueueAttributes", {"QueueUrl": "q", "Attributes": None}),
    ("ListQueues", {"MaxResults": "1", "NextToken": 1}),
    ("ListQueues", {"MaxResults": "\ud800"}),
    ("UntagQueue", {"QueueUrl": "q", "TagKeys": "\ud800"}),
    ("SendMessage", {"QueueUrl": "q", "MessageBody": "x", "MessageAttributes": {"\ud800": "\ud800"}}),
]


@pytest.mark.rule("error.15", "error.16")
@pytest.mark.parametrize(("action", "params"), BAD)
def test_refusals_are_boto3s_word_for_word(action, params):
    report = ParamValidator().validate(params, MODEL.operation_model(action).input_shape).generate_report()
    assert report
    with pytest.raises(errors.ParamValidationError) as refused:
        parse(ACTIONS[action], params, SQS)
    assert str(refused.value) == str(BotocoreError(report=report))


def test_all_types_that_boto3_accepts_are_accepted():
    attributes = {
        name: {"DataType": "Binary", "BinaryValue": value}
        for name, value in {
            "bytes": b"\xff",
            "array": bytearray(b"\xff"),
            "text": "ü",
            "file": io.BytesIO(b"f"),
        }.items()
    }
    params = {
        "QueueUrl": Text("q"),
        "MessageBody": Text("x"),
        "DelaySeconds": True,
        "MessageAttributes": attributes,
    }
    assert (
        not ParamValidator().validate(params, MODEL.operation_model("SendMessage").input_shape).has_errors()
    )
    request = parse(ACTIONS["SendMessage"], params, SQS)
    assert (request.queue_url, request.message_body, request.delay_seconds) == ("q", "x", 1)
    values = {name: value.binary_value for name, value in request.message_attributes.items()}
    assert values == {"bytes": b"\xff", "array": b"\xff", "text": "ü".encode(), "file": b"f"}
    assert {type(value) for value in values.values()} == {bytes}


def test_a_tuple_serves_as_a_list():
    request = parse(ACTIONS["ReceiveMessage"], {"QueueUrl": "q", "MessageAttributeNames": ("a", "b")}, SQS)
    assert request.message_attribute_names == ["a", "b"]


def test_binary_values_that_look_like_base64_stay_as_they_are():
    attributes = {"a": {"DataType": "Binary", "BinaryValue": b"aGk="}}
    request = parse(ACTIONS["SendMessage"], {**SEND, "MessageAttributes": attributes}, SQS)
    assert request.message_attributes["a"].binary_value == b"aGk="


def test_the_shape_is_checked_before_the_values():
    with pytest.raises(errors.ParamValidationError):
        parse(ACTIONS["ReceiveMessage"], {"QueueUrl": "", "MaxNumberOfMessages": 99, "X": 1}, SQS)


def test_json_has_base64_and_null_for_absent():
    body = {
        **SEND,
        "DelaySeconds": None,
        "MessageAttributes": {"a": {"DataType": "Binary", "BinaryValue": base64.b64encode(b"\xff").decode()}},
    }
    request = parse_json(ACTIONS["SendMessage"], json.dumps(body).encode(), SQS)
    assert request.delay_seconds is None
    assert request.message_attributes["a"].binary_value == b"\xff"


@pytest.mark.parametrize("body", [{}, {"MessageBody": "x"}, {"QueueUrl": None, "MessageBody": "x"}])
def test_a_member_missing_in_json_is_a_missing_parameter(body):
    with pytest.raises(errors.MissingParameter, match=r"^The request must contain the parameter QueueUrl\.$"):
        parse_json(ACTIONS["SendMessage"], json.dumps(body), SQS)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"QueueUrl":"\xff","MessageBody":"x"}',
        b'{"QueueUrl":1,"MessageBody":"x"}',
        b'{"QueueUrl":"q","MessageBody":"x","DelaySeconds":"1"}',
        b'{"QueueUrl":"q","MessageBody":"x","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"?"}}}',
        b'{"QueueUrl":' + b"[" * 100_000,
    ],
)
def test_json_of_another_shape_is_refused(body):
    with pytest.raises(errors.SerializationException):
        parse_json(ACTIONS["SendMessage"], body, SQS)


def test_unknown_members_in_json_are_ignored():
    value = {"DataType": "Binary", "BinaryValue": "/w==", "New": [1]}
    entry = {"Id": "a", "MessageBody": "x", "MessageAttributes": {"a": value}, "New": {"Id": 7}}
    body = json.dumps({"New": None, "QueueUrl": "q", "Entries": [entry]})
    request = parse_json(ACTIONS["SendMessageBatch"], body, SQS)
    assert request.queue_url == "q"
    [found] = request.entries
    assert (found.id, found.message_body) == ("a", "x")
    assert found.message_attributes["a"].binary_value == b"\xff"


@pytest.mark.parametrize(
    "body",
    [
        b'{"New":1,"QueueUrl":1,"MessageBody":"x"}',
        b'{"New":1,"QueueUrl":"q","MessageBody":"x","DelaySeconds":1.5}',
        b'{"New":1,"QueueUrl":"q","MessageBody":"x","MessageAttributes":[]}',
    ],
)
def test_other_mistakes_are_reported_despite_an_unknown_member(body):
    with pytest.raises(errors.SerializationException):
        parse_json(ACTIONS["SendMessage"], body, SQS)


def test_values_from_json_are_checked_too():
    with pytest.raises(errors.InvalidParameterValue, match="MaxNumberOfMessages"):
        parse_json(ACTIONS["ReceiveMessage"], b'{"QueueUrl":"q","MaxNumberOfMessages":11}', SQS)


def test_results_have_amazons_names_and_no_empty_keys():
    message = responses.ReceivedMessage(
        message_id="m",
        receipt_handle="h",
        md5_of_body="d",
        body="x",
        md5_of_message_attributes="e",
        message_attributes={"a": MessageAttributeValue(data_type="Binary", binary_value=b"\xff")},
    )
    assert to_dict(responses.ReceiveMessageResponse(messages=[message])) == {
        "Messages": [
            {
                "MessageId": "m",
                "ReceiptHandle": "h",
                "MD5OfBody": "d",
                "Body": "x",
                "MD5OfMessageAttributes": "e",
                "MessageAttributes": {"a": {"BinaryValue": b"\xff", "DataType": "Binary"}},
            }
        ]
    }


@pytest.mark.parametrize(
    "response",
    [
        responses.Empty(),
        responses.ReceiveMessageResponse(),
        responses.ListQueuesResponse(queue_urls=[]),
        responses.ListQueueTagsResponse(),
        responses.GetQueueAttributesResponse(attributes={}),
        responses.SendMessageBatchResponse(),
    ],
)
def test_an_empty_result_has_no_key(response):
    assert to_dict(response) == {}


@pytest.mark.rule("redrive.26")
def test_dead_letter_sources_keep_their_key_in_an_empty_result():
    assert to_dict(responses.ListDeadLetterSourceQueuesResponse(queue_urls=[])) == {"queueUrls": []}


def test_a_failed_entry_names_the_sender_as_at_fault():
    entry = responses.BatchResultErrorEntry(
        id="a", sender_fault=True, code="InvalidParameterValue", message="why"
    )
    response = responses.DeleteMessageBatchResponse(failed=[entry])
    assert to_dict(response) == {
        "Failed": [{"Id": "a", "SenderFault": True, "Code": "InvalidParameterValue", "Message": "why"}]
    }


FIRST_USE = """
import sys, threading
from sqsqlite.contract.limits import SQS
from sqsqlite.contract.shapes import ACTIONS, parse

VALUE = {"DataType": "String", "StringValue": "x"}
MESSAGE = {"MessageBody": "x", "MessageAttributes": {"a": VALUE}}
GIVEN = {
    "SendMessageBatch": {"QueueUrl": "q", "Entries": [{"Id": "1", **MESSAGE}]},
    "SendMessage": {"QueueUrl": "q", **MESSAGE},
    "DeleteMessageBatch": {"QueueUrl": "q", "Entries": [{"Id": "1", "ReceiptHandle": "x"}]},
    "CreateQueue": {"QueueName": "q", "Attributes": {"DelaySeconds": "1"}, "tags": {"a": "b"}},
}

def use(action, gate):
    gate.wait()
    parse(ACTIONS[action], GIVEN[action], SQS)

sys.setswitchinterval(1e-6)
for action in GIVEN:
    gate = threading.Barrier(4)
    threads = [threading.Thread(target=use, args=(action, gate)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_may_use_a_kind_of_request_for_the_first_time_together():
    # Of msgspec, which then read what another thread had half written: about 3 of 4 such processes crashed.
    for _ in range(5):
        subprocess.run([sys.executable, "-c", FIRST_USE], check=True)
