# SPDX-License-Identifier: Apache-2.0
"""A real boto3 client of a real server, on a port of its own, for the behaviour suite's doors."""

import threading

import boto3
from botocore.config import Config

from sqsqlite.actions.opening import open_store
from sqsqlite.serve.endpoint import EndpointOptions, Server
from tests.behaviour.query_model import query_session


def endpoint(path, session=boto3, **options):
    """Serve the file in a thread; closing the client stops the server and closes the file.

    Args:
        session: makes the client.
    """
    store = open_store(path, **options)
    server = Server(store, EndpointOptions(port=0))
    thread = threading.Thread(target=server.run)
    thread.start()
    host, port = server.address
    client = session.client(
        "sqs",
        endpoint_url=f"http://{host}:{port}",
        region_name=store.settings.region,
        aws_access_key_id="anyone",
        aws_secret_access_key="anything",
        config=Config(max_pool_connections=50),
    )
    close_connections = client.close

    def close():
        close_connections()
        server.stop()
        thread.join(30)
        store.close()

    client.close = close
    client.speaks_query = client.meta.service_model.metadata["protocol"] == "query"
    client.waiting = lambda: server.waiting
    return client


def query_endpoint(path, **options):
    """The same for a client from before JSON."""
    return endpoint(path, query_session(), **options)
