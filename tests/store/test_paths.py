# SPDX-License-Identifier: Apache-2.0
"""A queue's file may have any name, in any folder."""

import os
import shutil
from pathlib import Path

import pytest

import sqsqlite
from sqsqlite.errors import CannotOpen
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Program
from tests.store.waiting import Task, until

RECEIVE = """
import os, sqsqlite
with sqsqlite.connect(os.fsencode(sys.argv[1])) as sqs:
    queue = sqs.queue("orders")
    say("open")
    say(*[message.body for message in queue.receive(wait=20)])
"""

NAMES = {
    "question mark": "a?mode=memory.db",
    "hash": "a#b.db",
    "percent": "100%25.db",
    "spaces": " a  b .db",
    "quotes": 'it\'s "quoted".db',
    "non-ASCII": "größe-日本-🐢.db",
    "like a URI": "file:a.db",
    "newline": "a\nb.db",
    "leading dash": "-x.db",
    "no extension": "queues",
    "other bytes": os.fsdecode(b"\xff\xfe.db"),
    "255 bytes with -journal": "n" * 244 + ".db",
}


# Names that SQLite, a URI or an encoding would read differently. Each costs three processes.
SAMPLE = ("question mark", "percent", "like a URI", "other bytes")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, id=kind, marks=() if kind in SAMPLE else pytest.mark.slow)
        for kind, name in NAMES.items()
    ],
)
def test_name_of_any_characters_works_and_is_the_name_on_disk(tmp_path, name):
    path = tmp_path / name
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        queue.send("hi")
        with Program(RECEIVE, os.fsencode(path)) as other:
            assert other.hear() == "open"
            assert other.hear() == "hi"
            other.end()
        assert_whole(sqs)
    made = {os.fsencode(each) for each in os.listdir(tmp_path)}
    assert made == {os.fsencode(name), os.fsencode(name) + b"-sqs"}


@pytest.mark.parametrize("kind", [str, Path, os.fsencode], ids=["text", "Path", "bytes"])
def test_path_may_be_text_path_or_bytes(path, kind):
    with sqsqlite.connect(kind(path)) as sqs:
        sqs.create_queue("orders").send("hi")
    assert path.stat().st_size > 0


def test_relative_path_stays_the_same_file_after_chdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with sqsqlite.connect("queues.db") as sqs:
        queue = sqs.create_queue("orders")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        queue.send("hi")
        assert bodies(queue) == ["hi"]
        assert os.listdir(elsewhere) == []


def test_symbolic_link_and_its_target_are_one_file(path, tmp_path):
    """One set of locks and one WAL, next to the target."""
    link = tmp_path / "folder" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with sqsqlite.connect(link) as by_link, sqsqlite.connect(path) as by_name:
        by_link.create_queue("orders").send("hi")
        assert bodies(by_name.queue("orders")) == ["hi"]
    assert os.listdir(link.parent) == ["link.db"]


def test_long_path_wakes_waiters_of_other_processes(tmp_path):
    """A socket's address holds 107 bytes; the path here has more than 400."""
    folder = tmp_path / ("d" * 200) / ("e" * 150)
    folder.mkdir(parents=True)
    path = folder / "queues.db"
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        with Program(RECEIVE, path) as waiting:
            assert waiting.hear() == "open"
            queue.send("hi")
            assert waiting.hear() == "hi"


@pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="long paths go by way of it, and it is counted there"
)
def test_files_of_long_paths_that_were_waited_for_leave_no_descriptor(tmp_path):
    """There, waiting and waking both use the address of a socket."""
    folder = tmp_path / ("d" * 200)
    folder.mkdir()
    wait_and_wake(folder / "first.db")
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        wait_and_wake(folder / f"{number}.db")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="long paths go by way of it")
def test_recreated_folder_of_a_long_path_has_a_socket(tmp_path):
    folder = tmp_path / ("d" * 200)
    folder.mkdir()
    path = folder / "queues.db"
    assert wait_and_wake(path)
    shutil.rmtree(f"{path}-sqs")
    assert wait_and_wake(path)


def wait_and_wake(path):
    """Wait in one store for a send in another. Returns the sockets bound meanwhile."""
    with sqsqlite.connect(path) as waiting, sqsqlite.connect(path) as sending:
        queue = sending.create_queue("orders")
        wait = Task(waiting.queue("orders").receive, 1, 20)
        # The waiter exists before its socket is bound, and the send wakes it either way.
        until(lambda: waiting._store.waker._waiters and waiting._store.waker._lock.acquire(timeout=300))
        waiting._store.waker._lock.release()
        sockets = [name for name in os.listdir(f"{path}-sqs") if name.startswith("wake-")]
        queue.send("hi")
        [message] = wait.outcome()
        message.delete()
    return sockets


def test_path_beyond_sqlites_limit_is_a_typed_error(tmp_path):
    """SQLite's limit is 512 bytes."""
    folder = tmp_path / ("d" * 250) / ("e" * 250)
    folder.mkdir(parents=True)
    with pytest.raises(CannotOpen):
        sqsqlite.connect(folder / "queues.db")
