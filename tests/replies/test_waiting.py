# SPDX-License-Identifier: Apache-2.0
"""Waits end at their instant, by the file's clock, and the counts add up."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import sqsqlite
from sqsqlite.replies import ReplyTimeout, Requester, RequesterClosed, Responder
from sqsqlite.replies.addresses import WAITER
from sqsqlite.testing.files import lay
from tests.replies.asking import Worker, host_queues, name_of
from tests.store.waiting import until


@pytest.fixture
def manual_clock():
    return sqsqlite.ManualClock(patience=600)


@pytest.fixture
def still(tmp_path, manual_clock):
    """A file whose clock stands still."""
    path = lay(tmp_path / "still.db")
    with sqsqlite.connect(path, synchronous="OFF", clock=manual_clock) as opened:
        opened.create_queue("orders")
        yield opened


ALONE = """
import sys
import sqsqlite
from sqsqlite.replies import ReplyTimeout, Requester

clock = sqsqlite.ManualClock(patience=600)
with sqsqlite.connect(sys.argv[1], synchronous="OFF", clock=clock) as sqs:
    sqs.create_queue("orders")
    for api in (sqs, sqs.client) * 10:
        began = clock.now_ms()
        with Requester(api) as requester:
            try:
                requester.call("orders", "hello", 3_600)
            except ReplyTimeout:
                print(requester.counts.timed_out, clock.now_ms() - began >= 3_600_000)
"""
WITH_A_RESPONDER = """
import sys
import threading
import sqsqlite

clock = sqsqlite.ManualClock(patience=600)
with sqsqlite.connect(sys.argv[1], synchronous="OFF", clock=clock) as sqs:
    queue = sqs.create_queue("orders")
    last = 50

    def work():
        answered = 0
        while answered < last:
            for request in queue.receive(wait=20):
                sqsqlite.Responder(sqs).reply(request, request.body.upper())
                request.delete()
                answered += 1

    threading.Thread(target=work).start()
    with sqsqlite.Requester(sqs) as requester:
        for n in range(last):
            print(requester.call("orders", f"number {n}", 30).body)
"""


def run(program, path):
    """The lines of a separate Python: this one may have threads of earlier tests, which could move the clock."""
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_manual_clock_moves_itself_to_the_end_of_a_call(tmp_path):
    """However the calling thread and the receiving one take turns."""
    assert run(ALONE, tmp_path / "still.db") == ["1 True"] * 20


def test_a_reply_arrives_before_a_manual_clock_moves_past_the_timeout(tmp_path):
    """Caller, responder and receiving thread all wait at times; while one holds a message the clock stands still."""
    assert run(WITH_A_RESPONDER, tmp_path / "still.db") == [f"NUMBER {n}" for n in range(50)]


def test_a_submitted_request_times_out_at_its_instant(still, manual_clock):
    """Although the receiving thread's long poll lasts longer; and the shortest wait need not be the first."""
    with Requester(still) as requester:
        long, short, shorter = (requester.submit("orders", "hello", timeout) for timeout in (9, 5, 2))
        for seconds, future, others in ((2, shorter, [short, long]), (3, short, [long]), (4, long, [])):
            manual_clock.advance(seconds)
            with pytest.raises(ReplyTimeout):
                future.result(300)
            assert not any(other.done() for other in others)
        again = requester.submit("orders", "hello", 1)  # after the timer had nothing to wait for
        manual_clock.advance(1)
        with pytest.raises(ReplyTimeout):
            again.result(300)
        assert requester.counts.timed_out == 4


def test_late_repeated_and_unknown_replies_are_told_apart_and_deleted(still, manual_clock):
    with Requester(still) as requester:
        in_time, too_late = requester.submit("orders", "hello", 9), requester.submit("orders", "hello", 5)
        manual_clock.advance(6)
        with pytest.raises(ReplyTimeout):
            too_late.result(300)
        requests = still.queue("orders").receive(max_messages=10)
        for _ in range(2):
            for request in requests:
                Responder(still).reply(request, "done")
        assert in_time.result(300).body == "done"
        host = still.queue(host_queues(still)[0])
        host.send("who am I", attributes={WAITER: "nobody"})
        host.send("I name no waiter")
        until(lambda: requester.counts.unknown == 2)
        until(lambda: host.attributes["ApproximateNumberOfMessagesNotVisible"] == "0")
        counts = requester.counts
        assert (counts.sent, counts.answered, counts.timed_out) == (2, 1, 1)
        assert (counts.late, counts.repeated, counts.unknown) == (1, 2, 2)
        assert len(host) == 0


