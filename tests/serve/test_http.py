# SPDX-License-Identifier: Apache-2.0
"""Invalid HTTP, or HTTP beyond the limits: the server refuses it, and other clients do not notice."""

import contextlib
import json
from dataclasses import replace

import pytest

from sqsqlite.serve.connections import REFUSED_AT_ONCE
from sqsqlite.serve.http_protocol import HttpProtocol
from sqsqlite.serve.http_rules import HttpLimits
from tests.clients.endpoint import make_certificates
from tests.clients.tools import need
from tests.serve.raw import FORM, HOST, LIST_QUEUES, Connection, ask, chunked, json_of, post
from tests.serve.serving import serving
from tests.store.waiting import until

LIST = b"Action=ListQueues"
CHUNK = b"11\r\n" + LIST + b"\r\n"
SMALL = HttpLimits(
    head_bytes=2_000,
    header_count=10,
    body_bytes=1_000,
    pipelined=3,
    connections=4,
    short_bytes=200,
    bodies_bytes=1_000,
)
# Real seconds, so they are short: the tests wait for them, and for nothing else.
HASTY = HttpLimits(head_seconds=0.2, body_seconds=0.2, idle_seconds=0.2, unread_seconds=0.2)


@pytest.fixture
def url(store):
    with serving(store) as found:
        yield found


@pytest.fixture
def small(store):
    with serving(store, http_limits=SMALL) as found:
        yield found


@pytest.fixture
def hasty(store):
    with serving(store, http_limits=HASTY) as found:
        yield found


def get(*lines, target=b"/?Action=ListQueues", version=b"HTTP/1.1", method=b"GET"):
    return b"\r\n".join([method + b" " + target + b" " + version, *lines, b"", b""])


CREATE = get(b"Host: localhost", target=b"/?Action=CreateQueue&QueueName=q")

NOT_HTTP = {
    "no host": get(),
    "two hosts": get(b"Host: a", b"Host: a"),
    "an empty host": get(b"Host: "),
    "HTML as host": get(b"Host: <script>alert(1)</script>"),
    "a path as host": get(b"Host: a/b"),
    "a quote as host": get(b'Host: a"b'),
    "credentials as host": get(b"Host: user@a"),
    "two targets": get(
        b"Host: a", b"X-Amz-Target: AmazonSQS.ListQueues", b"X-Amz-Target: AmazonSQS.PurgeQueue"
    ),
    "two authorizations": get(b"Host: a", b"Authorization: a", b"Authorization: b"),
    "two content types": get(b"Host: a", b"Content-Type: a", b"Content-Type: b"),
    "HTTP/0.9": b"GET /\r\n\r\n",
    "HTTP/1.9": get(b"Host: a", version=b"HTTP/1.9"),
    "HTTP/2.0": get(b"Host: a", version=b"HTTP/2.0"),
    "the beginning of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "the beginning of TLS": bytes.fromhex("16030100a5010000a10303"),
    "bare line feeds": b"GET /?Action=ListQueues HTTP/1.1\nHost: a\n\n",
    "a bare line feed behind a header": b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "a bare carriage return": get(b"Host: a", b"X: a\rb"),
    "a folded header": get(b"Host: a", b"X: a", b" b"),
    "NUL in a header": get(b"Host: a", b"X: a\0b"),
    "a space before the colon": get(b"Host : a"),
    "a name that is no ASCII": get(b"Host: a", b"X\xff: a"),
    "a path that is no ASCII": get(b"Host: a", target=b"/\xff"),
    "a query that is no ASCII": get(b"Host: a", target=b"/?Action=\xff"),
    "a target of another scheme": get(b"Host: a", target=b"ftp://a/?Action=ListQueues"),
    "a target without a path": get(b"Host: a", target=b"?Action=ListQueues"),
    "HTML as host of the target": get(b"Host: a", target=b"http://<b>/?Action=ListQueues"),
    "no host of the target": get(b"Host: a", target=b"http:///?Action=ListQueues"),
    "an unknown method": get(b"Host: a", method=b"BREW"),
    "both ways of framing": post(LIST, FORM + b"Transfer-Encoding: chunked\r\n"),
    "both ways of framing, the other way round": get(
        b"Host: a", b"Transfer-Encoding: chunked", b"Content-Length: 0", method=b"POST"
    ),
    "two lengths": post(LIST, FORM + b"Content-Length: 17\r\n"),
    "two lengths that differ": post(LIST, FORM + b"Content-Length: 5\r\n"),
    "a list of lengths": get(b"Host: a", b"Content-Length: 17, 17", method=b"POST"),
    "a length below zero": get(b"Host: a", b"Content-Length: -1", method=b"POST"),
    "a length with a plus": get(b"Host: a", b"Content-Length: +17", method=b"POST"),
    "a length beyond all numbers": get(b"Host: a", b"Content-Length: 99999999999999999999", method=b"POST"),
    "another transfer coding": chunked(CHUNK, headers=FORM + b"Transfer-Encoding: gzip\r\n"),
    "a transfer coding in HTTP/1.0": chunked(CHUNK).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "a chunk's size that is none": chunked(b"ZZ\r\n", LIST, b"\r\n"),
    "a chunk's size with 0x": chunked(b"0x11\r\n", LIST, b"\r\n"),
    "a chunk's size below zero": chunked(b"-11\r\n", LIST, b"\r\n"),
    "a chunk's size beyond all numbers": chunked(b"f" * 17 + b"\r\n", LIST, b"\r\n"),
    "a chunk longer than it says": chunked(b"11\r\n", LIST, b"XX\r\n"),
    "line feeds between chunks": chunked(b"11\n", LIST, b"\n"),
}


