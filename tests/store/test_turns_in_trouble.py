# SPDX-License-Identifier: Apache-2.0
"""No trouble with the turnstile makes a writer wait for ever: SQLite's own lock decides who writes."""

import os
import signal
import threading
import time

import pytest

import sqsqlite
from sqsqlite.errors import Busy
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import HOLD_WRITE_LOCK, Program
from tests.store.test_turns import IN_TRANSACTION, posix_locks
from tests.store.waiting import until

SEND = """
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    say("open")
    input()
    sqs.queue("orders").send(sys.argv[2])
    say("sent")
"""
# Runs one transaction of 1.3 s after another until it gets a line. Prints when the first has begun, and their number.
LONG_TRANSACTIONS = """
import select, time
import sqsqlite
count = 0
with sqsqlite.connect(sys.argv[1], busy_timeout=300) as sqs:
    while not select.select([sys.stdin], [], [], 0)[0]:
        with sqs.transaction():
            sqs.queue("orders").send("work")
            count += 1
            if count == 1:
                say(count)
            time.sleep(1.3)
say(count)
"""
# Moves jobs from one file to another, from two threads.
PASS_ON = """
import threading
import sqsqlite
with sqsqlite.connect(sys.argv[1], busy_timeout=60) as one, sqsqlite.connect(sys.argv[2], busy_timeout=60) as two:
    source, target = one.queue("jobs"), two.queue("jobs")
    failures = []
    def work():
        try:
            while messages := source.receive(1, visibility_timeout=600):
                for message in messages:
                    target.send(message.body)
                    message.delete()
        except BaseException as error:
            failures.append(repr(error))
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(failures or "done")
"""
# No thread can be created: the system refuses one with such a stack.
WITHOUT_THREADS = """
import threading
import sqsqlite
threading.stack_size(2**46)
with sqsqlite.connect(sys.argv[1], synchronous="OFF") as sqs:
    queue = sqs.queue("orders")
    say("open")
    input()
    for number in range(300):  # upkeep becomes due behind one of these commits
        queue.send(f"message {number}")
    say(threading.active_count())
    input()
    say([message.body for message in sqs.queue("answers").receive(wait=20)])
"""
# A writer that stays in the waiting room.
IN_LINE = """
import fcntl
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
say("in line")
sys.stdin.readline()
"""
# The system refuses every lock, as a network file system without a lock service does.
WITHOUT_LOCKS = """
import errno, types
from sqsqlite.store import locks, turns
def lockf(descriptor, operation):
    raise OSError(errno.ENOLCK, "No locks available")
real = locks.fcntl
locks.fcntl = types.SimpleNamespace(**{**vars(real), "lockf": lockf})
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    for number in range(20):
        sqs.queue("orders").send(f"message {number}")
    say("done")
"""


@posix_locks
def test_two_processes_that_use_two_files_do_not_deadlock(tmp_path):
    """The kernel treats their helper threads as one: it answers EDEADLK to a lock that would have been granted."""
    count = 400
    paths = [tmp_path / name for name in ("in.db", "out.db")]
    for path in paths:
        with sqsqlite.connect(path) as sqs:
            queue = sqs.create_queue("jobs")
            if path is paths[0]:
                queue.send_many([f"job {number}" for number in range(count)])
    with Program(PASS_ON, *paths) as one, Program(PASS_ON, *paths) as other:
        assert (one.hear(300), other.hear(300)) == ("done", "done")
        one.end()
        other.end()
    with sqsqlite.connect(paths[0]) as source, sqsqlite.connect(paths[1]) as target:
        assert len(source.queue("jobs")) == 0
        assert sorted(bodies(target.queue("jobs"))) == sorted(f"job {number}" for number in range(count))
        assert_whole(source)
        assert_whole(target)


@posix_locks
def test_process_stopped_in_line_does_not_stop_others(sqs, queue, path):
    """It stands in the waiting room. The turn is free, and so is SQLite's lock."""
    folder = path.with_name(f"{path.name}-sqs")
    with Program(IN_TRANSACTION, path, "first") as writer, Program(SEND, path, "last") as stopped:
        assert (writer.hear(), stopped.hear()) == ("inside", "open")
        with Program(
            "from tests.store.test_turns import somebody_waits; from pathlib import Path\nsay('looks')\n"
            "while not somebody_waits(Path(sys.argv[1])): pass\nsay('waits')",
            folder,
        ) as look:
            # The sender must start from the beginning: the other process stands there for a second.
            assert look.hear() == "looks"
            stopped.tell()
            assert look.hear() == "waits"
        os.kill(stopped.pid, signal.SIGSTOP)
        writer.tell()
        writer.end()
        for number in range(20):
            queue.send(f"message {number}")
        os.kill(stopped.pid, signal.SIGCONT)
        assert stopped.hear() == "sent"
        stopped.end()
    assert sorted(bodies(queue)) == sorted(["first", "last", *(f"message {number}" for number in range(20))])
    assert_whole(sqs)


