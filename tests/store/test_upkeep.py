# SPDX-License-Identifier: Apache-2.0
"""The upkeep thread: it blocks no other thread, and only the close of the file ends it."""

import logging
import threading
from itertools import pairwise

import pytest

import sqsqlite
from sqsqlite import ManualClock
from sqsqlite.store import upkeep
from tests.store.waiting import until


class FailingClock(ManualClock):
    """Raises in the upkeep thread, as often as the test says."""

    failures = 0

    def now_ms(self):
        if self.failures and threading.current_thread().name == "sqsqlite-upkeep":
            self.failures -= 1
            raise ZeroDivisionError("a clock that divides by zero")
        return super().now_ms()


@pytest.fixture
def at_every_commit(monkeypatch):
    monkeypatch.setattr(upkeep, "LOOK_EVERY", 0.0)


def stored(sqs):
    with sqs._store.reading() as connection:
        return connection.execute("SELECT count(*) FROM sqs_messages").fetchone()[0]


def test_an_error_is_reported_and_upkeep_continues(tmp_path, at_every_commit, caplog):
    clock = FailingClock()
    with sqsqlite.connect(tmp_path / "queues.db", clock=clock, synchronous="OFF") as sqs:
        queue = sqs.create_queue("orders", message_retention_period=60)
        queue.send("old")
        clock.advance(60)
        clock.failures = 3
        queue.send("new")
        until(lambda: stored(sqs) == 1)
    [record] = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert (
        "upkeep failed, and tries again: ZeroDivisionError: a clock that divides by zero"
        in record.getMessage()
    )
    assert record.exc_info is not None


def test_an_error_in_the_report_of_an_error_does_not_end_upkeep(tmp_path, at_every_commit, monkeypatch):
    """A handler of the application raises. The hook for errors of threads gets the error, and upkeep continues."""

    class Handler(logging.Handler):
        def emit(self, record):
            raise RuntimeError("no place to write to")

    ended = []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    handler = Handler()
    logging.getLogger("sqsqlite").addHandler(handler)
    clock = FailingClock()
    try:
        with sqsqlite.connect(tmp_path / "queues.db", clock=clock, synchronous="OFF") as sqs:
            queue = sqs.create_queue("orders", message_retention_period=60)
            queue.send("old")
            clock.advance(60)
            clock.failures = 1
            queue.send("new")
            until(lambda: ended)
            ended[0].thread.join(300)
            queue.send("newer")
            until(lambda: stored(sqs) == 2)
    finally:
        logging.getLogger("sqsqlite").removeHandler(handler)
    assert [str(one.exc_value) for one in ended] == ["no place to write to"]


def test_upkeep_waits_for_a_manual_clock_without_a_time_limit(tmp_path, caplog):
    """Its move task is due when the clock is moved, however late that is: at once, and without an error."""
    clock = ManualClock(patience=0.01)
    with sqsqlite.connect(tmp_path / "queues.db", clock=clock, synchronous="OFF") as sqs:
        dead = sqs.create_queue("dead")
        queue = sqs.create_queue("orders", dead_letter_queue=dead, max_receive_count=1)
        queue.send_many([f"message {number}" for number in range(10)])
        for _ in range(2):
            queue.receive(10, visibility_timeout=0)
        dead.start_move_task(max_messages_per_second=1)
        clock.until_waiting()
        sqs._store.upkeep._thread.join(0.1)  # longer than the patience
        moved = len(queue)
        assert clock._waiting
        clock.advance(1)
        until(lambda: len(queue) > moved)
    assert [one for one in caplog.records if one.levelno == logging.ERROR] == []


def test_upkeep_visits_many_queues_page_by_page(tmp_path, at_every_commit):
    """Others write between two pages: no transaction of upkeep's covers more queues than one page holds."""
    clock = ManualClock()
    run = []
    with sqsqlite.connect(tmp_path / "queues.db", clock=clock, synchronous="OFF") as sqs:
        with sqs.transaction():
            for number in range(450):
                sqs.create_queue(f"q{number:03}", message_retention_period=60)
        for number in (0, 200, 449):
            sqs.queue(f"q{number:03}").send("old")
        clock.advance(60)
        with sqs._store.file.writers.lent() as connection:
            connection.set_trace_callback(run.append)
        sqs._store.upkeep.visited()
        until(lambda: stored(sqs) == 0)
    begins = [place for place, statement in enumerate(run) if statement.startswith("BEGIN")] + [len(run)]
    assert max(after - before for before, after in pairwise(begins)) < 250
