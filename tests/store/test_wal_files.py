# SPDX-License-Identifier: Apache-2.0
"""The -wal and -shm are deleted, replaced or cut off under processes that have them open."""

import contextlib
import os
import random
import time

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.store import foreign, headroom
from sqsqlite.store.connections import connect, disconnect
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Program

# Sends until a send is refused, then tries twice more at intervals. Prints what was acknowledged, and the errors.
SEND = """
import time, sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    queue, count = sqs.queue("orders"), 0
    queue.send("first")
    say("begun")
    try:
        while True:
            queue.send("x" * 500)
            count += 1
    except sqsqlite.errors.StoreError as error:
        say(type(error).__name__, str(error))
    for _ in range(2):
        time.sleep(0.15)
        try:
            queue.send("late")
            say("sent")
        except sqsqlite.errors.StoreError as error:
            say(type(error).__name__)
    say(count)
    input()
"""


def _delete(*endings):
    def deleted(path):
        for ending in endings:
            path.with_name(path.name + ending).unlink()

    return deleted


def _replace_by_another_process(path):
    _delete("-wal", "-shm")(path)
    with Program("import sqsqlite\nsqsqlite.connect(sys.argv[1])\nsay('open')\n", path) as program:
        assert program.hear() == "open"
        program.kill()


def _cut(size_bytes):
    def truncated(path):
        os.truncate(f"{path}-wal", size_bytes)

    return truncated


def _cut_file(path):
    """All of its pages are in the file, so the expected length is known."""
    source = """
from sqsqlite.store.driver import dbapi
connection = dbapi.connect(sys.argv[1])
say(connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0])
"""
    with Program(source, path) as program:
        assert program.hear() == "0"
    os.truncate(path, 40_960)


LOSSES = {
    "both deleted": (_delete("-wal", "-shm"), "-wal or -shm was deleted"),
    "-wal deleted": (_delete("-wal"), "-wal or -shm was deleted"),
    "-shm deleted": (_delete("-shm"), "-wal or -shm was deleted"),
    "both replaced": (_replace_by_another_process, "-wal or -shm was deleted or replaced"),
    "-wal emptied": (_cut(0), "cut off"),
    "-wal cut": (_cut(20_000), "cut off"),
    "file cut": (_cut_file, "cut off"),
}


@pytest.fixture
def shop(path):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
    return path


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "file cut"])
def test_process_that_sends_all_the_time_is_refused(shop, loss):
    """Within a tenth of a second, whatever it commits meanwhile; and it stays stopped."""
    lose, words = LOSSES[loss]
    with Program(SEND, shop) as program:
        assert program.hear() == "begun"
        while os.stat(f"{shop}-wal").st_size < 200_000:
            time.sleep(0.01)
        lose(shop)
        said = program.hear()
        assert said.startswith("CannotOpen "), said
        assert words in said
        assert [program.hear(), program.hear()] == ["CannotOpen", "CannotOpen"]


@pytest.mark.parametrize("loss", LOSSES)
def test_idle_process_refuses_all_writes_after_its_next_check(shop, monkeypatch, loss):
    monkeypatch.setattr(headroom, "LOOK_EVERY_SECONDS", 0.0)
    lose, words = LOSSES[loss]
    source = """
import sqsqlite
from sqsqlite.store import headroom
headroom.LOOK_EVERY_SECONDS = 0.0
sqs = sqsqlite.connect(sys.argv[1])
queue = sqs.queue("orders")
for number in range(40):
    queue.send("x" * 500)
say("sent")
input()
def write(operation):
    try:
        operation()
        say("done")
    except sqsqlite.errors.StoreError as error:
        say(type(error).__name__, str(error))
def join():
    with sqs.transaction():
        queue.send("y")
for operation in (lambda: queue.send("y"), lambda: queue.receive()[0].delete(), queue.purge, join):
    write(operation)
"""
    with Program(source, shop) as program:
        assert program.hear() == "sent"
        lose(shop)
        program.tell()
        for number in range(4):
            said = program.hear()
            if number and said.startswith(("InputOutputError ", "Corrupt ")):
                assert "cut" in loss or "emptied" in loss  # The page that is read first is missing.
                continue
            assert said.startswith("CannotOpen "), said
            assert words in said


def test_deleted_wal_of_a_lone_process_is_saved_at_its_close(shop):
    """Only this process wrote: SQLite copies the deleted WAL into the file when the process closes it."""
    with Program(SEND, shop) as program:
        assert program.hear() == "begun"
        LOSSES["both deleted"][0](shop)
        while (said := program.hear()).startswith("CannotOpen"):
            continue
        program.tell()
        program.end()
    with sqsqlite.connect(shop) as sqs:
        assert len(bodies(sqs.queue("orders"))) == int(said) + 1
        assert_whole(sqs)


