# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite serve`: its start and its stop."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, HTTPClientError

import sqsqlite
from sqsqlite.store.driver import dbapi
from tests.cli.serving import PROGRAM, served
from tests.clients.endpoint import make_certificates
from tests.clients.tools import need
from tests.serve.raw import Connection, json_of


@pytest.fixture
def certificates(tmp_path):
    need("openssl", "apt-get install openssl")
    return make_certificates(tmp_path)


POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and forks are POSIX's")


def code(call, **parameters):
    with pytest.raises(ClientError) as refused:
        call(**parameters)
    return refused.value.response["Error"]["Code"]


@POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_server_shares_the_file_and_ends_well_on_a_signal(path, sqs, number):
    with served(path) as server:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", server.url)
        server.until_said(
            "no access keys: the server accepts clients of this machine only, and serves .* as account 000000000000"
        )
        client = server.client()
        client.send_message(QueueUrl=f"{server.url}/000000000000/orders", MessageBody="over the wire")
        [message] = sqs.queue("orders").receive()
        assert message.body == "over the wire"
        assert server.end(number) == 0
        assert len(server.said) == 2
    message.change_visibility(0)
    assert [found.body for found in sqs.queue("orders").receive()] == ["over the wire"]


@POSIX
def test_stop_answers_long_polls(path, sqs):
    with served(path) as server:
        answers = []
        client = server.client()
        waiting = threading.Thread(
            target=lambda: answers.append(client.receive_message(QueueUrl="orders", WaitTimeSeconds=20))
        )
        waiting.start()
        while "\nsqsqlite_waiting_polls 1\n" not in page(f"{server.url}/metrics"):
            pass
        assert server.end(signal.SIGTERM) == 0
        waiting.join(300)
        assert [answer.get("Messages") for answer in answers] == [None]


def page(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


def test_log_gets_a_line_for_each_request(path, sqs, tmp_path):
    for number in (1, 2):
        with served(path, "--log", tmp_path / "log.jsonl") as server:
            server.client().get_queue_url(QueueName="orders")
            assert server.end(signal.SIGTERM) == 0
        lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        assert [line["event"] for line in lines] == ["started", "request", "stopped"] * number
    with served(path, "--log", "-") as server:
        server.client().get_queue_url(QueueName="orders")
        assert json.loads(server.until_said('.*"event":"request".*').group())["action"] == "GetQueueUrl"


def test_server_creates_the_file(path):
    with served(path) as server:
        server.client().create_queue(QueueName="orders")
    with sqsqlite.connect(path) as sqs:
        assert [queue.name for queue in sqs.queues()] == ["orders"]


@pytest.mark.parametrize(
    "base", ["https://queues.example", pytest.param("http://[::1]:80/", marks=pytest.mark.slow)]
)
def test_queue_urls_repeat_the_clients_host_or_the_base_url(path, sqs, base):
    with served(path) as server:
        assert server.client().get_queue_url(QueueName="orders")["QueueUrl"].startswith(server.url + "/")
    with served(path, "--base-url", base) as server:
        client = server.client()
        found = client.get_queue_url(QueueName="orders")["QueueUrl"]
        assert found == f"{base.rstrip('/')}/000000000000/orders"
        client.send_message(QueueUrl=found, MessageBody="hi")


def test_server_accepts_the_names_of_loopback_base_url_and_allowed_hosts(path, sqs):
    options = ("--base-url", "https://queues.example/", "--allowed-host", "sqs", "--allowed-host", "Queues")
    with served(path, *options) as server:
        for host in ("localhost", "queues.example:443", "sqs:9324", "queues"):
            assert ask(server.url, Host=host)[0] == 200
        status, body = ask(server.url, Host="attacker.example:9324")
        assert status == 403
        assert "attacker.example:9324" in body
        assert "--allowed-host" in body


# --- keys


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "queues.example"])
def test_public_address_is_refused_without_a_key_and_no_file_is_created(run, path, host):
    refused = run("serve", "--host", host)
    assert refused.code == 2
    assert "there is no access key" in refused.err
    assert "sqsqlite keys add" in refused.err
    assert not path.exists()


