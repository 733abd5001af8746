# SPDX-License-Identifier: Apache-2.0
"""The AWS SDK for JavaScript v3, which checks the MD5 of each body, and sqs-consumer."""

import json
import shutil

import pytest

from tests.clients.node import EXAMPLE, node_and_modules
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow

PROGRAMS = ROOT / "tests" / "clients" / "programs"


@pytest.fixture
def node(endpoint):
    """Run a program with the modules that the example's lock pins."""
    program, folder = node_and_modules()

    def node(path):
        return endpoint.run(program, shutil.copy(path, folder), cwd=folder)

    return node


def test_messages_attributes_and_errors_make_the_round_trip_and_a_wrong_md5_is_noticed(node, conforms):
    """A long poll too. The MD5 is spoiled on the way to the SDK: without its check the test would prove little."""
    told = json.loads(node(PROGRAMS / "round_trip.mjs"))
    conforms("AWS SDK for JavaScript v3", f"{told['sdk']} (Node {told['node']})")


def test_a_consumer_ships_every_order_and_tries_the_failed_one_again(node, conforms):
    """docs/clients/javascript, whose handler throws once."""
    printed = node(EXAMPLE / "orders.mjs")
    package = json.loads((EXAMPLE / "package.json").read_text(encoding="utf-8"))
    conforms("sqs-consumer", package["dependencies"]["sqs-consumer"])
    assert printed.splitlines() == [
        "left in the queue: Unexpected message handler failure: the van is full",
        "shipped: a lamp, a table, two chairs; tables tried: 2",
    ]