@pytest.mark.parametrize("name", NOT_HTTP)
def test_invalid_http_is_refused_and_its_connection_closed(url, name):
    with Connection(url) as connection:
        answer = connection.ask(NOT_HTTP[name])
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert connection.is_closed()


@pytest.mark.parametrize(
    "method", [b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"PATCH", b"CONNECT", b"PROPFIND"]
)
def test_other_methods_are_not_allowed(url, method):
    target = b"localhost:443" if method == b"CONNECT" else b"/?Action=ListQueues"
    answer = ask(url, get(b"Host: a", method=method, target=target))
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST, HEAD")


def test_head_runs_no_action(url):
    answer = ask(
        url, get(b"Host: a", method=b"HEAD", target=b"/?Action=CreateQueue&QueueName=q"), has_body=False
    )
    assert answer.status == 405
    assert b"QueueUrl" not in ask(url, LIST_QUEUES).body


def test_http_1_0_is_answered_and_closed(url):
    with Connection(url) as connection:
        assert connection.ask(b"GET /?Action=ListQueues HTTP/1.0\r\n\r\n").status == 200
        assert connection.is_closed()


def test_unknown_expectation_fails_and_a_known_one_is_met(url):
    assert ask(url, post(LIST, FORM + b"Expect: the unexpected\r\n")).status == 417
    with Connection(url) as connection:
        assert connection.ask(post(LIST, FORM + b"Expect: 100-continue\r\n")).status == 100
        assert connection.answer().status == 200


UPGRADES = {
    "HTTP/2": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAA\r\n",
    "TLS": b"Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n",
    "a websocket": b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
}


@pytest.mark.parametrize("name", UPGRADES)
def test_upgrade_is_ignored_and_the_connection_stays_open(url, name):
    """Java's client asks for HTTP/2 in every first request."""
    headers = FORM + UPGRADES[name]
    with Connection(url) as connection:
        connection.send(get(b"Host: a", UPGRADES[name][:-2]) + post(LIST, headers))
        connection.send(chunked(CHUNK, headers=headers) + LIST_QUEUES)
        answers = [connection.answer() for _ in range(4)]
        assert [b"<ListQueuesResult/>" in answer.body for answer in answers] == [True] * 4


def test_trailers_do_not_count_as_headers(url):
    """Otherwise a trailer could change the action after a proxy has checked the headers."""
    answer = ask(url, chunked(CHUNK, end=b"0\r\nX-Amz-Target: AmazonSQS.PurgeQueue\r\n\r\n"))
    assert b"<ListQueuesResult/>" in answer.body


def test_host_of_an_absolute_target_replaces_the_header(url):
    ask(url, CREATE)
    answer = ask(url, get(b"Host: a", target=b"http://queues.example:81/?Action=GetQueueUrl&QueueName=q"))
    assert b"<QueueUrl>http://queues.example:81/000000000000/q</QueueUrl>" in answer.body