def test_public_address_is_served_with_a_key(run, path):
    [key] = run("keys", "add").rows
    path.chmod(0o666)
    with served(path, "--host", "0.0.0.0") as server:
        server.until_said(f"{path}: other users can read these secrets: chmod 600 prevents that")
        server.until_said("access keys are in force")
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert code(server.client(endpoint_url=url).list_queues) == "InvalidSecurity"
        server.client(key, endpoint_url=url).create_queue(QueueName="orders")


def test_running_server_follows_new_and_removed_keys(run, path, sqs):
    with served(path) as server:
        server.client().list_queues()
        [key] = run("keys", "add").rows
        client = server.client(key)
        client.send_message(QueueUrl="orders", MessageBody="signed")
        # Within a tenth of a second: each request checks the time.
        while ask(server.url)[0] == 200:
            pass
        assert code(server.client().list_queues) == "InvalidSecurity"
        run("keys", "remove", key["access_key_id"], "--yes")
        assert code(client.list_queues) == "InvalidClientTokenId"


def test_server_accepts_the_keys_of_a_credentials_file(path, tmp_path):
    credentials = tmp_path / "credentials"
    credentials.write_text("[default]\naws_access_key_id = OPS\naws_secret_access_key = secret\n")
    credentials.chmod(0o600)
    key = {"access_key_id": "OPS", "secret_access_key": "secret"}
    with served(path, "--keys", credentials) as server:
        assert code(server.client().list_queues) == "InvalidSecurity"
        assert server.client(key).create_queue(QueueName="q")["QueueUrl"].endswith("/000000000000/q")
        assert not any("chmod" in line for line in server.said)
    credentials.chmod(0o644)
    with served(path, "--keys", credentials) as server:
        server.until_said("chmod 600 prevents that")


def test_invalid_credentials_file_is_refused(run, tmp_path):
    (tmp_path / "credentials").write_text("nonsense")
    refused = run("serve", "--port", "0", "--keys", tmp_path / "credentials")
    assert refused.code == 1
    assert "BadKeyFile" in refused.err
    assert run("serve", "--keys", tmp_path / "nowhere").code == 2


def test_rate_limit_is_answered_with_request_throttled(path, sqs):
    with served(path, "--rate-limit", "0.001") as server:
        client = server.client()
        client.list_queues()
        assert code(client.list_queues) == "RequestThrottled"


# --- TLS


def test_serves_https_with_a_certificate(path, sqs, certificates):
    certificate, key, authority = certificates
    with served(path, "--tls-cert", certificate, "--tls-key", key, "--require-tls") as server:
        assert server.url.startswith("https://")
        client = server.client(verify=str(authority))
        url = client.get_queue_url(QueueName="orders")["QueueUrl"]
        assert url == f"{server.url}/000000000000/orders"
        client.send_message(QueueUrl=url, MessageBody="hidden")
        with pytest.raises(HTTPClientError):
            server.client(endpoint_url=server.url.replace("https", "http")).list_queues()


def ask(url, **headers):
    """Status and body of a ListQueues."""
    try:
        asked = urllib.request.Request(f"{url}/?Action=ListQueues", headers=headers)
        with urllib.request.urlopen(asked) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_headers_of_a_trusted_proxy_decide_about_tls(path, sqs):
    with served(path, "--behind-proxy", "--require-tls") as server:
        status, body = ask(server.url)
        assert (status, "InvalidSecurity" in body) == (403, True)
        status, body = ask(server.url, **{"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"})
        assert status == 200
        assert f"https://{server.url.partition('//')[2]}/000000000000/orders" in body
    with served(path) as server:
        _, body = ask(server.url, **{"X-Forwarded-Proto": "https"})
        assert f"{server.url}/000000000000/orders" in body


