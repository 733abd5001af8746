# SPDX-License-Identifier: Apache-2.0
"""Servers and programs use one file at once, each in its own process: each message is received once."""

import contextlib
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sqsqlite
from tests.cli.serving import served
from tests.serve.raw import FORM, LIST_QUEUES, Connection, ask, json_of, post

# Sends and receives through the embedded API, and prints what it has received.
PROGRAM = """
import sys, sqsqlite
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with sqsqlite.connect(path, synchronous="NORMAL") as sqs:
    queue = sqs.queue("q")
    for number in range(count):
        queue.send(f"{name}-{number}")
    while messages := queue.receive(10, wait=3):
        for message in messages:
            print(message.body)
            message.delete()
"""


def work(client, url, name, count):
    """The same through a server."""
    received = []
    for number in range(count):
        client.send_message(QueueUrl=url, MessageBody=f"{name}-{number}")
    while True:
        answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=3)
        if "Messages" not in answer:
            return received
        received += [message["Body"] for message in answer["Messages"]]
        for message in answer["Messages"]:
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


@pytest.mark.slow
def test_two_servers_and_two_programs_share_a_queue(path):
    with sqsqlite.connect(path, synchronous="NORMAL") as sqs:
        queue = sqs.create_queue("q", visibility_timeout=600)
        options = ("--synchronous", "NORMAL")
        with served(path, *options) as first, served(path, *options) as second, ThreadPoolExecutor() as pool:
            programs = [
                subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, str(path), f"program{number}", "200"],
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for number in range(2)
            ]
            clients = [server.client() for server in (first, second) for _ in range(2)]
            works = [
                pool.submit(work, client, queue.url, f"client{n}", 100) for n, client in enumerate(clients)
            ]
            received = [body for one in works for body in one.result(300)]
            for program in programs:
                received += program.communicate(timeout=600)[0].split()
            for client in clients:
                client.close()
        sent = [f"program{n}-{number}" for n in range(2) for number in range(200)]
        sent += [f"client{n}-{number}" for n in range(4) for number in range(100)]
        assert sorted(received) == sorted(sent)
        assert queue.attributes["ApproximateNumberOfMessagesNotVisible"] == "0"


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc"
)
def test_memory_stays_limited_under_any_input_and_others_are_served(path):
    """Clients leave 500 heads and five times the bodies that fit unfinished, and send documents of many values.

    All bodies may take 192 MiB. The rest of the bound is for the process and for parsing one document.
    """
    documents = [
        b"[" * 8_000_000,
        b'{"a":' * 1_600_000,
        b'{"QueueUrl":"q","Entries":[' + b"{}," * 2_600_000 + b"{}]}",
        b'{"QueueUrl":"q","x":[' + b"1," * 3_900_000 + b"1]}",
    ]
    forms = [
        b"a=b&" * 2_000_000,
        b"Action=SendMessage&MessageBody=" + b"%41" * 2_600_000,
        b"x=" + b" " * 8_000_000 + b"\n",
    ]
    with served(path) as server, Connection(server.url) as good:
        held = [Connection(server.url) for _ in range(160)]
        for connection in held:
            connection.send(post(b"x" * 8_000_000, b"Connection: close\r\n")[:-1])
            assert good.ask(LIST_QUEUES).status == 200
        for connection in held:
            connection.close()
        held = [Connection(server.url) for _ in range(500)]
        for connection in held:
            connection.send(b"GET / HTTP/1.1\r\nX: " + b"x" * 30_000)
        for document in documents:
            assert ask(server.url, json_of(b"SendMessageBatch", document)).status == 400
        for form in forms:
            assert ask(server.url, post(form, FORM)).status in (400, 404)
        assert good.ask(LIST_QUEUES).status == 200
        for connection in held:
            connection.close()
        [peak] = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
    assert int(peak) * 1024 < 160 * 8_000_000 / 2


def read_all(connections):
    """The answers of all connections, read as they arrive. Only their lengths are kept."""
    with ThreadPoolExecutor(len(connections)) as pool:
        return list(pool.map(lambda connection: len(connection.answer().body), connections))


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc"
)
def test_memory_stays_limited_however_much_is_received_at_once(path):
    """Sixty requests of 200 bytes ask for 600 MiB, and five clients never read what they get.

    All answers may take 128 MiB. The rest of the bound is for the process and for making one answer.
    """
    long = json_of(b"ReceiveMessage", b'{"QueueUrl":"q","VisibilityTimeout":0,"MaxNumberOfMessages":10}')
    short = json_of(b"ReceiveMessage", b'{"QueueUrl":"short","VisibilityTimeout":0}')
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("q")
        for _ in range(10):
            queue.send("x" * 2**20)
        sqs.create_queue("short").send("hi")
    with served(path) as server, contextlib.ExitStack() as held:
        deaf = [held.enter_context(Connection(server.url)) for _ in range(5)]
        readers = [held.enter_context(Connection(server.url)) for _ in range(60)]
        for connection in deaf + readers:
            connection.send(long)
        assert ask(server.url, short).status == 200
        assert min(read_all(readers)) > 10 * 2**20
        for connection in deaf:
            connection.close()
        assert ask(server.url, long).status == 200
        [peak] = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
        assert server.end(signal.SIGTERM) == 0
    assert int(peak) * 1024 < 300 * 2**20
