"""X-Amzn-Trace-Id, the HTTP header of X-Ray, becomes a message's AWSTraceHeader."""

import json

import pytest

from tests.wire.raw import FORM, ask, json_of, post
from tests.wire.serving import serving

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
HEADER = f"X-Amzn-Trace-Id: {TRACE}\r\n".encode()
OWN = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-own"}}


@pytest.fixture
def url(store):
    with serving(store) as found:
        ask(found, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
        yield found


def send(url, action=b"SendMessage", headers=HEADER, **members):
    target = b"X-Amz-Target: AmazonSQS." + action + b"\r\n"
    answer = ask(url, post(json.dumps({"QueueUrl": "q", **members}).encode(), target + headers))
    assert answer.status == 200, answer.body


def traces(url):
    asked = b'{"QueueUrl":"q","AttributeNames":["AWSTraceHeader"],"MaxNumberOfMessages":10}'
    found = json.loads(ask(url, json_of(b"ReceiveMessage", asked)).body)
    return [message.get("Attributes", {}).get("AWSTraceHeader") for message in found["Messages"]]


def test_message_has_the_requests(url):
    send(url, MessageBody="hi")
    assert traces(url) == [TRACE]


def test_message_has_the_requests_by_the_query_protocol_too(url):
    body = b"Action=SendMessage&QueueUrl=q&MessageBody=hi"
    assert ask(url, post(body, FORM + HEADER)).status == 200
    assert traces(url) == [TRACE]


def test_its_own_comes_first(url):
    send(url, MessageBody="hi", MessageSystemAttributes=OWN)
    assert traces(url) == ["Root=1-own"]


def test_it_has_none_without_either(url):
    send(url, MessageBody="hi", headers=b"")
    send(url, MessageBody="hi", headers=b"X-Amzn-Trace-Id:\r\n")
    assert traces(url) == [None, None]


def test_entries_of_a_batch_have_their_own_alone(url):
    entries = [
        {"Id": "a", "MessageBody": "hi"},
        {"Id": "b", "MessageBody": "hi", "MessageSystemAttributes": OWN},
    ]
    send(url, b"SendMessageBatch", Entries=entries)
    assert sorted(traces(url), key=str) == [None, "Root=1-own"]
