# SPDX-License-Identifier: Apache-2.0
"""A process without free descriptors gets a clear error, loses nothing, and works again once some are free."""

import pytest

import sqsqlite
from tests.store.inspection import bodies
from tests.store.processes import Program

resource = pytest.importorskip("resource")

# Does one thing with a number of free descriptors, again with one more, and so on until it succeeds. Each time it
# repeats the thing with enough descriptors. Prints "ok" for the expected result, or the unexpected error.
TRY = """
import os, resource, shutil, sys, threading
import sqsqlite

path, what = sys.argv[1:]
sqsqlite.connect  # imports what it needs
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)

def connect():
    sqsqlite.connect(path).close()

def make():
    shutil.rmtree(f"{path}-new-sqs", ignore_errors=True)
    for name in ("", "-wal", "-shm"):
        if os.path.exists(f"{path}-new{name}"):
            os.unlink(f"{path}-new{name}")
    return lambda: sqsqlite.connect(f"{path}-new").close()

def poll(queue):
    queue.receive(wait=1, visibility_timeout=0)

def poll_in_thread(queue):
    caught = []
    def run():
        try:
            poll(queue)
        except BaseException as error:
            caught.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if caught:
        raise caught[0]

def send(queue):
    queue.send(what)

def block(queue):
    with sqs.transaction():
        queue.send(what)

def engine(queue):
    with sqs.engine.begin() as connection:
        queue.send(what, connection=connection)

def read_engine(queue):
    with sqs.read_engine.begin():
        pass

def attempt(action, left):
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + left + 8, most))
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for _ in range(left):
        os.close(held.pop())
    error = None
    try:
        action()
    except BaseException as caught:
        error = caught
    for each in held:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return error

outcomes, open_counts = [], []
for left in range(20):
    sqs = None
    if what in ("connect", "make"):
        again = action = connect if what == "connect" else make()
    else:
        sqs = sqsqlite.connect(path)
        queue = sqs.queue("orders")
        do = globals()[what]
        again = action = lambda: do(queue)
    error = attempt(action, left)
    outcomes.append("ok" if error is None else f"{type(error).__name__}: {error}")
    again()
    if sqs is not None:
        sqs.close()
    open_counts.append(len(os.listdir("/proc/self/fd")))
# All but the folder's, which a long path takes once.
if open_counts[-1] > open_counts[0] + 1:
    say(f"descriptors are left open: {open_counts}")
for outcome in outcomes:
    say(outcome)
say("end")
"""


@pytest.mark.parametrize(
    "what",
    [
        "connect",
        "poll",
        *(
            pytest.param(what, marks=pytest.mark.slow)
            for what in ("make", "poll_in_thread", "send", "block", "engine", "read_engine")
        ),
    ],
)
def test_each_call_without_descriptors_raises_a_clear_error_and_works_afterwards(path, what):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("first")
    outcomes = []
    with Program(TRY, path, what) as program:
        while (outcome := program.hear()) != "end":
            outcomes.append(outcome)
    told = [outcome for outcome in outcomes if outcome != "ok"]
    assert told
    assert outcomes[-1] == "ok"
    for outcome in told:
        assert outcome.startswith("CannotOpen: ")
        assert "no file descriptor is free" in outcome
    if what in ("send", "block", "engine"):
        with sqsqlite.connect(path) as sqs:
            sent = bodies(sqs.queue("orders")).count(what)
        assert sent == 2 * len(outcomes) - len(told)
