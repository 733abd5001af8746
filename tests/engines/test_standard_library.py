# SPDX-License-Identifier: Apache-2.0
"""The standard library's driver, where its SQLite is new enough. Its C code calls its own methods more than ours.

No Python here may have such a SQLite. But `sqlite3` is linked to a shared library, and pysqlite3 brings one that has
the same names: the dynamic linker puts it in the place of the old one.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from sqsqlite.store import driver
from tests.packaging.checkout import ROOT

TELL = "from sqsqlite.store import driver\nprint(driver.is_standard_library, driver.dbapi.sqlite_version)"


@pytest.fixture
def run_in(tmp_path):
    """Run Python with the standard library's driver. Returns its exit code and all that it prints."""
    if driver.is_standard_library:
        pytest.skip("all tests run with it")
    (tmp_path / "libsqlite3.so.0").symlink_to(Path(find_spec("pysqlite3._sqlite3").origin))
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}

    def run_in(*arguments):
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    if run_in("-c", TELL) != (0, f"True {driver.dbapi.sqlite_version}\n"):
        pytest.skip("this Python's sqlite3 is not linked to a shared library")
    return run_in


TURNS = """
import sys
import threading
import sqsqlite
path = sys.argv[1]
with sqsqlite.connect(path) as sqs:
    queue = sqs.create_queue("orders")
    own = sqsqlite.dbapi.connect(path, isolation_level=None)
    turnstile = sqs._store.file.turnstile
    own.execute("BEGIN IMMEDIATE")
    print(turnstile.is_held_here)
    queue.send("hi", connection=own)
    own.execute("COMMIT")
    print(turnstile.is_held_here, len(queue))
    refused = []
    def another():
        for name, arguments in (("execute", ()), ("executemany", ([()],)), ("executescript", ())):
            try:
                getattr(own, name)("INSERT INTO t VALUES (1)", *arguments)
            except sqsqlite.dbapi.ProgrammingError as error:
                refused.append("check_same_thread=False" in str(error))
    thread = threading.Thread(target=another)
    thread.start()
    thread.join()
    print(refused)
    own.close()
"""
FORK = """
import os
import sys
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    queue = sqs.create_queue("orders")
    own = sqsqlite.dbapi.connect(sys.argv[1])
    own.execute("PRAGMA foreign_keys = ON")
    pid = os.fork()
    queue.send("child" if not pid else "parent", connection=own)
    own.commit()
    if not pid:
        os._exit(0 if own.execute("PRAGMA foreign_keys").fetchone() == (1,) else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), len(queue))
    own.close()
"""


@pytest.mark.parametrize(
    ("program", "printed"),
    [(TURNS, "True\nFalse 1\n[True, True, True]\n"), (FORK, "0 2\n")],
    ids=["turns and threads", "fork"],
)
def test_connections_of_the_standard_librarys_driver_keep_the_rules(run_in, tmp_path, program, printed):
    assert run_in("-W", "error", "-c", program, tmp_path / "app.db") == (0, printed)


@pytest.mark.slow
def test_engines_work_with_the_standard_librarys_driver(run_in):
    code, printed = run_in("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/engines", "-m", "not slow")
    assert code == 0, printed[-8000:]
    assert " passed" in printed.splitlines()[-1]