@pytest.mark.parametrize("host", [b"a_b.example", b"127.0.0.1:9324", b"[::1]:9324", b"localhost"])
def test_queue_url_repeats_a_good_host(url, host):
    ask(url, CREATE)
    answer = ask(url, get(b"Host: " + host, target=b"/?Action=GetQueueUrl&QueueName=q"))
    assert b"<QueueUrl>http://" + host + b"/000000000000/q</QueueUrl>" in answer.body


# --- Sizes


def test_head_of_many_bytes_is_refused(small):
    assert ask(small, get(b"Host: a", b"X: " + b"x" * 2_000)).status == 431
    assert ask(small, get(b"Host: a", b"X: " + b"x" * 1_900)).status == 200


def test_head_of_many_headers_is_refused(small):
    assert ask(small, get(b"Host: a", *[b"X: y"] * 10)).status == 431
    assert ask(small, get(b"Host: a", *[b"X: y"] * 9)).status == 200


def test_header_that_never_ends_is_refused(small):
    with Connection(small) as connection:
        connection.send(b"GET / HTTP/1.1\r\nX: ")
        while connection.send(b"x" * 100) and not connection.has_answer():
            pass
        assert connection.answer().status == 431


def test_trailer_that_never_ends_is_refused(small):
    """The parser joins all pieces again at each new one, which would keep it busy."""
    with Connection(small) as connection:
        connection.send(chunked(CHUNK, end=b"0\r\nX: "))
        while connection.send(b"x" * 100) and not connection.has_answer():
            pass
        assert connection.answer().status == 431
        assert connection.is_closed()


def test_long_url_is_refused(small):
    assert ask(small, b"GET /?Action=ListQueues&x=" + b"x" * 60_000).status == 414
    assert ask(small, get(b"Host: a", target=b"/?Action=ListQueues&x=" + b"x" * 2_000)).status == 431


def test_long_body_is_refused_before_it_is_sent(small):
    with Connection(small) as connection:
        head = b"POST / HTTP/1.1\r\n" + HOST + FORM + b"Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n"
        assert connection.ask(head).status == 413
    assert ask(small, post(LIST + b"&x=" + b"x" * 980, FORM)).status == 200


def test_refusal_reaches_a_client_that_is_still_sending(small):
    with Connection(small) as connection:
        connection.send(post(b"x" * 500_000, FORM))
        assert connection.answer().status == 413


def test_endless_chunks_are_refused(small):
    with Connection(small) as connection:
        connection.send(chunked(end=b""))
        while connection.send(b"64\r\n" + b"x" * 100 + b"\r\n") and not connection.has_answer():
            pass
        assert connection.answer().status == 413


def test_size_of_all_unfinished_bodies_together_is_limited(small):
    """The server refuses the body that began first, so slow senders cannot keep others out."""
    head = b"POST / HTTP/1.1\r\n" + HOST + FORM + b"Content-Length: 900\r\n\r\n"
    long = post(LIST + b"&x=" + b"x" * 900, FORM)
    with Connection(small) as first:
        first.send(head + LIST + b"&" + b"x" * 800)
        while not first.has_answer():
            assert ask(small, long).status == 200
        assert first.answer().status == 503
        assert first.is_closed()
    assert ask(small, long).status == 200


def test_long_body_after_a_pipelined_long_poll_is_refused_too(small, store):
    """The earlier answer is not lost."""
    ask(small, CREATE)
    long = post(LIST + b"&x=" + b"x" * 900, FORM)
    with Connection(small) as first:
        first.send(json_of(b"ReceiveMessage", b'{"QueueUrl":"q","WaitTimeSeconds":20}') + long[:-1])
        store.clock.until_waiting(1)
        for _ in range(3):
            assert ask(small, long).status == 200
        ask(small, json_of(b"SendMessage", b'{"QueueUrl":"q","MessageBody":"late"}'))
        assert json.loads(first.answer().body)["Messages"][0]["Body"] == "late"
        assert first.answer().status == 503


def test_short_bodies_are_accepted_while_long_ones_fill_the_limit(store):
    with serving(store, http_limits=HttpLimits(short_bytes=200, bodies_bytes=0)) as url:
        assert ask(url, post(LIST + b"&x=" + b"x" * 200, FORM)).status == 503
        assert ask(url, post(LIST + b"&x=" + b"x" * 100, FORM)).status == 200


