# SPDX-License-Identifier: Apache-2.0
"""The server keeps nothing of a request after its answer."""

import gc
import json
import tracemalloc

import pytest

from tests.serve.raw import Connection, ask, json_of
from tests.serve.serving import serving

MIB = 1024 * 1024


@pytest.mark.parametrize(
    "action", [b"GetQueueAttributes", pytest.param(b"ReceiveMessage", marks=pytest.mark.slow)]
)
def test_long_queue_urls_are_not_kept_in_memory(store, action):
    """A queue URL may have any host, so each of these URLs names the same queue."""
    with serving(store) as url, Connection(url) as connection:
        ask(url, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
        tracemalloc.start()
        try:
            for number in range(40):
                name = f"http://{action.decode()}{number}{'a' * MIB}/000000000000/q"
                body = json.dumps({"QueueUrl": name}).encode()
                assert connection.ask(json_of(action, body)).status == 200
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] < 10 * MIB
        finally:
            tracemalloc.stop()


def test_refused_requests_are_not_kept_in_memory(store):
    """Each error refers to frames that refer to its request. If only the garbage collector freed them, they would
    reach many MiB."""
    with serving(store) as url, Connection(url) as connection:
        body = b'{"QueueUrl":"nowhere","MessageBody":"%s"}' % (b"x" * MIB)
        assert connection.ask(json_of(b"SendMessage", body)).status == 400
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(10):
                assert connection.ask(json_of(b"SendMessage", body)).status == 400
            assert tracemalloc.get_traced_memory()[0] < 5 * MIB
        finally:
            tracemalloc.stop()
            gc.enable()
