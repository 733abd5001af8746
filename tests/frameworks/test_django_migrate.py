# SPDX-License-Identifier: Apache-2.0
"""`migrate` copies the table that workers of other processes write to, and is killed while it does."""

import os
import subprocess
from contextlib import ExitStack

import pytest

import sqsqlite
from tests.clients.tools import programs, run
from tests.docs.programs import files
from tests.packaging.checkout import ROOT
from tests.store.inspection import assert_whole, rows
from tests.store.waiting import until

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "django.md").read_text(encoding="utf-8")
# Makes a user of each message, in the transaction that deletes it. A user that is there already is an error.
WORK = """
import django
django.setup()
from django.contrib.auth.models import User
from django.db import connection, transaction
from queues import mail
print("ready", flush=True)
bodies = []
while "stop" not in bodies:
    for message in mail().receive(max_messages=2, wait=20, visibility_timeout=43_200):
        with transaction.atomic():
            User.objects.create(username=message.body)
            message.delete(connection=connection)
        bodies.append(message.body)
"""
# From here on, Django's own migrations of `auth` copy the table of users several times.
EARLIER = "0005"


@pytest.fixture
def project(tmp_path):
    """The page's project, with a minute for other writers. Gives its command line and its environment."""
    for name, text in files(PAGE).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = (tmp_path / "settings.py").read_text(encoding="utf-8")
    patient = settings.replace(
        '"NAME": Path("app.db"),', '"NAME": Path("app.db"), "OPTIONS": {"timeout": 600},'
    )
    assert patient != settings
    (tmp_path / "settings.py").write_text(patient, encoding="utf-8")
    python = programs("django") / "python"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, ROOT))),
        "DJANGO_SETTINGS_MODULE": "settings",
    }
    run(python, "-m", "django", "migrate", "--verbosity", "0", cwd=tmp_path, env=environment)
    return python, {"cwd": tmp_path, "env": environment}


def started(project, *arguments):
    python, place = project
    return subprocess.Popen(
        [python, "-u", "-W", "error", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **place,
    )


def migrate(project, *target):
    python, place = project
    run(python, "-m", "django", "migrate", "--verbosity", "0", *target, **place)


def test_workers_make_one_user_of_each_message_while_migrations_run_and_are_killed(project, tmp_path):
    sent = []
    with ExitStack() as stack:
        sqs = stack.enter_context(sqsqlite.connect(tmp_path / "app.db"))
        queue = sqs.queue("mail")

        def send(count):
            for _ in range(count):
                sent.append(f"user {len(sent):04}")
                queue.send(sent[-1])

        workers = [stack.enter_context(started(project, "-c", WORK)) for _ in range(2)]
        for worker in workers:
            stack.callback(worker.kill)
            assert worker.stdout.readline() == "ready\n", worker.stderr.read()
        for number in range(3):
            migrate(project, "auth", EARLIER)
            send(10)
            with started(project, "-m", "django", "migrate") as killed:
                # It prints the name of a migration before it runs it.
                while f"auth.00{8 + number:02}" not in (line := killed.stdout.readline()):
                    assert line, killed.stderr.read()
                killed.kill()
            send(10)
            migrate(project)
        until(lambda: not len(queue) or any(worker.poll() is not None for worker in workers))
        queue.send("stop")
        until(lambda: any(worker.poll() is not None for worker in workers))
        [other] = [worker for worker in workers if worker.poll() is None] or [workers[0]]
        run_out = "DELETE FROM auth_user WHERE username = 'stop'"
        with sqs.transaction() as connection:
            assert connection.execute(run_out).rowcount == 1
        queue.send("stop")
        other.wait(600)
        assert [worker.returncode for worker in workers] == [0, 0], [
            worker.stderr.read() for worker in workers
        ]
        assert len(queue) == 0
        names = [
            name
            for (name,) in rows(
                sqs, "SELECT username FROM auth_user WHERE username <> 'stop' ORDER BY username"
            )
        ]
        assert names == sent
        assert_whole(sqs)
