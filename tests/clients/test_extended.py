# SPDX-License-Identifier: Apache-2.0
"""Amazon's extended client for Python: bodies in S3, which moto's server replaces, and pointers in the queue."""

import re
import subprocess
import time

import pytest

from tests.clients.tools import programs, version_of
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow

BUCKET = "bodies"
MAKE_BUCKET = f"import boto3; boto3.client('s3').create_bucket(Bucket='{BUCKET}')"


@pytest.fixture
def folder(conforms):
    found = programs("extended")
    conforms("SQS extended client for Python", version_of(found / "python", "amazon-sqs-extended-client"))
    return found


@pytest.fixture
def addresses(folder, endpoint, tmp_path):
    """The addresses of SQS and S3, with a bucket, in moto's server on a free port."""
    told = tmp_path / "s3.log"
    with told.open("wb") as log:
        process = subprocess.Popen(
            [folder / "moto_server", "-H", "127.0.0.1", "-p", "0"],
            env=endpoint.environment(),
            cwd=tmp_path,
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + 600
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", told.read_text("utf-8"))):
            assert process.poll() is None, told.read_text("utf-8")
            assert time.monotonic() < deadline
            time.sleep(0.1)
        addresses = {"AWS_ENDPOINT_URL_SQS": endpoint.url, "AWS_ENDPOINT_URL_S3": found[0]}
        endpoint.run(folder / "python", "-c", MAKE_BUCKET, environment=addresses)
        yield addresses
    finally:
        process.terminate()
        process.wait(300)


def test_large_bodies_make_the_round_trip_through_s3(folder, endpoint, addresses):
    """One by one and in batches; the receipt handles that the client makes longer are ours again at the end."""
    program = ROOT / "tests" / "clients" / "programs" / "extended_round_trip.py"
    endpoint.run(folder / "python", program, environment=addresses)


def test_example_runs(folder, endpoint, addresses):
    """docs/clients/extended_orders.py."""
    program = ROOT / "docs" / "clients" / "extended_orders.py"
    assert (
        endpoint.run(folder / "python", program, BUCKET, environment=addresses) == "received: 660000 bytes\n"
    )
