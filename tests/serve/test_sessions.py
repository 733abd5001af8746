# SPDX-License-Identifier: Apache-2.0
"""Temporary credentials: botocore signs with them in a header and in a URL. And what ends them."""

import base64
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from sqsqlite.access.access import Access, _now
from sqsqlite.access.exchange import ExpiredToken, InvalidClientTokenId, SignatureDoesNotMatch
from sqsqlite.access.key_file import KeyFile
from sqsqlite.access.keys import (
    DURATION_SECONDS,
    Credentials,
    add_key,
    credentials_of,
    make_session,
    read_token,
    remove_key,
    rotate_key,
)
from sqsqlite.errors import InvalidParameterValue
from tests.serve.exchanges import presigned, signed
from tests.serve.serving import client_of, serving

ACCOUNT = "111111111111"


@pytest.fixture
def key(store):
    return store.write(add_key, ACCOUNT, "worker")


def session_of(key, seconds=900):
    return make_session(key.access_key_id, key, seconds, _now().timestamp())


@pytest.fixture
def session(key):
    return session_of(key)


def signed_by(session, **parts):
    return signed(key=session.access_key_id, secret=session.secret_access_key, token=session.token, **parts)


def presigned_by(session, **parts):
    return presigned(
        {"Action": "ListQueues"}, session.access_key_id, session.secret_access_key, session.token, **parts
    )


WAYS = pytest.mark.parametrize("by", [signed_by, presigned_by])


@WAYS
def test_session_is_its_keys_account_and_user(store, session, by):
    asked = by(session)
    assert Access(store).authenticate(asked) == (ACCOUNT, "worker")
    assert asked.access_key_id == session.access_key_id


def test_sessions_are_unique_and_do_not_contain_the_keys_secret(key):
    made = [session_of(key) for _ in range(20)]
    for name in ("access_key_id", "secret_access_key", "token"):
        assert len({getattr(session, name) for session in made}) == 20
    assert {len(session.secret_access_key) for session in made} == {40}
    for session in made:
        assert key.secret_access_key.encode() not in base64.urlsafe_b64decode(session.token)


@WAYS
def test_session_expires_at_its_end(store, session, by):
    before = Access(store, now=lambda: _now() + timedelta(seconds=890))
    assert before.authenticate(by(session)) == (ACCOUNT, "worker")
    after = Access(store, now=lambda: _now() + timedelta(seconds=900))
    with pytest.raises(
        ExpiredToken, match="The security token included in the request is expired"
    ) as refused:
        after.authenticate(by(session))
    assert refused.value.http_status == 403


def flipped(text, place):
    """The text with another Base64 character at this index."""
    return text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]


@WAYS
def test_any_other_token_is_refused(store, session, by):
    access = Access(store)
    for token in (*(flipped(session.token, place) for place in range(0, 80, 7)), "x", "é", "=", "A" * 400):
        with pytest.raises(InvalidClientTokenId):
            access.authenticate(by(replace(session, token=token)))


@WAYS
def test_session_without_its_own_token_is_refused(store, key, session, by):
    access = Access(store)
    for token in (None, session_of(key).token):
        with pytest.raises(InvalidClientTokenId):
            access.authenticate(by(replace(session, token=token)))


@WAYS
def test_another_secret_is_refused(store, key, session, by):
    for secret in (key.secret_access_key, session_of(key).secret_access_key):
        with pytest.raises(SignatureDoesNotMatch):
            Access(store).authenticate(by(replace(session, secret_access_key=secret)))


def test_a_changed_end_breaks_the_mac_of_a_session(store, key, session):
    token = read_token(session.token)
    payload = token.payload.replace(str(token.expires_at).encode(), str(token.expires_at + 900).encode())
    forged = base64.urlsafe_b64encode(payload + token.mac).decode()
    assert read_token(forged).expires_at == token.expires_at + 900
    assert credentials_of(read_token(forged), key) is None
    with pytest.raises(InvalidClientTokenId):
        Access(store).authenticate(signed_by(replace(session, token=forged)))


def test_permanent_key_with_a_session_token_is_refused(store, key, session):
    with pytest.raises(InvalidClientTokenId):
        Access(store).authenticate(
            signed(key=key.access_key_id, secret=key.secret_access_key, token=session.token)
        )


@WAYS
def test_session_ends_at_once_with_a_key_that_is_removed(store, key, session, by):
    access = Access(store)
    access.authenticate(by(session))
    store.write(remove_key, key.access_key_id)
    with pytest.raises(InvalidClientTokenId):
        access.authenticate(by(session))


@WAYS
@pytest.mark.parametrize("grace", [0, 60])
def test_session_ends_with_a_key_that_is_rotated(store, clock, key, session, by, grace):
    access = Access(store)
    store.write(rotate_key, key.access_key_id, grace)
    if grace:
        assert access.authenticate(by(session)) == (ACCOUNT, "worker")
        clock.advance(seconds=grace)
    with pytest.raises(InvalidClientTokenId):
        access.authenticate(by(session))


SECTION = "[ops]\naws_access_key_id = OPS\naws_secret_access_key = {}\naws_account_id = {}\n"


@WAYS
@pytest.mark.parametrize(
    "changed", [SECTION.format("another", ACCOUNT), SECTION.format("secret", "2" * 12), ""]
)
def test_session_of_a_key_in_a_file_ends_when_the_file_changes(store, tmp_path, by, changed):
    path = tmp_path / "credentials"
    path.write_text(SECTION.format("secret", ACCOUNT))
    access = Access(store, KeyFile(path))
    session = make_session("OPS", Credentials(ACCOUNT, "ops", "secret"), 900, _now().timestamp())
    assert access.authenticate(by(session)) == (ACCOUNT, "ops")
    path.write_text(changed)
    with pytest.raises(InvalidClientTokenId):
        access.authenticate(by(session))


def test_session_cannot_create_another_session(store, session):
    parent = Credentials(ACCOUNT, "worker", session.secret_access_key)
    second = make_session(session.access_key_id, parent, 900, _now().timestamp())
    with pytest.raises(InvalidClientTokenId):
        Access(store).authenticate(signed_by(second))


@pytest.mark.parametrize("seconds", [DURATION_SECONDS.low - 1, DURATION_SECONDS.high + 1])
def test_session_lasts_15_minutes_to_36_hours(key, seconds):
    with pytest.raises(InvalidParameterValue, match="900 to 129600"):
        session_of(key, seconds)
    assert session_of(key, DURATION_SECONDS.low)
    assert session_of(key, DURATION_SECONDS.high)


def test_boto3_works_with_a_session_and_learns_its_end(store, key, session):
    ahead = timedelta()
    with serving(store, Access(store, now=lambda: _now() + ahead)) as url:
        client = client_of(url, session, aws_session_token=session.token)
        client.create_queue(QueueName="q")
        client.send_message(QueueUrl="q", MessageBody="of a session")
        [message] = client_of(url, key).receive_message(QueueUrl="q")["Messages"]
        assert message["Body"] == "of a session"
        ahead = timedelta(seconds=900)
        with pytest.raises(ClientError) as refused:
            client.list_queues()
    assert refused.value.response["Error"]["Code"] == "ExpiredToken"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
