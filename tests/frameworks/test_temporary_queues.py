# SPDX-License-Identifier: Apache-2.0
"""Amazon's temporary queue client for Java asks our responder, and answers our requester, at a real endpoint."""

import threading
from pathlib import Path

import pytest

import sqsqlite
from sqsqlite.replies import Requester
from sqsqlite.replies.addresses import ADDRESS, LAST_SIGN, RETENTION, WAITER
from tests.clients import endpoint as servers
from tests.clients.tools import kept, need, run
from tests.replies.asking import Worker, host_queues

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parent / "programs" / "java"
CLASSES = ("util.Constants", "AmazonSQSVirtualQueuesClient", "AmazonSQSIdleQueueDeletingClient")


@pytest.fixture
def jars():
    need("javac", "apt-get install openjdk-17-jdk-headless")
    maven = need("mvn", "apt-get install maven")

    def make(folder):
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}"]
        run(maven, "-B", "-q", "-f", PROGRAMS / "pom.xml", *copy)

    return kept("java-replies", PROGRAMS / "pom.xml", make=make) / "jars"


def test_amazons_client_for_java_asks_and_answers(jars, tmp_path):
    """Its requester waits on a virtual queue of its own, its responder replies to one of ours."""
    endpoint = servers.start(tmp_path)
    try:
        with sqsqlite.connect(endpoint.path) as sqs:
            urls = [
                sqs.client.create_queue(QueueName=name)["QueueUrl"] for name in ("for-python", "for-java")
            ]
            worker = Worker(sqs, 2, "for-python")
            printed = []
            command = ["java", "-Dfile.encoding=UTF-8", "-cp", f"{jars}/*", PROGRAMS / "Replies.java", *urls]
            java = threading.Thread(target=lambda: printed.append(endpoint.run(*command)))
            java.start()
            with Requester(sqs) as requester:
                asked = [requester.submit("for-java", f"number {n}", 600) for n in range(2)]
                assert [one.result(700).body for one in asked] == ["Java has number 0", "Java has number 1"]
            java.join()
            worker.join()
            assert printed == ["FROM JAVA 9\nFROM JAVA AGAIN 15\n"]
            assert host_queues(sqs) == []
            assert [len(sqs.queue(name)) for name in ("for-python", "for-java")] == [0, 0]
    finally:
        endpoint.stop()


def test_names_are_those_of_amazons_client(jars):
    [jar] = jars.glob("*temporary-queues*")
    classes = [f"com.amazonaws.services.sqs.{name}" for name in CLASSES]
    shown = run("javap", "-p", "-constants", "-cp", jar, *classes)
    for name in (ADDRESS, WAITER, LAST_SIGN, RETENTION):
        assert f' = "{name}";' in shown
