# SPDX-License-Identifier: Apache-2.0
"""Clients as their users have them, each in an environment of its own, against a server on a real socket."""

import pytest

from tests.clients import endpoint as servers
from tests.clients.tools import need


@pytest.fixture
def endpoint(tmp_path):
    """A server of a new file, over HTTP, with a key."""
    started = servers.start(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def open_endpoint(tmp_path):
    """A server of a new file, over HTTP, without keys."""
    started = servers.start(tmp_path, is_keyed=False)
    yield started
    started.stop()


@pytest.fixture
def https_endpoint(tmp_path):
    """A server of a new file, over HTTPS, with a key.

    An authority that clients do not know has signed its certificate.
    """
    need("openssl", "apt-get install openssl")
    certificate, key, authority = servers.make_certificates(tmp_path)
    started = servers.start(tmp_path, certificate=certificate, key=key, authority=authority)
    yield started
    started.stop()


@pytest.fixture
def conforms(record_property):
    """Note the client and version that the test was run with: docs/conformance.md is written from that."""

    def conforms(client, version):
        record_property("client", client)
        record_property("version", version)

    return conforms
