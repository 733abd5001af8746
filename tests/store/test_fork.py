# SPDX-License-Identifier: Apache-2.0
"""A process forks while it uses a queue: parent and child both continue, and the file stays whole."""

import contextlib
import multiprocessing
import os
import stat
import subprocess
import threading
import time
from uuid import UUID

import pytest

import sqsqlite
from sqsqlite.store import checkpoints, connections
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Child
from tests.store.waiting import Task, until

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    # From Python 3.12 on: this module tests forks in the presence of threads.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """However slow the machine is, a fork waits until the transactions of other threads have ended."""
    monkeypatch.setattr(connections, "FORK_PATIENCE", 300)


@pytest.fixture
def sqs(path):
    with sqsqlite.connect(path) as opened:
        yield opened


def test_child_sends_and_receives_by_the_parents_object(sqs, queue):
    queue.send("from the parent")

    def work():
        [message] = queue.receive()
        message.delete()
        queue.send("from the child")
        return message.body

    assert Child(work).outcome() == "from the parent"
    assert bodies(queue) == ["from the child"]
    assert_whole(sqs)


def test_fifty_forks_under_traffic_lose_nothing(sqs, queue):
    """Three threads of the parent and every child send and delete. What remains was sent and not deleted."""
    stop = threading.Event()

    def traffic(name):
        kept = []
        while not stop.is_set():
            sent = queue.send(f"{name} {len(kept)}")
            kept.append(sent.message_id)
        return kept

    def work():
        sent = queue.send("kept by the child")
        scratch = sqs.create_queue(f"scratch-{os.getpid()}")
        scratch.send("deleted by the child")
        [message] = scratch.receive()
        message.delete()
        return sent.message_id

    threads = [Task(traffic, f"thread {number}") for number in range(3)]
    sent = [str(UUID(Child(work).outcome())) for _ in range(50)]
    stop.set()
    for thread in threads:
        sent += thread.outcome()
    assert len(queue) == len(sent)
    found = set()
    while messages := queue.receive(10, visibility_timeout=600):
        found |= {message.message_id for message in messages}
    assert found == set(sent)
    assert_whole(sqs)


def test_threads_that_fork_at_once_leave_no_lock_behind(sqs, queue):
    """Once one of them cleared the list of what the other had locked, and every later call waited for ever."""
    together = threading.Barrier(3)

    def fork():
        for _ in range(10):
            together.wait()
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)

    forkers = [Task(fork) for _ in range(2)]
    for number in range(10):
        together.wait()
        Task(queue.send, str(number)).outcome()
    for forker in forkers:
        forker.outcome()
    assert bodies(queue) == [str(number) for number in range(10)]


def test_fork_during_a_checkpoint_that_waits_for_its_turn(sqs, queue, monkeypatch):
    """The fork waits without a connection: the writer may be waiting for the fork, and the fork for connections."""
    store = sqs._store
    monkeypatch.setattr(checkpoints, "RESTART_ABOVE", 0)
    queue.send("before")
    held, over = threading.Event(), threading.Event()

    def hold_turn():
        with store.file.turnstile.taken(300):
            held.set()
            over.wait(300)

    holder = Task(hold_turn)
    assert held.wait(300)
    waiting = Task(lambda: checkpoints.checkpoint(store.file))
    until(lambda: store.file.turnstile._waiting)
    child = Child(lambda: sqs.stats("orders")[0].visible)
    over.set()
    holder.outcome()
    waiting.outcome()
    assert child.outcome() == "1"


