# SPDX-License-Identifier: Apache-2.0
"""Files for tests: their mark, and the folders of killed processes."""

import subprocess
import sys

import pytest

import sqsqlite
from sqsqlite.actions.opening import open_store
from sqsqlite.testing.files import Folder, lay

MARK = b"0123456789abcdef"


def test_a_marked_file_opens_for_who_knows_the_mark(tmp_path):
    path = lay(tmp_path / "test.db", MARK)
    open_store(path, test=MARK).close()
    for opening in (sqsqlite.connect, sqsqlite.client, sqsqlite.boto.client):
        with pytest.raises(sqsqlite.errors.CannotOpen, match="the file of a test run"):
            opening(path)
    with pytest.raises(sqsqlite.errors.CannotOpen, match="the file of a test run"):
        open_store(path, test=bytes(16))


def test_an_ordinary_file_is_no_tests_file(tmp_path):
    sqsqlite.connect(tmp_path / "app.db").close()
    with pytest.raises(sqsqlite.errors.CannotOpen):
        open_store(tmp_path / "app.db", test=MARK)


def test_each_copy_is_a_file_of_its_own(tmp_path):
    """A receipt handle of one file is no receipt handle of another."""
    with (
        sqsqlite.connect(lay(tmp_path / "a.db")) as one,
        sqsqlite.connect(lay(tmp_path / "b.db")) as other,
    ):
        one.create_queue("q").send("m")
        other.create_queue("q").send("m")
        (message,) = one.queue("q").receive()
        other.queue("q").receive()
        with pytest.raises(sqsqlite.errors.ReceiptHandleIsInvalid):
            other.client.delete_message(QueueUrl="q", ReceiptHandle=message.receipt_handle)


@pytest.mark.slow
def test_the_folder_of_a_killed_process_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made = "from sqsqlite.testing.files import Folder; made = Folder(); print(made.path, flush=True)"
    killed = f"{made}; import os; os.kill(os.getpid(), 9)"
    alive = f"{made}; input()"
    left = subprocess.run(
        [sys.executable, "-c", killed], check=False, capture_output=True, text=True
    ).stdout.strip()
    with subprocess.Popen(
        [sys.executable, "-c", alive], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        in_use = process.stdout.readline().strip()
        assert {str(path) for path in tmp_path.iterdir()} == {left, in_use} - {left}
        subprocess.run([sys.executable, "-c", made], check=True, capture_output=True)
        assert in_use in {str(path) for path in tmp_path.iterdir()}
        process.communicate("\n")


def test_a_folder_goes_away():
    folder = Folder()
    lay(folder.path / "q.db")
    folder.remove()
    assert not folder.path.exists()
