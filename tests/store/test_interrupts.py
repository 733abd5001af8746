# SPDX-License-Identifier: Apache-2.0
"""A signal handler may raise anywhere in the main thread. It must leave nothing behind that makes others wait."""

import gc
import signal
import subprocess
import sys

import pytest

import sqsqlite
from sqsqlite.store import driver
from tests.store.inspection import assert_whole
from tests.store.waiting import Task

# Interrupts itself at random instants, nearly always during a send, while other threads send. Prints the number of
# interrupts and the results afterwards: main thread, other threads. Ends after the number of interrupts given.
INTERRUPTED = """
import random, signal, sys, threading, time
import sqsqlite

class Interrupt(Exception):
    pass

def interrupt(*_):
    raise Interrupt

random.seed(int(sys.argv[2]))
count, stop = 0, threading.Event()
sqs = sqsqlite.connect(sys.argv[1], synchronous="OFF", busy_timeout=60)
queue = sqs.queue("orders")

def send_on():
    while not stop.is_set():
        try:
            queue.send("from a thread")
        except sqsqlite.errors.CommitInDoubt:
            pass  # the interrupted thread was committing for this one

threads = [threading.Thread(target=send_on) for _ in range(int(sys.argv[3]))]
for thread in threads:
    thread.start()
signal.signal(signal.SIGALRM, interrupt)
while count < int(sys.argv[4]):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 8e-4))
        # Swallowed by a finalizer, say, the one signal would be the last: no longer than this.
        round_end = time.monotonic() + 0.01
        while time.monotonic() < round_end:
            if count % 2:
                with sqs.transaction():
                    queue.send("in a block")
            else:
                queue.send("one")
    except Interrupt:
        count += 1
signal.setitimer(signal.ITIMER_REAL, 0)
queue.send("afterwards")
stop.set()
for thread in threads:
    thread.join(300)
    assert not thread.is_alive()
print(count)
"""


@pytest.mark.parametrize("threads", [0, 3])
def test_handler_that_raises_leaves_no_turn_behind(path, tmp_path, threads):
    """Afterwards this thread, other threads and other processes write as before, and the counts are correct."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
        program = [sys.executable, "-c", INTERRUPTED, str(path), str(threads), str(threads), "300"]
        done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) == 300
        queue = sqs.queue("orders")
        queue.send("from another process")
        with sqs.transaction() as connection:
            stored = connection.execute("SELECT count(*) FROM sqs_leases").fetchone()[0]
        assert len(queue) == stored


# The same for other calls than a send, with the second signal in the clean-up of the first. Prints the number of
# signals. With SQLAlchemy, one signal at a time: a second one in its clean-up makes it keep the connection for ever.
INTERRUPTED_AT = """
import os, random, signal, sys, threading
import sqsqlite

# SQLAlchemy wraps an Exception that comes while it talks to the driver into one of its own.
class Interrupt({"engine": KeyboardInterrupt, "connect": TimeoutError}.get(sys.argv[2], Exception)):
    pass

random.seed(int(sys.argv[4]))
count, to_come = 0, 0

def interrupt(*_):
    global count, to_come
    count += 1
    to_come -= 1
    if to_come:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(5e-6, 1e-4))
    raise Interrupt

path, what, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
sqs = sqsqlite.connect(path, synchronous="OFF", busy_timeout=20)
queue, empty = sqs.queue("orders"), sqs.queue("empty")

def look():
    queue.attributes, queue.peek(), sqs.stats()

def wait():
    empty.receive(wait=1)

def connect():
    with sqsqlite.connect(path, synchronous="OFF") as other:
        other.queue("orders").attributes

def engine():
    with sqs.engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO work VALUES (1)")
        queue.send("with a row", connection=connection)
    with sqs.read_engine.connect() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM work").scalar()

def block():
    with sqs.transaction() as connection:
        connection.execute("INSERT INTO work VALUES (1)")
        queue.send("with a row")

action = {"look": look, "wait": wait, "connect": connect, "engine": engine, "block": block}[what]
action()
stop, failures = threading.Event(), []

def look_on():
    while not stop.wait(0.001):
        try:
            queue.attributes
            if what != "wait":
                queue.send("from a thread")
        except sqsqlite.errors.CommitInDoubt:
            pass
        except BaseException as error:
            failures.append(repr(error))
            return

thread = threading.Thread(target=look_on)
thread.start()
signal.signal(signal.SIGALRM, interrupt)

