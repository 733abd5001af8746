# SPDX-License-Identifier: Apache-2.0
"""Stopping a server: it answers requests under way, refuses those that can't begin, and then ends."""

import contextlib
import json
import threading

import pytest

from sqsqlite.actions import receive as receive_service
from sqsqlite.serve import commits, http_protocol
from sqsqlite.serve.endpoint import EndpointOptions, Server
from sqsqlite.serve.http_protocol import HttpProtocol
from sqsqlite.store import upkeep
from sqsqlite.store.driver import dbapi
from tests.serve.raw import Connection, ask, json_of
from tests.serve.serving import serving
from tests.store.waiting import until

SEND = json_of(b"SendMessage", b'{"QueueUrl":"q","MessageBody":"hi"}')
RECEIVE = json_of(
    b"ReceiveMessage",
    b'{"QueueUrl":"q","VisibilityTimeout":43200,"MessageSystemAttributeNames":["ApproximateReceiveCount"]}',
)


@pytest.fixture
def url(store):
    """Another server of the file, which is not stopped."""
    with serving(store) as found:
        ask(found, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
        yield found


@contextlib.contextmanager
def stopping(store):
    """A server, its URL, and its thread."""
    server = Server(store, EndpointOptions(port=0))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server, "http://{}:{}".format(*server.address), thread
    finally:
        server.stop(at_once=True)
        thread.join(300)


@pytest.fixture
def begins(store, url, monkeypatch):
    """Set when a transaction of a request is about to begin: upkeep has ended, and does not begin again."""
    monkeypatch.setattr(upkeep, "LOOK_EVERY", 1e9)
    until(lambda: store.upkeep._sweep_from is None)
    reached = threading.Event()
    begin = store.transactions.begin

    def told(*arguments):
        reached.set()
        return begin(*arguments)

    monkeypatch.setattr(store.transactions, "begin", told)
    return reached


@contextlib.contextmanager
def other_writer(path):
    """Hold the write lock as another program would, without the turnstile."""
    connection = dbapi.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close()


def receive_count(url):
    [message] = json.loads(ask(url, RECEIVE).body)["Messages"]
    return message["Attributes"]["ApproximateReceiveCount"]


def test_send_that_cannot_begin_within_the_grace_is_refused(store, url, path, begins, monkeypatch):
    monkeypatch.setattr(http_protocol, "GRACE_SECONDS", 0.3)
    with stopping(store) as (server, stopped_url, thread), Connection(stopped_url) as connection:
        with other_writer(path):
            begins.clear()
            connection.send(SEND)
            assert begins.wait(300)
            server.stop()
            answer = connection.answer()
            thread.join(300)
            assert not thread.is_alive()
        assert (answer.status, b"Nothing was done" in answer.body) == (503, True)
    assert "Messages" not in json.loads(ask(url, RECEIVE).body)


def test_abandoned_receive_leases_nothing_when_the_lock_comes(store, url, path, begins):
    """A stop at once, as by a second signal."""
    ask(url, SEND)
    with stopping(store) as (server, stopped_url, thread), Connection(stopped_url) as connection:
        with other_writer(path):
            begins.clear()
            connection.send(RECEIVE)
            assert begins.wait(300)
            server.stop(at_once=True)
            assert connection.answer().status == 503
            thread.join(300)
            assert not thread.is_alive()
        assert receive_count(url) == "1"


def test_stop_answers_a_write_that_has_begun(store, url, monkeypatch):
    monkeypatch.setattr(commits, "LAST_SECONDS", 20)
    monkeypatch.setattr(http_protocol, "_LAST_SECONDS", 20)
    reached, go_on = threading.Event(), threading.Event()
    claim = receive_service.claim

    def held_claim(*arguments):
        found = claim(*arguments)
        reached.set()
        assert go_on.wait(300)
        return found

    ask(url, SEND)
    monkeypatch.setattr(receive_service, "claim", held_claim)
    with stopping(store) as (server, stopped_url, thread), Connection(stopped_url) as connection:
        connection.send(RECEIVE)
        assert reached.wait(300)
        server.stop(at_once=True)
        threading.Timer(0.3, go_on.set).start()
        assert json.loads(connection.answer().body)["Messages"][0]["Body"] == "hi"
        thread.join(300)
        assert not thread.is_alive()


def test_receive_of_a_client_that_disconnected_before_the_lock_claims_nothing(url, path, begins, monkeypatch):
    """Nothing is claimed, so nothing is counted."""
    lost = threading.Event()
    connection_lost = HttpProtocol.connection_lost

    def notice(self, exc):
        connection_lost(self, exc)
        lost.set()

    monkeypatch.setattr(HttpProtocol, "connection_lost", notice)
    ask(url, SEND)
    with other_writer(path):
        begins.clear()
        with Connection(url) as connection:
            connection.send(RECEIVE)
            assert begins.wait(300)
            lost.clear()
        assert lost.wait(300)
    assert receive_count(url) == "1"


@pytest.mark.parametrize("length", [20, -10])
def test_unfinished_request_is_refused_by_a_stop(store, length, caplog):
    """The stop would otherwise wait as long as the client takes."""
    with stopping(store) as (server, url, thread), Connection(url) as connection:
        # A first request shows that the server has accepted this connection.
        assert connection.ask(json_of(b"ListQueues", b"{}")).status == 200
        connection.send(SEND[:length])
        assert ask(url, json_of(b"ListQueues", b"{}")).status == 200
        server.stop()
        answer = connection.answer()
        assert (answer.status, answer.body) == (503, b"The server is stopping.\n")
        connection.close()
        thread.join(300)
        assert not thread.is_alive()
    assert caplog.records == []
