"""A signal handler may raise anywhere in the main thread: nothing that others wait for may stay behind."""

import subprocess
import sys

import pytest

import sqsqlite

# Interrupts itself at random instants, in the midst of a send nearly always, while threads send too. Prints how often,
# and what came of it afterwards: main thread, other threads.
INTERRUPTED = """
import random, signal, sys, threading, time
import sqsqlite

class Interrupt(Exception):
    pass

def interrupt(*_):
    raise Interrupt

random.seed(int(sys.argv[2]))
count, stop = 0, threading.Event()
sqs = sqsqlite.connect(sys.argv[1], synchronous="OFF", busy_timeout=5)
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
until = time.monotonic() + 4
while time.monotonic() < until:
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
    thread.join(20)
    assert not thread.is_alive()
print(count)
"""


@pytest.mark.parametrize("threads", [0, 3])
def test_handler_that_raises_leaves_no_turn_behind(path, tmp_path, threads):
    """Afterwards the thread, others and other processes write as before, and the counts are right."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
        program = [sys.executable, "-c", INTERRUPTED, str(path), str(threads), str(threads)]
        done = subprocess.run(program, capture_output=True, text=True, timeout=50, check=False)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) > 100
        queue = sqs.queue("orders")
        queue.send("from another process")
        with sqs.transaction() as connection:
            stored = connection.execute("SELECT count(*) FROM sqs_leases").fetchone()[0]
        assert len(queue) == stored
