# SPDX-License-Identifier: Apache-2.0
"""One clock for a file: the same in every process, and independent of steps of the wall clock."""

import threading
import time

import pytest

import sqsqlite
from sqsqlite.store import meta
from sqsqlite.store.clock import FileClock, ManualClock, WallClock
from tests.store.inspection import rows
from tests.store.processes import Program
from tests.store.waiting import Task

DAY_NS = 86_400_000_000_000
HOUR_MS = 3_600_000
boot_time = pytest.mark.skipif(
    not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no boot-time clock"
)

NOW = """
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    say(sqs._store.clock.now_ms())
    input()
    say(sqs._store.clock.now_ms())
"""


@pytest.fixture
def wall(monkeypatch):
    """A wall clock that a test steps, by nanoseconds."""
    real, step = time.time_ns, [0]
    monkeypatch.setattr(time, "time_ns", lambda: real() + step[0])
    monkeypatch.setattr(time, "time", lambda: (real() + step[0]) / 1e9)
    return step


@boot_time
def test_file_clock_is_boot_time_plus_its_offset():
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    now_ms = FileClock(1_000_000).now_ms()
    after = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    assert before <= now_ms - 1_000_000 <= after


def test_new_file_starts_at_the_wall_clocks_time(path):
    before = time.time_ns() // 1_000_000
    with sqsqlite.connect(path) as sqs:
        now_ms = sqs._store.clock.now_ms()
    assert before - 2 <= now_ms <= time.time_ns() // 1_000_000 + 2


@boot_time
def test_two_processes_show_the_same_instant(path):
    with sqsqlite.connect(path) as sqs:
        clock = sqs._store.clock
        before = clock.now_ms()
        with Program(NOW, path) as other:
            there = int(other.hear())
            assert before <= there <= clock.now_ms()


@boot_time
@pytest.mark.parametrize("days", [-3650, -1, 1, 3650])
def test_step_of_the_wall_clock_neither_frees_nor_freezes_a_message(path, wall, days):
    """An operator or NTP sets it. The test looks in this process, and in one that opens the file afterwards."""
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        queue.send("delayed", delay=900)
        queue.send("held")
        [held] = queue.receive(visibility_timeout=600)
        before = sqs._store.clock.now_ms()
        wall[0] = days * DAY_NS
        assert queue.receive() == []
        with sqsqlite.connect(path) as opened_later:
            assert opened_later.queue("orders").receive() == []
            assert 0 <= opened_later._store.clock.now_ms() - before < HOUR_MS
        held.change_visibility(0)
        assert [each.body for each in queue.receive()] == ["held"]


@boot_time
def test_first_open_after_a_boot_takes_the_wall_clocks_time(path, wall, monkeypatch):
    """The boot-time clock starts again at zero, so the old offset is invalid. Later opens share the new one."""
    with sqsqlite.connect(path) as sqs:
        before = sqs._store.clock.now_ms()
    wall[0] = DAY_NS
    monkeypatch.setattr(meta, "boot_id", lambda: b"another boot")
    with sqsqlite.connect(path) as sqs:
        after = sqs._store.clock.now_ms()
        wall[0] = 5 * DAY_NS
        with sqsqlite.connect(path) as again:
            assert 0 <= again._store.clock.now_ms() - after < HOUR_MS
    assert 0 <= after - before - DAY_NS // 1_000_000 < HOUR_MS


@boot_time
def test_clock_never_goes_back_after_a_boot_with_a_wrong_wall_clock(path, wall, monkeypatch):
    """A board without a battery starts in 1970: messages sent in 2026 must not seem to come from the future."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("hi")
        last_at = sqs._store.clock.now_ms()
    wall[0] = -20_000 * DAY_NS
    monkeypatch.setattr(meta, "boot_id", lambda: b"another boot")
    with sqsqlite.connect(path) as sqs:
        assert sqs._store.clock.now_ms() >= last_at - 60_000
        [message] = sqs.queue("orders").receive()
        assert message.body == "hi"
        assert rows(sqs, "SELECT count(*) FROM sqs_meta WHERE name = 'boot'") == [(1,)]


def test_without_a_boot_id_the_wall_clock_is_used(path, monkeypatch):
    monkeypatch.setattr(meta, "boot_id", lambda: None)
    with sqsqlite.connect(path) as sqs:
        assert isinstance(sqs._store.clock, WallClock)


@pytest.mark.parametrize(
    "clock", [WallClock(), FileClock(0), ManualClock()], ids=lambda clock: type(clock).__name__
)
def test_wait_for_a_past_instant_ends_at_once(clock):
    event = threading.Event()
    assert clock.wait(event, clock.now_ms()) is False
    event.set()
    assert clock.wait(event, clock.now_ms() - 1) is True


@pytest.mark.parametrize(
    "clock", [WallClock(), FileClock(0), ManualClock()], ids=lambda clock: type(clock).__name__
)
def test_wait_ends_with_the_event(clock):
    event = threading.Event()
    task = Task(clock.wait, event, clock.now_ms() + HOUR_MS)
    event.set()
    assert task.outcome() is True


def test_manual_clock_wakes_waits_for_instants_that_it_passes():
    clock = ManualClock(1_000)
    soon = Task(clock.wait, threading.Event(), 3_000)
    later = Task(clock.wait, threading.Event(), 3_001)
    clock.until_waiting(2)
    clock.advance(seconds=1, ms=999)
    assert soon.is_alive()
    clock.advance(ms=1)
    assert soon.outcome() is False
    assert later.is_alive()
    clock.advance(ms=1)
    assert later.outcome() is False
    assert clock.now_ms() == 3_001


def test_manual_clock_drives_a_long_poll_to_its_end(sqs, queue, clock):
    task = Task(queue.receive, 1, 20)
    clock.until_waiting()
    clock.advance(seconds=19)
    assert task.is_alive()
    clock.advance(seconds=1)
    assert task.outcome() == []


def test_a_manual_clock_only_moves_forward():
    clock = ManualClock(now_ms=1_000)
    for back in ({"seconds": -1}, {"ms": -1}, {"seconds": 1, "ms": -1_001}):
        with pytest.raises(ValueError, match="0 or more is allowed; time goes forward"):
            clock.advance(**back)
    assert clock.now_ms() == 1_000
    clock.advance(seconds=1, ms=-1)
    assert clock.now_ms() == 1_999
