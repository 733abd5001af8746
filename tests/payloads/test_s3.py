# SPDX-License-Identifier: Apache-2.0
"""Payloads in S3, by s3fs, with Amazon's extended clients for Python and Java. moto's server stands in for S3."""

import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients import endpoint as servers
from tests.clients.tools import kept, need, programs, run
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).with_name("programs")


@pytest.fixture
def endpoint(tmp_path):
    """A server of a new file, over HTTP, with a key."""
    started = servers.start(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def folder():
    return programs("payloads")


@contextmanager
def s3(folder, endpoint, told):
    """The environment of a program that uses S3, and SQS of the endpoint, while moto's server runs."""
    with told.open("wb") as log:
        process = subprocess.Popen(
            [folder / "moto_server", "-H", "127.0.0.1", "-p", "0"],
            env=endpoint.environment(),
            cwd=told.parent,
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + 600
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", told.read_text("utf-8"))):
            assert process.poll() is None, told.read_text("utf-8")
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield {
            "AWS_ENDPOINT_URL_SQS": endpoint.url,
            "AWS_ENDPOINT_URL_S3": found[0],
            "PYTHONPATH": str(ROOT),
        }
    finally:
        process.terminate()
        process.wait(300)


def test_we_and_amazons_client_read_each_others_payloads(folder, endpoint, tmp_path):
    with s3(folder, endpoint, tmp_path / "s3.log") as environment:
        program = PROGRAMS / "s3_both_ways.py"
        printed = endpoint.run(folder / "python", program, tmp_path / "local.db", environment=environment)
    assert printed == "[]\n"


MAKE_BUCKET = "import boto3; boto3.client('s3').create_bucket(Bucket='bodies')"


def test_while_s3_is_stopped_nothing_is_sent_and_nothing_is_lost(folder, endpoint, tmp_path):
    """The second server's address refuses connections: it was stopped."""
    path = tmp_path / "local.db"

    def work(what, environment, *more):
        return endpoint.run(
            folder / "python", PROGRAMS / "s3_down.py", path, what, *more, environment=environment
        )

    with s3(folder, endpoint, tmp_path / "up.log") as up:
        with s3(folder, endpoint, tmp_path / "down.log") as down:
            pass
        endpoint.run(folder / "python", "-c", MAKE_BUCKET, environment=up)
        handle = work("send", up).strip()
        told = "PayloadStoreDown True True\n"
        # Two were sent, one of them was deleted, and its payload stayed.
        assert work("down", down, handle) == f"{told}{told}1 1\n"
        assert work("again", up) == "True\n"


def test_an_error_names_the_package_that_a_url_needs(folder, endpoint, tmp_path):
    """gs:// needs gcsfs, which is not installed there."""
    program = "from sqsqlite.payloads import PayloadStore; PayloadStore('gs://bodies')"
    done = subprocess.run(
        [folder / "python", "-c", program],
        env=endpoint.environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ModuleNotFoundError: a payload store at gs://bodies needs another package" in done.stderr
    assert "gcsfs" in done.stderr


def test_we_and_amazons_client_for_java_read_each_others_payloads(folder, endpoint, tmp_path):
    need("javac", "apt-get install openjdk-17-jdk-headless")
    maven = need("mvn", "apt-get install maven")
    java = PROGRAMS / "java"

    def make(into):
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={into / 'jars'}"]
        run(maven, "-B", "-q", "-f", java / "pom.xml", *copy)

    jars = kept("java-extended", java / "pom.xml", make=make) / "jars"
    program = PROGRAMS / "s3_java.py"
    with s3(folder, endpoint, tmp_path / "s3.log") as environment:
        endpoint.run(folder / "python", program, "send", environment=environment)
        command = ["java", "-Dfile.encoding=UTF-8", "-cp", f"{jars}/*", java / "Extended.java"]
        assert endpoint.run(*command, environment=environment) == "left: 0\n"
        assert endpoint.run(folder / "python", program, "receive", environment=environment) == "0\n"
