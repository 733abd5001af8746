# SPDX-License-Identifier: Apache-2.0
"""A real server in test mode on a port of its own, its pages, and boto3 clients with made-up credentials."""

import contextlib
import json
import threading
import urllib.error
import urllib.request
from typing import NamedTuple

import boto3
from botocore.config import Config

from sqsqlite.testing.serving import EndpointInTestMode, EndpointOptions


class Answer(NamedTuple):
    status: int
    text: str


class Server(NamedTuple):
    url: str

    def client(self, region="us-east-1", key_id="anyone"):
        return boto3.client(
            "sqs",
            endpoint_url=self.url,
            region_name=region,
            aws_access_key_id=key_id,
            aws_secret_access_key="anything",
            config=Config(retries={"total_max_attempts": 1}),
        )

    def ask(self, path, body=None, method=None, **headers):
        """A request with headers such as `X_Sqsqlite_Test`. With a body it is a POST."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data=body, headers=named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return Answer(answer.status, answer.read().decode())
        except urllib.error.HTTPError as refused:
            with refused:
                return Answer(refused.code, refused.read().decode())

    def advance(self, seconds):
        return self._page("clock", json.dumps({"advance": seconds}).encode())

    def reset(self):
        return self._page("reset", b"")

    def now_ms(self):
        return self._page("clock", None)

    def _page(self, name, body):
        answer = self.ask(f"/_test/{name}", body, X_Sqsqlite_Test="yes")
        assert answer.status == 200, answer
        return json.loads(answer.text)["now_ms"]

    def until_a_poll_waits(self):
        while "\nsqsqlite_waiting_polls 1\n" not in self.ask("/metrics").text:
            pass


@contextlib.contextmanager
def served(host="127.0.0.1", allowed_hosts=(), **options):
    """Serve in this process until the block ends."""
    endpoint_options = EndpointOptions(host=host, port=0, allowed_hosts=allowed_hosts)
    with EndpointInTestMode(endpoint_options, **options) as endpoint:
        server = endpoint.server_in_test_mode()
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield Server(endpoint.url.replace("0.0.0.0", "127.0.0.1"))
        finally:
            server.stop()
            thread.join(300)
