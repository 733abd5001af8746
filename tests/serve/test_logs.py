# SPDX-License-Identifier: Apache-2.0
"""The log: one line of JSON for each request, without secrets."""

import collections
import io
import json
import os
import re
import threading
import time
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from sqsqlite.access.access import Access
from sqsqlite.access.key_file import KeyFile
from sqsqlite.access.keys import NewKey, add_key
from sqsqlite.serve import logs
from tests.serve.raw import FORM, LIST_QUEUES, Connection, ask, json_of, post
from tests.serve.serving import client_of, serving

SECRET = "the body of a message"


@pytest.fixture
def log():
    return io.StringIO()


@pytest.fixture
def url(store, log):
    with serving(store, log=log) as found:
        yield found


def lines(log):
    return [json.loads(line) for line in log.getvalue().splitlines()]


def requests(log, count):
    """Wait for `count` lines of requests. A line is written a moment after the answer."""
    deadline = time.monotonic() + 300
    while len(found := [line for line in lines(log) if line["event"] == "request"]) < count:
        assert time.monotonic() < deadline, f"{len(found)} lines, not {count}"
        time.sleep(0.001)
    return found


def test_each_request_writes_one_line(url, log):
    created = ask(url, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
    refused = ask(url, post(b"Action=SendMessage&MessageBody=", FORM, b"/000000000000/q"))
    first, second = requests(log, 2)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert 0 < first.pop("seconds") < 60
    assert first == {
        "event": "request",
        "request_id": created.headers["x-amzn-requestid"],
        "client": "127.0.0.1",
        "action": "CreateQueue",
        "account": "000000000000",
        "queue": "q",
        "status": 200,
        "code": "",
        "request_bytes": len(b'{"QueueName":"q"}'),
        "answer_bytes": len(created.body),
    }
    assert second["request_id"] == refused.headers["x-amzn-requestid"]
    assert (second["status"], second["code"]) == (400, "MissingParameter")


def test_bodies_handles_and_signatures_are_not_written(url, log):
    ask(url, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
    ask(url, json_of(b"SendMessage", b'{"QueueUrl":"q","MessageBody":"%s"}' % SECRET.encode()))
    received = ask(url, json_of(b"ReceiveMessage", b'{"QueueUrl":"q"}'))
    handle = json.loads(received.body)["Messages"][0]["ReceiptHandle"]
    delete = json.dumps({"QueueUrl": "q", "ReceiptHandle": handle}).encode()
    signed = json_of(b"DeleteMessage", delete).replace(
        b"\r\n\r\n", b"\r\nAuthorization: signed-with-this\r\n\r\n", 1
    )
    assert ask(url, signed).status == 200
    ask(url, json_of(b"DeleteMessage", delete[:-2]))
    ask(
        url, post(b"Action=DeleteMessage&ReceiptHandle=%s&Signature=signed-with-this" % handle.encode(), FORM)
    )
    assert len(requests(log, 6)) == 6
    for secret in (SECRET, handle, "signed-with-this"):
        assert secret not in log.getvalue()


def test_invalid_http_writes_a_line_too(url, log):
    ask(url, b"NO HTTP\r\n\r\n")
    [line] = requests(log, 1)
    assert (line["action"], line["status"], line["client"]) == ("", 400, "127.0.0.1")
    assert line["cause"] == "The request is not valid HTTP/1.1 (RFC 9112)."


def test_unknown_action_is_not_repeated(url, log):
    """No client can write its own lines into the log."""
    ask(url, json_of(b"Nonsense", b"{}"))
    [line] = requests(log, 1)
    assert (line["action"], line["code"]) == ("", "InvalidAction")
    assert "Nonsense" not in log.getvalue()


def test_failure_within_the_server_is_written_with_its_cause(url, log, store, monkeypatch):
    def fail(*_):
        raise KeyError("a fault of ours")

    monkeypatch.setattr(store, "write_many", fail)
    assert ask(url, json_of(b"CreateQueue", b'{"QueueName":"q"}')).status == 500
    [line] = requests(log, 1)
    assert line["code"] == "InternalFailure"
    assert line["cause"].startswith("Traceback")
    assert "a fault of ours" in line["cause"]


def refused_with(code, call):
    with pytest.raises(ClientError) as refused:
        call()
    assert refused.value.response["Error"]["Code"] == code


def test_refused_signature_is_written_with_key_account_and_user(store, log):
    key = store.write(add_key, "111122223333", "worker")
    with serving(store, log=log) as url:
        client_of(url, key).list_queues()
        refused_with("SignatureDoesNotMatch", client_of(url, replace(key, secret_access_key="x")).list_queues)
        refused_with("InvalidClientTokenId", client_of(url, replace(key, access_key_id="NONE")).list_queues)
        refused_with("IncompleteSignature", client_of(url, replace(key, access_key_id='a"é.')).list_queues)
        ask(url, json_of(b"ListQueues", b"{}"))
        found = requests(log, 5)
    keys = ("code", "access_key_id", "account", "user")
    assert [tuple(line.get(key) for key in keys) for line in found] == [
        ("", key.access_key_id, "111122223333", "worker"),
        ("SignatureDoesNotMatch", key.access_key_id, "111122223333", "worker"),
        ("InvalidClientTokenId", "NONE", "", None),
        ("IncompleteSignature", 'a"\\xc3\\xa9.', "", None),
        ("InvalidSecurity", None, "", None),
    ]
    assert key.secret_access_key not in log.getvalue()


def test_key_id_of_any_length_and_bytes_is_written_short_and_in_ascii(store, log):
    store.write(add_key, "111122223333", "")
    with serving(store, log=log) as url:
        ask(
            url,
            b"GET /?Action=ListQueues&X-Amz-Signature=0&X-Amz-Credential=%1b%c2%9b"
            + b"A" * 200
            + b"/b HTTP/1.1\r\nHost: a\r\n\r\n",
        )
        [line] = requests(log, 1)
    assert line["access_key_id"] == "\x1b\\xc2\\x9b" + "A" * 119
    assert "\\u001b" in log.getvalue()


def test_key_file_that_cannot_be_read_is_the_cause_of_a_refusal(store, log, tmp_path):
    path = tmp_path / "credentials"
    path.write_text("[default]\naws_access_key_id = A\naws_secret_access_key = s3cret\n")
    keys = KeyFile(path)
    path.write_text("[default]\naws_secret_access_key = s3cret\nnonsense\n")
    key = NewKey("000000000000", "", "s3cret", "A")
    with serving(store, Access(store, keys), log=log) as url:
        refused_with("ServiceUnavailable", client_of(url, key).list_queues)
        [line] = requests(log, 1)
    assert line["cause"].startswith(f"BadKeyFile: {path}: ")
    assert "s3cret" not in log.getvalue()


def test_start_and_end_write_a_line_each(store, log, path):
    with serving(store, log=log) as url:
        ask(url, json_of(b"ListQueues", b"{}"))
    first, *_, last = lines(log)
    assert (first["event"], first["file"], f"http://{first['address']}") == ("started", str(path), url)
    assert last["event"] == "stopped"


def test_pages_are_not_logged(url, log):
    ask(url, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
    ask(url, json_of(b"ListQueues", b"{}"))
    assert [line["action"] for line in requests(log, 1)] == ["ListQueues"]


def test_log_that_cannot_be_written_fails_no_request(store):
    class Full(io.StringIO):
        def write(self, _):
            raise OSError("No space left on device")

    with serving(store, log=Full()) as url:
        assert [ask(url, json_of(b"ListQueues", b"{}")).status for _ in range(3)] == [200] * 3


def test_log_that_is_not_read_stops_no_request(store, monkeypatch):
    """Beyond the limit of waiting lines, the log drops lines, and reports their number when there is room again."""
    monkeypatch.setattr(logs, "QUEUED_BYTES", 1_000)
    reading, writing = os.pipe()
    found = []
    with open(reading, "rb") as reader:
        collector = threading.Thread(target=lambda: found.extend(json.loads(line) for line in reader))
        with open(writing, "w") as pipe, serving(store, log=pipe) as url, Connection(url) as connection:
            for _ in range(400):
                assert connection.ask(LIST_QUEUES).status == 200
            assert ask(url, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n").status == 200
            collector.start()
        collector.join(300)
    counts = collections.Counter(line["event"] for line in found)
    dropped = sum(line["lines"] for line in found if line["event"] == "dropped")
    assert dropped > 0
    # This includes the lines of the start and the end.
    assert counts["started"] + counts["request"] + counts["stopped"] + dropped == 402


def test_shutdown_does_not_wait_for_a_reader_of_the_log(store):
    reading, writing = os.pipe()
    with open(reading, "rb"), open(writing, "w") as pipe:
        os.set_blocking(writing, False)
        while pipe.buffer.raw.write(b"x" * 4_096):
            pass
        os.set_blocking(writing, True)
        with serving(store, log=pipe) as url:
            assert ask(url, json_of(b"ListQueues", b"{}")).status == 200
