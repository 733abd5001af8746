# SPDX-License-Identifier: Apache-2.0
"""A program starts an endpoint with the public names."""

import threading
import urllib.request

import pytest

import sqsqlite
from sqsqlite.serve.endpoint import Endpoint, EndpointOptions, Unprotected


def test_an_endpoint_serves_an_open_file_until_it_is_stopped(tmp_path):
    with (
        sqsqlite.connect(tmp_path / "queues.db") as sqs,
        Endpoint(EndpointOptions(port=0), has_keys=False) as endpoint,
    ):
        server = endpoint.server(sqs)
        thread = threading.Thread(target=server.run)
        thread.start()
        with urllib.request.urlopen(
            f"{endpoint.url}/?Action=CreateQueue&QueueName=orders", data=b"", timeout=60
        ) as answer:
            assert answer.status == 200
        server.stop()
        thread.join(60)
        assert not thread.is_alive()
        assert [queue.name for queue in sqs.queues()] == ["orders"]


def test_without_keys_other_machines_are_refused_before_the_address_is_bound():
    with pytest.raises(Unprotected, match=r"0\.0\.0\.0"):
        Endpoint(EndpointOptions(host="0.0.0.0", port=0), has_keys=False)
    with Endpoint(EndpointOptions(host="0.0.0.0", port=0), has_keys=True) as endpoint:
        assert endpoint.is_keyed
        assert endpoint.address[1] > 0


def test_a_key_file_counts_as_keys(tmp_path):
    """So the endpoint may serve other machines, even if the queues' file has no keys."""
    keys = tmp_path / "keys"
    keys.write_text("")
    options = EndpointOptions(host="0.0.0.0", port=0, key_file=keys)
    with Endpoint(options, has_keys=False) as endpoint, sqsqlite.connect(tmp_path / "a.db") as sqs:
        assert endpoint.is_keyed
        endpoint.server(sqs)
