# SPDX-License-Identifier: Apache-2.0
"""What a page of another site can do to a server without keys, through a real browser."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from sqsqlite.access.access import Access
from sqsqlite.access.open_access import Hosts
from sqsqlite.errors import AccessDenied
from tests.serve.browser import visiting
from tests.serve.raw import Connection, json_of
from tests.serve.serving import serving
from tests.store.waiting import until

# A browser may skip the other attempts: prefetching, icons, addresses with passwords.
SENT = {
    *("image", "image behind a redirect", "background", "script", "stylesheet", "video", "object", "frame"),
    *("refresh", "window", "worker", "opaque fetch", "opaque fetch with a key", "fetch of a range", "fetch"),
    *("form that gets", "form", "plain form", "form of parts", "sandboxed form", "opaque fetch that posts"),
    *("beacon", "ping", "report", "events", "socket", "listing"),
}
# The browser first sends OPTIONS, which the server refuses; or it sends HEAD, which cannot name an action.
NEVER_SENT = {"fetch with a key", "fetch of JSON", "fetch by HEAD"}


class Seen(Access):
    """Records the names of the attempts that passed."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.taken, self.refused = set(), set()

    def authenticate(self, asked):
        name = parse_qs(asked.query.decode()).get("MessageBody", [""])[0]
        try:
            identity = super().authenticate(asked)
        except AccessDenied:
            self.refused.add(name)
            raise
        self.taken.add(name)
        return identity


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "taken"), [("queues.example", {"listing"}), ("localhost", set()), ("rebound.example", set())]
)
def test_page_of_another_site_sends_nothing_to_a_server_without_keys(store, host, taken):
    """By an allowed name, by loopback's name, and by the attacker's name that resolves to loopback."""
    access = Seen(store, hosts=Hosts(["queues.example"]))
    with serving(store, access) as url, Connection(url) as program:
        assert program.ask(json_of(b"CreateQueue", b'{"QueueName": "orders"}')).status == 200
        access.taken.clear()
        with visiting(f"{host}:{urlsplit(url).port}"):
            until(lambda: SENT.issubset(access.taken | access.refused))
        assert access.taken == taken
        assert not NEVER_SENT & access.refused
        asked = json.dumps({"QueueUrl": "orders", "AttributeNames": ["ApproximateNumberOfMessages"]})
        answer = program.ask(json_of(b"GetQueueAttributes", asked.encode()))
        assert json.loads(answer.body) == {"Attributes": {"ApproximateNumberOfMessages": "0"}}