def test_body_of_an_answered_request_no_longer_counts(small):
    """Even if the next request of the same connection is already arriving."""
    request = post(LIST + b"&x=" + b"x" * 500, FORM)
    with Connection(small) as connection:
        connection.send(request[:-1])
        for _ in range(4):
            connection.send(request[-1:] + request[:-1])
            assert connection.answer().status == 200


def test_number_of_connections_is_limited(small):
    held = [Connection(small) for _ in range(4)]
    assert [one.ask(LIST_QUEUES).status for one in held] == [200] * 4
    with Connection(small) as fifth:
        assert fifth.answer().status == 503
    assert held[0].ask(LIST_QUEUES).status == 200
    for one in held:
        one.close()


# --- How an answer is written


@pytest.fixture
def writes(monkeypatch):
    """What the server writes to its sockets, one item per write."""
    found = []
    connection_made = HttpProtocol.connection_made

    class Transport:
        def __init__(self, transport):
            self._transport = transport

        def __getattr__(self, name):
            return getattr(self._transport, name)

        def write(self, data):
            found.append(data)
            self._transport.write(data)

    monkeypatch.setattr(
        HttpProtocol, "connection_made", lambda self, transport: connection_made(self, Transport(transport))
    )
    return found


@pytest.mark.parametrize("status", [200, 400])
def test_answer_is_one_write(url, writes, status):
    answer = ask(url, json_of(b"ListQueues", {200: b"{}", 400: b"[]"}[status]))
    assert answer.status == status
    [written] = writes
    assert written.startswith(b"HTTP/1.1 %d " % status)
    assert written.endswith(answer.body)


# --- Several on one connection


def test_pipelined_requests_are_answered_in_their_order(url):
    with Connection(url) as connection:
        names = [b"a", b"b", b"c"]
        for name in names:
            connection.send(get(b"Host: localhost", target=b"/?Action=CreateQueue&QueueName=" + name))
        assert [b"/000000000000/" + name in connection.answer().body for name in names] == [True] * 3


def test_requests_before_a_bad_one_are_answered_first(url):
    with Connection(url) as connection:
        connection.send(LIST_QUEUES * 2 + b"NO HTTP\r\n\r\n" + LIST_QUEUES)
        assert [connection.answer().status for _ in range(3)] == [200, 200, 400]
        assert connection.is_closed()


def test_requests_before_a_bad_body_are_answered_first(url):
    with Connection(url) as connection:
        connection.send(LIST_QUEUES * 2 + chunked(b"ZZ\r\n") + LIST_QUEUES)
        assert [connection.answer().status for _ in range(3)] == [200, 200, 400]
        assert connection.is_closed()


def test_too_many_pipelined_requests_are_refused(small):
    with Connection(small) as connection:
        connection.send(LIST_QUEUES * 20)
        statuses = []
        while (answer := connection.answer()) is not None:
            statuses.append(answer.status)
        assert statuses == [200] * 4 + [400]


def test_request_after_a_closing_one_is_not_carried_out(url):
    with Connection(url) as connection:
        connection.send(get(b"Host: a", b"Connection: close") + CREATE)
        assert connection.answer().status == 200
        assert connection.is_closed()
    assert b"QueueUrl" not in ask(url, LIST_QUEUES).body


# --- Times


def test_silent_connection_is_closed(hasty):
    with Connection(hasty) as connection:
        assert connection.is_closed()


def test_idle_connection_is_closed(hasty):
    with Connection(hasty) as connection:
        assert connection.ask(LIST_QUEUES).status == 200
        assert connection.is_closed()


def test_empty_lines_do_not_keep_a_connection_open(hasty):
    with Connection(hasty) as connection:
        assert connection.ask(LIST_QUEUES + b"\r\n").status == 200
        assert connection.is_closed()


def test_silence_instead_of_a_tls_handshake_is_closed(store, tmp_path):
    need("openssl", "apt-get install openssl")
    certificate, key, _ = make_certificates(tmp_path)
    with (
        serving(store, http_limits=HASTY, tls_certificate=certificate, tls_key=key) as url,
        Connection(url) as connection,
    ):
        assert connection.is_closed()


