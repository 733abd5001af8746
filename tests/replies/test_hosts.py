# SPDX-License-Identifier: Apache-2.0
"""Queues of replies: signs of life, sweeps, outages of the endpoint, forks, transactions, other accounts."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import boto3
import pytest
from botocore.config import Config

import sqsqlite
from sqsqlite.replies import ReplyTimeout, Requester, RequesterGone, Responder, hosts
from sqsqlite.replies.addresses import ADDRESS, HOST_PREFIX, LAST_SIGN, RETENTION
from sqsqlite.serve.endpoint import Endpoint, EndpointOptions
from tests.replies.asking import Worker, host_queues
from tests.store.waiting import until


def last_sign(sqs):
    (queue,) = sqs.queues(HOST_PREFIX)
    return int(queue.tags[LAST_SIGN])


def test_an_idle_requester_gives_signs_of_life(sqs, clock):
    with Requester(sqs, idle_seconds=60) as requester:
        requester.submit("orders", "hello", 3_600)
        for _ in range(5):
            before = last_sign(sqs)
            until(lambda before=before: clock.advance(1) or last_sign(sqs) > before)
            assert last_sign(sqs) - before < 60_000
        assert hosts.sweep(sqs.client, clock.now_ms()) == 0
        assert sqs.queues(HOST_PREFIX)[0].tags[RETENTION] == "60"


def test_a_requester_sweeps_from_time_to_time(sqs, clock):
    dead = {LAST_SIGN: str(clock.now_ms() - 300_001), RETENTION: "300"}
    with Requester(sqs) as requester:
        for _ in range(2):
            left = sqs.create_queue(f"{HOST_PREFIX}dead-{clock.now_ms()}", tags=dead)
            requester.submit("orders", "hello", 300_000)
            until(lambda left=left: clock.advance(10) or left.name not in host_queues(sqs))


def test_sweepers_do_not_stand_in_each_others_way(door, sqs, clock):
    """Each dead queue is removed, and reported as removed by one of them or by both, but never an error."""
    client = getattr(door, "client", door)
    for n in range(30):
        tags = {LAST_SIGN: str(clock.now_ms() - 300_001), RETENTION: "300"}
        sqs.create_queue(f"{HOST_PREFIX}{n}", tags=tags)
    start = threading.Barrier(4)

    def sweep():
        start.wait()
        return hosts.sweep(client, clock.now_ms())

    with ThreadPoolExecutor(4) as pool:
        removed = [one.result() for one in [pool.submit(sweep) for _ in range(4)]]
    assert sum(removed) >= 30
    assert host_queues(sqs) == []


def test_many_queues_are_swept_some_at_a_time(sqs, clock):
    tags = {LAST_SIGN: str(clock.now_ms() - 300_001), RETENTION: "300"}
    for n in range(60):
        sqs.create_queue(f"{HOST_PREFIX}{n}", tags=tags)
    assert [hosts.sweep(sqs.client, clock.now_ms()) for _ in range(3)] == [50, 10, 0]


class Server:
    """An endpoint of a file, on one port, that can be stopped and started."""

    def __init__(self, sqs):
        self._sqs, self._port = sqs, 0
        self.start()

    def start(self):
        self._endpoint = Endpoint(EndpointOptions(port=self._port), has_keys=False)
        self._endpoint.__enter__()
        self._server = self._endpoint.server(self._sqs)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        self._port = int(self._endpoint.url.rpartition(":")[2])

    def stop(self):
        self._server.stop()
        self._thread.join()
        self._endpoint.__exit__(None, None, None)

    def client(self):
        config = Config(retries={"total_max_attempts": 1})
        keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
        return boto3.client(
            "sqs", endpoint_url=self._endpoint.url, region_name="us-east-1", config=config, **keys
        )


@pytest.mark.slow
def test_a_requester_outlasts_an_endpoint_that_restarts(sqs):
    server = Server(sqs)
    try:
        requester = Requester(server.client())
        patient = requester.submit("orders", "hello", 3_600)
        impatient = requester.submit("orders", "hello", 4)
        server.stop()
        with pytest.raises(ReplyTimeout, match="Replies could not be received: EndpointConnectionError"):
            impatient.result(300)
        server.start()
        Worker(sqs, 2).join()
        assert patient.result(300).body == "HELLO"
        until(lambda: requester.counts.late == 1)
        assert requester.counts.retries >= 1
        requester.close()
        assert host_queues(sqs) == []
    finally:
        server.stop()


def test_a_responder_goes_on_after_a_requester_that_has_ended(sqs):
    """Within its transaction, too: the work is done, and the request must not come again."""
    with Requester(sqs) as requester:
        requester.submit("orders", "hello", 300)
    (request,) = sqs.queue("orders").receive()
    with sqs.transaction() as connection:
        connection.execute("CREATE TABLE done (body TEXT)")
        connection.execute("INSERT INTO done VALUES ('hello')")
        with pytest.raises(RequesterGone):
            Responder(sqs).reply(request, "too late")
        request.delete()
    assert len(sqs.queue("orders")) == 0
    with sqs.read_engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT body FROM done").all() == [("hello",)]


def test_a_reply_to_another_account_is_not_taken_for_one_that_nobody_waits_for(sqs):
    request = {"MessageAttributes": {ADDRESS: {"StringValue": "http://localhost:9324/111122223333/host#me"}}}
    with sqs.engine.begin() as connection, pytest.raises(ValueError, match="account 111122223333"):
        Responder(sqs).reply(request, "hi", connection=connection)
    with pytest.raises(ValueError, match="connection= belongs to an open file"):
        Responder(sqs.client).reply(request, "hi", connection=object())


def test_closing_in_a_transaction_is_refused_and_may_be_repeated(sqs):
    requester = Requester(sqs)
    future = requester.submit("orders", "hello", 300)
    with sqs.transaction(), pytest.raises(sqsqlite.errors.StoreError, match="do it after the transaction"):
        requester.close()
    requester.close()
    assert future.exception(0) is not None
    assert host_queues(sqs) == []


ASKS_TWICE = """
import sys, sqsqlite
from sqsqlite.replies import RequesterClosed
with sqsqlite.connect(sys.argv[1]) as sqs, sqsqlite.Requester(sqs) as requester:
    reply = requester.submit("orders", "hello", 3_600)
    print("sent", flush=True)
    try:
        reply.result()
    except RequesterClosed as error:
        print(error, flush=True)
    print(requester.call("orders", "again", 3_600).body, requester.counts, flush=True)
