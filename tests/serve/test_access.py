# SPDX-License-Identifier: Apache-2.0
"""Authentication with keys, without keys, and when a running server gets its first key."""

import re
import urllib.request
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from sqsqlite.access.access import Access, _now
from sqsqlite.access.exchange import (
    Identity,
    IncompleteSignature,
    InvalidClientTokenId,
    RequestExpired,
    ServiceUnavailable,
    SignatureDoesNotMatch,
)
from sqsqlite.access.key_file import KeyFile
from sqsqlite.access.keys import add_key, remove_key, rotate_key
from sqsqlite.access.open_access import Hosts
from sqsqlite.contract.shapes import ACTIONS
from sqsqlite.errors import AccessDenied, InvalidSecurity
from tests.serve.exchanges import exchange, presigned, signed
from tests.serve.serving import client_of, serving

ACCOUNT = "111111111111"
ANYBODY = Identity("000000000000")


@pytest.fixture
def key(store):
    return store.write(add_key, ACCOUNT, "worker")


def signed_by(key, **parts):
    return signed(key=key.access_key_id, secret=key.secret_access_key, **parts)


def test_signed_request_is_its_key_s_account_and_user(store, key):
    access = Access(store)
    found = access.authenticate(signed_by(key))
    assert found == (ACCOUNT, "worker")
    assert found.arn == f"arn:aws:iam::{ACCOUNT}:user/worker"
    url = presigned({"Action": "ListQueues"}, key=key.access_key_id, secret=key.secret_access_key)
    assert access.authenticate(url) == (ACCOUNT, "worker")
    assert Identity(ACCOUNT).arn == f"arn:aws:iam::{ACCOUNT}:root"


SIGNATURE_V2 = "AWSAccessKeyId=A&SignatureVersion=2&SignatureMethod=HmacSHA256&Signature=abc"
UNSIGNED = {
    "no signature": exchange(body=b"{}"),
    "another scheme": exchange(headers={"Authorization": "Basic dXNlcjpwYXNz"}),
    "version 2 in the query": exchange("GET", query=f"Action=ListQueues&{SIGNATURE_V2}"),
    "version 2 in the form": exchange(
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body=f"Action=ListQueues&{SIGNATURE_V2}".encode(),
    ),
}


@pytest.mark.parametrize("asked", UNSIGNED.values(), ids=UNSIGNED)
def test_unsigned_request_is_refused_only_if_there_are_keys(asked, store):
    assert Access(store).authenticate(asked) == ANYBODY
    store.write(add_key, ACCOUNT, "")
    with pytest.raises(InvalidSecurity) as refused:
        Access(store).authenticate(asked)
    assert refused.value.http_status == 403


def test_without_keys_any_signature_is_accepted(store):
    assert Access(store).authenticate(signed(secret="any")) == ANYBODY
    assert Access(store).authenticate(exchange(headers={"Authorization": "AWS4-HMAC-SHA256 ?"})) == ANYBODY


def test_unknown_key_wrong_secret_and_late_request_have_errors_of_their_own(store, key):
    access = Access(store)
    with pytest.raises(InvalidClientTokenId):
        access.authenticate(signed(key="NOBODY"))
    with pytest.raises(SignatureDoesNotMatch):
        access.authenticate(signed(key=key.access_key_id, secret="another"))
    with pytest.raises(SignatureDoesNotMatch):
        access.authenticate(replace(signed_by(key), body=b'{"QueueNamePrefix":"a"}'))
    with pytest.raises(IncompleteSignature):
        access.authenticate(exchange(headers={"Authorization": "AWS4-HMAC-SHA256 Credential=x"}))
    late = Access(store, now=lambda: _now() + timedelta(minutes=16))
    with pytest.raises(RequestExpired):
        late.authenticate(signed_by(key))


def test_key_of_the_file_with_a_session_token_is_refused(store, key):
    access = Access(store)
    with pytest.raises(InvalidClientTokenId):
        access.authenticate(signed_by(key, token="of-a-session"))
    with pytest.raises(InvalidClientTokenId):
        access.authenticate(
            presigned(
                {"Action": "ListQueues"}, key.access_key_id, key.secret_access_key, token="of-a-session"
            )
        )


def test_changed_keys_hold_at_once(store, clock, key):
    access = Access(store)
    new = store.write(rotate_key, key.access_key_id, 60)
    for one in (key, new):
        assert access.authenticate(signed_by(one)) == (ACCOUNT, "worker")
    clock.advance(seconds=60)
    with pytest.raises(InvalidClientTokenId):
        access.authenticate(signed_by(key))
    store.write(remove_key, new.access_key_id)
    with pytest.raises(InvalidClientTokenId):
        access.authenticate(signed_by(new))