def interrupted(depth=0):
    # Until the last of this round's signals; each level catches one of them.
    global to_come
    try:
        if depth < 4:
            interrupted(depth + 1)
        else:
            to_come = 1 if what == "engine" else random.randrange(1, 3)
            signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 2e-3))
            while to_come:
                action()
    except Interrupt:
        while to_come:
            pass
    except AssertionError:
        if what != "engine":  # SQLAlchemy finds its own state odd, and lets the connection go
            raise
    except sqsqlite.errors.SQSQLiteError as error:
        # A leader's interrupt may be this call's error. One that was left behind would come back without any.
        if not isinstance(error, sqsqlite.errors.CommitInDoubt) and not isinstance(error.__context__, Interrupt):
            raise
        while to_come:
            pass

while count < wanted:
    interrupted()
signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
for _ in range(3):
    look()
    connect()
    engine()
    block()
    assert empty.receive() == []
stop.set()
thread.join(30)
assert not thread.is_alive()
assert not failures, failures
if os.path.isdir("/proc/self/fd"):
    assert len(os.listdir("/proc/self/fd")) < 100, os.listdir("/proc/self/fd")
assert threading.active_count() < 12, threading.enumerate()
sqs.close()
print(count)
"""


@pytest.mark.parametrize("what", ["look", "wait", "connect", "engine", "block"])
def test_interrupts_in_other_calls_leave_nothing_behind(path, what):
    """Reads, waits, openings, SQLAlchemy's transactions, blocks; and in the clean-up after an interrupt."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
        sqs.create_queue("empty")
        with sqs.transaction() as connection:
            connection.execute("CREATE TABLE work (done INTEGER)")
        program = [sys.executable, "-c", INTERRUPTED_AT, str(path), what, "400", "7"]
        done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) >= 400
        queue = sqs.queue("orders")
        queue.send("from another process")
        with sqs.transaction() as connection:
            stored = connection.execute("SELECT count(*) FROM sqs_leases").fetchone()[0]
            rows = connection.execute("SELECT count(*) FROM work").fetchone()[0]
            sent = connection.execute(
                "SELECT count(*) FROM sqs_messages WHERE body = 'with a row'"
            ).fetchone()[0]
        assert (len(queue), rows) == (stored, sent)
        assert_whole(sqs)


def test_peek_stays_away_from_the_lock_of_logging(path):
    """Python's logging keeps its lock for good if a signal handler raises while logging holds it."""
    program = """
import logging, sys, threading
import sqsqlite

logging._lock.acquire()
with sqsqlite.connect(sys.argv[1]) as sqs:
    queue = sqs.create_queue("orders")
    queue.send("healthy")
    bodies = []
    thread = threading.Thread(target=lambda: bodies.extend(message.body for message in queue.peek()), daemon=True)
    thread.start()
    thread.join(60)
print(bodies, flush=True)
logging._lock.release()
"""
    ended = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert ended.stdout == "['healthy']\n"


def test_transaction_lost_in_a_reference_cycle_is_ended_when_a_write_waits(sqs, queue):
    """An interrupt in other code's clean-up may leave the transaction in the cycle of a traceback and its frames."""

    def lose():
        connection = sqs.engine.connect()
        connection.begin()
        cycle = [connection]
        cycle.append(cycle)

    sqs.engine  # noqa: B018 - made before, because making it leaves garbage of its own
    gc.disable()
    try:
        Task(lose).outcome()
        queue.send("not kept waiting for good")
    finally:
        gc.enable()


# An exception of a signal in a callback of the garbage collector, also hypothesis's, is raised nowhere: Python only
# reports it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupt_of_an_operation_in_a_block_reaches_the_caller(sqs, queue):
    """Otherwise the caller would get Busy, because a statement was cut short, and would try again."""

    class Interrupt(Exception):
        pass

    def interrupt(*_):
        raise Interrupt

    queue.send_many(["kept"] * 100)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(400):
            try:
                with sqs.transaction():
                    signal.setitimer(signal.ITIMER_REAL, 1e-4 + number % 40 * 2e-5)
                    for _ in range(10):
                        queue.receive(max_messages=10)
                    raise Interrupt
            except Interrupt:
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(queue) == 100


def test_interrupted_rollback_is_completed(path):
    """SQLAlchemy drops such a connection. A reference to the traceback would then keep SQLite's lock."""

    class Interrupt(BaseException):
        pass

    class Interrupting(driver.dbapi.Cursor):
        def close(self):
            if to_come:
                raise to_come.pop()
            super().close()

    to_come = [Interrupt(), Interrupt(), Interrupt()]
    with sqsqlite.connect(path, busy_timeout=2) as sqs:
        queue = sqs.create_queue("orders")
        connection = sqs.engine.connect()
        connection.begin()
        raw = connection.connection.driver_connection
        cursor = raw.cursor(Interrupting)
        with pytest.raises(Interrupt):
            connection.rollback()
        Task(queue.send, "not kept waiting").outcome()
        del raw, cursor, connection  # Up to here, the traceback refers to them.
