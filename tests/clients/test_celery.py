# SPDX-License-Identifier: Apache-2.0
"""Celery with kombu's transport for SQS: the worker polls with curl, the sender is boto3."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.clients.tools import programs, version_of
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow

FOLDERS = [ROOT / "tests" / "clients" / "programs", ROOT / "docs" / "clients"]
VISIBILITY_TIMEOUT = 8


class Celery:
    """Workers and calls of one server."""

    def __init__(self, endpoint, folder):
        self._programs = folder
        self._endpoint = endpoint
        self._notes = endpoint.home / "notes"
        self._environment = {
            "ENDPOINT": endpoint.url,
            "VISIBILITY_TIMEOUT": str(VISIBILITY_TIMEOUT),
            "NOTES": str(self._notes),
            "PYTHONPATH": os.pathsep.join(map(str, FOLDERS)),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, program, *arguments):
        return self._endpoint.run(self._programs / program, *arguments, environment=self._environment)

    def call(self, task, *arguments, **options):
        flags = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self.run(
            "celery",
            "-A",
            "celery_tasks",
            "call",
            f"celery_tasks.{task}",
            "--args",
            json.dumps(arguments),
            *flags,
        )

    @contextlib.contextmanager
    def worker(self, name="only", app="celery_tasks"):
        """A worker with a pool of processes, in a group of its own."""
        with (self._endpoint.home / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [self._programs / "celery", "-A", app, "worker", "--concurrency", "2", "--loglevel", "info"],
                env={**self._endpoint.environment(**self._environment), "WORKER": name, "C_FORCE_ROOT": "1"},
                cwd=self._endpoint.home,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    process.wait(300)

    def log(self, name="only"):
        return (self._endpoint.home / f"{name}.log").read_text(encoding="utf-8")

    def notes(self, task, count):
        """Wait until the task has written `count` lines. Returns the words after its name."""
        return self.until(lambda: [words for first, *words in self._lines() if first == task], count)

    def until(self, look, count):
        deadline = time.monotonic() + 600
        while len(found := look()) < count:
            logs = "\n".join(log.read_text("utf-8") for log in self._endpoint.home.glob("*.log"))
            assert time.monotonic() < deadline, f"{found}\n{logs}"
            time.sleep(0.1)
        return found

    def _lines(self):
        return (
            [line.split() for line in self._notes.read_text("utf-8").splitlines()]
            if self._notes.exists()
            else []
        )


@pytest.fixture
def installed(conforms):
    folder = programs("celery")
    celery, kombu = (version_of(folder / "python", package) for package in ("celery", "kombu"))
    conforms("Celery", f"{celery} (kombu {kombu})")
    return folder


@pytest.fixture
def celery(endpoint, installed):
    return Celery(endpoint, installed)


def test_a_task_is_run_once_and_its_message_is_gone(celery, endpoint):
    with celery.worker():
        for body in ("one", "Zürich", "three"):
            celery.call("add", body)
        assert sorted(celery.notes("add", 3)) == [["Zürich"], ["one"], ["three"]]
    left = endpoint.run(celery._programs / "python", "-c", LEFT)
    assert json.loads(left) == {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
    }


LEFT = """
import boto3, json, os
sqs = boto3.client("sqs")
url = sqs.get_queue_url(QueueName="celery")["QueueUrl"]
names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
print(json.dumps(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]))
"""


def test_a_failed_task_is_tried_again_with_back_off(celery):
    """A second later, then two. Celery's timer may be some hundredths of a second early."""
    with celery.worker():
        celery.call("charge", "two chairs")
        tries = [(int(number), float(at)) for number, at in celery.notes("charge", 3)]
    assert [number for number, _ in tries] == [0, 1, 2]
    pauses = [later - earlier for (_, earlier), (_, later) in itertools.pairwise(tries)]
    assert pauses[0] > 0.8
    assert pauses[1] > 1.8


def test_a_task_with_an_eta_does_not_run_before(celery):
    eta = datetime.now(UTC) + timedelta(seconds=6)
    with celery.worker():
        celery.call("at", "then", eta=eta.isoformat())
        [[ran_at]] = celery.notes("at", 1)
    assert float(ran_at) > eta.timestamp() - 0.2


def test_a_task_of_a_killed_worker_is_given_to_another(celery):
    """kill -9 of the worker and of its pool: no process can tell the server, which shows the message again."""
    with celery.worker("first") as process:
        celery.call("kept")
        celery.notes("kept", 1)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(300)
    with celery.worker("second"):
        [[first], [second]] = celery.notes("kept", 2)
        celery.until(lambda: [line for line in celery.log("second").splitlines() if "succeeded" in line], 1)
    assert first != second


def test_a_worker_over_https_runs_tasks_and_retries(https_endpoint, installed):
    """A private authority has signed the certificate."""
    celery = Celery(https_endpoint, installed)
    with celery.worker():
        celery.call("add", "secret")
        celery.call("charge", "two chairs")
        assert celery.notes("add", 1) == [["secret"]]
        celery.notes("charge", 3)


def test_example_runs(celery):
    """docs/clients/celery_orders.py, with the command that it names."""
    with celery.worker(app="celery_orders"):
        celery.run(
            *("celery", "-A", "celery_orders", "call", "celery_orders.charge", "--args", '["two chairs"]')
        )
        celery.until(
            lambda: [
                line for line in celery.log().splitlines() if "charged: two chairs, after 2 retries" in line
            ],
            1,
        )