def test_first_key_closes_an_open_server_and_no_removal_opens_it(store):
    access = Access(store, look_seconds=0)
    assert access.authenticate(exchange()) == ANYBODY
    key = store.write(add_key, ACCOUNT, "")
    with pytest.raises(InvalidSecurity):
        access.authenticate(exchange())
    store.write(remove_key, key.access_key_id)
    with pytest.raises(InvalidSecurity):
        access.authenticate(exchange())


def test_open_server_looks_for_keys_once_an_interval(store):
    access = Access(store, look_seconds=3600)
    store.write(add_key, ACCOUNT, "")
    assert access.authenticate(exchange()) == ANYBODY
    assert not access.is_in_force


def test_keys_of_a_credentials_file_add_to_the_keys_of_the_queues_file(store, key, tmp_path):
    path = tmp_path / "credentials"
    path.write_text(
        "[ops]\naws_access_key_id = OPS\naws_secret_access_key = secret\naws_account_id = 222222222222\n"
    )
    access = Access(store, KeyFile(path))
    assert access.authenticate(signed(key="OPS", secret="secret")) == ("222222222222", "ops")
    assert access.authenticate(signed_by(key)) == (ACCOUNT, "worker")
    path.write_text("nonsense")
    with pytest.raises(ServiceUnavailable) as refused:
        access.authenticate(signed_by(key))
    assert str(path) not in str(refused.value)


def test_server_with_an_empty_credentials_file_refuses_every_caller(store, tmp_path):
    path = tmp_path / "credentials"
    path.write_text("")
    with pytest.raises(InvalidSecurity):
        Access(store, KeyFile(path)).authenticate(exchange())


def test_plain_http_is_refused_only_if_tls_is_required(store, key):
    assert Access(store).authenticate(signed_by(key)) == (ACCOUNT, "worker")
    strict = Access(store, require_tls=True)
    with pytest.raises(InvalidSecurity, match="HTTPS"):
        strict.authenticate(signed_by(key))
    assert strict.authenticate(replace(signed_by(key), scheme="https")) == (ACCOUNT, "worker")


@pytest.mark.parametrize(("site", "is_taken"), [("cross-site", False), ("same-site", False), ("none", True)])
def test_server_without_keys_refuses_a_page_of_another_site(store, site, is_taken):
    asked = exchange("GET", query="Action=ListQueues", headers={"Sec-Fetch-Site": site})
    access = Access(store)
    if is_taken:
        assert access.authenticate(asked) == ANYBODY
        return
    with pytest.raises(AccessDenied):
        access.authenticate(asked)


@pytest.mark.parametrize(
    "host", ["attacker.example", "localhost.attacker.example", "127.0.0.1.nip.io", "[::2]:80"]
)
def test_server_without_keys_refuses_a_foreign_host_name(store, key_or_none, host):
    """A site can resolve its name to 127.0.0.1. Its pages then send that name."""
    asked = exchange(headers={"Host": host})
    if key_or_none is not None:
        with pytest.raises(InvalidSecurity):
            Access(store).authenticate(asked)
        return
    with pytest.raises(AccessDenied, match=re.escape(host)) as refused:
        Access(store).authenticate(asked)
    assert "--allowed-host" in str(refused.value)
    known = Hosts([re.sub(r":\d+$", "", host)])
    assert Access(store, hosts=known).authenticate(asked) == ANYBODY


@pytest.fixture(params=["no key", "a key"])
def key_or_none(request, store):
    return None if request.param == "no key" else store.write(add_key, ACCOUNT, "")


