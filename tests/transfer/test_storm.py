# SPDX-License-Identifier: Apache-2.0
"""The command and the other side's server are killed at random: nothing is lost, and no message overtakes another."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sqsqlite
from tests.store.inspection import assert_whole
from tests.store.waiting import until

pytestmark = pytest.mark.slow

ROUNDS = 12
MESSAGES = 6_000
COMMAND = Path(sys.executable).with_name("sqsqlite")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Actor:
    """A process of the command, killed and started again."""

    def __init__(self, folder, *words):
        self._folder = folder
        self._words = words
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [COMMAND, *map(str, self._words)],
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder), "AWS_EC2_METADATA_DISABLED": "true"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate()
        return out


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("fifo", [False, True])
@pytest.mark.parametrize("verb", ["forward", "fetch"])
def test_nothing_is_lost_when_either_side_is_killed(tmp_path, verb, fifo):
    name = "orders.fifo" if fifo else "orders"
    with sqsqlite.connect(tmp_path / "source.db", synchronous="NORMAL") as sqs:
        queue = sqs.create_queue(name, fifo=fifo, visibility_timeout=5)
        with sqs.transaction():
            for number in range(MESSAGES):
                order = {"group_id": f"g{number % 7}", "deduplication_id": f"d{number}"} if fifo else {}
                queue.send(str(number), **order)
    with sqsqlite.connect(tmp_path / "target.db") as sqs:
        sqs.create_queue(name, fifo=fifo)

    served, own = ("target.db", "source.db") if verb == "forward" else ("source.db", "target.db")
    port = free_port()
    url = f"http://127.0.0.1:{port}/000000000000/{name}"
    server = Actor(tmp_path, "--db", served, "serve", "--port", port)
    flag = "--to" if verb == "forward" else "--from"
    mover = Actor(tmp_path, "--db", own, verb, name, flag, url, "--follow", "--visibility-timeout", 5)
    dice = random.Random(f"{verb} {fifo}")
    for _ in range(ROUNDS):
        until(lambda: listens(port))
        time.sleep(dice.uniform(0.1, 0.8))  # the storm's rhythm, not a wait for something
        victims = dice.choice([[mover], [server], [mover, server]])
        for victim in victims:
            victim.kill()
        for victim in victims:
            victim.start()
    with (
        sqsqlite.connect(tmp_path / "source.db") as source,
        sqsqlite.connect(tmp_path / "target.db") as target,
    ):
        left = source.client
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

        def is_moved():
            found = left.get_queue_attributes(QueueUrl=name, AttributeNames=names)["Attributes"]
            assert mover.process.poll() is None, "the transfer ended by itself"
            return not any(int(count) for count in found.values())

        until(is_moved)
        mover.end()
        server.end()
        found = [int(peeked.body) for peeked in target.queue(name).peek(10_000)]
        assert set(found) == set(range(MESSAGES))
        if fifo:
            # Within five minutes the target drops what comes twice, so each is there once and in its group's order.
            assert len(found) == MESSAGES
            for group in range(7):
                of_group = [number for number in found if number % 7 == group]
                assert of_group == sorted(of_group)
        assert_whole(source)
        assert_whole(target)


def test_a_signal_ends_the_command_after_the_batch_with_its_result(tmp_path):
    for db in ("source.db", "target.db"):
        with sqsqlite.connect(tmp_path / db) as sqs:
            sqs.create_queue("orders")
    with sqsqlite.connect(tmp_path / "source.db") as sqs:
        sqs.queue("orders").send("one")
    port = free_port()
    server = Actor(tmp_path, "--db", "target.db", "serve", "--port", port)
    until(lambda: listens(port))
    url = f"http://127.0.0.1:{port}/000000000000/orders"
    mover = Actor(tmp_path, "--db", "source.db", "forward", "orders", "--to", url, "--follow")
    with sqsqlite.connect(tmp_path / "target.db") as target:
        until(lambda: target.queue("orders").peek(1))
    printed = mover.end()
    assert mover.process.returncode == 0
    assert '"moved": 1' in printed
    server.end()
