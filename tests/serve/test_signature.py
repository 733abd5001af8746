# SPDX-License-Identifier: Apache-2.0
"""Signatures of version 4: botocore's, published examples, and requests with one part changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from sqsqlite.access import signature
from sqsqlite.access.access import Access
from sqsqlite.access.exchange import IncompleteSignature, RequestExpired, SignatureDoesNotMatch
from sqsqlite.access.keys import add_key
from sqsqlite.access.signature import check_signature, is_signed, read_signature
from tests.serve.exchanges import HOST, KEY, SECRET, exchange, from_botocore, presigned, signed
from tests.serve.raw import ask
from tests.serve.serving import serving


def check(asked, secret=SECRET, now=None):
    check_signature(asked, read_signature(asked), secret, now)


def changed(asked, **parts):
    """The request with other headers or another part."""
    headers = {**asked.headers, **parts.pop("headers", {})}
    return replace(asked, headers=headers, **parts)


# --- requests signed by botocore

segments = st.lists(st.sampled_from(["a", "000000000000", "q.fifo", "x y", "é", "%", "..", ".", "", "~-_"]))
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
names = st.sampled_from(["X-Amz-Target", "Content-Type", "amz-sdk-request", "x-amzn-query-mode", "My-Header"])


@given(
    st.sampled_from(["GET", "POST", "PUT"]),
    segments,
    st.dictionaries(texts, texts, max_size=6),
    st.dictionaries(names, values),
    st.binary(max_size=200),
)
def test_each_signature_that_botocore_puts_in_a_header_is_accepted(method, path, query, headers, body):
    sent_query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items())
    url = f"http://{HOST}/{quote('/'.join(path))}" + (f"?{sent_query}" if sent_query else "")
    request = AWSRequest(method, url, headers=headers, data=body)
    SigV4Auth(Credentials(KEY, SECRET), "sqs", "eu-north-1").add_auth(request)
    check(from_botocore(request))


@given(segments, st.dictionaries(texts, texts, max_size=6), st.integers(1, 604_800))
def test_each_url_that_botocore_presigns_is_accepted(path, parameters, expires):
    request = AWSRequest("GET", f"http://{HOST}/{quote('/'.join(path))}", params=parameters)
    SigV4QueryAuth(Credentials(KEY, SECRET), "sqs", "us-east-1", expires).add_auth(request)
    asked = from_botocore(request)
    check(asked, now=datetime.fromisoformat(read_signature(asked).time_text))


def signed_with(headers):
    """A request for which botocore signs these headers."""
    sent = {"X-Amz-Target": "AmazonSQS.ListQueues", **headers}
    request = AWSRequest("POST", f"http://{HOST}/", headers=sent, data=b"{}")
    SigV4Auth(Credentials(KEY, SECRET), "sqs", "us-east-1").add_auth(request)
    return request


@pytest.mark.parametrize("value", ["café", "voilà x", "…", "日本"])
def test_header_bytes_are_verified_as_received(value):
    request = signed_with({"X-Amz-Meta": value})
    del request.headers["X-Amz-Meta"]
    check(changed(from_botocore(request), headers={b"x-amz-meta": value.encode()}))


@pytest.mark.parametrize(
    ("lines", "value"),
    [(["a", "b"], "a,b"), (["a", "b", "a"], "a,b,a"), (["a  b ", "c"], "a b,c"), (["", "b"], ",b")],
)
def test_header_sent_twice_is_signed_as_one(lines, value, store):
    key = store.write(add_key, "111122223333", "")
    with serving(store, Access(store)) as url:
        host = url.removeprefix("http://")
        request = AWSRequest(
            "POST",
            url,
            headers={"X-Amz-Target": "AmazonSQS.ListQueues", "X-Amz-Meta": value, "Host": host},
            data=b"{}",
        )
        SigV4Auth(Credentials(key.access_key_id, key.secret_access_key), "sqs", "us-east-1").add_auth(request)
        del request.headers["X-Amz-Meta"]
        sent = [*request.headers.items(), *(("X-Amz-Meta", line) for line in lines)]
        head = "".join(f"{name}: {value}\r\n" for name, value in sent)
        answer = ask(url, f"POST / HTTP/1.1\r\n{head}Content-Length: 2\r\n\r\n{{}}".encode())
    assert answer.status == 200, answer.body


def test_parts_of_a_signature_are_read():
    found = read_signature(signed(token="of-a-session", region="eu-north-1"))
    assert found.access_key_id == KEY
    assert found.scope.split("/")[1:] == ["eu-north-1", "sqs", "aws4_request"]
    assert {"host", "x-amz-date", "x-amz-target", "x-amz-security-token"} <= set(found.signed_headers)
    assert (found.token, found.presigned_seconds) == ("of-a-session", None)
    found = read_signature(presigned({"Action": "ListQueues"}, token="another", expires=60))
    assert (found.token, found.presigned_seconds, found.access_key_id) == ("another", 60, KEY)


# --- published examples

IAM_EXAMPLE = {
    "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
    "Host": "iam.amazonaws.com",
}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
UNRESERVED = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
VANILLA = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
EXAMPLES = {
    "the IAM user guide's ListUsers": (
        ("GET", "/", "Action=ListUsers&Version=2010-05-08", IAM_EXAMPLE, b""),
        "iam",
        "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
    ),
    "get-vanilla": (("GET", "/", "", {}, b""), "service", VANILLA),
    "get-slash": (("GET", "//", "", {}, b""), "service", VANILLA),
    "get-relative": (("GET", "/example/..", "", {}, b""), "service", VANILLA),
    "get-vanilla-query-order-key-case": (
        ("GET", "/", "Param2=value2&Param1=value1", {}, b""),
        "service",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "get-vanilla-query-unreserved": (
        ("GET", "/", f"{UNRESERVED}={UNRESERVED}", {}, b""),
        "service",
        "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
    ),
    "get-header-value-trim": (
        ("GET", "/", "", {"My-Header1": " value1", "My-Header2": ' "a   b   c"'}, b""),
        "service",
        "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    ),
    "post-vanilla": (
        ("POST", "/", "", {}, b""),
        "service",
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ),
    "post-x-www-form-urlencoded": (
        ("POST", "/", "", FORM, b"Param1=value1"),
        "service",
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
}


@pytest.mark.parametrize(("parts", "service", "expected"), EXAMPLES.values(), ids=EXAMPLES)
def test_signature_is_the_published_one_of(parts, service, expected):
    method, path, query, headers, body = parts
    sent = {"Host": "example.amazonaws.com", "X-Amz-Date": "20150830T123600Z", **headers}
    asked = exchange(method, path, query, sent, body)
    said = signature.Signed(
        KEY,
        f"20150830/us-east-1/{service}/aws4_request",
        "20150830T123600Z",
        tuple(sorted(name.lower() for name in sent)),
        expected,
        None,
        None,
    )
    assert signature.sign(asked, said, SECRET) == expected


# --- changed parts

TAMPERED = {
    "method": {"method": "PUT"},
    "path": {"path": b"/000000000000/q"},
    "query": {"query": b"Action=PurgeQueue"},
    "body": {"body": b'{"QueueName":"other"}'},
    "no body": {"body": b""},
    "action": {"headers": {b"x-amz-target": b"AmazonSQS.PurgeQueue"}},
    "content type": {"headers": {b"content-type": b"text/plain"}},
    "host": {"headers": {b"host": b"elsewhere:9324"}},
    "token": {"headers": {b"x-amz-security-token": b"another"}},
}


@pytest.mark.parametrize("parts", TAMPERED.values(), ids=TAMPERED)
def test_request_is_refused_with_another(parts):
    asked = signed(body=b'{"QueueName":"orders"}', token="one")
    check(asked)
    with pytest.raises(SignatureDoesNotMatch):
        check(changed(asked, **parts))


def test_another_secret_or_signature_is_refused():
    asked = signed()
    with pytest.raises(SignatureDoesNotMatch):
        check(asked, secret=SECRET + "x")
    said = read_signature(asked)
    other = said.signature[:-1] + ("0" if said.signature[-1] != "0" else "1")
    with pytest.raises(SignatureDoesNotMatch):
        check_signature(asked, replace(said, signature=other), SECRET)
    with pytest.raises(SignatureDoesNotMatch):
        check_signature(asked, replace(said, scope=said.scope.replace("us-east-1", "eu-north-1")), SECRET)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ListQueues", "PurgeQueue"),
        ("X-Amz-Expires=60", "X-Amz-Expires=61"),
        ("us-east-1", "eu-north-1"),
        ("Body=a%2Bb", "Body=a+b"),
        ("Body=a%2Bb", "Body=a%2Bb&Extra=1"),
        ("%FF", "%FE"),
    ],
)
def test_presigned_url_is_refused_with_another(old, new):
    """A plus sign counts as a space, as the parser of parameters reads it."""
    asked = presigned({"Action": "ListQueues", "Body": "a+b", "Raw": b"\xff"}, expires=60)
    check(asked)
    query = asked.query.decode()
    assert old in query
    with pytest.raises(SignatureDoesNotMatch):
        check(replace(asked, query=query.replace(old, new).encode()))


def test_order_of_parameters_and_letter_case_of_percent_signs_do_not_matter():
    asked = presigned({"Action": "ListQueues", "QueueNamePrefix": "a b/é"})
    *parts, last = asked.query.decode().split("&")
    check(replace(asked, query="&".join([last, *reversed(parts)]).replace("%C3%A9", "%c3%a9").encode()))


# --- time


def signed_at(asked):
    return datetime.fromisoformat(read_signature(asked).time_text)


@pytest.mark.parametrize("seconds", [-900, 0, 900])
def test_signature_holds_within_15_minutes_of_its_time(seconds):
    asked = signed()
    check(asked, now=signed_at(asked) + timedelta(seconds=seconds))


@pytest.mark.parametrize("seconds", [-901, 901, 86_400])
def test_signature_is_expired_beyond_15_minutes_of_its_time(seconds):
    asked = signed()
    with pytest.raises(RequestExpired):
        check(asked, now=signed_at(asked) + timedelta(seconds=seconds))


def test_presigned_url_holds_as_long_as_it_says():
    asked = presigned({"Action": "ListQueues"}, expires=7200)
    check(asked, now=signed_at(asked) + timedelta(seconds=7200))
    check(asked, now=signed_at(asked) - timedelta(seconds=900))
    for seconds in (7201, -901):
        with pytest.raises(RequestExpired):
            check(asked, now=signed_at(asked) + timedelta(seconds=seconds))


# --- form

CREDENTIAL = f"{KEY}/20300101/us-east-1/sqs/aws4_request"
GOOD = f"AWS4-HMAC-SHA256 Credential={CREDENTIAL}, SignedHeaders=host;x-amz-date, Signature={'0' * 64}"


@pytest.mark.parametrize(
    "header",
    [
        "AWS4-HMAC-SHA256",
        GOOD.replace("Signature=0", "Signature=z"),
        GOOD.replace("0" * 64, "0" * 63),
        GOOD.replace("SignedHeaders=host;x-amz-date, ", ""),
        GOOD.replace("/sqs/", "/s3/"),
        GOOD.replace("aws4_request", "aws5_request"),
        GOOD.replace("20300101", "2030-01-01"),
        GOOD.replace(KEY, "spaces are none"),
        GOOD + " and more",
    ],
)
def test_malformed_header_is_an_incomplete_signature(header):
    with pytest.raises(IncompleteSignature):
        read_signature(exchange(headers={"Authorization": header, "X-Amz-Date": "20300101T000000Z"}))


def test_authorization_header_with_other_spacing_is_read():
    header = GOOD.replace(", ", ",")
    assert read_signature(exchange(headers={"Authorization": header})).access_key_id == KEY


@pytest.mark.parametrize(
    "time_text", ["", "20300101", "20300101T000000", "20301301T000000Z", "2030-01-01T00:00:00Z"]
)
def test_malformed_time_is_an_incomplete_signature(time_text):
    asked = exchange(headers={"Authorization": GOOD, "X-Amz-Date": time_text})
    with pytest.raises(IncompleteSignature):
        check(asked, now=datetime(2030, 1, 1, tzinfo=UTC))


def test_dates_of_time_and_scope_must_be_the_same():
    asked = exchange(headers={"Authorization": GOOD, "X-Amz-Date": "20300102T000000Z"})
    with pytest.raises(IncompleteSignature):
        check(asked, now=datetime(2030, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize("expires", ["0", "604801", "-1", "", "1e3", "9" * 30])
def test_presigned_url_lives_a_second_to_seven_days(expires):
    asked = presigned({"Action": "ListQueues"}, expires=expires)
    with pytest.raises(IncompleteSignature):
        read_signature(asked)


@pytest.mark.parametrize("name", ["X-Amz-Credential", "X-Amz-Algorithm", "X-Amz-Date", "X-Amz-SignedHeaders"])
def test_presigned_url_without_a_part_is_incomplete(name):
    asked = presigned({"Action": "ListQueues"})
    parts = [part for part in asked.query.decode().split("&") if not part.startswith(name)]
    with pytest.raises(IncompleteSignature):
        check(replace(asked, query="&".join(parts).encode()))


@pytest.mark.parametrize("name", ["host", "x-amz-date", "x-amz-target"])
def test_headers_that_choose_the_action_must_be_signed(name):
    """Even if the signature over the rest is correct."""
    asked = signed()
    said = read_signature(asked)
    fewer = replace(said, signed_headers=tuple(one for one in said.signed_headers if one != name))
    fewer = replace(fewer, signature=signature.sign(asked, fewer, SECRET))
    with pytest.raises(IncompleteSignature, match=name):
        check_signature(asked, fewer, SECRET)


def test_header_cannot_replace_the_action_of_a_presigned_url():
    asked = presigned({"Action": "ListQueues"})
    with pytest.raises(IncompleteSignature, match="x-amz-target"):
        check(changed(asked, headers={b"x-amz-target": b"AmazonSQS.PurgeQueue"}))


def test_two_signatures_in_one_request_are_refused():
    asked = presigned({"Action": "ListQueues"})
    with pytest.raises(IncompleteSignature, match="both"):
        read_signature(changed(asked, headers={b"authorization": GOOD.encode()}))


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, ""),
        ({"Authorization": "Basic dXNlcjpwYXNz"}, ""),
        ({"Authorization": "AWS AKIDEXAMPLE:c2lnbmF0dXJl"}, ""),
        ({}, "AWSAccessKeyId=AKIDEXAMPLE&SignatureVersion=2&SignatureMethod=HmacSHA256&Signature=abc"),
    ],
    ids=["nothing", "another scheme", "version 1", "version 2"],
)
def test_is_not_signed_by(headers, query):
    assert not is_signed(exchange(headers=headers, query=query))
    assert is_signed(signed())
    assert is_signed(presigned({"Action": "ListQueues"}))
