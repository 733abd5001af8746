# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite serve --test-mode` and `--queues`, as processes of their own."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

import sqsqlite
from tests.cli.serving import PROGRAM, served
from tests.testing.serving import Server

QUEUES = """
[queues.orders]
visibility_timeout = 45
dead_letter_queue = "orders-dead"
max_receive_count = 3

[queues.orders-dead]
"""
ELASTICMQ = "queues { orders { defaultVisibilityTimeout = 45 seconds } }"


class Running:
    """A command in test mode whose temporary folders are in `folder`."""

    def __init__(self, folder, *options):
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "serve", "--test-mode", "--port", "0", *map(str, options)],
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        self.told = [self.process.stderr.readline() for _ in range(4)]
        found = re.search(r"^TEST MODE on (http://\S+:\d+): everything is thrown away", self.told[0])
        if found is None:
            self.end(signal.SIGKILL)
            raise AssertionError(self.told)
        self.server = Server(found[1].replace("0.0.0.0", "127.0.0.1"))
        self.path = Path(re.search(r"its file is (.+)\n", "".join(self.told))[1])

    def end(self, number):
        """Send a signal, and wait. Returns the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(300)
        self.process.stderr.close()
        return code


@pytest.fixture
def running(tmp_path):
    started = []

    def running(*options):
        started.append(Running(tmp_path, *options))
        return started[-1]

    yield running
    for one in started:
        one.end(signal.SIGKILL)


def refusal(folder, *options):
    """Exit code and words of a command that does not start."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "serve", "--port", "0", *map(str, options)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_the_server_and_removes_its_files(running, tmp_path, number):
    """Although a client waits for a message."""
    server = running("--quiet")
    assert server.path.is_relative_to(tmp_path)
    clients = [server.server.client(region) for region in ("us-east-1", "eu-central-1")]
    url, _ = (client.create_queue(QueueName="orders")["QueueUrl"] for client in clients)
    ends = []

    def wait():
        try:
            ends.append(clients[0].receive_message(QueueUrl=url, WaitTimeSeconds=20).get("Messages"))
        except ClientError as error:
            ends.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    server.server.until_a_poll_waits()
    assert server.end(number) == 0
    waiting.join(300)
    assert ends == [None]
    assert list(tmp_path.iterdir()) == []


def test_a_chosen_path_is_removed_at_the_end(running, tmp_path):
    path = tmp_path / "suite.db"
    server = running("--db", path, "--region", "eu-west-1")
    assert server.path == path
    assert "the region eu-west-1" in "".join(server.told)
    assert path.exists()
    server.server.client("us-west-2").create_queue(QueueName="orders")
    assert server.end(signal.SIGTERM) == 0
    assert list(tmp_path.iterdir()) == []


def test_the_next_start_removes_the_files_of_a_killed_server(running):
    killed = running()
    killed.server.client().create_queue(QueueName="orders")
    killed.end(signal.SIGKILL)
    assert killed.path.exists()
    running()
    assert not killed.path.parent.exists()


def test_every_address_may_be_listened_on(running):
    server = running("--host", "0.0.0.0")
    assert server.server.client().list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_a_queue_of_the_file_is_there_again_after_a_reset(running, tmp_path):
    (tmp_path / "queues.toml").write_text(QUEUES)
    server = running("--queues", "queues.toml").server
    client = server.client()
    for _ in range(2):
        assert len(client.list_queues()["QueueUrls"]) == 2
        client.delete_queue(QueueUrl="orders")
        server.reset()


@pytest.mark.parametrize(
    ("options", "exit_code", "reason"),
    [
        (("--keys", "file"), 2, "--test-mode accepts any credentials, so --keys can't be given with it"),
        (("--behind-proxy", "--require-tls"), 2, "so --require-tls can't be given with it"),
        (("--processes", "2"), 2, "--test-mode has one clock, so it runs in one process"),
        (("--adopt",), 2, "so --adopt can't be given with it"),
        (("--db", "file"), 1, "this file exists. Test mode makes a file of its own"),
        (("--db", "missing/queues.db"), 1, "MissingFolder: "),
        (("--db", "file/queues.db"), 1, "file/queues.db: "),
        (("--region", "EU"), 1, "region='EU': lower-case letters, digits and hyphens are allowed"),
        (("--queues", "file"), 1, "--queues file: "),
    ],
)
def test_it_does_not_start(tmp_path, options, exit_code, reason):
    """And nothing is made, and the file stays as it is."""
    (tmp_path / "file").write_text("x")
    found, told = refusal(tmp_path, "--test-mode", *options)
    assert (found, reason in told) == (exit_code, True), told
    assert "Traceback" not in told
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "x"}


@pytest.mark.parametrize(("name", "text"), [("queues.toml", QUEUES), ("elasticmq.conf", ELASTICMQ)])
def test_without_test_mode_queues_are_made_once_and_kept(path, name, text):
    path.with_name(name).write_text(text)
    for _ in range(2):
        with served(path, "--queues", path.with_name(name)) as server:
            assert server.end(signal.SIGTERM) == 0
    with sqsqlite.connect(path) as sqs:
        assert sqs.queue("orders").attributes["VisibilityTimeout"] == "45"
        assert len(sqs.queues()) == text.count("{") + text.count("[") - (1 if "{" in text else 0)


def test_a_bad_file_makes_no_database(tmp_path):
    (tmp_path / "queues.toml").write_text("[queues.orders]\nvisibilty_timeout = 45\n")
    found, told = refusal(tmp_path, "--db", "queues.db", "--queues", "queues.toml")
    assert found == 1
    assert told.startswith("--queues queues.toml: queue orders: visibilty_timeout is not known; allowed: ")
    assert [path.name for path in tmp_path.iterdir()] == ["queues.toml"]


def test_a_queue_with_other_attributes_is_an_error_and_nothing_is_made(path):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders", visibility_timeout=30)
    path.with_name("queues.toml").write_text(QUEUES)
    found, told = refusal(path.parent, "--db", path, "--queues", "queues.toml")
    assert found == 1
    assert "--queues queues.toml: queue orders: " in told
    assert "VisibilityTimeout" in told
    with sqsqlite.connect(path) as sqs:
        assert [queue.name for queue in sqs.queues()] == ["orders"]
