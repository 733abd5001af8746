# SPDX-License-Identifier: Apache-2.0
"""Django with its file and the queues' in one: its own tests, the page, and a process that is killed."""

import os
import re
import signal
import subprocess
import sys
import tarfile

import pytest

import sqsqlite
from tests.clients.tools import kept, programs, run, version_of
from tests.docs.programs import files, runnable
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow

LOCK = ROOT / "requirements" / "clients" / "django.lock"
PAGE = (ROOT / "docs" / "django.md").read_text(encoding="utf-8")
# Those of Django's tests that talk to the database most.
LABELS = (
    *("backends", "transactions", "transaction_hooks", "basic", "bulk_create", "constraints", "schema"),
    *("introspection", "inspectdb", "model_fields", "expressions", "timezones", "select_for_update"),
)
SETTINGS = """
# Django's tests know its default mode of transactions.
DATABASES = {
    name: {"ENGINE": "sqsqlite.django", "OPTIONS": {"transaction_mode": None}} for name in ("default", "other")
}
SECRET_KEY = "for tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
"""


@pytest.fixture(scope="module")
def bin_folder():
    return programs("django")


@pytest.fixture(scope="module")
def source(bin_folder):
    """Django's source, which has its tests, of the version that is installed."""

    def make(folder):
        wanted = f"django=={version_of(bin_folder / 'python', 'django')}"
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "django")
        run(*pip, "--dest", folder, wanted)
        [archive] = folder.glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        archive.unlink()

    [unpacked] = kept("django-source", LOCK, make=make).glob("django-*")
    return unpacked


def environment(bin_folder, *folders):
    return {
        "PATH": os.pathsep.join((str(bin_folder), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join(map(str, (*folders, ROOT))),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def test_djangos_own_tests_pass(bin_folder, source, tmp_path):
    (tmp_path / "settings_of_tests.py").write_text(SETTINGS, encoding="utf-8")
    done = subprocess.run(
        [bin_folder / "python", "runtests.py", "--settings=settings_of_tests", "--parallel=1", *LABELS],
        cwd=source / "tests",
        env=environment(bin_folder, tmp_path, source),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-8000:]
    assert int(re.search(r"Ran (\d+) tests", done.stderr)[1]) > 1000


@pytest.fixture
def project(tmp_path, bin_folder):
    """The page's project. Runs a program in its folder, and returns what it prints."""
    for name, text in files(PAGE).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = {**environment(bin_folder, tmp_path), "DJANGO_SETTINGS_MODULE": "settings"}

    def run_in(program, *arguments):
        command = [bin_folder / "python", "-W", "error", "-c", f"import django\ndjango.setup()\n{program}"]
        done = subprocess.run(
            [*command, *map(str, arguments)],
            cwd=tmp_path,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    run(bin_folder / "python", "-m", "django", "migrate", "--verbosity", "0", cwd=tmp_path, env=settings)
    return run_in


def bodies(path):
    with sqsqlite.connect(path) as sqs:
        return [message.body for message in sqs.queue("mail").peek(10)]


def users(project):
    code, printed, errors = project(
        "from django.contrib.auth.models import User\nprint(User.objects.count())"
    )
    assert code == 0, errors
    return int(printed)


def test_page_runs(bin_folder, tmp_path):
    for name, text in files(PAGE).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    commands, tests = runnable(PAGE)
    bash, settings = ("bash", "-euo", "pipefail", "-c"), environment(bin_folder, tmp_path)
    assert run(*bash, commands.source, cwd=tmp_path, env=settings) == commands.output
    for _ in range(2):
        run(*bash, tests.source, cwd=tmp_path, env=settings)
    assert sorted(path.name for path in tmp_path.glob("test.db*")) == []


KILLED = """
import os, signal
from django.test import TransactionTestCase
from queues import mail
class Killed(TransactionTestCase):
    def test_that_kills_its_process(self):
        mail().send("of the killed run")
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_of_tests_leaves_nothing_to_the_next(bin_folder, tmp_path):
    """Its database stays behind with a WAL: Django removes the database alone."""
    for name, text in files(PAGE).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "killed.py").write_text(KILLED, encoding="utf-8")
    settings = {**environment(bin_folder, tmp_path), "DJANGO_SETTINGS_MODULE": "settings"}
    command = [bin_folder / "python", "-m", "django", "test", "--noinput"]
    killed = subprocess.run(
        [*command, "killed"], cwd=tmp_path, env=settings, capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (tmp_path / "test.db-wal").exists()
    run(*command, "tests", cwd=tmp_path, env=settings)


ROLLED_BACK = """
from django.contrib.auth.models import User
from django.db import connection, transaction
from queues import mail
try:
    with transaction.atomic():
        User.objects.create(username="no")
        mail().send("no", connection=connection)
        raise KeyError
except KeyError:
    pass
with transaction.atomic():
    User.objects.create(username="yes")
    try:
        with transaction.atomic():
            User.objects.create(username="inner")
            mail().send("inner", connection=connection)
            raise KeyError
    except KeyError:
        pass
    mail().send("yes", connection=connection)
"""


def test_messages_roll_back_with_the_rows(project, tmp_path):
    code, _, errors = project(ROLLED_BACK)
    assert code == 0, errors
    assert bodies(tmp_path / "app.db") == ["yes"]
    assert users(project) == 1


OUTSIDE = "from django.db import connection\nfrom queues import mail\nmail().send('x', connection=connection)"
IN_MEMORY = """
from django.db import connections
from queues import mail
connections["default"].settings_dict["NAME"] = ":memory:"
mail()
"""


@pytest.mark.parametrize(("program", "told"), [(OUTSIDE, "transaction.atomic()"), (IN_MEMORY, '"TEST"')])
def test_mistakes_are_told(project, program, told):
    _, _, errors = project(program)
    assert told in errors.splitlines()[-1]


# Sends with a row in each of many transactions, until it is killed.
ENDLESS = """
import itertools, os
import django
django.setup()
from views import register
for number in itertools.count():
    register(f"{os.getpid()} {number}")
"""


def test_a_kill_leaves_a_message_for_each_row(project, tmp_path, bin_folder):
    settings = {**environment(bin_folder, tmp_path), "DJANGO_SETTINGS_MODULE": "settings"}
    registered = 0
    for _ in range(5):
        command = [bin_folder / "python", "-u", "-c", ENDLESS]
        with subprocess.Popen(
            command, cwd=tmp_path, env=settings, stdout=subprocess.PIPE, text=True
        ) as killed:
            for _ in range(20):
                assert killed.stdout.readline().startswith("registered")
            killed.send_signal(signal.SIGKILL)
            registered += 20 + len(killed.stdout.readlines())
        with sqsqlite.connect(tmp_path / "app.db") as sqs:
            stored = len(sqs.queue("mail"))
        assert users(project) == stored
        assert stored >= registered  # what was printed was committed
        registered = stored


FORKED = """
import os
from django.contrib.auth.models import User
from views import register
register("parent before")
children = []
for number in range(4):
    pid = os.fork()
    if not pid:
        for turn in range(5):
            register(f"child {number} {turn}")
        os._exit(0)
    children.append(pid)
register("parent after")
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children], User.objects.count())
"""


def test_forked_workers_use_the_connection_of_their_parent(project, tmp_path):
    code, printed, errors = project(FORKED)
    assert code == 0, errors
    assert printed.splitlines()[-1] == "[0, 0, 0, 0] 22"
    with sqsqlite.connect(tmp_path / "app.db") as sqs:
        assert len(sqs.queue("mail")) == 22
