# SPDX-License-Identifier: Apache-2.0
"""A real server on a port of its own, and clients of accounts."""

import contextlib
import threading

import boto3
from botocore.config import Config

from sqsqlite.access.keys import add_key
from sqsqlite.serve.endpoint import EndpointOptions, Server

# Host names in the tests' raw requests.
HOSTS = ("a", "a_b.example", "queues.example")


@contextlib.contextmanager
def serving(store, access=None, **options):
    """Serve the store until the block ends, and yield the URL."""
    log, http_limits = options.pop("log", None), options.pop("http_limits", None)
    given = EndpointOptions(**{"port": 0, "allowed_hosts": HOSTS, **options})
    server = Server(store, given, access, log=log, http_limits=http_limits)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        host, port = server.address
        yield f"{'https' if options.get('tls_certificate') else 'http'}://{host}:{port}"
    finally:
        server.stop()
        thread.join(300)


def client_of(url, key, **options):
    """A boto3 client that signs with a key."""
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=key.access_key_id,
        aws_secret_access_key=key.secret_access_key,
        config=Config(retries={"total_max_attempts": 1}),
        **options,
    )


def new_client(store, url, account_id, user_name="", **options):
    """A client of an account with a new key."""
    return client_of(url, store.write(add_key, account_id, user_name), **options)
