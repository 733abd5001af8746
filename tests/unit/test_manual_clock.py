# SPDX-License-Identifier: Apache-2.0
"""The clock for tests, if no thread is left to move it."""

import subprocess
import sys
import threading

import pytest

import sqsqlite
from sqsqlite import ManualClock

ONE_THREAD = """
import sys
import sqsqlite

clock = sqsqlite.ManualClock()
with sqsqlite.connect(sys.argv[1], clock=clock) as sqs:
    queue = sqs.create_queue("orders")
    began = clock.now_ms()
    assert queue.receive(wait=20) == []
    assert clock.now_ms() - began == 20_000
    queue.send("delayed", delay=7)
    [message] = queue.receive(wait=20, visibility_timeout=5)
    assert clock.now_ms() - began == 27_000
    [again] = queue.receive(wait=20)
    assert clock.now_ms() - began == 32_000
print("ended")
"""


TWO_THREADS = """
import sys
import threading
import sqsqlite

clock = sqsqlite.ManualClock()
began = clock.now_ms()
ended = []
with sqsqlite.connect(sys.argv[1], clock=clock) as sqs:
    queue = sqs.create_queue("orders")

    def wait(seconds):
        queue.receive(wait=seconds)
        ended.append((seconds, clock.now_ms() - began))

    thread = threading.Thread(target=wait, args=(5,))
    thread.start()
    clock.until_waiting()
    wait(20)
    thread.join()
for seconds, after_ms in sorted(ended):
    print(seconds, "s after", after_ms, "ms")
"""


def run(program, *arguments):
    """The output of a separate Python: this one may have threads of earlier tests, such as Spark's."""
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True, timeout=300
    )
    return ended.stdout, ended.stderr


def test_long_polls_of_a_program_with_one_thread_move_the_clock(tmp_path):
    """To the next instant at which a message may be visible, or to the end of the wait."""
    assert run(ONE_THREAD, tmp_path / "queues.db") == ("ended\n", "")


def test_the_clock_stands_still_while_another_thread_may_move_it(tmp_path):
    clock = ManualClock(patience=0.2)
    began = clock.now_ms()
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    try:
        with (
            sqsqlite.connect(tmp_path / "queues.db", clock=clock) as sqs,
            pytest.raises(
                TimeoutError, match=r"moved the ManualClock for 0\.2 s .* for 20000 ms: call advance"
            ),
        ):
            sqs.create_queue("orders").receive(wait=20)
    finally:
        ends.set()
        thread.join()
    assert clock.now_ms() == began


def test_when_all_threads_wait_the_clock_moves_to_the_first_instant(tmp_path):
    assert run(TWO_THREADS, tmp_path / "queues.db") == ("5 s after 5000 ms\n20 s after 20000 ms\n", "")


def test_patience_must_be_positive():
    with pytest.raises(ValueError, match=r"ManualClock\(patience=0\): seconds, more than 0, are allowed"):
        ManualClock(patience=0)


def test_a_thread_that_was_just_woken_can_move_the_clock():
    """It has not yet run since its event was set, so it is not asleep, and the clock must not leave without it."""
    gate = threading.Event()

    class Slow(threading.Event):
        def wait(self, timeout=None):
            return super().wait(timeout) and gate.wait(300)

    clock, woken = ManualClock(patience=0.2), Slow()
    began = clock.now_ms()
    thread = threading.Thread(target=clock.wait, args=(woken, began + 5_000))
    thread.start()
    clock.until_waiting()
    woken.set()
    try:
        with pytest.raises(TimeoutError, match="nothing moved the ManualClock"):
            clock.wait(threading.Event(), began + 9_000)
        assert clock.now_ms() == began
    finally:
        gate.set()
        thread.join()
