# SPDX-License-Identifier: Apache-2.0
"""The sample requests of Amazon's documentation, sent as printed, have the printed answers.

API reference, ChangeMessageVisibility: the current samples of both protocols, and that of the API version 2011-10-01.
The tests fill in the placeholders for host, URL, handle and authentication. Ids and white space of the answers differ.
"""

import json
import re
import xml.etree.ElementTree as ET
from urllib.parse import quote, urlsplit

import pytest

from sqsqlite.access.keys import add_key
from tests.serve.raw import HOST, Connection, ask, json_of
from tests.serve.serving import serving

PATH = "/000000000000/MyQueue"
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/sqs/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=" + "0" * 64
)
# As printed: one parameter per line, with the plus signs and slashes of the handle not encoded.
QUERY_BODY = "Action=ChangeMessageVisibility\n&VisibilityTimeout=60\n&ReceiptHandle={handle}"
OLD_PARAMETERS = (
    "?Action=ChangeMessageVisibility",
    "&VisibilityTimeout=60",
    "&ReceiptHandle={handle}",
    "&Version=2009-02-01",
    "&SignatureMethod=HmacSHA256",
    "&Expires=2009-04-18T22%3A52%3A43PST",
    "&AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE",
    "&SignatureVersion=2",
    "&Signature=Dqlp3Sd6ljTUA9Uf6SGtEExwUQEXAMPLE",
)
ANSWER = """
<?xml version="1.0"?>
<ChangeMessageVisibilityResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/">
    <ResponseMetadata>
        <RequestId>6a7a282a-d013-4a59-aba9-335b0fa48bed</RequestId>
    </ResponseMetadata>
</ChangeMessageVisibilityResponse>
"""
OLD_ANSWER = """
<ChangeMessageVisibilityResponse>
    <ResponseMetadata>
        <RequestId>
            6a7a282a-d013-4a59-aba9-335b0fa48bed
        </RequestId>
    </ResponseMetadata>
</ChangeMessageVisibilityResponse>
"""


@pytest.fixture
def url(store):
    with serving(store) as found:
        ask(found, json_of(b"CreateQueue", b'{"QueueName":"MyQueue"}'))
        yield found


@pytest.fixture
def handle(url):
    """The handle of a message received for 30 s, with a plus sign like the documented ones."""
    while True:
        ask(url, json_of(b"SendMessage", b'{"QueueUrl":"MyQueue","MessageBody":"hi"}'))
        answer = ask(url, json_of(b"ReceiveMessage", b'{"QueueUrl":"MyQueue"}'))
        found = json.loads(answer.body)["Messages"][0]["ReceiptHandle"]
        if "+" in found:
            return found


def is_hidden(url, clock, handle, seconds):
    """Whether the message is still leased this many seconds from now."""
    clock.advance(seconds=seconds)
    body = json.dumps({"QueueUrl": "MyQueue", "ReceiptHandle": handle, "VisibilityTimeout": 0}).encode()
    return ask(url, json_of(b"ChangeMessageVisibility", body)).status == 200


def same(answer, printed):
    """Equal except for the id and white space."""
    [request_id] = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", answer)
    printed = printed.replace("6a7a282a-d013-4a59-aba9-335b0fa48bed", request_id)
    return re.sub(r"\s", "", answer) == re.sub(r"\s", "", printed)


def without_namespace(xml):
    """The older page omits the declaration and the namespace, which real answers have always had."""
    return re.sub(r'<\?xml.*?\?>| xmlns="[^"]*"', "", xml)


def crlf(head):
    return head.replace("\n", "\r\n").encode()


def test_sample_request_in_json(url, handle, clock):
    body = json.dumps(
        {"QueueUrl": f"{url}{PATH}", "ReceiptHandle": handle, "VisibilityTimeout": 60}, indent=4
    )
    head = f"""POST / HTTP/1.1
Host: {urlsplit(url).netloc}
X-Amz-Target: AmazonSQS.ChangeMessageVisibility
X-Amz-Date: 20260101T000000Z
Content-Type: application/x-amz-json-1.0
Authorization: {AUTHORIZATION}
Content-Length: {len(body)}
Connection: Keep-Alive

"""
    with Connection(url) as connection:
        answer = connection.ask(crlf(head) + body.encode())
        assert answer.status == 200
        assert answer.headers.keys() == {"x-amzn-requestid", "content-length", "date", "content-type"}
        assert answer.headers["content-length"] == "0"
        assert answer.headers["content-type"] == "application/x-amz-json-1.0"
        assert answer.body == b""
        assert connection.ask(json_of(b"ListQueues", b"{}")).status == 200  # the connection stayed open
    assert is_hidden(url, clock, handle, seconds=59)


