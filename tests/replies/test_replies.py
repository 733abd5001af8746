# SPDX-License-Identifier: Apache-2.0
"""Requests and replies, through the Python API, the client and boto3 at a real endpoint."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import sqsqlite
from sqsqlite.replies import ReplyTimeout, Requester, RequesterClosed, RequesterGone, Responder, hosts
from sqsqlite.replies.addresses import ADDRESS, HOST_PREFIX, LAST_SIGN, RETENTION, WAITER
from sqsqlite.testing.files import lay
from tests.replies.asking import Worker, host_queues, name_of
from tests.store.waiting import until


def test_a_call_returns_its_reply(door, sqs):
    worker = Worker(door)
    with Requester(door) as requester:
        reply = requester.call(name_of(door), "hello", timeout=300)
        assert (reply.body, reply.attributes) == ("HELLO", {"length": 5})
        assert (requester.counts.sent, requester.counts.answered) == (1, 1)
        assert len(host_queues(sqs)) == 1
    worker.join()
    assert host_queues(sqs) == []
    assert len(sqs.queue("orders")) == 0


def test_each_of_a_hundred_threads_gets_its_own_reply(door):
    worker = Worker(door, 100)
    with Requester(door) as requester, ThreadPoolExecutor(100) as pool:
        asked = [pool.submit(requester.call, name_of(door), f"number {n}", 300) for n in range(100)]
        assert [one.result().body for one in asked] == [f"NUMBER {n}" for n in range(100)]
    worker.join()


def test_many_requests_of_one_thread(sqs):
    worker = Worker(sqs, 50)
    with Requester(sqs) as requester:
        replies = [requester.submit("orders", f"n{n}", 300) for n in range(50)]
        assert [reply.result(300).body for reply in replies] == [f"N{n}" for n in range(50)]
    worker.join()


def test_a_fifo_queue_takes_requests(sqs):
    worker = Worker(sqs, 1, "orders.fifo")
    with Requester(sqs) as requester:
        assert requester.call("orders.fifo", "hi", 300, group_id="g", deduplication_id="d").body == "HI"
    worker.join()


def test_a_reply_that_never_comes(sqs, clock):
    with Requester(sqs) as requester:
        asked = threading.Thread(
            target=lambda: until(lambda: len(sqs.queue("orders")) == 1) or clock.advance(31)
        )
        asked.start()
        with pytest.raises(
            ReplyTimeout, match="no reply from orders within 30 s; the request may still be worked on"
        ):
            requester.call("orders", "hello")
        asked.join()
        assert requester.counts.timed_out == 1


def test_a_manual_clock_ends_the_wait_at_once(tmp_path):
    with (
        sqsqlite.connect(lay(tmp_path / "m.db"), synchronous="OFF", clock=sqsqlite.ManualClock()) as sqs,
        Requester(sqs) as requester,
    ):
        sqs.create_queue("orders")
        with pytest.raises(TimeoutError):
            requester.call("orders", "hello", 3_600)


def test_a_late_reply_and_a_strangers_are_counted_and_deleted(sqs, clock):
    with Requester(sqs) as requester:
        future = requester.submit("orders", "hello", timeout=30)
        (request,) = sqs.queue("orders").receive()
        clock.advance(31)  # the long poll of the receiving thread goes on; its next look ends the wait
        Responder(sqs).reply(request, "too late?")
        until(future.done)
        host = sqs.queue(host_queues(sqs)[0])
        host.send("who am I", attributes={WAITER: "nobody"})
        until(lambda: requester.counts.unknown == 1)
        until(lambda: len(host) == 0)
        counts = requester.counts
        # The reply and the look at the clock race: either the reply was first, or it is counted as late.
        assert counts.answered + counts.timed_out == 1
        assert counts.late == counts.timed_out


def test_reply_deletion_and_rows_commit_together(sqs):
    with Requester(sqs) as requester:
        future = requester.submit("orders", "hello", 300)
        (request,) = sqs.queue("orders").receive()
        with contextlib.suppress(ZeroDivisionError), sqs.transaction() as connection:
            connection.execute("CREATE TABLE done (body TEXT)")
            Responder(sqs).reply(request, "rolled back")
            request.delete()
            _ = 1 / 0
        assert not future.done()
        with sqs.transaction() as connection:
            connection.execute("CREATE TABLE done (body TEXT)")
            Responder(sqs).reply(request, "committed")
            request.delete()
        assert future.result(300).body == "committed"


def test_a_reply_within_the_applications_own_transaction(sqs):
    with Requester(sqs) as requester:
        future = requester.submit("orders", "hello", 300)
        (request,) = sqs.queue("orders").receive()
        with sqs.engine.begin() as connection:
            Responder(sqs).reply(request, "from a transaction", connection=connection)
            request.delete(connection=connection)
        assert future.result(300).body == "from a transaction"


def test_a_call_within_a_transaction_is_refused(sqs):
    with (
        Requester(sqs) as requester,
        sqs.transaction(),
        pytest.raises(sqsqlite.errors.StoreError, match="after the transaction"),
    ):
        requester.call("orders", "hello")


def test_a_reply_to_a_requester_that_has_ended(door, sqs):
    with Requester(door) as requester:
        requester.submit(name_of(door), "hello", 300)
        (request,) = sqs.queue("orders").receive()
    with pytest.raises(RequesterGone, match="nobody waits for this reply"):
        Responder(door).reply(request, "too late")


def test_a_message_that_wants_no_reply(door, sqs):
    sqs.queue("orders").send("no reply")
    (request,) = sqs.queue("orders").receive()
    assert Responder(door).address_of(request) is None
    with pytest.raises(ValueError, match=ADDRESS):
        Responder(door).reply(request, "hello")


def test_closing_fails_what_is_outstanding(sqs):
    requester = Requester(sqs)
    future = requester.submit("orders", "hello", 300)
    requester.close()
    requester.close()
    with pytest.raises(RequesterClosed):
        future.result(0)
    with pytest.raises(RequesterClosed):
        requester.call("orders", "again")
    assert host_queues(sqs) == []


def test_a_requester_that_was_never_used_makes_no_queue(sqs):
    Requester(sqs).close()
    assert host_queues(sqs) == []


def test_a_closed_file_ends_the_calls(tmp_path):
    sqs = sqsqlite.connect(lay(tmp_path / "c.db"), synchronous="OFF")
    sqs.create_queue("orders")
    requester = Requester(sqs)
    future = requester.submit("orders", "hello", 300)
    sqs.close()
    with pytest.raises(RequesterClosed):
        future.result(300)
    with pytest.raises((RequesterClosed, sqsqlite.errors.StoreClosed)):
        requester.call("orders", "again")
    requester.close()


def test_a_missing_queue_leaves_nothing_waiting(door):
    with Requester(door) as requester:
        with pytest.raises(Exception, match=r"(?i)queue does not exist|no queue"):
            requester.call("http://localhost:9324/000000000000/missing", "hello")
        assert requester.counts.sent == 0


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_bad_timeouts(sqs, timeout):
    with pytest.raises(ValueError, match="seconds, more than 0"):
        Requester(sqs).call("orders", "hello", timeout)


def test_after_its_queue_was_removed_a_requester_makes_another(door, sqs):
    """As after a laptop's sleep, when others took the process for dead. Over and over: the next call comes at once."""
    with Requester(door) as requester:
        for _ in range(5):
            future = requester.submit(name_of(door), "hello", 3_600)
            (before,) = sqs.queues(HOST_PREFIX)
            before.delete()
            with pytest.raises(RequesterClosed, match="was removed, as others do after 300 s without a sign"):
                future.result(300)
            worker = Worker(door, 2)
            assert requester.call(name_of(door), "again", 300).body == "AGAIN"
            assert before.name not in host_queues(sqs)
            worker.join()
        counts = requester.counts
        assert (counts.sent, counts.answered, counts.failed) == (10, 5, 5)


