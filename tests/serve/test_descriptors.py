# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import json
import os
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from tests.serve.raw import LIST_QUEUES, Connection, json_of
from tests.serve.serving import serving
from tests.store.waiting import until

resource = pytest.importorskip("resource")

PROGRAM = """
import resource, sys
from sqsqlite.serve.connections import connections_possible
soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(connections_possible(connections), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "room", "soft_after"),
    [
        (300, 1_000, 100, 100, 356),
        (300, 1_000, 5_000, 744, 1_000),
        (900, 1_000, 100, 100, 900),
        (100, 200, 5_000, 1, 200),
    ],
)
def test_limit_is_raised_as_far_as_needed_and_allowed(soft, hard, connections, room, soft_after):
    """In a process of its own: a lower limit can't be raised again."""
    command = [sys.executable, "-c", PROGRAM, *map(str, (soft, hard, connections))]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(room), str(soft_after), str(hard)]


@contextlib.contextmanager
def no_descriptors():
    """Keep this process from opening files until the block ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def orders(store):
    """A server's URL, its log, and a connection that has asked for a queue."""
    log = io.StringIO()
    with serving(store, log=log) as url, Connection(url) as connection:
        assert connection.ask(json_of(b"CreateQueue", b'{"QueueName": "orders"}')).status == 200
        yield url, log, connection


def test_open_connections_send_without_descriptors(orders):
    """The first send to a file also makes its ballast."""
    send = json_of(b"SendMessage", json.dumps({"QueueUrl": "orders", "MessageBody": "hi"}).encode())
    with no_descriptors():
        assert [orders[2].ask(send).status for _ in range(3)] == [200] * 3


def test_new_connections_wait_for_descriptors_and_are_then_served(orders):
    url, log, connection = orders
    with contextlib.ExitStack() as closing:
        late = [closing.enter_context(socket.socket()) for _ in range(3)]
        with no_descriptors():
            for one in late:
                one.settimeout(300)
                one.connect((urlsplit(url).hostname, urlsplit(url).port))
                one.sendall(LIST_QUEUES)
            until(lambda: "accept_failed" in log.getvalue())
            # It may fail at first: while another thread reads, the file can't be opened for a second reader.
            until(lambda: connection.ask(LIST_QUEUES).status == 200)
        assert [one.recv(12) for one in late] == [b"HTTP/1.1 200"] * 3
