# SPDX-License-Identifier: Apache-2.0
"""If a waiting client disconnects, others get its messages at once, not after a visibility timeout."""

import asyncio
import json
import threading
from types import SimpleNamespace

import pytest

from sqsqlite.access.access import Access
from sqsqlite.actions import receive as receive_service
from sqsqlite.actions import visibility
from sqsqlite.errors import QueueDoesNotExist
from sqsqlite.serve.application import HttpApplication
from sqsqlite.serve.budget import Budget
from sqsqlite.serve.http_protocol import HttpProtocol
from sqsqlite.serve.metrics import Metrics
from sqsqlite.serve.pages import MonitoringPages
from sqsqlite.serve.protocol import IS_GONE
from tests.serve.exchanges import posted
from tests.serve.raw import Connection, ask, json_of
from tests.serve.serving import serving

WAIT = json_of(b"ReceiveMessage", b'{"QueueUrl":"q","WaitTimeSeconds":20,"VisibilityTimeout":43200}')
SEND = json_of(b"SendMessage", b'{"QueueUrl":"q","MessageBody":"hi"}')
NAMES = b'"MessageSystemAttributeNames":["ApproximateReceiveCount"]'


@pytest.fixture
def url(store):
    with serving(store) as found:
        ask(found, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
        yield found


@pytest.fixture
def claims(monkeypatch):
    """Hold claims that find messages before they commit, from the first claim until `go_on` is set."""
    found = SimpleNamespace(reached=threading.Event(), go_on=threading.Event())
    claim = receive_service.claim

    def held_claim(*arguments):
        claimed, next_at = claim(*arguments)
        if claimed is not None:
            found.reached.set()
            assert found.go_on.wait(300)
        return claimed, next_at

    monkeypatch.setattr(receive_service, "claim", held_claim)
    return found


@pytest.fixture
def lost(monkeypatch):
    """Set when the server has noticed that a connection is closed."""
    noticed = threading.Event()
    connection_lost = HttpProtocol.connection_lost

    def notice(self, exc):
        connection_lost(self, exc)
        noticed.set()

    monkeypatch.setattr(HttpProtocol, "connection_lost", notice)
    return noticed


def receive(url):
    """The messages of a long poll. It waits in real time, because the file's clock stands still."""
    request = json_of(b"ReceiveMessage", b'{"QueueUrl":"q","WaitTimeSeconds":20,' + NAMES + b"}")
    [message] = json.loads(ask(url, request).body)["Messages"]
    return message["Body"], message["Attributes"]["ApproximateReceiveCount"]


def test_message_claimed_for_a_disconnected_client_is_visible_at_once(url, claims, lost):
    ask(url, SEND)
    lost.clear()
    with Connection(url) as connection:
        connection.send(WAIT)
        assert claims.reached.wait(300)
    assert lost.wait(300)
    claims.go_on.set()
    assert receive(url) == ("hi", "2")


def test_message_claimed_for_a_disconnected_long_poll_is_visible_at_once(url, store, claims, lost):
    with Connection(url) as connection:
        connection.send(WAIT)
        store.clock.until_waiting(1)
        ask(url, SEND)
        assert claims.reached.wait(300)
        lost.clear()
    assert lost.wait(300)
    claims.go_on.set()
    assert receive(url) == ("hi", "2")


def test_client_that_disconnects_while_it_waits_claims_nothing(url, store, lost):
    with Connection(url) as connection:
        connection.send(WAIT)
        store.clock.until_waiting(1)
        lost.clear()
    assert lost.wait(300)
    ask(url, SEND)
    assert receive(url) == ("hi", "1")


def test_client_that_disconnects_with_a_second_request_under_way_claims_nothing(url, store, lost):
    with Connection(url) as connection:
        connection.send(WAIT + json_of(b"ListQueues", b"{}"))
        store.clock.until_waiting(1)
        lost.clear()
    assert lost.wait(300)
    ask(url, SEND)
    assert receive(url) == ("hi", "1")


def test_failure_to_give_a_message_back_does_not_stop_the_clients_in_line(
    url, store, claims, lost, monkeypatch
):
    """No client gets the error, and the line goes on."""

    def fail(*_):
        raise QueueDoesNotExist("The specified queue does not exist.")

    monkeypatch.setattr(visibility, "change_message_visibility", fail)
    with Connection(url) as first, Connection(url) as second:
        first.send(WAIT)
        store.clock.until_waiting(1)
        second.send(WAIT)
        ask(url, SEND)
        assert claims.reached.wait(300)
        lost.clear()
        first.close()
        assert lost.wait(300)
        claims.go_on.set()
        ask(url, SEND)
        assert json.loads(second.answer().body)["Messages"][0]["Body"] == "hi"


def test_message_is_given_back_if_the_client_disconnects_after_the_commit(store):
    """After the commit, before the answer is written: the socket is closed, but ASGI has not reported it yet."""
    sent = []

    async def send(message):
        sent.append(message)

    async def ask_gone(application, action, body, is_gone):
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def next_message():
            return messages.pop() if messages else await asyncio.Event().wait()

        await application(posted(action, **{IS_GONE: is_gone}), next_message, send)
        return sent.pop()["body"]

    def is_here():
        return False

    async def run():
        pages = MonitoringPages(store, Metrics(), metrics_for_all=False)
        application = HttpApplication(
            store, Access(store), pages, None, Metrics(), [], Budget(2**20), Budget(2**20)
        )
        application.start()
        await ask_gone(application, "CreateQueue", b'{"QueueName":"q"}', is_here)
        await ask_gone(application, "SendMessage", b'{"QueueUrl":"q","MessageBody":"hi"}', is_here)
        leaves = iter([False, True])  # asked before the claim, and after its commit
        await ask_gone(application, "ReceiveMessage", b'{"QueueUrl":"q"}', lambda: next(leaves))
        assert list(leaves) == []
        found = await ask_gone(application, "ReceiveMessage", b'{"QueueUrl":"q"}', is_here)
        await application.stop()
        return json.loads(found)

    assert [message["Body"] for message in asyncio.run(run())["Messages"]] == ["hi"]
