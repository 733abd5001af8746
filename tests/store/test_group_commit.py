# SPDX-License-Identifier: Apache-2.0
"""Operations that arrive during a commit share the next commit, and share nothing else."""

import contextlib
import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest

import sqsqlite
from sqsqlite.errors import Busy, QueueDoesNotExist
from tests.store.inspection import assert_whole, bodies, rows
from tests.store.processes import HOLD_WRITE_LOCK, Program
from tests.store.waiting import Task, until
from tests.store.wal import count_commits


class Held:
    """A leader that stops inside its transaction until it is released, so that others queue up behind it."""

    def __init__(self, sqs):
        self._store = sqs._store
        # Upkeep also writes, after the first commit; here it may neither queue up nor lead.
        until(lambda: self._store.upkeep._sweep_from is None)
        self._inside, self._go_on = threading.Event(), threading.Event()
        self._leader = Task(self._store.write, self._wait)
        assert self._inside.wait(300)

    def _wait(self, tx):
        self._inside.set()
        assert self._go_on.wait(300)

    def queue_up(self, function, *arguments):
        """Run the function on a thread, and return when the thread stands in the queue."""
        queued = self._store._commit._line._waiting
        before = len(queued)
        task = Task(function, *arguments)
        until(lambda: len(queued) > before)
        return task

    def let_go(self):
        self._go_on.set()
        self._leader.outcome()


@pytest.fixture
def held(sqs):
    return Held(sqs)


def test_queued_operations_share_one_commit(sqs, queue, path):
    held = Held(sqs)
    before = count_commits(path)
    tasks = [held.queue_up(queue.send, f"message {number}") for number in range(20)]
    held.let_go()
    sent = [task.outcome() for task in tasks]
    assert len({each.message_id for each in sent}) == 20
    assert count_commits(path) - before <= 2  # Their commit, and the leader's own if it wrote.
    assert sorted(bodies(queue)) == sorted(f"message {number}" for number in range(20))
    assert_whole(sqs)


def test_free_running_threads_need_fewer_commits_than_operations(path):
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        before = count_commits(path)
        tasks = [Task(lambda: [queue.send("x") for _ in range(10)]) for _ in range(16)]
        for task in tasks:
            task.outcome()
        assert count_commits(path) - before < 160
        assert len(queue) == 160


def test_each_operation_of_a_group_gets_its_own_answer(sqs, queue, held):
    """Message ids, receipt handles and refusals reach the thread that asked."""
    sends = [held.queue_up(queue.send, f"message {number}") for number in range(5)]
    refused = held.queue_up(sqs._store.write, _refuse)
    receive = held.queue_up(queue.receive, 10)
    held.let_go()
    ids = [task.outcome().message_id for task in sends]
    with pytest.raises(QueueDoesNotExist, match="no such queue"):
        refused.outcome()
    assert [(each.message_id, each.body) for each in receive.outcome()] == [
        (message_id, f"message {number}") for number, message_id in enumerate(ids)
    ]


def _refuse(tx):
    raise QueueDoesNotExist("no such queue")


def _write_then_fail(tx):
    tx.execute("UPDATE sqs_leases SET visible_at = 1")
    tx.execute("INSERT INTO sqs_queue_tombstones (account_id, name, deleted_at) VALUES ('0', 'half done', 0)")
    tx.delta(1).messages += 1000
    raise LookupError("after a write")


def test_unexpected_error_undoes_its_own_operation_alone(sqs, queue, held):
    """The operations before it and after it are sent, once each, and the counts match."""
    before = held.queue_up(queue.send, "before")
    surprise = held.queue_up(sqs._store.write, _write_then_fail)
    after = held.queue_up(queue.send, "after")
    held.let_go()
    before.outcome()
    after.outcome()
    with pytest.raises(LookupError, match="after a write"):
        surprise.outcome()
    assert rows(sqs, "SELECT count(*) FROM sqs_queue_tombstones") == [(0,)]
    assert_whole(sqs)
    assert bodies(queue) == ["before", "after"]