LOOPBACK = [
    "localhost",
    "LocalHost.:80",
    "queues.localhost:9324",
    "127.0.0.1",
    "127.255.0.1:80",
    "[::1]:9324",
    "",
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_server_without_keys_accepts_the_names_of_loopback(store, host):
    assert Access(store).authenticate(exchange(headers={"Host": host})) == ANYBODY


@pytest.mark.parametrize(
    ("origin", "is_taken"),
    [
        ("http://127.0.0.1:9324", True),
        ("http://localhost", True),
        ("https://queues.example:81", True),
        ("http://attacker.example:9324", False),
        ("https://localhost.attacker.example", False),
        ("chrome-extension://localhost", False),
        ("null", False),
        ("", False),
    ],
)
def test_server_without_keys_refuses_a_page_of_another_origin(store, origin, is_taken):
    asked = exchange(headers={"Origin": origin})
    access = Access(store, hosts=Hosts(base_url="https://queues.example/"))
    if is_taken:
        assert access.authenticate(asked) == ANYBODY
        return
    with pytest.raises(AccessDenied, match="another site"):
        access.authenticate(asked)


def asked_by_get(action, host="queues.example", method="GET", **headers):
    """Like an image on any page: over plain HTTP, a browser sends Origin and site only to names of loopback."""
    named = {"Host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    found = exchange(method, query=f"Action={action}", headers=named)
    found.action = action
    return found


def verdict(store, asked):
    access = Access(store, hosts=Hosts(["queues.example"]))
    try:
        return access.authenticate(asked) == ANYBODY
    except AccessDenied as refused:
        return refused.message


READING = [name for name in ACTIONS if re.match("Get|List", name)]


@pytest.mark.parametrize("action", [name for name in ACTIONS if name not in READING])
def test_get_that_any_page_may_send_changes_nothing_without_keys(store, action):
    """For names other than loopback's. To those of loopback, a browser names the page's site."""
    said = verdict(store, asked_by_get(action))
    assert said.startswith(
        f"Without access keys the server refuses {action} by GET for the host queues.example"
    )
    assert said.endswith("use POST.")
    assert verdict(store, asked_by_get(action, method="POST")) is True
    assert verdict(store, asked_by_get(action, host="localhost:9324")) is True


@pytest.mark.parametrize("action", READING)
def test_server_without_keys_accepts_a_get_that_only_reads(store, action):
    assert verdict(store, asked_by_get(action)) is True


@pytest.mark.parametrize(
    "header",
    [
        {"Authorization": "AWS4-HMAC-SHA256 Credential=anyone"},
        {"Authorization": "Bearer anything"},
        {"X-Amz-Target": "AmazonSQS.PurgeQueue"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://queues.example:9324"},
    ],
)
def test_server_without_keys_accepts_a_get_that_no_foreign_page_can_send(store, header):
    assert verdict(store, asked_by_get("PurgeQueue", **header)) is True


@pytest.mark.parametrize(
    "header",
    [
        # What a browser sends by itself: a password for a proxy, an address typed by the user or followed from a mail.
        {"Authorization": "Basic dXNlcjpwYXNzd29yZA=="},
        {"Authorization": "Negotiate YII="},
        {"Authorization": ""},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Cookie": "a=b"},
    ],
)
def test_server_without_keys_refuses_a_get_with_headers_that_a_browser_adds(store, header):
    assert verdict(store, asked_by_get("PurgeQueue", **header)) is not True


def test_server_with_keys_accepts_a_get_by_a_presigned_url(store, key):
    asked = presigned({"Action": "PurgeQueue"}, key.access_key_id, key.secret_access_key)
    asked.action = "PurgeQueue"
    assert Access(store).authenticate(asked) == (ACCOUNT, "worker")


def test_server_with_keys_demands_a_signature_from_a_page_of_another_origin(store, key):
    asked = signed_by(key, headers={"Origin": "https://attacker.example"})
    assert Access(store).authenticate(asked) == (ACCOUNT, "worker")


# --- over a socket


def codes(client):
    with pytest.raises(ClientError) as refused:
        client.list_queues()
    found = refused.value.response
    return found["Error"]["Code"], found["ResponseMetadata"]["HTTPStatusCode"]


def test_boto3_raises_each_refusal_under_its_code(store, key):
    with serving(store, Access(store)) as url:
        good = client_of(url, key)
        assert good.create_queue(QueueName="q")["QueueUrl"] == f"{url}/{ACCOUNT}/q"
        good.send_message(QueueUrl="q", MessageBody="signed, é included")
        [message] = good.receive_message(QueueUrl="q")["Messages"]
        assert message["Body"] == "signed, é included"
        assert codes(client_of(url, replace(key, secret_access_key="x"))) == ("SignatureDoesNotMatch", 403)
        assert codes(client_of(url, replace(key, access_key_id="x"))) == ("InvalidClientTokenId", 403)
        assert codes(client_of(url, key, aws_session_token="x")) == ("InvalidClientTokenId", 403)


def test_presigned_url_works_without_credentials(store, key):
    with serving(store, Access(store)) as url:
        client_of(url, key).create_queue(QueueName="q")
        request = AWSRequest(
            "GET", f"{url}/{ACCOUNT}/q", params={"Action": "SendMessage", "MessageBody": "a b+c é"}
        )
        credentials = Credentials(key.access_key_id, key.secret_access_key)
        SigV4QueryAuth(credentials, "sqs", "us-east-1", 60).add_auth(request)
        with urllib.request.urlopen(request.url) as answer:
            assert b"<SendMessageResult>" in answer.read()
        [message] = client_of(url, key).receive_message(QueueUrl="q")["Messages"]
        assert message["Body"] == "a b+c é"