def test_tls_handshakes_count_as_connections(store, tmp_path):
    """A stalled handshake counts as a connection and has a time limit. Far beyond the limit, connections are closed."""
    need("openssl", "apt-get install openssl")
    certificate, key, authority = make_certificates(tmp_path)
    limits = replace(SMALL, head_seconds=3_600)
    with serving(store, http_limits=limits, tls_certificate=certificate, tls_key=key) as url:
        stalled = [Connection(url) for _ in range(SMALL.connections)]
        with Connection(url, authority) as late:
            assert late.answer().status == 503
        stalled += [Connection(url) for _ in range(REFUSED_AT_ONCE)]
        with Connection(url) as beyond:
            assert beyond.is_closed()
        assert not any(one.has_answer() for one in stalled[: SMALL.connections])
        for one in stalled:
            one.close()
        until(lambda: _status_of(url, authority) == 200)


def _status_of(url, authority):
    """The status of a request on a new connection. None: the connection was closed."""
    try:
        with Connection(url, authority) as connection:
            return connection.ask(LIST_QUEUES).status
    except OSError:
        return None


def test_slow_head_is_refused(hasty):
    with Connection(hasty) as connection:
        connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n")
        assert connection.answer().status == 408
        assert connection.is_closed()


def test_slow_body_is_refused(hasty):
    with Connection(hasty) as connection:
        connection.send(post(LIST, FORM)[:-1])
        assert connection.answer().status == 408
        assert connection.is_closed()


def test_client_that_reads_no_answers_is_disconnected(hasty, store):
    """Answers fill the buffers of both sides, then requests wait, then the server closes the connection."""
    ask(hasty, CREATE)
    message = b'{"QueueUrl":"q","MessageBody":"%s"}' % (b"x" * 200_000)
    with Connection(hasty) as connection:
        for _ in range(10):
            assert connection.ask(json_of(b"SendMessage", message)).status == 200
        receive = json_of(
            b"ReceiveMessage", b'{"QueueUrl":"q","VisibilityTimeout":0,"MaxNumberOfMessages":10}'
        )
        while connection.send(receive):
            pass
    assert ask(hasty, LIST_QUEUES).status == 200


def test_size_of_all_unread_answers_together_is_limited(store):
    """The server closes only the connection that has read nothing for longest."""
    message = b'{"QueueUrl":"q","MessageBody":"%s"}' % (b"x" * 1_000_000)
    receive = json_of(b"ReceiveMessage", b'{"QueueUrl":"q","VisibilityTimeout":0,"MaxNumberOfMessages":10}')
    with (
        serving(store, http_limits=HttpLimits(unread_bytes=15_000_000)) as url,
        contextlib.ExitStack() as held,
    ):
        ask(url, CREATE)
        for _ in range(10):
            assert ask(url, json_of(b"SendMessage", message)).status == 200
        deaf = [held.enter_context(Connection(url)) for _ in range(5)]
        for connection in deaf:
            connection.send(receive + LIST_QUEUES)
            while not connection.has_answer():
                pass
        with pytest.raises((AssertionError, ConnectionResetError)):
            deaf[0].answer()
        assert len(json.loads(deaf[4].answer().body)["Messages"]) == 10
        assert b"<ListQueuesResult>" in deaf[4].answer().body


def test_long_poll_may_take_longer_than_any_limit(hasty, store, clock):
    """The server takes this time, not the client."""
    ask(hasty, CREATE)
    with Connection(hasty) as connection, Connection(hasty) as slow:
        connection.send(json_of(b"ReceiveMessage", b'{"QueueUrl":"q","WaitTimeSeconds":20}'))
        slow.send(b"GET")
        assert slow.answer().status == 408  # so the time limit has passed
        ask(hasty, json_of(b"SendMessage", b'{"QueueUrl":"q","MessageBody":"late"}'))
        assert json.loads(connection.answer().body)["Messages"][0]["Body"] == "late"


# --- Other clients


def test_bad_clients_do_not_stop_good_ones(small):
    """One connection stalls in a body, one in a head, and others send nonsense: the good one is still served."""
    with Connection(small) as good, Connection(small) as silent, Connection(small) as slow:
        slow.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
        silent.send(b"G")
        for request in NOT_HTTP.values():
            ask(small, request)
            assert good.ask(LIST_QUEUES).status == 200