def test_children_of_multiprocessing_work_at_the_same_time(sqs, queue):
    fork = multiprocessing.get_context("fork")
    children = [
        fork.Process(target=queue.send_many, args=([f"{n} {m}" for m in range(20)],)) for n in range(6)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(300)
    assert [child.exitcode for child in children] == [0] * 6
    assert len(queue) == 120
    assert_whole(sqs)


def test_send_wakes_a_waiter_between_parent_and_child(sqs, queue):
    replies = sqs.create_queue("replies")
    waiting = Task(replies.receive, 1, 20)
    until(lambda: sqs._store.waker._waiters)

    def work():
        [message] = queue.receive(wait=20)
        message.delete()
        replies.send(message.body.upper())
        return "done"

    child = Child(work)
    queue.send("wake up")
    [reply] = waiting.outcome()
    assert reply.body == "WAKE UP"
    assert child.outcome() == "done"


def test_child_may_open_another_file(sqs, queue, tmp_path):
    def work():
        with sqsqlite.connect(tmp_path / "other.db") as other:
            mine = other.create_queue("orders")
            mine.send("hi")
            return bodies(mine)

    assert Child(work).outcome() == "['hi']"


def test_child_of_a_closed_file_leaves_it_closed(sqs, queue):
    sqs.close()
    assert Child(lambda: queue.send("late")).outcome().startswith("StoreClosed")


@pytest.mark.slow
def test_fork_while_other_threads_open_the_file_leaves_no_lock_behind(path):
    """A thread that opens and closes all the time often holds locks of ours at the instant of a fork."""
    sqsqlite.connect(path).close()
    stop = threading.Event()

    def reopen():
        while not stop.is_set():
            sqsqlite.connect(path).close()

    other = path.with_name("other.db")
    thread = Task(reopen)
    outcomes = {Child(lambda: sqsqlite.connect(other).close()).outcome() for _ in range(30)}
    stop.set()
    thread.outcome()
    assert outcomes == {"None"}


REFUSED = "forked while a transaction was open"


@pytest.mark.parametrize(
    "use",
    [
        lambda sqs, queue: queue.send("from the child"),
        lambda sqs, queue: queue.receive(),
        lambda sqs, queue: queue.attributes,
        lambda sqs, queue: sqs.engine.connect().begin(),
        lambda sqs, queue: sqs.read_engine.connect().begin(),
        lambda sqs, queue: sqs.transaction().__enter__(),
        lambda sqs, queue: sqsqlite.connect(sqs._store.path),
    ],
    ids=["send", "receive", "attributes", "engine", "read_engine", "transaction", "connect"],
)
def test_child_forked_inside_a_transaction_is_refused_at_once(sqs, queue, use):
    with sqs.transaction():
        queue.send("from the parent")
        child = Child(lambda: use(sqs, queue))
        assert REFUSED in child.outcome()
    assert bodies(queue) == ["from the parent"]
    assert_whole(sqs)


@pytest.mark.parametrize("leave", ["commit", "rollback", "close"])
def test_child_cannot_end_its_parents_transaction(sqs, queue, leave):
    """The child may do anything with the connection that it inherited: the parent's transaction stays the parent's."""
    with sqs.transaction() as connection:
        queue.send("from the parent")
        connection.execute("CREATE TABLE big (bytes)")
        connection.execute(
            "INSERT INTO big VALUES (zeroblob(8000000))"
        )  # Beyond the cache, so it is in the WAL already.
        child = Child(getattr(connection, leave))
        outcome = child.outcome()
        assert REFUSED in outcome if leave == "commit" else outcome == "None"
    assert bodies(queue) == ["from the parent"]
    assert_whole(sqs)


def test_child_that_leaves_the_block_of_a_transaction_is_refused(sqs, queue):
    """As when a function that forks is called inside the block."""

    def work():
        context.__exit__(None, None, None)

    context = sqs.transaction()
    context.__enter__()
    queue.send("from the parent")
    assert REFUSED in Child(work).outcome()
    context.__exit__(None, None, None)
    assert bodies(queue) == ["from the parent"]


def test_program_starts_inside_a_transaction_without_a_wait(sqs, queue):
    """preexec_fn makes Python use fork. The thread that forks cannot end its block meanwhile."""
    with sqs.transaction() as connection:
        connection.execute("CREATE TABLE started (program)")
        ended = subprocess.run(["true"], preexec_fn=lambda: None, check=True)
        connection.execute("INSERT INTO started VALUES ('true')")
        queue.send("started")
    assert ended.returncode == 0
    assert bodies(queue) == ["started"]
    assert_whole(sqs)


@pytest.mark.parametrize("use", ["engine", "read_engine", "reading"])
def test_program_starts_during_a_use_of_the_connection_without_a_wait(sqs, queue, use, monkeypatch):
    """Outside a transaction, and during a read. A wait would last as long as its whole patience."""
    monkeypatch.setattr(connections, "FORK_PATIENCE", 60.0)
    with contextlib.ExitStack() as stack:
        if use == "reading":
            stack.enter_context(sqs._store.reading())
        else:
            connection = stack.enter_context(getattr(sqs, use).connect())
            if use == "read_engine":
                connection.exec_driver_sql("SELECT name FROM sqs_queues").fetchall()
        started_at = time.monotonic()
        subprocess.run(["true"], preexec_fn=lambda: None, check=True)
        assert time.monotonic() - started_at < connections.FORK_PATIENCE
    queue.send("afterwards")
    assert bodies(queue) == ["afterwards"]


def test_parent_continues_after_a_fork_inside_a_transaction(sqs, queue):
    with contextlib.suppress(ZeroDivisionError), sqs.transaction():
        queue.send("rolled back")
        Child(lambda: None).outcome()
        raise ZeroDivisionError
    queue.send("kept")
    assert bodies(queue) == ["kept"]


def test_daemon_that_closes_all_descriptors_locks_no_file_of_another(sqs, queue):
    """As python-daemon does. SQLite then reuses the numbers of the lock files, one of them for the -shm."""
    queue.send("from the parent")

    def work():
        for number in range(3, 256):
            with contextlib.suppress(OSError):
                if not stat.S_ISFIFO(os.fstat(number).st_mode):  # a pipe leads to the parent
                    os.close(number)
        with sqs.transaction():
            queue.send("from the daemon")
            locks = (sqs._store.file.turnstile._waiting_room, sqs._store.file.turnstile._turn)
            return [os.path.basename(os.readlink(f"/proc/self/fd/{lock._descriptor}")) for lock in locks]

    assert Child(work).outcome() == "['waiting-room', 'turn']"
    assert bodies(queue) == ["from the parent", "from the daemon"]
    assert_whole(sqs)