def test_environment_cannot_name_a_trusted_proxy(path, sqs, monkeypatch):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.1")
    with served(path, "--behind-proxy", "--require-tls") as server:
        assert ask(server.url, **{"X-Forwarded-Proto": "https"})[0] == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tls-cert", __file__], "must be given together"),
        (["--tls-key", __file__], "must be given together"),
        (["--require-tls"], "every request would be refused"),
        (["--port", "65536"], "65536"),
        (["--rate-limit", "0"], "range"),
        (["--rate-limit", "nan"], "finite"),
        (["--rate-limit", "inf"], "finite"),
        (["--processes", "0"], "range"),
        (["--base-url"], "argument"),
        (["--base-url", "http://queues.example/sqs"], "http://HOST[:PORT] or https://HOST[:PORT]"),
        (["--base-url", "http://queues.example?x="], "without a path or query"),
        (["--base-url", "http://queues.example#x"], "without a path or query"),
        (["--base-url", "ftp://queues.example"], "without a path or query"),
        (["--base-url", "queues.example"], "without a path or query"),
        (["--base-url", "HTTP://queues.example"], "without a path or query"),
        (["--base-url", "http://"], "without a path or query"),
        (["--base-url", ""], "without a path or query"),
        (["--allowed-host", "http://queues"], "without a scheme"),
        (["--allowed-host", "queues:9324"], "without a scheme"),
        (["--allowed-host", "*"], "wildcard"),
    ],
)
def test_contradictory_command_line_is_refused(run, path, options, words):
    refused = run("serve", *options)
    assert refused.code == 2
    assert words in refused.err
    assert not path.exists()


def test_chosen_port_is_printed_even_with_quiet(path, sqs):
    with served(path, "--quiet", until="serving") as server:
        server.client().list_queues()
        assert len(server.said) == 1


def test_port_in_use_is_reported(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = run("serve", "--port", port)
    assert refused.code == 1
    assert f"--port {port}: Address already in use" in refused.err


@POSIX
@pytest.mark.parametrize("processes", ["1", "2"])
def test_certificate_of_another_key_is_refused_before_the_start(run, path, certificates, processes):
    certificate, _, _ = certificates
    refused = run(
        "serve", "--port", "0", "--tls-cert", certificate, "--tls-key", certificate, "--processes", processes
    )
    assert refused.code == 1
    assert len(refused.err.splitlines()) == 1
    assert f"--tls-cert {certificate}" in refused.err
    assert not path.exists()


@POSIX
@pytest.mark.parametrize("processes", ["1", "2"])
def test_invalid_file_is_refused_before_the_start(run, path, processes):
    path.write_text("no database, but long enough to be read as one " * 100)
    refused = run("serve", "--port", "0", "--processes", processes)
    assert refused.code == 1
    assert len(refused.err.splitlines()) == 1


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_address_is_printed_once_a_signal_ends_the_server_well(path, processes):
    for number in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "serve", "--db", path, "--port", "0", "--processes", processes],
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr.readline().startswith("serving ")
            assert path.exists()
            process.send_signal(number)
            assert process.wait(300) == 0


# --- several processes

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the children are found in /proc")


def children(pid, count):
    """Wait until a process has `count` children."""
    while len(found := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()) != count:
        pass
    return [int(word) for word in found]


def until_started(server, count):
    """Each prints its line once it can serve. A process that ended before would end all."""
    while sum('"event":"started"' in line for line in server.said) < count:
        pass


@LINUX
def test_processes_share_a_port_and_a_dead_one_is_replaced(path, sqs):
    with served(path, "--processes", "2", "--synchronous", "NORMAL", "--log", "-") as server:
        server.client().send_message(QueueUrl="orders", MessageBody="first")
        until_started(server, 2)
        first, second = children(server.process.pid, 2)
        os.kill(first, signal.SIGKILL)
        server.until_said(rf"process {first} ended \(signal 9\): replacing it")
        until_started(server, 3)
        for number in range(20):
            server.client().send_message(QueueUrl="orders", MessageBody=str(number))
        assert second in children(server.process.pid, 2)
        assert server.end(signal.SIGTERM) == 0
    assert len(sqs.queue("orders")) == 21


def replace_both(server):
    """Kill each of two processes, and wait for the one that takes its place."""
    for count, pid in enumerate(children(server.process.pid, 2), start=3):
        os.kill(pid, signal.SIGKILL)
        until_started(server, count)


