# SPDX-License-Identifier: Apache-2.0
"""The number of frames from a call to its statement."""

import sys

import pytest

import sqsqlite
from tests.store.waiting import until


def road(store, call):
    """The functions between `call` and the INSERT of a message, from the outside in, each with its file."""
    roads = []

    def note(statement):
        if not statement.startswith("INSERT INTO sqs_messages"):
            return
        frame, found = sys._getframe(1), []
        while frame is not None and frame.f_code is not road.__code__:
            found.append((frame.f_code.co_filename, frame.f_code.co_qualname))
            frame = frame.f_back
        roads.append(found[::-1])

    # A send that shares its transaction with upkeep, which begins after the first, has one frame more.
    call()
    until(lambda: store.upkeep._sweep_from is None)
    with store.file.writers.lent() as connection:
        connection.set_trace_callback(lambda statement: note(statement[statement.find("INSERT") :]))
    call()
    [found] = roads
    return found


@pytest.fixture
def client(path):
    with sqsqlite.client(path) as found:
        yield found


def test_queue_send_reaches_its_insert_within_nine_frames(sqs, queue):
    found = road(sqs._store, lambda: queue.send("hi"))
    names = [name for _, name in found if "<lambda>" not in name]
    assert names[0] == "Queue.send"
    assert names[-1] == "append_one"
    assert len(names) <= 9
    assert len({file for file, _ in found}) <= 12


def test_client_send_message_reaches_its_insert_within_nine_frames(sqs, queue, client):
    found = road(client._store, lambda: client.send_message(QueueUrl=queue.url, MessageBody="hi"))
    names = [name for _, name in found if "<lambda>" not in name]
    assert names[0] == "Client.send_message"
    assert len(names) <= 9
    assert len({file for file, _ in found}) <= 12
