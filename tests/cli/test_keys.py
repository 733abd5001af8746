# SPDX-License-Identifier: Apache-2.0
import os
import shlex
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from tests.cli.serving import served

ACCOUNT = "111122223333"


def test_key_is_created_with_the_file_and_its_secret_is_shown_once(run, path):
    made = run("keys", "add", "--account", ACCOUNT, "--user", "worker")
    [key] = made.rows
    assert made.code == 0
    assert (key["account"], key["user"]) == (ACCOUNT, "worker")
    assert path.exists()
    shown = run("keys", "list")
    assert key["secret_access_key"] not in shown.out
    [row] = shown.rows
    assert (row["access_key_id"], row["account"], row["user"]) == (key["access_key_id"], ACCOUNT, "worker")
    assert row["expires_at"] is None


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_file_that_others_can_read_causes_a_warning(run, path):
    made = run("keys", "add")
    path.chmod(0o660)
    told = f"{path}: other users can read these secrets: chmod 600 prevents that"
    for again in (run("keys", "add"), run("keys", "rotate", made.rows[0]["access_key_id"])):
        assert told in again.err
    path.chmod(0o600)
    assert "chmod" not in run("keys", "add").err


def test_key_belongs_to_the_default_account_unless_another_is_given(run):
    [key] = run("keys", "add", "--output", "json").json
    assert (key["account"], key["user"]) == ("000000000000", None)


def test_key_is_rotated_with_an_hour_of_grace(run):
    [old] = run("keys", "add", "--user", "worker").rows
    rotated = run("keys", "rotate", old["access_key_id"])
    [new] = rotated.rows
    assert new["user"] == "worker"
    assert new["secret_access_key"] != old["secret_access_key"]
    assert f"{old['access_key_id']}: ends in 3,600 seconds" in rotated.err
    ends = {row["access_key_id"]: row["expires_at"] for row in run("keys", "list").rows}
    assert ends[new["access_key_id"]] is None
    assert ends[old["access_key_id"]] is not None


def test_key_is_rotated_at_once(run):
    [old] = run("keys", "add").rows
    rotated = run("keys", "rotate", old["access_key_id"], "--grace", "0")
    assert f"{old['access_key_id']}: ends now" in rotated.err
    assert [row["access_key_id"] for row in run("keys", "list").rows] == [rotated.rows[0]["access_key_id"]]


def test_key_is_removed_after_a_question(run):
    [key] = run("keys", "add").rows
    assert run("keys", "remove", key["access_key_id"]).code == 2
    removed = run("keys", "remove", key["access_key_id"], "--yes")
    assert (removed.code, removed.out) == (0, "")
    shown = run("keys", "list")
    assert shown.rows == []
    assert "no keys" in shown.err


def test_session_of_a_key_signs_requests(run, path, sqs):
    [key] = run("keys", "add", "--account", ACCOUNT).rows
    made = run("keys", "session", key["access_key_id"], "--duration", "15m")
    [session] = made.rows
    assert list(session) == ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"]
    assert session["AccessKeyId"].startswith("ASIA")
    left = datetime.fromisoformat(session["Expiration"]) - datetime.now(UTC)
    assert timedelta(minutes=10) < left <= timedelta(minutes=15)
    assert key["secret_access_key"] not in made.out
    with served(path) as server:
        signed = {"access_key_id": session["AccessKeyId"], "secret_access_key": session["SecretAccessKey"]}
        client = server.client(signed, aws_session_token=session["SessionToken"])
        assert client.create_queue(QueueName="q")["QueueUrl"] == f"{server.url}/{ACCOUNT}/q"
        assert run("keys", "remove", key["access_key_id"], "--yes").code == 0
        with pytest.raises(ClientError, match="InvalidClientTokenId"):
            client.list_queues()


def test_session_is_exported_to_a_shell(run):
    [key] = run("keys", "add").rows
    lines = run("keys", "session", key["access_key_id"], "--export").out.splitlines()
    assert [line.partition("=")[0] for line in lines] == [
        "export AWS_ACCESS_KEY_ID",
        "export AWS_SECRET_ACCESS_KEY",
        "export AWS_SESSION_TOKEN",
    ]
    values = [line.partition("=")[2] for line in lines]
    assert values == [shlex.quote(value) for value in values]


def test_session_may_belong_to_a_key_of_a_credentials_file(run, path, tmp_path):
    file = tmp_path / "credentials"
    file.write_text("[ops]\naws_access_key_id = OPS\naws_secret_access_key = secret\n")
    [session] = run("keys", "session", "OPS", "--keys", file).rows
    assert session["SessionToken"]
    assert not path.exists()


@pytest.mark.parametrize(
    ("duration", "code"),
    [("899", 1), ("900", 0), ("36h", 0), ("129601", 1), ("1y", 2), ("-1", 2), ("", 2), ("1.5h", 2)],
)
def test_session_lasts_15_minutes_to_36_hours(run, duration, code):
    [key] = run("keys", "add").rows
    assert run("keys", "session", key["access_key_id"], "--duration", duration).code == code


@pytest.mark.parametrize(
    "words",
    [("rotate", "NOBODY"), ("remove", "NOBODY", "--yes"), ("session", "NOBODY"), ("add", "--account", "1")],
)
def test_refusals_are_errors(run, sqs, words):
    refused = run("keys", *words)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("InvalidParameterValue: Value ")


@pytest.mark.parametrize("words", [("list",), ("rotate", "NOBODY"), ("remove", "NOBODY", "--yes")])
def test_only_keys_add_creates_a_file(run, path, words):
    assert run("keys", *words).code == 1
    assert not path.exists()