def test_new_connection_is_refused_after_the_wal_was_deleted(shop):
    """The connection would create a second WAL."""
    with sqsqlite.connect(shop) as sqs:
        queue = sqs.queue("orders")
        _delete("-wal", "-shm")(shop)
        with pytest.raises(errors.CannotOpen, match="-wal or -shm was deleted"):
            queue.send("hello")
        assert not shop.with_name("queues.db-wal").exists()


COMER = """
import random, os, sqsqlite
path, dice = sys.argv[1], random.Random(int(sys.argv[2]))
from sqsqlite.store import headroom
headroom.LOOK_EVERY_SECONDS = 0.0
for _ in range(int(sys.argv[3])):
    with sqsqlite.connect(path) as sqs:
        queue = sqs.queue("orders")
        for _ in range(dice.randrange(4)):
            dice.choice([lambda: queue.send("x" * dice.choice([10, 5_000])), lambda: len(queue)])()
        if dice.random() < 0.3:
            with sqsqlite.connect(path) as twin:
                twin.queue("orders").send("twin")
        if dice.random() < 0.2:
            child = os.fork()
            queue.send("both")
            if not child:
                sqs.close()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    if dice.random() < 0.2:
        # A program that knows nothing of us empties the WAL.
        from sqsqlite.store.driver import dbapi
        stranger = dbapi.connect(path, isolation_level=None)
        stranger.execute("PRAGMA wal_checkpoint(" + dice.choice(["TRUNCATE", "RESTART", "PASSIVE"]) + ")").fetchall()
        stranger.close()
say("done")
"""


@pytest.mark.parametrize("rounds", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_processes_that_open_and_close_raise_no_false_alarm(shop, rounds):
    """Closing, forks and checkpoints delete and cut the files correctly, at any instant."""
    seed = random.randrange(10**6)
    programs = [Program(COMER, shop, seed + number, rounds) for number in range(4)]
    try:
        for program in programs:
            assert program.hear(patience=600) == "done", f"seed {seed}"
    finally:
        for program in programs:
            program.__exit__()
    with sqsqlite.connect(shop) as sqs:
        assert_whole(sqs)


def test_threads_that_open_and_close_raise_no_false_alarm(shop):
    """One thread closes the last connection of a process while another opens the next."""
    source = """
import random, threading, sqsqlite
from sqsqlite.store import headroom
headroom.LOOK_EVERY_SECONDS = 0.0
failed = []
def come(seed):
    dice = random.Random(seed)
    try:
        for _ in range(60):
            with sqsqlite.connect(sys.argv[1]) as sqs:
                if dice.random() < 0.7:
                    sqs.queue("orders").send("x")
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=come, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
say(failed or "done")
"""
    with Program(source, shop) as program:
        assert program.hear(patience=600) == "done"


def test_no_connection_is_closed_while_the_wal_is_read(shop):
    """The WAL is read through the descriptor of any connection, also of one that is open only for an instant."""
    source = """
import threading, sqsqlite
from pathlib import Path
from sqsqlite.store import foreign, wal_files
with sqsqlite.connect(sys.argv[1]) as sqs:
    sqs.queue("orders").send("x")
    wal = foreign.identity(Path(sys.argv[1] + "-wal"))
    thread = threading.Thread(target=lambda: sqsqlite.connect(sys.argv[1]).close())
    with wal_files.closing():
        before = foreign.descriptors(wal)
        thread.start()
        while thread.is_alive() and foreign.descriptors(wal) <= before:
            pass
        seen = foreign.descriptors(wal)
        thread.join(0.1)
        say("kept" if seen > before and seen <= foreign.descriptors(wal) else "closed")
    thread.join()
"""
    with Program(source, shop) as program:
        assert program.hear() == "kept"


def test_a_descriptor_that_a_lost_connection_closes_meanwhile_is_no_loss(shop, monkeypatch):
    """A connection that an interrupt has lost is closed when it is freed, whatever another thread reads then."""
    lost = [connect(shop, synchronous="FULL", busy_timeout=1)]
    lost[0].execute("SELECT count(*) FROM sqs_meta").fetchone()
    with sqsqlite.connect(shop) as sqs:
        sqs.queue("orders").send("x")
        pread, read_from = os.pread, []

        def free_and_read(descriptor, *place):
            lost.clear()
            read_from.append(descriptor)
            return pread(descriptor, *place)

        writers = sqs._store.file.writers
        with writers.lent() as connection, monkeypatch.context() as patched:
            patched.setattr(os, "pread", free_and_read)
            assert not writers.are_cut(connection, connection)
            assert not writers.are_cut(connection, connection)
        assert len(set(read_from)) == 2  # the second look took another descriptor
        sqs.queue("orders").send("y")


def test_a_connection_to_a_file_that_was_deleted_is_closed(shop):
    """The connection keeps no descriptor, although the file's name leads to it no longer."""
    with contextlib.closing(sqsqlite.connect(shop)):
        pass
    connection = connect(shop, synchronous="FULL", busy_timeout=1)
    deleted = foreign.identity(shop)
    shop.unlink()
    with pytest.raises(FileNotFoundError):
        disconnect(connection, shop)
    assert foreign.descriptors(deleted) == set()