def test_sqlites_refusal_of_one_operation_leaves_the_others_intact(sqs, queue, held):
    def break_a_constraint(tx):
        tx.execute("INSERT INTO sqs_queue_tombstones (account_id, name, deleted_at) VALUES ('0', NULL, 0)")

    before = held.queue_up(queue.send, "before")
    broken = held.queue_up(sqs._store.write, break_a_constraint)
    after = held.queue_up(queue.send, "after")
    held.let_go()
    before.outcome()
    after.outcome()
    with pytest.raises(Exception, match="NOT NULL constraint failed"):
        broken.outcome()
    assert_whole(sqs)
    assert bodies(queue) == ["before", "after"]


def test_no_operation_is_answered_before_the_commit(sqs, queue, held):
    """The last of the group sees, from within, that the first has no answer yet. A second connection sees no row."""
    seen = {}
    first = held.queue_up(queue.send, "first")

    def look(tx):
        seen["in the transaction"] = tx.execute("SELECT count(*) FROM sqs_messages").fetchone()[0]
        seen["by others"] = Task(rows, sqs, "SELECT count(*) FROM sqs_messages").outcome()
        seen["answered"] = not first.is_alive()

    last = held.queue_up(sqs._store.write, look)
    held.let_go()
    last.outcome()
    assert seen == {"in the transaction": 1, "by others": [(0,)], "answered": False}
    first.outcome()
    assert rows(sqs, "SELECT count(*) FROM sqs_messages") == [(1,)]


class TimeLimit(Exception):
    """Raised by another thread in one that has worked for too long."""


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, TimeLimit, TimeoutError])
def test_followers_of_an_interrupted_leader_are_served_by_another(sqs, queue, held, interrupt):
    def be_interrupted(tx):
        raise interrupt

    leader = held.queue_up(sqs._store.write, be_interrupted)
    follower = held.queue_up(queue.send, "served")
    held.let_go()
    with pytest.raises(interrupt):
        leader.outcome()
    follower.outcome()
    queue.send("next")
    assert bodies(queue) == ["served", "next"]
    assert_whole(sqs)


def test_time_limit_during_a_followers_operation_is_raised_in_its_own_thread(sqs, queue, held):
    """Its own thread is the leader's: the leader runs the operations of all."""
    leader_thread, met = [], []

    def lead(tx):
        leader_thread.append(threading.get_ident())

    def meet_the_limit(tx):
        if not met:
            met.append(threading.get_ident())
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(leader_thread[0]), ctypes.py_object(TimeLimit)
            )
            until(lambda: False)
        return "done"

    leader = held.queue_up(sqs._store.write, lead)
    follower = held.queue_up(sqs._store.write, meet_the_limit)
    behind = held.queue_up(queue.send, "behind")
    held.let_go()
    with pytest.raises(TimeLimit):
        leader.outcome()
    assert met == leader_thread
    assert follower.outcome() == "done"
    behind.outcome()
    assert bodies(queue) == ["behind"]
    assert_whole(sqs)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, TimeLimit])
def test_interrupt_at_one_commit_of_several_answers_no_other_operation(sqs, queue, held, interrupt):
    """After SQLite's refusal of one, each operation is committed by itself.

    The first commit finishes none of the later ones.
    """
    runs = []

    def lead(tx):
        runs.append(tx)
        if len(runs) == 2:
            tx.execute(
                "INSERT INTO sqs_queue_tombstones (account_id, name, deleted_at) VALUES ('0', 'led', 0)"
            )
            tx.run = lambda statement: interrupted_after(tx.connection, statement)

    def interrupted_after(connection, statement):
        type(connection).execute(connection, statement)
        raise interrupt

    def break_a_constraint(tx):
        tx.execute("INSERT INTO sqs_queue_tombstones (account_id, name, deleted_at) VALUES ('0', NULL, 0)")

    leader = held.queue_up(sqs._store.write, lead)
    follower = held.queue_up(queue.send, "acknowledged")
    broken = held.queue_up(sqs._store.write, break_a_constraint)
    held.let_go()
    with pytest.raises(interrupt):
        leader.outcome()
    follower.outcome()
    with pytest.raises(Exception, match="NOT NULL constraint failed"):
        broken.outcome()
    assert rows(sqs, "SELECT name FROM sqs_queue_tombstones") == [("led",)]
    assert bodies(queue) == ["acknowledged"]
    assert_whole(sqs)


