# SPDX-License-Identifier: Apache-2.0
"""A handler's TimeoutError is an OSError: it must reach the caller, and must not count as an error of the system."""

import pytest

import sqsqlite
from tests.store.processes import Program

# A signal comes at the first call of a kind that the operation makes, or at the only one about a name; Python's audit
# events give the instant. The program prints what the caller gets, and what a later send does.
TIME_OUT = """
import os, signal, socket, sys
import sqsqlite

path, what, event, about = sys.argv[1:]
is_due = False

def time_out(*_):
    raise TimeoutError("of the handler")

def audit(called, arguments):
    global is_due
    if is_due and called == event and (not about or about in str(arguments[0])):
        is_due = False
        signal.raise_signal(signal.SIGALRM)

signal.signal(signal.SIGALRM, time_out)
sys.addaudithook(audit)
opened = None if what == "connect" else sqsqlite.connect(path)
if event == "socket.sendto":
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    os.chdir(f"{path}-sqs")
    peer.bind("wake-peer")
is_due = True
try:
    if what == "connect":
        sqsqlite.connect(path).close()
    else:
        opened.queue("orders").receive(wait=1) if what == "wait" else opened.queue("orders").send("x")
    say("nothing")
except BaseException as error:
    say(f"{type(error).__name__}: {error}")
is_due = False
with sqsqlite.connect(path) as again:
    again.queue("orders").send("afterwards")
say("sent")
"""


@pytest.mark.parametrize(
    ("what", "event", "about"),
    [
        pytest.param("connect", "os.mkdir", "-sqs", id="folder beside"),
        pytest.param("connect", "open", "/proc/self/mountinfo", id="mounts"),
        pytest.param("connect", "open", "boot_id", id="boot"),
        pytest.param("connect", "open", "timens_offsets", id="time namespace"),
        pytest.param("send", "fcntl.lockf", "", id="turn"),
        pytest.param("send", "os.listdir", "-sqs", id="peers"),
        pytest.param("send", "socket.sendto", "", id="news"),
        pytest.param("wait", "socket.bind", "", id="socket"),
    ],
)
@pytest.mark.slow
def test_handlers_timeout_reaches_the_caller(path, what, event, about):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
    if event == "os.mkdir":
        for file in (path.parent / f"{path.name}-sqs").iterdir():
            file.unlink()
        (path.parent / f"{path.name}-sqs").rmdir()
    with Program(TIME_OUT, path, what, event, about) as program:
        assert program.hear() == "TimeoutError: of the handler"
        assert program.hear() == "sent"
