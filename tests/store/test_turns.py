# SPDX-License-Identifier: Apache-2.0
"""Turns at writing: in order, limited in time, and free again when the writer dies."""

import contextlib
import fcntl
import os
import shutil
import time

import pytest

import sqsqlite
from sqsqlite.errors import Busy, TransactionInProgress
from sqsqlite.store import turns
from sqsqlite.store.turns import Turnstile
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Program
from tests.store.waiting import Task, until

IN_TRANSACTION = """
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs, sqs.transaction():
    sqs.queue("orders").send(sys.argv[2])
    say("inside")
    input()
"""
# Takes the turn when told to, writes its name down, gives the turn up when told to, and asks for it again at once.
TAKE_TWICE = """
from pathlib import Path
from sqsqlite.store.turns import Turnstile
turnstile = Turnstile(Path(sys.argv[1]))
for _ in range(2):
    with turnstile.taken(20):
        with open(sys.argv[2], "a") as file:
            file.write(sys.argv[3])
        say("mine")
        input()
say("done")
"""
# Stands in the waiting room until told to leave.
IN_WAITING_ROOM = """
import fcntl
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
say("in line")
input()
"""

posix_locks = pytest.mark.skipif(
    os.name != "posix", reason="without POSIX locks SQLite's busy handler is all there is"
)


def somebody_waits(folder):
    """Whether a process stands in the waiting room. Only another process can look: this one has no locks to lose."""
    with (folder / "waiting-room").open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return True
    return False


@posix_locks
def test_process_that_just_wrote_goes_behind_a_waiting_one(tmp_path):
    """It asks again within microseconds, before the waiting process looks again, and still has to wait."""
    order = tmp_path / "order"
    with contextlib.ExitStack() as programs:
        first = programs.enter_context(Program(TAKE_TWICE, tmp_path, order, "A"))
        assert first.hear() == "mine"
        second = programs.enter_context(Program(TAKE_TWICE, tmp_path, order, "B"))
        until(lambda: somebody_waits(tmp_path))
        for leaving, next_one in ((first, second), (second, first), (first, second)):
            leaving.tell()
            assert next_one.hear() == "mine"
            until(lambda: somebody_waits(tmp_path) or order.read_text() == "ABAB")
        second.tell()
        assert second.hear() == "done"
    assert order.read_text() == "ABAB"


def test_write_waits_for_the_writer_of_another_process(sqs, queue, path):
    with Program(IN_TRANSACTION, path, "first") as other:
        assert other.hear() == "inside"
        task = Task(queue.send, "second")
        if os.name == "posix":
            until(lambda: sqs._store.file.turnstile._held)
        assert task.is_alive()
        other.tell()
        other.end()
        task.outcome()
    assert bodies(queue) == ["first", "second"]


def test_wait_for_another_process_ends_with_busy_timeout(path):
    with sqsqlite.connect(path, busy_timeout=0.3) as sqs:
        queue = sqs.create_queue("orders")
        with Program(IN_TRANSACTION, path, "first") as other:
            assert other.hear() == "inside"
            started = time.monotonic()
            with pytest.raises(Busy, match="busy_timeout"):
                queue.send("second")
            assert 0.25 < time.monotonic() - started < 10
            other.tell()
            other.end()
        assert bodies(queue) == ["first"]


def test_turn_of_a_killed_process_is_free_at_once(sqs, queue, path):
    with Program(IN_TRANSACTION, path, "never committed") as other:
        assert other.hear() == "inside"
        other.kill()
        queue.send("kept")
    assert bodies(queue) == ["kept"]
    assert_whole(sqs)


def test_wait_for_another_thread_ends_with_busy_timeout(path):
    with sqsqlite.connect(path, busy_timeout=0.3) as sqs:
        queue = sqs.create_queue("orders")
        with sqs.transaction():
            queue.send("first")
            task = Task(queue.send, "second")
            with pytest.raises(Busy):
                task.outcome()
        assert bodies(queue) == ["first"]


def test_two_objects_on_one_file_take_turns_between_threads(path):
    """As two libraries of one program may do, each with its own connect()."""
    with sqsqlite.connect(path) as one, sqsqlite.connect(path) as two:
        one.create_queue("orders")
        tasks = [Task(_send_some, sqs, 25) for sqs in (one, two, one, two)]
        for task in tasks:
            task.outcome()
        assert len(two.queue("orders")) == 100
        assert_whole(one)


def _send_some(sqs, count):
    queue = sqs.queue("orders")
    for number in range(count):
        queue.send(f"message {number}")


@pytest.mark.parametrize("holder", ["transaction", "engine"])
@pytest.mark.parametrize("which", ["the same object", "another object"])
def test_second_write_on_the_thread_that_holds_the_turn_is_refused_at_once(path, holder, which):
    """It would wait for itself, and 30 seconds later raise a Busy that explains nothing."""
    with sqsqlite.connect(path) as sqs, sqsqlite.connect(path) as second:
        queue = sqs.create_queue("orders")
        other = sqs if which == "the same object" else second
        with sqs.transaction() if holder == "transaction" else sqs.engine.begin():
            started = time.monotonic()
            with pytest.raises(TransactionInProgress), other.engine.begin():
                pass
            if (holder, which) != ("transaction", "the same object"):  # A send joins the transaction there.
                with pytest.raises(TransactionInProgress):
                    other.queue("orders").send("x")
            assert time.monotonic() - started < 10
        queue.send("after")
        assert bodies(queue) == ["after"]


def test_transactions_do_not_nest(sqs, queue):
    with sqs.transaction():
        queue.send("outer")
        with pytest.raises(TransactionInProgress, match="don't nest"), sqs.transaction():
            pass
    assert bodies(queue) == ["outer"]


def test_lock_folder_may_be_deleted_with_its_database(path):
    """The folder is also made anew under the same name: the new file gets locks of its own."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("old")
    path.unlink()
    shutil.rmtree(f"{path}-sqs")
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        with Program(IN_TRANSACTION, path, "new") as other:
            assert other.hear() == "inside"
            assert somebody_has_the_turn(path)
            other.tell()
            other.end()
        assert bodies(queue) == ["new"]


def somebody_has_the_turn(path):
    """The question is asked by a process that has no queue open."""
    look = """
import fcntl
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        say("free")
    except (BlockingIOError, PermissionError):
        say("held")
"""
    with Program(look, f"{path}-sqs/turn") as program:
        return program.hear() == "held"


@posix_locks
@pytest.mark.parametrize(("alone_for", "goes_past"), [(1e9, True), (0, False)])
def test_only_a_process_that_was_alone_just_now_skips_the_waiting_room(
    tmp_path, monkeypatch, alone_for, goes_past
):
    monkeypatch.setattr(turns, "ALONE_FOR", alone_for)
    turnstile = Turnstile(tmp_path)
    with turnstile.taken(20):
        pass
    with Program(IN_WAITING_ROOM, tmp_path / "waiting-room") as other:
        assert other.hear() == "in line"
        task = Task(lambda: turnstile.taken(20).__enter__())
        if goes_past:
            task.outcome()
        else:
            until(lambda: turnstile._held)
            assert task.is_alive()
        other.tell()
        task.outcome()
    turnstile.close()