@LINUX
@pytest.mark.parametrize("is_keyed_before", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_replacement_process_still_refuses_callers_after_the_last_key_is_removed(
    run, path, sqs, is_keyed_before
):
    def add_key():
        return run("keys", "add").rows[0]["access_key_id"]

    key = add_key() if is_keyed_before else None
    with served(path, "--processes", "2", "--log", "-") as server:
        until_started(server, 2)
        key = key or add_key()
        while ask(server.url)[0] == 200:
            pass
        run("keys", "remove", key, "--yes")
        replace_both(server)
        # Each request has a connection of its own, so both processes answer.
        assert {ask(server.url)[0] for _ in range(20)} == {403}


@LINUX
def test_replacement_process_creates_no_file(path, sqs):
    with served(path, "--processes", "2", "--log", "-") as server:
        until_started(server, 2)
        first, second = children(server.process.pid, 2)
        moved = path.rename(path.with_name("moved.db"))
        os.kill(first, signal.SIGKILL)
        server.until_said(r"process \d+ could not start \(exit code 1\): replacing it in 0\.2 s")
        server.until_said(r"NoSuchFile")
        assert not path.exists()
        # The other process continues, and knows its queue.
        assert "/orders<" in ask(server.url)[1]
        assert (
            str(second) in Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
        )
        moved.rename(path)
        until_started(server, 3)
        assert server.end(signal.SIGTERM) == 0


def scraped(server):
    """The metrics by name and labels, of any of the processes."""
    lines = page(f"{server.url}/metrics").splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


@LINUX
@pytest.mark.slow
def test_each_process_reports_the_metrics_of_all(path, sqs):
    """The counts of dead processes are included, except for their polls, which have ended with them."""
    with served(path, "--processes", "2", "--log", "-") as server:
        until_started(server, 2)
        polls = [Connection(server.url) for _ in range(4)]
        for poll in polls:
            poll.send(json_of(b"ReceiveMessage", b'{"QueueUrl":"orders","WaitTimeSeconds":20}'))
        counted = 'sqsqlite_requests_total{action="ListQueues",code=""}'
        for _ in range(20):
            ask(server.url)  # a connection of its own for each
        while scraped(server).get(counted) != "20" or scraped(server)["sqsqlite_waiting_polls"] != "4":
            pass
        assert {scraped(server)[counted] for _ in range(20)} == {"20"}
        replace_both(server)
        found = [scraped(server) for _ in range(20)]
        assert {one[counted] for one in found} == {"20"}
        assert {one["sqsqlite_waiting_polls"] for one in found} == {"0"}
        for poll in polls:
            poll.close()


@LINUX
def test_processes_end_with_a_parent_that_is_killed(path, sqs):
    with served(path, "--processes", "2", "--log", "-") as server:
        until_started(server, 2)
        pids = children(server.process.pid, 2)
        server.process.kill()
        server.process.wait()
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            pass
        with pytest.raises(EndpointConnectionError):
            server.client().list_queues()


SUPERVISED = """
import sys
from sqsqlite.serve.processes import supervise
sys.exit(supervise(3, lambda place, ready: {}, print, print))
"""


@POSIX
@pytest.mark.parametrize(
    ("work", "expected"), [("7", 7), ("1 / 0", 1), ("__import__('signal').pause()", None)]
)
def test_process_that_ends_before_the_first_is_ready_ends_all(work, expected):
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISED.format(work)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        if expected is None:
            expected = 1
            os.kill(children(run.pid, 3)[1], signal.SIGKILL)
        out, _ = run.communicate(timeout=600)
    assert (run.returncode, out) == (expected, b"")


@POSIX
def test_second_signal_ends_the_server_despite_a_locked_file(path, sqs):
    """A request that waits for the lock is refused. The next process writes what this one would write at its end."""
    other = dbapi.connect(path, isolation_level=None)
    options = ("--busy-timeout", 300)
    with contextlib.closing(other), served(path, *options) as server, Connection(server.url) as connection:
        # The count of empty receives would be written at the end.
        receive = json_of(b"ReceiveMessage", b'{"QueueUrl":"orders"}')
        assert [json.loads(connection.ask(receive).body) for _ in range(2)] == [{}, {}]
        other.execute("BEGIN IMMEDIATE")
        connection.send(json_of(b"SendMessage", b'{"QueueUrl":"orders","MessageBody":"no"}'))
        assert ask(server.url)[0] == 200
        # Two signals of the same number may arrive as one.
        server.process.send_signal(signal.SIGTERM)
        assert server.end(signal.SIGINT) == 0
        assert connection.answer().status == 503
    assert sqs.queue("orders").receive() == []
