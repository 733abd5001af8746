# SPDX-License-Identifier: Apache-2.0
"""X-Amzn-Trace-Id, the HTTP header of X-Ray, becomes a message's AWSTraceHeader."""

import json

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sqsqlite.access.access import Access
from sqsqlite.access.keys import add_key
from tests.serve.raw import FORM, ask, json_of, post
from tests.serve.serving import client_of, serving

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


def test_message_gets_the_trace_header_of_its_request(url):
    send(url, MessageBody="hi")
    assert traces(url) == [TRACE]


def test_message_gets_the_trace_header_by_the_query_protocol_too(url):
    body = b"Action=SendMessage&QueueUrl=q&MessageBody=hi"
    assert ask(url, post(body, FORM + HEADER)).status == 200
    assert traces(url) == [TRACE]


def test_trace_header_of_the_message_wins_over_that_of_the_request(url):
    send(url, MessageBody="hi", MessageSystemAttributes=OWN)
    assert traces(url) == ["Root=1-own"]


def test_message_has_no_trace_header_unless_one_was_given(url):
    send(url, MessageBody="hi", headers=b"")
    send(url, MessageBody="hi", headers=b"X-Amzn-Trace-Id:\r\n")
    assert traces(url) == [None, None]


def test_batch_entries_ignore_the_trace_header_of_the_request(url):
    entries = [
        {"Id": "a", "MessageBody": "hi"},
        {"Id": "b", "MessageBody": "hi", "MessageSystemAttributes": OWN},
    ]
    send(url, b"SendMessageBatch", Entries=entries)
    assert sorted(traces(url), key=str) == [None, "Root=1-own"]


class SigningAll(SigV4Auth):
    """botocore does not sign the header."""

    def headers_to_sign(self, request):
        found = super().headers_to_sign(request)
        for name, value in request.headers.items():
            if name.lower() == "x-amzn-trace-id":
                found[name.lower()] = value
        return found


@pytest.mark.parametrize(("signer", "expected"), [(SigV4Auth, None), (SigningAll, TRACE)])
def test_with_keys_the_header_must_be_signed(signer, expected, store):
    key = store.write(add_key, "000000000000", "")
    with serving(store, Access(store)) as url:
        client = client_of(url, key)
        queue_url = client.create_queue(QueueName="q")["QueueUrl"]
        headers = {
            "Host": "localhost",
            "X-Amz-Target": "AmazonSQS.SendMessage",
            "X-Amzn-Trace-Id": TRACE,
        }
        body = json.dumps({"QueueUrl": queue_url, "MessageBody": "hi"}).encode()
        request = AWSRequest("POST", f"{url}/", headers=headers, data=body)
        signer(Credentials(key.access_key_id, key.secret_access_key), "sqs", "us-east-1").add_auth(request)
        lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items() if name != "Host")
        answer = ask(url, post(body, lines.encode()))
        assert answer.status == 200, answer.body
        received = client.receive_message(QueueUrl=queue_url, MessageSystemAttributeNames=["AWSTraceHeader"])
    [message] = received["Messages"]
    assert message.get("Attributes", {}).get("AWSTraceHeader") == expected
