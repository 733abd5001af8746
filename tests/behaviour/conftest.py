# SPDX-License-Identifier: Apache-2.0
"""Every test here runs through every door: a new door is one more line in DOORS.

By default through the first one, and a sample of them through each of the others. `make test-all` runs all.
"""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from zlib import crc32

import pytest

import sqsqlite
from sqsqlite import ManualClock, boto
from sqsqlite.store import wake
from sqsqlite.testing.files import lay
from tests.behaviour.bound_queue import BoundQueue
from tests.behaviour.endpoint import endpoint, query_endpoint

# Each takes a path and the options of `connect`, and returns an object with boto3's methods and `close`.
DOORS = {
    "client": sqsqlite.client,
    "boto3": boto.client,
    "serve": endpoint,
    "query": query_endpoint,
}


# What the Query protocol cannot express, by test.
_XML_HAS_NO_EMPTY_LIST = "a list in XML is its elements, one after the other: without any it is not there"
QUERY_GAPS = {
    "test_a_queue_without_tasks_has_an_empty_list": _XML_HAS_NO_EMPTY_LIST,
    "test_sources_are_listed_by_name": _XML_HAS_NO_EMPTY_LIST,
    "test_errors_whose_code_is_their_shape_also_have_a_lower_case_message": "errors have one message and code",
}


# The engine decides the behaviour, and a door only translates, so a sample of all behaviours proves a door. By default
# one in this number of a door's tests runs: through a socket a test costs five times as much.
ONE_IN = {"boto3": 30, "serve": 60, "query": 60}
# These run through every door: each error has its own name and code in each protocol, and each action must be called
# through each door, which a sample might leave out.
ALWAYS = {
    "test_errors.py",
    "test_a_batchs_entries_are_sent_in_order_each_with_its_answer",
    "test_a_batch_changes_what_it_can",
    "test_a_cancelled_task_moves_no_more",
    "test_sources_come_in_pages",
    "test_a_permission_is_removed_by_its_label",
    "test_untagging_ignores_keys_that_are_not_there",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The others are slow ones. Which, goes by their names, so that it is the same in each process and run.

    The name holds the door and the parameters, so each door has a sample of its own.
    """
    for item in items:
        door = item.callspec.params.get("door") if hasattr(item, "callspec") else None
        always = not ALWAYS.isdisjoint((item.path.name, item.originalname))
        if not always and crc32(item.name.encode()) % ONE_IN.get(door, 1):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=DOORS)
def door(request):
    gap = QUERY_GAPS.get(request.function.__name__) if request.param == "query" else None
    if gap is not None:
        request.applymarker(pytest.mark.xfail(reason=gap))
    return DOORS[request.param]


@pytest.fixture
def clock():
    return ManualClock(patience=600.0)


@pytest.fixture
def background():
    """Run a call on a thread of its own. `.result(20)` of the returned future is the call's result."""
    with ThreadPoolExecutor() as pool:
        yield pool.submit


@pytest.fixture
def clients():
    """All clients that the test has opened."""
    return []


@pytest.fixture
def open_sqs(door, tmp_path, clock, background, clients):
    """Open the test's file with other options than those of `sqs`. Closed before `background` waits for its threads."""
    with contextlib.ExitStack() as opened:

        def open_sqs(name="queues.db", **options):
            client = door(lay(tmp_path / name), **{"clock": clock, "synchronous": "OFF", **options})
            opened.callback(client.close)
            clients.append(client)
            return client

        yield open_sqs


@pytest.fixture
def until_waiting(clock, clients):
    """Block until `count` receives sleep. A server has one thread that waits on the clock for all of them."""

    def until_waiting(count=1):
        servers = [client for client in clients if hasattr(client, "waiting")]
        deadline = time.monotonic() + 300
        while servers and sum(client.waiting() for client in servers) < count:
            assert time.monotonic() < deadline, "too few receives wait in the server"
            time.sleep(0.001)
        clock.until_waiting(1 if servers else count)

    return until_waiting


@pytest.fixture
def sqs(open_sqs):
    """A client with the default options, in its strict mode."""
    return open_sqs()


@pytest.fixture
def aws(open_sqs):
    """A client that is as lenient with receipt handles as Amazon's standard queues."""
    return open_sqs(compat="aws")


@pytest.fixture(params=["docs", "aws"])
def either(request, open_sqs):
    """A client in each mode, for behaviour that must be the same in both."""
    return open_sqs(compat=request.param)


@pytest.fixture
def make_queue(sqs):
    return lambda name="q", **attributes: BoundQueue.create(sqs, name, **attributes)


@pytest.fixture
def queue(make_queue):
    return make_queue()


@pytest.fixture
def make_fifo(sqs):
    return lambda name="q.fifo", **attributes: BoundQueue.create_fifo(sqs, name, **attributes)


@pytest.fixture
def fifo(make_fifo):
    """A FIFO queue with content-based deduplication."""
    return make_fifo()


@pytest.fixture
def no_safety_net(monkeypatch):
    """Without the periodic check for commits, only a wake-up ends a wait: a missing wake-up makes the test hang."""
    monkeypatch.setattr(wake._Versions, "have_changed", lambda _: False)
