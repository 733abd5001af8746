# SPDX-License-Identifier: Apache-2.0
"""Valid HTTP with invalid content: the answer is SQS's own 400 in the form of the request's protocol."""

import json
import threading
import xml.etree.ElementTree as ET
from urllib.parse import quote

import pytest

from sqsqlite.errors import Busy, CommitInDoubt, DiskFull
from tests.serve.raw import FORM, HOST, Connection, ask, json_of, post
from tests.serve.serving import serving


@pytest.fixture
def url(store):
    with serving(store) as found:
        ask(found, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
        yield found


def refusal(answer):
    """Type and message of an error in JSON."""
    assert answer.headers["content-type"] == "application/x-amz-json-1.0"
    body = json.loads(answer.body)
    return answer.status, body["__type"].partition("#")[2], body["message"]


def xml_refusal(answer):
    """Code and message of an error in XML."""
    assert answer.headers["content-type"] == "text/xml"
    error = ET.fromstring(answer.body)
    space = {"d": "http://queue.amazonaws.com/doc/2012-11-05/"}
    return (
        answer.status,
        error.findtext("d:Error/d:Code", "", space),
        error.findtext("d:Error/d:Message", "", space),
    )


NO_JSON = {
    "nothing but a bracket": b"{",
    "an array": b"[]",
    "null": b"null",
    "10^5 arrays in each other": b"[" * 100_000 + b"]" * 100_000,
    "10^5 objects in each other": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "10^5 arrays in a known member": b'{"QueueUrl":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "10^5 arrays in an unknown member": b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "bytes that are no UTF-8": b'{"QueueUrl":"q","MessageBody":"\xff"}',
    "half a surrogate pair": b'{"QueueUrl":"q","MessageBody":"\\ud800"}',
    "a number as text": b'{"QueueUrl":"q","MessageBody":7}',
    "a text as number": b'{"QueueUrl":"q","MessageBody":"hi","DelaySeconds":"7"}',
    "a number of 10^5 digits": b'{"QueueUrl":"q","MessageBody":"hi","DelaySeconds":' + b"9" * 100_000 + b"}",
    "a number beyond all": b'{"QueueUrl":"q","MessageBody":"hi","DelaySeconds":1e999999}',
    "no number": b'{"QueueUrl":"q","MessageBody":"hi","DelaySeconds":NaN}',
    "two documents": b'{"QueueUrl":"q","MessageBody":"hi"}{}',
    "UTF-16": '{"QueueUrl":"q","MessageBody":"hi"}'.encode("utf-16"),
}


@pytest.mark.parametrize("name", NO_JSON)
def test_body_that_is_not_the_actions_json_is_refused(url, name):
    status, kind, message = refusal(ask(url, json_of(b"SendMessage", NO_JSON[name])))
    assert (status, kind) == (400, "SerializationException")
    assert len(message) < 300


def test_unknown_members_of_a_newer_sdk_are_ignored(url):
    entry = b'{"Id":"a","MessageBody":"hi","NewMember":{"a":1}}'
    body = b'{"QueueUrl":"q","Entries":[' + entry + b'],"NewMember":"x"}'
    answer = ask(url, json_of(b"SendMessageBatch", body))
    assert answer.status == 200
    assert json.loads(answer.body)["Successful"][0]["Id"] == "a"


def test_last_of_two_equal_members_counts_everywhere(url):
    """Even where a missing queue is reported before another error."""
    body = b'{"QueueUrl":"other","QueueUrl":"q","MessageBody":"hi","MessageBody":"ho"}'
    assert ask(url, json_of(b"SendMessage", body)).status == 200
    received = json.loads(ask(url, json_of(b"ReceiveMessage", b'{"QueueUrl":"q"}')).body)
    assert [message["Body"] for message in received["Messages"]] == ["ho"]
    swapped = b'{"QueueUrl":"q","QueueUrl":"other","MessageBody":7}'
    assert refusal(ask(url, json_of(b"SendMessage", swapped)))[1] == "QueueDoesNotExist"


def test_error_shortens_a_long_unknown_action(url):
    answer = ask(url, post(b"Action=" + b'"' * 1_000_000, FORM))
    assert (answer.status, b"InvalidAction" in answer.body) == (400, True)
    assert len(answer.body) < 10_000


@pytest.mark.parametrize(
    "action", [b"", b"Nope", b"sendmessage", b"\xe9\xff", b"x" * 5_000, b"SendMessage#", b"<b>"]
)
def test_unknown_target_is_an_unknown_operation(url, action):
    status, kind, _ = refusal(ask(url, json_of(action, b"{}")))
    assert (status, kind) == (400, "UnknownOperationException")


@pytest.mark.parametrize("target", ["DynamoDB_20120810.ListTables", "ListQueues"])
def test_target_of_another_service_is_an_unknown_operation(url, target):
    _, kind, message = refusal(ask(url, post(b"{}", f"X-Amz-Target: {target}\r\n".encode())))
    assert kind == "UnknownOperationException"
    assert message == f"The action {target} is not valid for this endpoint."


FORMS = {
    "10^5 parameters": b"Action=ListQueues&" + b"a=b&" * 100_000,
    "an encoded byte that is no UTF-8": b"Action=ListQueues&x=%FF",
    "half a surrogate pair": b"Action=ListQueues&x=%ED%A0%80",
    "a byte that is no ASCII": b"Action=ListQueues&x=\xff",
    "a number of 10^5 digits": b"Action=ListQueues&MaxResults=" + b"9" * 100_000,
    "a number that is none": b"Action=ListQueues&MaxResults=1e3",
    "a number in other digits": b"Action=ListQueues&MaxResults=" + quote("\u0661").encode(),
    "a number with an underscore": b"Action=ListQueues&MaxResults=1_0",
    "a number with a space": b"Action=ListQueues&MaxResults=+1",
}


@pytest.mark.parametrize("name", FORMS)
def test_form_that_cannot_be_read_is_refused(url, name):
    status, code, message = xml_refusal(ask(url, post(FORMS[name], FORM)))
    assert (status, code) == (400, "InvalidParameterValue")
    assert len(message) < 300


def test_form_may_hold_utf_8_without_percent_encoding(url):
    assert ask(url, post("Action=SendMessage&QueueUrl=q&MessageBody=naïve".encode(), FORM)).status == 200
    received = json.loads(ask(url, json_of(b"ReceiveMessage", b'{"QueueUrl":"q"}')).body)
    assert [message["Body"] for message in received["Messages"]] == ["naïve"]


def test_form_without_an_action_is_refused(url):
    answer = ask(url, post(b"Version=2012-11-05", FORM))
    assert (answer.status, answer.body) == (404, b"<UnknownOperationException/>")


@pytest.mark.parametrize(
    "name",
    [
        "a." * 50_000,
        "MessageAttribute." * 1_000 + "1.Name",
        "Attribute.99999999999999999999.Name",
        "Attribute.-1.Name",
        "Attribute..Name",
        "Attribute.1.Name.Name",
        ".",
    ],
)
def test_malformed_parameter_names_are_ignored(url, name):
    answer = ask(url, post(b"Action=ListQueues&Version=2012-11-05&%s=x" % name.encode(), FORM))
    assert answer.status == 200


PATHS = [
    b"/../../etc/passwd",
    b"/000000000000/../q",
    b"/000000000000/%2e%2e%2fq",
    b"/000000000000/q%00",
    b"/000000000000/q%0d%0aX:%20y",
    b"/000000000000/%FF",
    b"/000000000000/q/r",
    b"//evil.example/000000000000/q/r",
    b"/00000000000/q",
    b"/000000000000/%E0%A5%A7",
    b"/%",
    b"/%zz",
    b"/q;r",
    b"/\\q",
]


@pytest.mark.parametrize("target", PATHS)
def test_malformed_paths_name_no_queue(url, target):
    request = (
        b"GET " + target + b"?Action=GetQueueAttributes&AttributeName.1=All HTTP/1.1\r\n" + HOST + b"\r\n"
    )
    answer = ask(url, request)
    assert xml_refusal(answer)[:2] == (400, "AWS.SimpleQueueService.NonExistentQueue")
    assert "x" not in answer.headers


@pytest.mark.parametrize("name", ["../x", "q/r", "q%00", "q\r\nX: y", "<b>", "q\u0967", "", "a" * 81])
def test_invalid_queue_names_are_refused_without_a_traceback(url, name):
    body = json.dumps({"QueueName": name}).encode()
    status, kind, _ = refusal(ask(url, json_of(b"CreateQueue", body)))
    assert (status, kind) in {
        (400, "InvalidParameterValueException"),
        (400, "MissingRequiredParameterException"),
    }


def test_value_repeated_in_an_xml_error_is_escaped(url):
    answer = ask(url, post(b"Action=%3Cscript%3E%26%22%0D%0A&Version=2012-11-05", FORM))
    assert b"&lt;script&gt;&amp;&quot;&#xD;\n" in answer.body
    assert "<script>" in xml_refusal(answer)[2]


@pytest.mark.parametrize("character", ["\0", "\x01", "\x0b", "\x1b", "\x1f", "\ufffe", "\uffff"])
def test_characters_that_xml_forbids_are_replaced_in_an_error(url, character):
    asked = f"Action=a{quote(character)}b%09%0A%7F&Version=2012-11-05".encode()
    assert "The action a\ufffdb\t\n\x7f is not" in xml_refusal(ask(url, post(asked, FORM)))[2]


def test_characters_that_xml_forbids_are_replaced_in_the_failure_of_an_entry(url):
    names = {"Id": "a", "MessageBody": "hi", "MessageGroupId": "\x01"}
    fields = "".join(
        f"&SendMessageBatchRequestEntry.1.{name}={quote(value)}" for name, value in names.items()
    )
    answer = ask(url, post(f"Action=SendMessageBatch&QueueUrl=q{fields}".encode(), FORM))
    assert "Value \ufffd for parameter MessageGroupId" in "".join(ET.fromstring(answer.body).itertext())


def test_invalid_version_is_not_repeated(url):
    answer = ask(url, post(b'Action=ListQueues&Version="><b>', FORM))
    assert b'xmlns="http://queue.amazonaws.com/doc/2012-11-05/"' in answer.body


def test_connection_stays_usable_after_refusals(url):
    with Connection(url) as connection:
        for body in NO_JSON.values():
            assert connection.ask(json_of(b"SendMessage", body)).status == 400
        assert connection.ask(json_of(b"SendMessage", b'{"QueueUrl":"q","MessageBody":"hi"}')).status == 200


# --- Failures of the server


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Busy, 503, "ServiceUnavailable"),
        (DiskFull, 503, "ServiceUnavailable"),
        (CommitInDoubt, 500, "InternalFailure"),
        (KeyError, 500, "InternalFailure"),
    ],
)
def test_error_about_the_file_hides_its_path(url, store, path, monkeypatch, error, status, code):
    """The error names the file, but the answer does not. A bug does not show the program's lines either."""

    write = store.write

    def fail(work, *args):
        if threading.current_thread().name == "sqsqlite-upkeep":
            return write(work, *args)
        raise error(f"{path}: something happened")

    monkeypatch.setattr(store, "write_many", fail)
    body = b'{"QueueUrl":"q","MessageBody":"hi"}'
    in_json = ask(url, json_of(b"SendMessage", body))
    assert refusal(in_json)[:2] == (status, code)
    assert in_json.headers["x-amzn-query-error"] == f"{code};Receiver"
    in_xml = ask(url, post(b"Action=SendMessage&MessageBody=hi", FORM, b"/000000000000/q"))
    assert xml_refusal(in_xml)[:2] == (status, code)
    assert b"<Type>Receiver</Type>" in in_xml.body
    for answer in (in_json, in_xml):
        assert path.name.encode() not in answer.body
        assert b"Traceback" not in answer.body