def test_time_limit_during_a_followers_own_commit_is_raised_in_its_own_thread(sqs, queue, held):
    leader_thread, runs = [], []

    def lead(tx):
        leader_thread.append(threading.get_ident())

    def meet_the_limit(tx):
        runs.append(threading.get_ident())
        if len(runs) == 2:
            raise TimeLimit
        return "done"

    def break_a_constraint(tx):
        tx.execute("INSERT INTO sqs_queue_tombstones (account_id, name, deleted_at) VALUES ('0', NULL, 0)")

    leader = held.queue_up(sqs._store.write, lead)
    follower = held.queue_up(sqs._store.write, meet_the_limit)
    broken = held.queue_up(sqs._store.write, break_a_constraint)
    held.let_go()
    with pytest.raises(TimeLimit):
        leader.outcome()
    assert follower.outcome() == "done"
    with pytest.raises(Exception, match="NOT NULL constraint failed"):
        broken.outcome()
    assert runs[:2] == leader_thread[:1] * 2
    assert_whole(sqs)


LIMITED = """
import ctypes, random, sys, threading, time
import sqsqlite

class TimeLimit(Exception):
    pass

random.seed(int(sys.argv[2]))
sqs = sqsqlite.connect(sys.argv[1], busy_timeout=60)
queue = sqs.create_queue("orders")
ended = time.monotonic() + 600
limited, sent, met, wrong = [], [0] * 4, [0], []

def work_limited():
    limited.append(threading.get_ident())
    while len(limited) == 1:
        try:
            queue.send("limited")
        except TimeLimit:
            met[0] += 1
        except sqsqlite.errors.CommitInDoubt:
            pass

def work(place):
    while met[0] < int(sys.argv[3]) and time.monotonic() < ended:
        try:
            queue.send(f"free {place} {sent[place]}")
            sent[place] += 1
        except BaseException as error:
            wrong.append(repr(error))
            return

threading.excepthook = lambda *_: None
threads = [threading.Thread(target=work_limited)]
threads += [threading.Thread(target=work, args=(place,)) for place in range(len(sent))]
for thread in threads:
    thread.start()
while met[0] < int(sys.argv[3]) and not wrong and time.monotonic() < ended:
    time.sleep(random.uniform(0.0005, 0.004))
    if not threads[0].is_alive():  # one limit met it while it dealt with another
        limited.clear()
        threads[0] = threading.Thread(target=work_limited)
        threads[0].start()
    if limited:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(limited[0]), ctypes.py_object(TimeLimit))
limited.append(None)
for thread in threads[1:]:
    thread.join()
print(met[0] >= int(sys.argv[3]), wrong, sum(sent))
sys.stdout.flush()
import os
os._exit(0)
"""


@pytest.mark.parametrize("count", [100, pytest.param(3_000, marks=pytest.mark.slow)])
def test_time_limit_of_one_thread_never_reaches_another(path, count):
    """At any instant. The sends of the other threads are stored once each."""
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, path, "1", str(count)], check=True, capture_output=True, text=True
    )
    with sqsqlite.connect(path) as sqs:
        with sqs._store.reading() as connection:
            free = connection.execute("SELECT body FROM sqs_messages WHERE body LIKE 'free%'").fetchall()
        assert_whole(sqs)
    assert (ended.stdout, ended.stderr) == (f"True [] {len(free)}\n", "")
    assert len(set(free)) == len(free)


