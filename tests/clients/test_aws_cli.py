# SPDX-License-Identifier: Apache-2.0
"""The AWS CLI, with the commands of Amazon's chapter on the visibility timeout word for word."""

import json
import shlex
import subprocess

import pytest

from sqsqlite.store.driver import dbapi
from tests.clients.tools import programs
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def installed(endpoint, conforms):
    folder = programs("awscli")
    conforms("AWS CLI", endpoint.run(folder / "aws", "--version").split()[0].partition("/")[2])
    return folder


@pytest.fixture
def aws(endpoint, installed):
    """Run a command line, as a shell would; what it printed, read.

    --endpoint-url is added: version 1 goes to Amazon for SQS whatever AWS_ENDPOINT_URL says.
    """

    def words(line):
        return [installed / "aws", "--endpoint-url", endpoint.url, *shlex.split(line)[1:]]

    def aws(line, *more):
        printed = endpoint.run(*words(line), *more)
        return json.loads(printed) if printed else None

    def refuse(line):
        done = subprocess.run(
            words(line),
            env=endpoint.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 255, done.stdout
        return done.stderr

    aws.refuse = refuse
    return aws


def hidden_seconds(path):
    """How long the file's only message in flight remains hidden, from now."""
    connection = dbapi.connect(path)
    try:
        [(seconds,)] = connection.execute("SELECT expires_in_seconds FROM sqs_report_leases").fetchall()
    finally:
        connection.close()
    return seconds


def test_commands_of_the_visibility_timeout_chapter_do_what_it_says(aws, endpoint):
    """Only the queue's URL and the receipt handle are this server's."""
    created = aws("aws sqs create-queue --queue-name MyQueue --attributes VisibilityTimeout=60")
    url = created["QueueUrl"]
    assert url == f"{endpoint.url}/000000000000/MyQueue"
    verify = f"aws sqs get-queue-attributes --queue-url {url} --attribute-names VisibilityTimeout"
    assert aws(verify) == {"Attributes": {"VisibilityTimeout": "60"}}

    assert aws(f"aws sqs set-queue-attributes --queue-url {url} --attributes VisibilityTimeout=120") is None
    assert aws(verify) == {"Attributes": {"VisibilityTimeout": "120"}}

    aws(f"aws sqs send-message --queue-url {url} --message-body hello")
    [message] = aws(f"aws sqs receive-message --queue-url {url}")["Messages"]
    handle = message["ReceiptHandle"]
    change = f"aws sqs change-message-visibility --queue-url {url} --receipt-handle {handle}"
    assert aws(f"{change} --visibility-timeout 300") is None
    assert 120 < hidden_seconds(endpoint.path) <= 300

    assert aws(f"{change} --visibility-timeout 0") is None
    [again] = aws(f"aws sqs receive-message --queue-url {url}")["Messages"]
    assert again["MessageId"] == message["MessageId"]
    assert aws(f"aws sqs delete-message --queue-url {url} --receipt-handle {again['ReceiptHandle']}") is None


def test_batches_attributes_tags_and_pages(aws):
    """What the chapter leaves out of the commands that a queue's operator types."""
    url = aws(
        'aws sqs create-queue --queue-name work --tags team=fences --attributes \'{"DelaySeconds":"0"}\''
    )["QueueUrl"]
    entries = json.dumps([{"Id": str(number), "MessageBody": f"fence {number}"} for number in range(3)])
    sent = aws(f"aws sqs send-message-batch --queue-url {url}", "--entries", entries)
    assert [entry["Id"] for entry in sent["Successful"]] == ["0", "1", "2"]
    attributes = "height={DataType=Number,StringValue=tall}"
    refused = aws.refuse(
        f"aws sqs send-message --queue-url {url} --message-body x --message-attributes {attributes}"
    )
    assert "(InvalidParameterValue)" in refused
    received = aws(
        f"aws sqs receive-message --queue-url {url} --max-number-of-messages 10 --attribute-names All"
    )
    assert [message["Attributes"]["ApproximateReceiveCount"] for message in received["Messages"]] == ["1"] * 3
    entries = json.dumps(
        [{"Id": m["MessageId"], "ReceiptHandle": m["ReceiptHandle"]} for m in received["Messages"]]
    )
    deleted = aws(f"aws sqs delete-message-batch --queue-url {url}", "--entries", entries)
    assert len(deleted["Successful"]) == 3

    assert aws(f"aws sqs list-queue-tags --queue-url {url}") == {"Tags": {"team": "fences"}}
    aws("aws sqs create-queue --queue-name work-2")
    assert len(aws("aws sqs list-queues --page-size 1")["QueueUrls"]) == 2
    aws(f"aws sqs delete-queue --queue-url {url}")


def test_error_is_told_with_its_code_and_exit_status(aws):
    refused = aws.refuse("aws sqs get-queue-url --queue-name nobody")
    assert "(AWS.SimpleQueueService.NonExistentQueue)" in refused
    assert "GetQueueUrl operation" in refused


def test_example_runs(endpoint, installed):
    """docs/clients/aws_cli.sh, in a shell that has the AWS CLI."""
    printed = endpoint.run(
        "bash",
        ROOT / "docs" / "clients" / "aws_cli.sh",
        environment={"PATH": f"{installed}:{endpoint.environment()['PATH']}"},
    )
    assert '"VisibilityTimeout": "120"' in printed
