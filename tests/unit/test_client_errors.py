# SPDX-License-Identifier: Apache-2.0
"""Which errors of a client may pass by themselves."""

import socket
import threading

import boto3
import pytest
from botocore.config import Config

from sqsqlite.api.client_errors import is_in_doubt, passes


def error_of(port):
    """What boto3 raises for a request to this port of the machine."""
    client = boto3.client(
        "sqs",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}),
    )
    with pytest.raises(Exception, match="endpoint URL") as raised:
        client.list_queues()
    return raised.value


def test_a_server_that_is_not_there_may_come_back_and_has_done_nothing():
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    error = error_of(port)
    assert type(error).__name__ == "EndpointConnectionError"
    assert passes(error)
    assert not is_in_doubt(error)


def test_a_server_that_hangs_up_may_have_done_what_was_asked():
    with socket.create_server(("127.0.0.1", 0)) as bound:

        def hang_up():
            connection, _ = bound.accept()
            with connection:
                connection.recv(1)

        server = threading.Thread(target=hang_up)
        server.start()
        error = error_of(bound.getsockname()[1])
        server.join()
    assert passes(error)
    assert is_in_doubt(error)
