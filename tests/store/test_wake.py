# SPDX-License-Identifier: Apache-2.0
"""A process that waits for a message learns of commits in other processes."""

import os
import stat
import time

import pytest

import sqsqlite
from tests.store.processes import Program
from tests.store.waiting import Task, until

# Far above the millisecond that it takes, but below the length of the wait, whose end would not be a wake-up.
SOON = 300.0
WAIT = 1_000

RECEIVE = """
import sqsqlite
sqs = sqsqlite.connect(sys.argv[1], limits="native")
queue = sqs.queue("orders")
say("open")
while True:
    say(*[message.body for message in queue.receive(wait=1_000, visibility_timeout=int(sys.argv[2]))])
    input()
"""
RECEIVE_AS_NOBODY = RECEIVE.replace(
    'say("open")',
    'import os; queue.receive(); os.setgroups([]); os.setgid(65534); os.setuid(65534); say("open")',
)
# Only a datagram wakes it.
RECEIVE_BY_DATAGRAM = "import sys, sqsqlite.store.wake as wake; wake.SAFETY_NET = 10_000" + RECEIVE
SEND_AS_NOBODY = """
import os, sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    sqs.queues()
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    say("open")
    input()
    sqs.queue("orders").send("hi")
    say("sent")
"""
# Killed between its commit and its datagrams.
SEND_AND_DIE = """
import os, signal, sqsqlite
from sqsqlite.store.wake import Waker
Waker.announce = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
sqsqlite.connect(sys.argv[1]).queue("orders").send("last words")
"""


@pytest.fixture
def sqs(path):
    with sqsqlite.connect(path, limits="native") as opened:
        yield opened


def sockets(path):
    return [name for name in os.listdir(f"{path}-sqs") if name.startswith("wake-")]


@pytest.fixture
def waiter(path, queue):
    """A process that waits for a message, with its socket bound."""
    with Program(RECEIVE, path, 600) as program:
        assert program.hear() == "open"
        until(lambda: sockets(path))
        yield program


def test_send_wakes_a_waiter(queue, waiter):
    for number in range(20):
        queue.send(f"message {number}")
        assert waiter.hear(SOON) == f"message {number}"
        waiter.tell()


def test_batch_wakes_every_waiter(queue, path, waiter):
    with Program(RECEIVE, path, 600) as second:
        assert second.hear() == "open"
        until(lambda: len(sockets(path)) == 2)
        queue.send_many(["one", "two"])
        assert {waiter.hear(SOON), second.hear(SOON)} == {"one", "two"}


def test_end_of_a_delay_wakes_a_waiter(queue, waiter):
    started = time.monotonic()
    queue.send("late", delay=1)
    assert waiter.hear(1 + SOON) == "late"
    assert time.monotonic() - started > 0.9


def test_end_of_a_visibility_timeout_wakes_a_waiter(queue, path):
    queue.send("returned")
    queue.receive(visibility_timeout=1)
    with Program(RECEIVE, path, 600) as waiter:
        assert waiter.hear() == "open"
        assert waiter.hear(1 + SOON) == "returned"


def test_message_given_back_wakes_a_waiter(queue, path):
    queue.send("returned")
    [message] = queue.receive(visibility_timeout=600)
    with Program(RECEIVE, path, 600) as waiter:
        assert waiter.hear() == "open"
        until(lambda: sockets(path))
        message.change_visibility(0)
        assert waiter.hear(SOON) == "returned"


def test_commit_of_an_applications_transaction_wakes_a_waiter(sqs, queue, waiter):
    with sqs.transaction():
        queue.send("committed")
        assert waiter.is_silent(0.2)
    assert waiter.hear(SOON) == "committed"


def test_commit_of_a_writer_that_died_before_its_wake_up_is_noticed(queue, waiter, path):
    with Program(SEND_AND_DIE, path):
        assert waiter.hear(SOON) == "last words"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_waiter_that_cannot_bind_a_socket_is_woken_too(queue, path):
    """Its user may not write the folder of the sockets, so it looks at data_version instead."""
    for folder in (path.parent, *path.parents):
        if folder.stat().st_uid == 0 and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o001)
    for each in (path, *path.parent.glob("queues.db-*"), *path.parent.glob("queues.db-sqs/*")):
        each.chmod(0o666)
    path.with_name("queues.db-sqs").chmod(0o755)
    with Program(RECEIVE_AS_NOBODY, path, 600) as waiter:
        assert waiter.hear() == "open"
        queue.send("hi")
        assert waiter.hear(SOON) == "hi"
        assert [name for name in sockets(path) if str(waiter.pid) in name] == []


@pytest.mark.slow  # processes of two users
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_send_of_another_user_wakes_a_waiter_of_roots(path, mode):
    """Root created the socket, which gets the rights and the owner of the database, as lock files do."""
    path.touch()
    path.chmod(mode)
    os.chown(path, 65534, 65534)
    path.parent.chmod(0o777)
    for folder in path.parent.parents:
        if folder.stat().st_uid == 0 and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o001)
    with sqsqlite.connect(path) as sqs, Program(SEND_AS_NOBODY, path) as sender:
        sqs.create_queue("orders")
        assert sender.hear() == "open"
        with Program(RECEIVE_BY_DATAGRAM, path, 600) as waiter:
            assert waiter.hear() == "open"
            until(lambda: sockets(path))
            [name] = sockets(path)
            until(lambda: has_rights_of(path.with_name("queues.db-sqs") / name, path), patience=20)
            sender.tell()
            assert waiter.hear(SOON) == "hi"


def has_rights_of(path, other):
    found, like = path.stat(), other.stat()
    return (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (
        stat.S_IMODE(like.st_mode),
        like.st_uid,
        like.st_gid,
    )


def test_socket_of_a_killed_waiter_is_removed(queue, waiter, path):
    waiter.kill()
    assert len(sockets(path)) == 1
    queue.send("hi")
    until(lambda: not sockets(path))


def test_waiters_of_one_process_share_one_socket(sqs, queue, path):
    tasks = [Task(queue.receive, 1, 20) for _ in range(8)]
    until(lambda: sum(map(len, sqs._store.waker._waiters.values())) == 8)
    assert len(sockets(path)) == 1
    queue.send_many(["x"] * 8)
    assert [len(task.outcome()) for task in tasks] == [1] * 8


def test_close_ends_a_wait_with_an_empty_list(sqs, queue):
    task = Task(queue.receive, 1, WAIT)
    until(lambda: sqs._store.waker._waiters)
    started = time.monotonic()
    sqs.close()
    assert task.outcome() == []
    assert time.monotonic() - started < SOON