"""


def stop_between_writes(process, write):
    """Send SIGSTOP when the process does not have the turn to write, which `write` needs."""
    while True:
        os.kill(process.pid, signal.SIGSTOP)
        try:
            return write()
        except sqsqlite.errors.Busy:
            os.kill(process.pid, signal.SIGCONT)


@pytest.mark.slow
def test_a_stopped_requester_whose_queue_was_swept_asks_again(tmp_path):
    """SIGSTOP stands for a laptop's sleep: others sweep the queue, and SIGCONT wakes the process."""
    path = tmp_path / "app.db"
    command = [sys.executable, "-c", ASKS_TWICE, path]
    with sqsqlite.connect(path, busy_timeout=1) as sqs:
        sqs.create_queue("orders")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asking:
            try:
                assert asking.stdout.readline() == "sent\n"
                (left,) = sqs.queues(HOST_PREFIX)
                long_ago = {LAST_SIGN: str(last_sign(sqs) - 301_000)}
                stop_between_writes(asking, lambda: left.tag(long_ago))
                with Requester(sqs) as other:
                    other.submit("orders", "hello", 300)
                    until(lambda: left.name not in host_queues(sqs))
                os.kill(asking.pid, signal.SIGCONT)
                told = asking.stdout.readline()
                assert "was removed, as others do after 300 s without a sign of life" in told
                Worker(sqs, 3).join()
                told = asking.stdout.readline()
                assert told.startswith("AGAIN Counts(sent=2, answered=1, timed_out=0, failed=1")
            finally:
                asking.kill()


FORKS = """
import os, sys, threading, sqsqlite
sqs = sqsqlite.connect(sys.argv[1])
sqs.create_queue("orders")
requester = sqsqlite.Requester(sqs)
requester.submit("orders", "parent", 3_600)
parents = {queue.name for queue in sqs.queues("sqsqlite-replies-")}
pid = os.fork()
if pid == 0:
    start = threading.Barrier(8)
    def ask():
        start.wait()
        requester.submit("orders", "child", 3_600)
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    now = {queue.name for queue in sqs.queues("sqsqlite-replies-")}
    assert len(now) == 2, now
    assert requester.counts.sent == 8
    requester.close()
    assert {queue.name for queue in sqs.queues("sqsqlite-replies-")} == parents
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert requester.counts.sent == 1
requester.close()
assert sqs.queues("sqsqlite-replies-") == []
print("ok")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_of_a_forked_child_share_one_queue_of_replies(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, tmp_path / "app.db"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