def test_a_sweep_removes_only_what_is_tagged_and_dead(sqs, clock):
    now = clock.now_ms()
    sqs.create_queue(f"{HOST_PREFIX}mine")
    sqs.create_queue(f"{HOST_PREFIX}odd", tags={LAST_SIGN: "yesterday", RETENTION: "300"})
    sqs.create_queue(f"{HOST_PREFIX}alive", tags={LAST_SIGN: str(now), RETENTION: "300"})
    sqs.create_queue(f"{HOST_PREFIX}dead", tags={LAST_SIGN: str(now - 300_001), RETENTION: "300"})
    assert hosts.sweep(sqs.client, now) == 1
    assert host_queues(sqs) == [f"{HOST_PREFIX}{name}" for name in ("alive", "mine", "odd")]


REQUESTER = """
import sys, sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs, sqsqlite.Requester(sqs) as requester:
    reply = requester.submit("orders", "hello", 3_600)
    print("sent", flush=True)
    print(reply.result().body, flush=True)
"""
RESPONDER = """
import sys, time, sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    queue = sqs.queue("orders")
    while not (got := queue.receive(wait=20, visibility_timeout=2)):
        pass
    print("received", got[0].receive_count, flush=True)
    if sys.argv[2] == "hangs":
        time.sleep(3_600)
    with sqs.transaction():
        sqsqlite.Responder(sqs).reply(got[0], "done")
        got[0].delete()
"""


def process(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_a_killed_requesters_queue_is_removed_by_another(tmp_path):
    path = tmp_path / "app.db"
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
        with process(REQUESTER, path) as killed:
            assert killed.stdout.readline() == "sent\n"
            killed.kill()
            killed.communicate()
        (left,) = host_queues(sqs)
        tags = sqs.client.list_queue_tags(QueueUrl=left)["Tags"]
        old = {LAST_SIGN: str(int(tags[LAST_SIGN]) - 301_000)}
        sqs.client.tag_queue(QueueUrl=left, Tags=old)  # five minutes pass
        with Requester(sqs) as requester:
            requester.submit("orders", "hello")
            until(lambda: left not in host_queues(sqs))


@pytest.mark.slow
def test_the_request_of_a_killed_responder_is_answered_by_the_next(tmp_path):
    path = tmp_path / "app.db"
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
    with process(REQUESTER, path) as asking:
        with process(RESPONDER, path, "hangs") as killed:
            assert killed.stdout.readline() == "received 1\n"
            killed.send_signal(signal.SIGKILL)
            killed.communicate()
        with process(RESPONDER, path, "answers") as answering:
            assert answering.stdout.readline() == "received 2\n"
            answering.communicate()
        assert asking.communicate()[0] == "sent\ndone\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_queue_of_its_own(tmp_path):
    program = """
import os, sys, sqsqlite
sqs = sqsqlite.connect(sys.argv[1])
queue = sqs.create_queue("orders")
requester = sqsqlite.Requester(sqs)
first = requester.submit("orders", "parent", 3_600)
pid = os.fork()
second = requester.submit("orders", "child", 3_600) if pid == 0 else first
if pid:
    while len(queue) < 2:
        pass
    responder = sqsqlite.Responder(sqs)
    for message in queue.receive(max_messages=10):
        responder.reply(message, message.body.upper())
assert second.result().body == ("CHILD" if pid == 0 else "PARENT")
requester.close()
if pid:
    assert os.waitpid(pid, 0)[1] == 0
    assert sqs.queues("sqsqlite-replies-") == []
print("ok")
os._exit(0) if pid == 0 else None
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, tmp_path / "app.db"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
