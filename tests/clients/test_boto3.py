# SPDX-License-Identifier: Apache-2.0
"""boto3: the present version, over JSON, the last that spoke Query, and an old one."""

import json
import sys

import boto3
import pytest

from tests.clients.tools import programs
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow

ROUND_TRIP = ROOT / "tests" / "clients" / "programs" / "boto3_round_trip.py"


def python(environment):
    return sys.executable if environment is None else programs(environment) / "python"


@pytest.fixture
def current(conforms):
    """The interpreter with the boto3 of the development environment."""
    conforms("boto3", f"{boto3.__version__} (json)")
    return sys.executable


@pytest.mark.parametrize(
    ("environment", "protocol", "actions"),
    [(None, "json", 23), ("boto3-query", "query", 23), ("boto3-oldest", "query", 20)],
    ids=["json", "query", "oldest"],
)
def test_every_action_it_knows_makes_the_round_trip(environment, protocol, actions, endpoint, conforms):
    """Attributes, batches, FIFO, dead letters, a long poll and errors by their classes among them."""
    told = json.loads(endpoint.run(python(environment), ROUND_TRIP))
    conforms("boto3", f"{told['version']} ({told['protocol']})")
    assert (told["protocol"], told["actions"]) == (protocol, actions)


def test_every_action_makes_the_round_trip_over_https(https_endpoint, current):
    assert json.loads(https_endpoint.run(current, ROUND_TRIP))["actions"] == 23


EXAMPLE = ROOT / "docs" / "clients" / "boto3_orders.py"
PRINTED = "received: two chairs 1\nreceive 2 of: two chairs\nleft: 0\n"


def test_example_runs(endpoint, current):
    assert endpoint.run(current, EXAMPLE) == PRINTED


def test_example_runs_without_keys_too(open_endpoint, current):
    assert open_endpoint.run(current, EXAMPLE) == PRINTED


def test_a_request_signed_with_another_secret_is_refused(endpoint, current):
    """The other tests prove something about signatures only if the server checks them."""
    other = {"AWS_SECRET_ACCESS_KEY": "another"}
    assert endpoint.run(current, "-c", CODE, environment=other) == "SignatureDoesNotMatch\n"


CODE = """
import boto3
try:
    boto3.client("sqs").list_queues()
except Exception as error:
    print(error.response["Error"]["Code"])
"""
