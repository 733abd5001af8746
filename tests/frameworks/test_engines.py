# SPDX-License-Identifier: Apache-2.0
"""Applications with engines of their own: asynchronous SQLAlchemy, FastAPI, sqlite-utils, Datasette."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from urllib.parse import quote

import pytest

import sqsqlite
from tests.clients.tools import programs
from tests.packaging.checkout import ROOT
from tests.store.inspection import assert_whole
from tests.store.waiting import until

pytestmark = pytest.mark.slow

PROGRAMS = ROOT / "tests" / "frameworks" / "programs"


@pytest.fixture(scope="module")
def bin_folder():
    return programs("engines")


@pytest.fixture
def run_in(bin_folder, tmp_path):
    """Run a command of the environment in the test's folder. Returns what it prints."""

    def run_in(program, *arguments):
        done = subprocess.run(
            [bin_folder / program, *arguments],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_in


def test_asynchronous_engine_sends_receives_and_deletes_in_its_transactions(run_in, tmp_path):
    printed = run_in("python", "-W", "error", PROGRAMS / "async_engine.py").splitlines()
    assert printed == ["['first']", "rolled back 'undone'", "IntegrityError", "21 10 11", "True", "0"]
    with sqsqlite.connect(tmp_path / "app.db") as sqs:
        assert_whole(sqs)


class Served:
    """The FastAPI application in a process of its own."""

    def __init__(self, bin_folder, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [bin_folder / "uvicorn", "fastapi_app:app", "--port", str(self._port), "--log-level", "warning"],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{PROGRAMS}"},
        )
        until(self.answers)

    def answers(self):
        assert self._process.poll() is None, "the server has ended"
        try:
            return self.ask("GET", "/orders")[0] == 200
        except ConnectionError:
            return False

    def ask(self, method, path):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=600)
        connection.request(method, path)
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found

    def end(self, how):
        self._process.send_signal(how)
        return self._process.wait()


def test_fastapi_application_keeps_its_engine(bin_folder, tmp_path):
    served = Served(bin_folder, tmp_path)
    try:
        placed = [served.ask("POST", f"/orders/{quote(item)}")[0] for item in ("lamp", "broken", "chair")]
        assert placed == [200, 409, 200]
        until(lambda: served.ask("GET", "/orders")[1] == {"lamp": True, "chair": True})
        assert served.end(signal.SIGTERM) in (0, -signal.SIGTERM)
    finally:
        served.end(signal.SIGKILL)
    with sqsqlite.connect(tmp_path / "app.db") as sqs:
        assert len(sqs.queue("mail")) == 0


def test_a_killed_fastapi_application_has_a_message_for_each_unmailed_order(bin_folder, tmp_path):
    answered = []
    for life in range(3):
        served = Served(bin_folder, tmp_path)

        def place(served=served, life=life):
            for number in range(1_000):
                try:
                    if served.ask("POST", f"/orders/{life}-{number}")[0] == 200:
                        answered.append(f"{life}-{number}")
                except (OSError, http.client.HTTPException):
                    return

        placing = threading.Thread(target=place)
        placing.start()
        until(lambda life=life: len([item for item in answered if item.startswith(f"{life}-")]) >= 20)
        served.end(signal.SIGKILL)
        placing.join()
        with sqsqlite.connect(tmp_path / "app.db") as sqs:
            with sqs.transaction() as connection:
                rows = connection.execute("SELECT id, item, is_mailed FROM orders").fetchall()
            waiting = {message.body for message in sqs.queue("mail").messages()}
            assert_whole(sqs)
        assert {item for _, item, _ in rows} >= set(answered)
        assert waiting == {str(number) for number, _, is_mailed in rows if not is_mailed}


SENDER = """
import sys, sqsqlite
engine = sqsqlite.dbapi.connect("app.db")
with sqsqlite.connect("app.db", adopt=True) as sqs:
    queue = sqs.create_queue("orders")
    engine.execute("CREATE TABLE items (name TEXT)")
    print("ready", flush=True)
    number = 0
    while number < 200 or not sys.stdin.closed and not __import__("select").select([sys.stdin], [], [], 0)[0]:
        with engine:
            engine.execute("INSERT INTO items VALUES (?)", (f"item {number}",))
            queue.send(f"item {number}", connection=engine)
        number += 1
    print(number, flush=True)
"""


def test_sqlite_utils_and_datasette_read_beside_a_sender(run_in, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", SENDER],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as sender:
        assert sender.stdout.readline() == "ready\n"
        counts = []
        for _ in range(3):
            [row] = json.loads(
                run_in("sqlite-utils", "query", "app.db", "SELECT count(*) AS count FROM items")
            )
            counts.append(row["count"])
            page = json.loads(
                run_in(
                    "datasette", "app.db", "--get", "/app.json?sql=select+count(*)+from+items&_shape=arrays"
                )
            )
            counts.append(page["rows"][0][0])
        sender.stdin.close()
        sent = int(sender.stdout.read())
    assert counts == sorted(counts)
    assert counts[-1] <= sent
    with sqsqlite.connect(tmp_path / "app.db") as sqs:
        assert len(sqs.queue("orders")) == sent
        assert_whole(sqs)


IN_PROCESS = """
import sqlite_utils, sqsqlite
database = sqlite_utils.Database(sqsqlite.dbapi.connect("app.db"))
# Before there are other writers: its own transactions are deferred ones.
database["items"].insert_all({"name": f"item {number}"} for number in range(3))
with sqsqlite.connect("app.db", adopt=True) as sqs:
    queue = sqs.create_queue("orders")
    database.conn.isolation_level = "IMMEDIATE"
    with database.conn:
        database.conn.execute("INSERT INTO items VALUES ('with a message')")
        queue.send("hi", connection=database.conn)
    print(database["items"].count, [message.body for message in queue.receive()])
"""


def test_sqlite_utils_takes_a_connection_of_ours(run_in):
    assert run_in("python", "-c", IN_PROCESS) == "4 ['hi']\n"