@posix_locks
def test_long_transactions_in_a_row_let_others_write_in_between(sqs, queue, path):
    """Each is longer than a writer waits behind an idle process. Each wait ends with the current transaction."""
    with Program(LONG_TRANSACTIONS, path) as other:
        assert other.hear() == "1"
        for number in range(3):
            queue.send(f"message {number}")
        other.tell()
        count = int(other.hear())
        other.end()
    assert count <= 5
    assert len(queue) == 3 + count
    assert_whole(sqs)


@posix_locks
def test_process_stopped_in_line_does_not_stop_others_with_a_short_timeout(path):
    """Each wait is shorter than the patience with one holder, but their sum is not."""
    with sqsqlite.connect(path, busy_timeout=0.5) as sqs:
        queue = sqs.create_queue("orders")
        in_line = path.with_name(f"{path.name}-sqs") / "waiting-room"
        with Program(IN_LINE, in_line) as stopped:
            assert stopped.hear() == "in line"
            os.kill(stopped.pid, signal.SIGSTOP)
            # A limit for a hang: each waiting send takes half a second.
            deadline = time.monotonic() + 100
            for number in range(400):
                assert time.monotonic() < deadline, f"{number} messages sent"
                queue.send(f"message {number}")
        assert len(queue) == 400


@posix_locks
def test_busy_names_the_process_that_writes(path):
    with sqsqlite.connect(path, busy_timeout=0.3) as sqs:
        queue = sqs.create_queue("orders")
        with Program(IN_TRANSACTION, path, "first") as other:
            assert other.hear() == "inside"
            with pytest.raises(Busy, match=rf"process {other.pid} \(.*python.*\) has it \("):
                queue.send("second")
            os.kill(other.pid, signal.SIGSTOP)
            until(lambda: state_of(other.pid) == "T")
            with pytest.raises(Busy, match=rf"process {other.pid} .* has it, which is stopped"):
                queue.send("second")
            os.kill(other.pid, signal.SIGCONT)
            other.tell()
            other.end()
        assert bodies(queue) == ["first"]


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(") ")[2][0]


@posix_locks
def test_busy_names_a_program_that_takes_no_turns(path):
    with sqsqlite.connect(path, busy_timeout=0.3) as sqs:
        queue = sqs.create_queue("orders")
        with Program(HOLD_WRITE_LOCK, path) as other:
            assert other.hear() == "held"
            with pytest.raises(Busy, match=f"process {other.pid} "), sqs.transaction():
                pass
            with pytest.raises(Busy, match=f"process {other.pid} "):
                queue.send("second")


def test_without_threads_each_commit_is_still_answered(sqs, queue, path):
    """Work after a commit may need a thread. The commit is still answered, and the turn given up."""
    answers = sqs.create_queue("answers")
    with Program(WITHOUT_THREADS, path) as program:
        assert program.hear() == "open"
        program.tell()
        assert program.hear(120) == "1"
        queue.send("others write meanwhile")
        program.tell()
        answers.send("heard by looking")
        assert program.hear() == "['heard by looking']"
        program.end()
    assert len(queue) == 301
    assert_whole(sqs)


@posix_locks
def test_without_threads_a_writer_takes_its_place_in_line(sqs, queue, path):
    with Program(IN_TRANSACTION, path, "first") as writer, Program(WITHOUT_THREADS, path) as program:
        assert (writer.hear(), program.hear()) == ("inside", "open")
        program.tell()
        assert program.is_silent(0.3)
        writer.tell()
        assert program.hear(120) == "1"
    assert len(queue) == 301


@posix_locks
def test_without_file_locks_sqlites_own_lock_is_enough(sqs, queue, path):
    with Program(WITHOUT_LOCKS, path) as program:
        assert program.hear() == "done"
        program.end()
    assert len(queue) == 20
    assert_whole(sqs)


@posix_locks
def test_opening_and_closing_next_to_a_writer_leaves_no_thread(sqs, queue, path):
    """Each opening sometimes waits for the writer, behind a helper thread."""
    sqs.close()
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    writer = """
import sqsqlite
with sqsqlite.connect(sys.argv[1], synchronous="OFF") as sqs:
    say("open")
    while True:
        sqs.queue("orders").send("x")
"""
    before = threading.active_count()
    with Program(writer, path) as program:
        assert program.hear() == "open"
        for _ in range(100):
            with sqsqlite.connect(path) as opened:
                opened.queue("orders").send("y")
    until(lambda: threading.active_count() <= before)
    if descriptors is not None:
        with sqsqlite.connect(path):
            pass  # Close what a helper still holds.
        until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
