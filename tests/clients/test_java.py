# SPDX-License-Identifier: Apache-2.0
"""The AWS SDK for Java v2, which checks the MD5 of bodies and of attributes."""

import re
import shutil

import pytest

from tests.clients.tools import kept, need, run
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "docs" / "clients" / "java"
ROUND_TRIP = ROOT / "tests" / "clients" / "programs" / "RoundTrip.java"


VERSION = re.search(
    r"<artifactId>sqs</artifactId>\s*<version>(.+?)<", (EXAMPLE / "pom.xml").read_text("utf-8")
)[1]


@pytest.fixture
def maven(conforms):
    conforms("AWS SDK for Java v2", VERSION)
    need("javac", "apt-get install openjdk-17-jdk-headless")
    return need("mvn", "apt-get install maven")


def test_messages_attributes_and_errors_make_the_round_trip_and_wrong_md5s_are_noticed(maven, endpoint):
    """A long poll too, by the asynchronous client. The MD5s are spoiled on their way to the SDK."""

    def make(folder):
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}"]
        run(maven, "-B", "-q", "-f", EXAMPLE / "pom.xml", *copy)

    jars = kept("java", EXAMPLE / "pom.xml", make=make) / "jars"
    printed = endpoint.run("java", "-Dfile.encoding=UTF-8", "-cp", f"{jars}/*", ROUND_TRIP)
    assert printed == f"{VERSION}\n"


def test_example_runs(maven, endpoint, tmp_path):
    """docs/clients/java, with the command that it names."""
    folder = shutil.copytree(EXAMPLE, tmp_path / "java")
    printed = endpoint.run(maven, "-B", "-q", "compile", "exec:java", cwd=folder)
    assert "received: two chairs 1\nreceive 2 of: two chairs\n" in printed