def test_counts_add_up_when_hundred_threads_ask_and_the_requester_closes(door, sqs):
    """Each call ends by a reply or by RequesterClosed; none stays behind."""
    requester = Requester(door)
    worker = Worker(door, 30)
    ended = []

    def ask(n):
        try:
            ended.append(requester.call(name_of(door), f"number {n}", 300).body == f"NUMBER {n}")
        except RequesterClosed as error:
            ended.append("closed" in str(error))

    with ThreadPoolExecutor(100) as pool:
        asked = [pool.submit(ask, n) for n in range(100)]
        worker.join()
        requester.close()
        for one in asked:
            one.result()
    assert ended == [True] * 100
    counts = requester.counts
    assert counts.answered >= 1
    assert counts.sent == counts.answered + counts.failed <= 100
    assert counts.timed_out == 0
    assert host_queues(sqs) == []


def test_an_interrupted_call_leaves_nothing_waiting(still):
    """As by Ctrl-C; here the clock itself gives up, since another thread could move it but does not."""
    with sqsqlite.connect(still.path, synchronous="OFF", clock=sqsqlite.ManualClock(patience=0.1)) as sqs:
        requester = Requester(sqs)
        with (
            pytest.raises(TimeoutError, match="nothing moved the ManualClock"),
            ThreadPoolExecutor(1) as pool,
        ):
            pool.submit(requester.call, "orders", "hello", 30).result()
        (request,) = sqs.queue("orders").receive()
        Responder(sqs).reply(request, "nobody waits")
        until(lambda: requester.counts.late == 1)
        assert (requester.counts.sent, requester.counts.failed) == (1, 1)
        requester.close()


def test_equal_requests_to_a_fifo_queue_are_each_answered(sqs):
    """Although content-based deduplication would drop the second. A caller's own deduplication id still counts."""
    sqs.create_queue("same.fifo", fifo=True, content_based_deduplication=True)
    worker = Worker(sqs, 2, "same.fifo")
    with Requester(sqs) as requester:
        for _ in range(2):
            assert requester.call("same.fifo", "hi", 300, group_id="g").body == "HI"
        worker.join()
        for _ in range(2):
            requester.submit("same.fifo", "hi", 300, group_id="g", deduplication_id="mine")
        assert len(sqs.queue("same.fifo")) == 1


def test_a_queue_is_named_in_any_way(door, sqs):
    """boto3 at an endpoint takes URLs alone."""
    queue = sqs.queue("orders")
    worker = Worker(door, 3)
    with Requester(door) as requester:
        for one in (queue, "orders", name_of(door)):
            assert requester.call(one, "hello", 300).body == "HELLO"
    worker.join()


def test_a_call_in_a_callback_is_refused_and_submit_and_close_work_there(sqs):
    requester = Requester(sqs)
    told, ended = [], threading.Event()

    def when_done(_):
        try:
            requester.call("orders", "again", 300)
        except sqsqlite.errors.StoreError as error:
            told.append(str(error))
        requester.submit("orders", "again", 300).add_done_callback(close)

    def close(future):
        told.append(future.result().body)
        requester.close()
        ended.set()

    requester.submit("orders", "hello", 300).add_done_callback(when_done)
    worker = Worker(sqs, 2)  # a callback that comes after the reply would run on this thread
    assert ended.wait(300)
    worker.join()
    assert "in the callback of a future" in told[0]
    assert told[1] == "AGAIN"
    assert host_queues(sqs) == []


def test_what_ends_the_receiving_thread_is_raised_by_all_calls(sqs):
    """Here a callback that ends its thread; the queue of replies is removed at the end all the same."""
    with Requester(sqs) as requester:

        def leave(_):
            raise SystemExit("callback")

        requester.submit("orders", "hello", 300).add_done_callback(leave)
        (request,) = sqs.queue("orders").receive()
        outstanding = requester.submit("orders", "hello", 300)
        Responder(sqs).reply(request, "hi")
        with pytest.raises(RequesterClosed, match="can't be received any more: SystemExit") as raised:
            outstanding.result(300)
        assert isinstance(raised.value.__cause__, SystemExit)
        with pytest.raises(RequesterClosed, match="can't be received any more: SystemExit"):
            requester.call("orders", "again")
        assert requester.counts.failed == 1
    assert host_queues(sqs) == []


@pytest.mark.parametrize("idle_seconds", [0, 14, 86_401, 20.5])
def test_idle_seconds_have_a_range(sqs, idle_seconds):
    with pytest.raises(ValueError, match="15 to 86,400"):
        Requester(sqs, idle_seconds=idle_seconds)
