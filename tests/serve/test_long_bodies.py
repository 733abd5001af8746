# SPDX-License-Identifier: Apache-2.0
"""Long bodies: the server authenticates them before parsing, and other requests do not wait for them."""

import asyncio
import json
import re
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from sqsqlite.access.access import Access, _now
from sqsqlite.access.exchange import (
    IncompleteSignature,
    InvalidClientTokenId,
    RequestExpired,
    SignatureDoesNotMatch,
)
from sqsqlite.access.keys import add_key
from sqsqlite.contract.limits import NATIVE, SQS
from sqsqlite.contract.urlencoded import MOST_FIELDS, MOST_IN_URL, parse_form
from sqsqlite.errors import InvalidSecurity, SerializationException
from sqsqlite.serve.client import LONG_BYTES, Disconnected, LongBodies
from sqsqlite.serve.json_protocol import check_value_count
from tests.serve.exchanges import exchange, signed
from tests.serve.raw import FORM, Connection, ask, json_of, post
from tests.serve.serving import client_of, serving

LONG = b"x" * (LONG_BYTES + 1)
THREAD = "sqsqlite-body_0"


@pytest.fixture
def key(store):
    return store.write(add_key, "111111111111", "")


@pytest.fixture
def open_url(store):
    """A server without keys, and its queue `q`."""
    with serving(store) as url:
        ask(url, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
        yield url


def signed_post(url, body, access_key_id, secret, signed_body=None):
    """A form with a signature of this key, over another body if one is given."""
    request = AWSRequest(
        "POST", url, {"Content-Type": "application/x-www-form-urlencoded"}, signed_body or body
    )
    SigV4Auth(Credentials(access_key_id, secret), "sqs", "us-east-1").add_auth(request)
    host = url.removeprefix("http://").encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    return post(body, lines.encode()).replace(b"Host: localhost", b"Host: " + host)


def code_of(answer):
    return answer.status, answer.body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()


# --- The signature comes first

UNREADABLE = {
    "no percent-encoding": b"Action=SendMessage&MessageBody=%zz",
    "too many parameters": b"Action=SendMessage" + b"&a=b" * MOST_FIELDS,
    "no action": b"Version=2012-11-05",
    "a long one": b"Action=SendMessage&MessageBody=%" + LONG,
}


@pytest.mark.parametrize("form", UNREADABLE.values(), ids=UNREADABLE)
def test_form_is_read_only_when_its_signature_is_right(store, key, form):
    """Only a caller with a key learns what is wrong with the body."""
    with serving(store) as url:
        key_id, secret = key.access_key_id, key.secret_access_key
        assert code_of(ask(url, post(form, FORM))) == (403, "InvalidSecurity")
        stranger = ask(url, signed_post(url, form, "NOBODY", secret))
        assert code_of(stranger) == (403, "InvalidClientTokenId")
        forger = ask(url, signed_post(url, form, key_id, "another"))
        assert code_of(forger) == (403, "SignatureDoesNotMatch")
        changed = ask(url, signed_post(url, form, key_id, secret, signed_body=form + b"&"))
        assert code_of(changed) == (403, "SignatureDoesNotMatch")
        assert ask(url, signed_post(url, form, key_id, secret)).status in (400, 404)


def test_action_of_a_query_string_is_known_without_a_body(store, key):
    """Any caller learns that the action is missing or unknown."""
    with serving(store) as url:
        assert ask(url, post(b"")).status == 404
        assert code_of(ask(url, post(b"", path=b"/?Action=Nope"))) == (400, "InvalidAction")
        assert code_of(ask(url, post(b"", path=b"/?Action=ListQueues"))) == (403, "InvalidSecurity")


def test_headers_alone_refuse_a_body_before_it_is_hashed(store, key):
    by_key = signed(LONG, key=key.access_key_id, secret=key.secret_access_key)
    access = Access(store)
    assert access.needs_digest(by_key)
    with pytest.raises(InvalidSecurity):
        access.needs_digest(exchange(body=LONG))
    with pytest.raises(InvalidClientTokenId):
        access.needs_digest(signed(LONG, key="NOBODY"))
    with pytest.raises(IncompleteSignature):
        access.needs_digest(replace(by_key, headers={**by_key.headers, b"x-amz-date": b""}))
    with pytest.raises(RequestExpired):
        Access(store, now=lambda: _now() + timedelta(minutes=16)).needs_digest(by_key)


def test_without_keys_no_body_is_hashed(store):
    assert not Access(store).needs_digest(signed(LONG))


def test_signature_is_checked_against_the_digest_of_the_body(store, key):
    asked = signed(LONG, key=key.access_key_id, secret=key.secret_access_key)
    with pytest.raises(SignatureDoesNotMatch):
        Access(store).authenticate(replace(asked, digest="0" * 64))


@pytest.mark.parametrize("headers", [b"", b"X-Amz-Target: AmazonSQS.ListQueues\r\n"], ids=["query", "json"])
def test_parameters_of_a_query_string_are_limited(store, key, headers):
    """The server parses it to find the signature, so any client can send one."""
    with serving(store) as url:
        for count, status in ((MOST_IN_URL, 403), (MOST_IN_URL + 1, 400)):
            path = b"/?Action=ListQueues" + b"&a=b" * (count - 1)
            assert ask(url, post(b"", headers, path)).status == status


@pytest.mark.parametrize("names", ["host;x-amz-date;host", ";".join(f"x{number}" for number in range(101))])
def test_signed_headers_are_limited_and_named_once(store, key, names):
    asked = signed(key=key.access_key_id, secret=key.secret_access_key)
    line = re.sub(
        rb"SignedHeaders=[^,]*", b"SignedHeaders=" + names.encode(), asked.headers[b"authorization"]
    )
    with pytest.raises(IncompleteSignature, match="once"):
        Access(store).authenticate(replace(asked, headers={**asked.headers, b"authorization": line}))


# --- Apart from the event loop


def bodies_are_read_apart():
    return any(thread.name == THREAD for thread in threading.enumerate())


@pytest.mark.parametrize("action", ["json", "form"])
def test_long_body_is_read_in_a_thread_of_its_own(open_url, action):
    for text, is_long in ((b"x", False), (LONG, True)):
        json_body = b'{"QueueUrl":"q","MessageBody":"' + text + b'"}'
        form = b"Action=SendMessage&QueueUrl=q&MessageBody=" + text
        request = json_of(b"SendMessage", json_body) if action == "json" else post(form, FORM)
        assert ask(open_url, request).status == 200
        assert bodies_are_read_apart() is is_long


def test_long_signed_message_arrives_as_it_was_sent(store, key):
    with serving(store) as url:
        client = client_of(url, key)
        queue = client.create_queue(QueueName="q")["QueueUrl"]
        text = 'é\\",' * LONG_BYTES
        client.send_message(QueueUrl=queue, MessageBody=text)
        [message] = client.receive_message(QueueUrl=queue)["Messages"]
        assert message["Body"] == text


def test_unsigned_long_body_is_not_hashed(store, key):
    with serving(store) as url:
        for request in (json_of(b"SendMessage", LONG), post(LONG, FORM)):
            assert ask(url, request).status == 403
            assert not bodies_are_read_apart()


def test_error_of_a_long_body_names_a_queue_that_does_not_exist(open_url):
    """A missing queue is reported before other errors, even for a long request."""
    body = b'{"MessageBody":7,"x":"' + LONG + b'","QueueUrl":"other"}'
    answer = ask(open_url, json_of(b"SendMessage", body))
    assert json.loads(answer.body)["__type"].endswith("#QueueDoesNotExist")


class Waiting:
    """A client that stays until `leave` is called."""

    def __init__(self):
        self._gone = asyncio.get_running_loop().create_future()

    def gone(self):
        return self._gone

    def leave(self):
        self._gone.set_result(None)


def test_other_requests_are_served_while_a_long_body_is_parsed():
    async def run():
        bodies, may_end = LongBodies(), threading.Event()
        reading = asyncio.create_task(bodies.work(LONG, Waiting(), may_end.wait, 300))
        await asyncio.sleep(0)
        assert await bodies.work(b"short", Waiting(), "read".upper) == "READ"
        assert not reading.done()
        may_end.set()
        assert await reading
        bodies.close()

    asyncio.run(run())


def test_body_of_a_disconnected_client_is_not_parsed():
    """The body is not kept until the thread is free either."""

    async def run():
        bodies, may_end, read = LongBodies(), threading.Event(), []
        first = asyncio.create_task(bodies.work(LONG, Waiting(), may_end.wait, 300))
        client = Waiting()
        second = asyncio.create_task(bodies.work(LONG, client, read.append, LONG))
        await asyncio.sleep(0)
        client.leave()
        with pytest.raises(Disconnected):
            await second
        may_end.set()
        assert await first
        assert await bodies.work(LONG, Waiting(), len, LONG) == len(LONG)
        assert read == []
        bodies.close()

    asyncio.run(run())


def test_failure_in_the_thread_is_the_failure_of_the_request():
    async def run():
        bodies = LongBodies()
        with pytest.raises(SerializationException):
            await bodies.work(LONG, Waiting(), check_value_count, b"," * 10_002, SQS)
        bodies.close()

    asyncio.run(run())


# --- How many values a JSON text may hold


def with_values(count, text=""):
    """A request with this many values and a long text."""
    members = {"QueueUrl": "q", "MessageBody": text, "x": [0] * (count - 3)}
    return json.dumps(members).encode()


def test_values_of_a_json_request_are_limited(open_url):
    assert ask(open_url, json_of(b"SendMessage", with_values(5_000, "hi"))).status == 200
    answer = ask(open_url, json_of(b"SendMessage", with_values(5_001, "hi")))
    assert (answer.status, json.loads(answer.body)["__type"].rpartition("#")[2]) == (
        400,
        "SerializationException",
    )
    assert b"more than 5000 values" in answer.body


@pytest.mark.parametrize(
    "many",
    [
        b",".join(b'"k%d":%d' % (number, number) for number in range(100_000)),
        b'"MessageAttributes":{' + b",".join(b'"k%d":{}' % number for number in range(100_000)) + b"}",
        b'"x":[' + b"[]," * 100_000 + b"0]",
        b'"x":' + b'[{"a":' * 100_000,
    ],
    ids=["members", "attributes", "arrays", "nested"],
)
def test_too_many_values_of_any_kind_are_refused_before_parsing(open_url, many):
    with Connection(open_url) as connection:
        answer = connection.ask(
            json_of(b"SendMessage", b'{"QueueUrl":"other","MessageBody":"hi",' + many + b"}")
        )
        assert answer.status == 400
        assert b"more than 5000 values" in answer.body
        assert connection.ask(json_of(b"ListQueues", b"{}")).status == 200


@settings(max_examples=25)
@given(
    st.text(st.sampled_from('\\",[{:}]aé'), max_size=60),
    st.integers(0, 70),
)
def test_text_inside_strings_never_counts_as_values(text, shift):
    """The text is counted in pieces of 64 KiB, and the string crosses the end of one."""
    pad = "a" * (65_536 - 60 - shift)
    body = json.dumps({"pad": pad, "text": text, "x": [0] * 4_997}, separators=(",", ":")).encode()
    check_value_count(body, SQS)
    more = json.dumps({"pad": pad, "text": text, "x": [0] * 4_998}, separators=(",", ":")).encode()
    with pytest.raises(SerializationException):
        check_value_count(more, SQS)


def test_full_batch_fits_the_limit_on_values():
    value = {"DataType": "String", "StringValue": "x", "StringListValues": [], "BinaryListValues": []}
    entry = {
        "Id": "a",
        "MessageBody": "x",
        "DelaySeconds": 0,
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
    }
    entry["MessageAttributes"] = {f"name{number}": value for number in range(10)}
    entry["MessageSystemAttributes"] = {"AWSTraceHeader": value}
    for limits in (SQS, NATIVE):
        entries = [entry] * limits.batch_entry_count
        check_value_count(json.dumps({"QueueUrl": "q", "Entries": entries}).encode(), limits)


# --- Forms, which are decoded in pieces


@pytest.mark.parametrize("shift", range(6))
def test_encoded_byte_across_a_piece_boundary_is_read(shift):
    text = "a" * (65_536 - shift) + "é=+ " * 20_000
    encoded = text.encode().replace(b"+", b"%2B").replace(b" ", b"+").replace("é".encode(), b"%C3%A9")
    assert parse_form(b"x=" + encoded) == {"x": text}