def test_follower_that_is_interrupted_never_leads(path):
    """Ctrl-C while the main thread waits for others: it loses its place in the queue."""
    with sqsqlite.connect(path, busy_timeout=5) as sqs:
        queue = sqs.create_queue("orders")
        held = Held(sqs)
        queued = sqs._store._commit._line._waiting

        def press():
            until(lambda: queued)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        presser = Task(press)
        with pytest.raises(KeyboardInterrupt):
            queue.send("interrupted")
        presser.outcome()
        held.let_go()
        queue.send("next")
        assert bodies(queue) == ["next"]


def test_group_behind_a_lock_of_another_program_is_refused_together(path):
    """20 threads wait for one busy_timeout or two, not for 20 in a row, which would be 40 s."""
    with sqsqlite.connect(path, busy_timeout=2) as sqs:
        queue = sqs.create_queue("orders")
        with Program(HOLD_WRITE_LOCK, path) as program:
            assert program.hear() == "held"
            started = time.monotonic()
            tasks = [Task(queue.send, "x") for _ in range(20)]
            for task in tasks:
                with pytest.raises(Busy):
                    task.outcome()
            assert time.monotonic() - started < 30
            program.tell()
            assert program.hear() == "free"
            queue.send("next")
        assert bodies(queue) == ["next"]


def test_late_follower_has_a_busy_timeout_of_its_own(path):
    """A late follower is not refused together with those that waited before it."""
    with sqsqlite.connect(path, busy_timeout=2) as sqs, Program(HOLD_WRITE_LOCK, path) as program:
        assert program.hear() == "held"

        def waited():
            """The seconds until the refusal."""
            started = time.monotonic()
            with pytest.raises(Busy):
                sqs.create_queue("orders")
            return time.monotonic() - started

        tasks = []
        for _ in range(4):
            tasks.append(Task(waited))
            time.sleep(0.45)
        assert all(task.outcome() > 1.9 for task in tasks)


def test_many_threads_on_every_operation_leave_correct_counts(path):
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders", visibility_timeout=30)

        def work(seed):
            for number in range(15):
                queue.send_many([f"{seed} {number} {place}" for place in range(3)])
                for message in queue.receive(3):
                    if (seed + number) % 3:
                        message.delete()
                    else:
                        message.change_visibility(0)

        tasks = [Task(work, seed) for seed in range(8)]
        for task in tasks:
            task.outcome()
        assert_whole(sqs)


def test_write_after_the_close_is_refused(sqs, queue):
    sqs.close()
    with pytest.raises(sqsqlite.errors.StoreClosed):
        queue.send("late")
    assert os.path.exists(sqs._store.path)


@pytest.mark.parametrize("is_refused", [False, True])
def test_arguments_and_results_of_a_write_are_not_kept(sqs, is_refused):
    """Otherwise ten messages of 1 MiB would stay until the cycle is collected, and those of fifty receives too."""

    class Thing:
        pass

    def write(tx, given):
        made.append(weakref.ref(given))
        if is_refused:
            raise QueueDoesNotExist("refused")
        return given

    made = []
    gc.disable()
    try:
        with contextlib.suppress(QueueDoesNotExist):
            sqs._store.write(write, Thing())
        assert made[0]() is None
    finally:
        gc.enable()


def test_arguments_of_a_write_that_waited_in_vain_are_not_kept(path):
    """Requests that are refused because the file is busy come in numbers, each with up to 1 MiB."""

    class Thing:
        pass

    def write(tx, given):
        raise AssertionError

    def wait_in_vain():
        thing = Thing()
        waited.append(weakref.ref(thing))
        with pytest.raises(Busy):
            sqs._store.write(write, thing)

    waited = []
    with sqsqlite.connect(path, busy_timeout=0.05) as sqs:
        sqs.create_queue("orders")
        held = Held(sqs)
        gc.disable()
        try:
            Task(wait_in_vain).outcome()
            assert waited[0]() is None
        finally:
            gc.enable()
            held.let_go()
