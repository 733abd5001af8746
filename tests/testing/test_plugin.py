# SPDX-License-Identifier: Apache-2.0
"""pytest's fixtures, in test files as a user writes them, run by a pytest of their own."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.packaging.checkout import ROOT

SUITE = """
import json
import threading
import urllib.request

import boto3
import pytest


def test_the_python_api(sqs):
    queue = sqs.create_queue("orders", visibility_timeout=3_600)
    queue.send("hello")
    (message,) = queue.receive()
    message.delete()
    assert not queue.receive(visibility_timeout=0)


def test_each_test_has_a_file_of_its_own(sqs):
    assert sqs.queues() == []


def test_the_clock(sqs, sqs_clock):
    queue = sqs.create_queue("orders", visibility_timeout=3_600)
    queue.send("hello")
    assert queue.receive() and not queue.receive()
    sqs_clock.advance(3_600)
    assert queue.receive()


def test_three_apis_of_one_file(sqs, sqs_client, sqs_endpoint):
    url = sqs_client.create_queue(QueueName="orders")["QueueUrl"]
    sqs.queue("orders").send("from Python")
    remote = boto3.client(
        "sqs",
        endpoint_url=sqs_endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    (message,) = remote.receive_message(QueueUrl=url)["Messages"]
    assert message["Body"] == "from Python"
    sqs_client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    with pytest.raises(sqs_client.exceptions.QueueDoesNotExist):
        sqs_client.get_queue_url(QueueName="other")
    with urllib.request.urlopen(f"{sqs_endpoint}/health") as answer:
        assert answer.status == 200


def test_the_clock_wakes_a_long_poll_of_the_endpoint(sqs, sqs_clock, sqs_client, sqs_endpoint):
    url = sqs_client.create_queue(QueueName="orders")["QueueUrl"]
    sqs_client.send_message(QueueUrl=url, MessageBody="hello", DelaySeconds=900)
    remote = boto3.client(
        "sqs",
        endpoint_url=sqs_endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    found = []
    poll = threading.Thread(
        target=lambda: found.extend(remote.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"])
    )
    sqs_clock.advance(900 - 10)
    poll.start()
    sqs_clock.advance(10)
    poll.join()
    assert [message["Body"] for message in found] == ["hello"]


def test_no_pause_after_a_deletion(sqs):
    for _ in range(2):
        sqs.create_queue("orders").delete()


class TestWithOptions:
    @pytest.fixture
    def sqs_options(self):
        return {"limits": "native"}

    def test_the_options_hold(self, sqs):
        sqs.create_queue("orders", delay_seconds=1_000_000)


class TestWithAClockThatDoesNotWait:
    @pytest.fixture
    def sqs_clock(self):
        from sqsqlite.testing import MovableClock

        return MovableClock(waits=False)

    def test_a_long_poll_ends_at_once(self, sqs):
        assert sqs.create_queue("orders").receive(wait=20) == []
"""


def run_pytest(folder, *arguments, **variables):
    """pytest in a process of its own, where no conftest of ours is found."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_users_suite_passes_and_leaves_nothing(tmp_path):
    (tmp_path / "test_orders.py").write_text(SUITE)
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SUITE.count('def test_')} passed" in done.stdout
    assert not list(tmp_path.glob("sqsqlite-*"))


@pytest.mark.slow
def test_a_suite_in_parallel_passes(tmp_path):
    (tmp_path / "test_orders.py").write_text(SUITE)
    done = run_pytest(tmp_path, "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr


def test_loading_the_plugin_loads_nothing_else():
    """pytest loads it in each run of each project where SQSQLite is installed."""
    program = (
        "import pytest, sys; before = set(sys.modules); import sqsqlite.testing.plugin; "
        "print(sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "sqsqlite.testing.plugin" in loaded
    for heavy in ("sqsqlite.store", "sqsqlite.actions", "boto", "msgspec", "pysqlite3"):
        assert heavy not in loaded


@pytest.mark.slow
def test_a_missing_package_is_named_with_the_line_that_installs_it(tmp_path):
    """A finder that has neither boto3 nor uvicorn, as where the extras are not installed."""
    (tmp_path / "conftest.py").write_text(
        textwrap.dedent(
            """
            import sys

            class Missing:
                def find_spec(self, name, path=None, target=None):
                    if name.partition(".")[0] in ("botocore", "boto3", "uvicorn"):
                        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

            sys.meta_path.insert(0, Missing())
            """
        )
    )
    (tmp_path / "test_extras.py").write_text(
        "def test_client(sqs_client): pass\ndef test_endpoint(sqs_endpoint): pass\n"
        "def test_mock():\n    from sqsqlite.testing import mock_sqs\n    mock_sqs().start()\n"
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 1
    assert done.stdout.count("[boto3]'") >= 2
    assert "[serve]'" in done.stdout
    assert not list(tmp_path.glob("sqsqlite-*"))


def test_the_tests_run_on_the_code_of_this_checkout():
    """An installed plugin of another version would make the tests above say nothing."""
    found = subprocess.run(
        [sys.executable, "-c", "import sqsqlite.testing.plugin as p; print(p.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found.startswith(str(ROOT))