def post(url, body):
    head = f"""POST {PATH} HTTP/1.1
Host: {urlsplit(url).netloc}
X-Amz-Date: 20260101T000000Z
Content-Type: application/x-www-form-urlencoded
Authorization: {AUTHORIZATION}
Content-Length: {len(body)}
Connection: Keep-Alive

"""
    return ask(url, crlf(head) + body.encode())


@pytest.mark.parametrize("line_end", ["\n", "\r\n", " \n", ""])
def test_sample_request_of_the_query_protocol(url, handle, clock, line_end):
    answer = post(url, QUERY_BODY.replace("\n", line_end).format(handle=handle))
    assert answer.status == 200
    assert same(answer.body.decode(), ANSWER)
    assert answer.headers["x-amzn-requestid"].encode() in answer.body
    assert is_hidden(url, clock, handle, seconds=59)


def get(url, target):
    return ask(url, b"GET " + target.encode() + b" HTTP/1.1\r\n" + HOST + b"\r\n")


def test_sample_request_of_2011(url, handle, clock):
    """A URL with a slash after the queue and a signature of version 2, which is ignored without keys."""
    answer = get(url, f"{PATH}/{''.join(OLD_PARAMETERS).format(handle=quote(handle, safe='/='))}")
    assert answer.status == 200
    assert same(without_namespace(answer.body.decode()), OLD_ANSWER)
    assert is_hidden(url, clock, handle, seconds=59)


def test_signature_of_version_2_is_refused_where_there_are_keys(store, url, handle):
    store.write(add_key, "000000000000", "")
    with serving(store) as guarded:
        answer = get(guarded, f"{PATH}/{''.join(OLD_PARAMETERS).format(handle=quote(handle, safe='/='))}")
        assert answer.status in (400, 403)
        assert b"<ErrorResponse" in answer.body


VERSIONS = ["2012-11-05", "2011-10-01", "2009-02-01", "2008-01-01"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", ["GET", "POST", "GET with QueueUrl", "POST with QueueUrl"])
def test_each_version_works_by_get_and_post_and_at_both_addresses(url, handle, clock, version, way):
    text = QUERY_BODY.replace("\n", "").format(handle=quote(handle, safe="")) + f"&Version={version}"
    path = PATH
    if way.endswith("QueueUrl"):
        path, text = "/", f"{text}&QueueUrl={quote(url + PATH, safe='')}"
    if way.startswith("GET"):
        answer = get(url, f"{path}?{text}")
    else:
        form = "Content-Type: application/x-www-form-urlencoded"
        head = f"POST {path} HTTP/1.1\nHost: a\n{form}\nContent-Length: {len(text)}\n\n"
        answer = ask(url, crlf(head) + text.encode())
    assert answer.status == 200
    assert same(answer.body.decode(), ANSWER.replace("2012-11-05", version))
    assert is_hidden(url, clock, handle, seconds=59)


def test_errors_that_the_page_lists(url, handle, clock):
    """Errors of an older version too. The namespace repeats the version."""
    clock.advance(seconds=31)
    old = get(url, f"{PATH}/{''.join(OLD_PARAMETERS).format(handle=quote(handle, safe='/='))}")
    error = ET.fromstring(old.body)
    space = {"d": "http://queue.amazonaws.com/doc/2009-02-01/"}
    assert old.status == 400
    assert error.findtext("d:Error/d:Code", "", space) == "AWS.SimpleQueueService.MessageNotInflight"
    for changed, status, code in (
        (QUERY_BODY.format(handle="nonsense"), 404, "ReceiptHandleIsInvalid"),
        (QUERY_BODY.format(handle=handle).replace("60", "43201"), 400, "InvalidParameterValue"),
        (QUERY_BODY.format(handle=handle).replace("60", "-1"), 400, "InvalidParameterValue"),
        (QUERY_BODY.format(handle=handle).replace("VisibilityTimeout", "Other"), 400, "MissingParameter"),
        (QUERY_BODY.format(handle=""), 400, "MissingParameter"),
    ):
        answer = post(url, changed)
        assert (answer.status, f"<Code>{code}</Code>" in answer.body.decode()) == (status, True), answer
