# SPDX-License-Identifier: Apache-2.0
"""At the first open after a boot the file's clock jumps to wall time. The jump makes no message expire."""

import os
import subprocess
import time

import pytest

import sqsqlite
from sqsqlite.operators.backup import backup, restore
from sqsqlite.operators.dead_letters import dead_letter_queues, dead_letters
from sqsqlite.store import upkeep
from sqsqlite.store.clock import FileClock
from tests.store.inspection import assert_whole, bodies, rows
from tests.store.machine import DAY, HOUR, Machine
from tests.store.processes import Program
from tests.store.waiting import until

pytestmark = pytest.mark.skipif(
    not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no boot-time clock"
)

OPEN_FIVE_DAYS_BEHIND = """
import time
right = time.time_ns
time.time_ns = lambda: right() - 5 * 86_400 * 10**9
import sqsqlite
sqsqlite.connect(sys.argv[1]).close()
say("opened")
"""
SEND = """
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    queue = sqs.create_queue("orders", message_retention_period=4 * 86_400)
    for number in range(100):
        queue.send(f"order {number}")
    say("sent")
"""
COUNT = """
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    say(len(sqs.queue("orders")))
"""
RECEIVE = """
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    queue = sqs.queue("orders")
    say(len(queue), sum(len(queue.receive(10, wait=0)) for _ in range(11)))
"""
DIFFERENCE = "SELECT number, CAST(bytes AS TEXT) FROM sqs_meta WHERE name = 'difference'"


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


class Boot:
    """A boot for other processes: their own boot id, and a boot-time clock `up` seconds ahead of ours."""

    def __init__(self, folder, name, *, up):
        self._up = up
        self._boot_id = folder / name
        self._boot_id.write_text(f"{name}\n")

    def run(self, source, path):
        script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
        spaces = ("unshare", "--mount", "--time", "--boottime", str(self._up), "--kill-child")
        with Program(source, path, before=(*spaces, "sh", "-c", script, str(self._boot_id))) as program:
            return program.hear()


def _may_have_boots():
    command = ["unshare", "--mount", "--time", "--boottime", "1", "true"]
    try:
        return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not _may_have_boots(), reason="needs root, and time namespaces")
def test_processes_of_the_next_boot_receive_what_was_sent_before_it(path, tmp_path):
    """The wall clock was set right after the first open of a boot, so the next boot jumps five days ahead."""
    first, second = Boot(tmp_path, "first-boot", up=30 * DAY), Boot(tmp_path, "second-boot", up=0)
    assert first.run(OPEN_FIVE_DAYS_BEHIND, path) == "opened"
    assert first.run(SEND, path) == "sent"
    assert first.run(COUNT, path) == "100"
    assert second.run(RECEIVE, path) == "100 100"


@pytest.mark.skipif(not _may_have_boots(), reason="needs root, and time namespaces")
def test_a_container_with_a_boot_clock_of_its_own_shows_the_same_instant(path):
    """Its clock is five days ahead in a time namespace of the same boot: no message expires or returns early."""
    spaces = ("unshare", "--time", "--boottime", str(5 * DAY), "--kill-child")
    with Program(SEND, path) as program:
        assert program.hear() == "sent"
    with Program(RECEIVE, path, before=spaces) as program:
        assert program.hear() == "100 100"
    with Program(RECEIVE, path) as program:
        assert program.hear() == "100 0"


@pytest.mark.parametrize("retention", [4 * DAY, 60], ids=["four days", "a minute"])
def test_message_sent_after_a_pause_survives_the_next_boot(path, machine, retention):
    """The file's clock does not see the pause. The boot adds it at once."""
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders", message_retention_period=retention)
        machine.is_paused(5 * DAY)
        queue.send_many([f"order {number}" for number in range(100)])
    machine.boots(off=20)
    with sqsqlite.connect(path) as sqs:
        assert abs(sqs._store.clock.now_ms() - time.time_ns() // 1_000_000) < HOUR * 1000
        assert len(sqs.queue("orders")) == 100
        assert len(bodies(sqs.queue("orders"))) == 100
        assert_whole(sqs)


def test_message_sent_before_the_wall_clock_was_set_survives_the_next_boot(path, machine):
    """The machine comes up in 1970, and the network sets it some minutes later."""
    machine.is_paused(-20_000 * DAY)
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
        machine.runs(300)
        machine.is_paused(20_000 * DAY)
        sqs.queue("orders").send("hi")
    machine.boots()
    with sqsqlite.connect(path) as sqs:
        assert bodies(sqs.queue("orders")) == ["hi"]


def test_time_switched_off_does_not_age_messages(path, machine):
    """Three hours of a four-day retention are used, however long the machine was off."""
    for _ in range(3):
        with sqsqlite.connect(path) as sqs:
            sqs.create_queue("orders").send("hi")
            machine.runs(HOUR)
            sqs.queue("orders").send("bye")
        machine.boots(off=20 * DAY)
    with sqsqlite.connect(path) as sqs:
        assert bodies(sqs.queue("orders")) == ["hi", "bye"] * 3


@pytest.mark.parametrize("fifo", [False, True], ids=["standard", "FIFO"])
def test_time_before_and_after_a_boot_adds_up_to_the_retention(path, machine, fifo):
    """An hour before the boot and three days and 22 hours after it; two hours later it is gone, for every reader."""
    name, options = ("orders.fifo", {"deduplication_id": "1", "group_id": "a"}) if fifo else ("orders", {})
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue(name, fifo=fifo)
        queue.send("hi", **options)
        machine.runs(HOUR)
        sqs.create_queue("other").send("the clock is seen to be an hour later")
    machine.boots(off=30 * DAY)
    with sqsqlite.connect(path) as sqs:
        queue = sqs.queue(name)
        assert len(queue) == 1
        machine.runs(4 * DAY - 2 * HOUR)
        [message] = queue.receive(visibility_timeout=60)
        message.change_visibility(0)
        assert (message.body, len(queue), len(queue.peek())) == ("hi", 1, 1)
        machine.runs(2 * HOUR)
        assert (len(queue), queue.peek(), queue.receive(wait=0)) == (0, [], [])


def test_messages_sent_after_the_boot_get_no_extra_time(path, machine):
    """The extra time of an older message does not apply to one sent after the boot."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("before")
    machine.boots(off=2 * DAY)
    with sqsqlite.connect(path) as sqs:
        queue = sqs.queue("orders")
        machine.runs(3 * DAY)
        queue.send("after")
        machine.runs(2 * DAY)
        assert [message.body for message in queue.peek()] == ["after"]
        machine.runs(2 * DAY + 1)
        assert queue.peek() == []


def test_a_backup_restored_ten_days_later_keeps_its_messages(path, tmp_path, machine):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("hi")
        backup(sqs._store, tmp_path / "a.backup")
        machine.runs(10 * DAY)
        restore(tmp_path / "a.backup", tmp_path / "new.db")
    with sqsqlite.connect(tmp_path / "new.db") as restored:
        assert bodies(restored.queue("orders")) == ["hi"]


def test_dead_letters_are_counted_and_listed_until_the_same_end(path, machine):
    with sqsqlite.connect(path) as sqs:
        dead = sqs.create_queue("dead")
        queue = sqs.create_queue("orders", dead_letter_queue=dead, max_receive_count=1)
        queue.send("hi")
        queue.receive(visibility_timeout=0)
        assert queue.receive(wait=0) == []
    machine.boots(off=10 * DAY)
    with sqsqlite.connect(path) as sqs:
        caller = sqs.client._caller
        assert [row.messages for row in dead_letter_queues(sqs._store, caller)] == [1]
        assert [found.message.body for found in dead_letters(sqs._store, "dead", caller, 10)] == ["hi"]
        machine.runs(5 * DAY)
        assert [row.messages for row in dead_letter_queues(sqs._store, caller)] == [0]
        assert dead_letters(sqs._store, "dead", caller, 10) == []


class TestDifference:
    def test_a_jump_is_noted_with_the_next_commit(self, path, machine):
        with sqsqlite.connect(path) as sqs:
            queue = sqs.create_queue("orders")
            [(before, at)] = rows(sqs, DIFFERENCE)
            assert abs(before) <= 1
            queue.send("hi")
            machine.is_paused(5 * DAY)
            assert len(queue.peek()) == 1
            assert rows(sqs, DIFFERENCE) == [(before, at)]
            queue.send("hi")
            [(noted, noted_at)] = rows(sqs, DIFFERENCE)
            assert abs(noted - 5 * DAY * 1000) < 1_000
            assert int(noted_at) >= int(at)
            queue.send("hi")
            assert rows(sqs, DIFFERENCE) == [(noted, noted_at)]

    def test_a_jump_of_a_second_or_less_is_not_noted(self, path, machine):
        """The note would cost more than the second."""
        with sqsqlite.connect(path) as sqs:
            queue = sqs.create_queue("orders")
            noted = rows(sqs, DIFFERENCE)
            machine.is_paused(0.5)
            queue.send("hi")
            assert rows(sqs, DIFFERENCE) == noted

    def test_the_note_of_a_jump_needs_no_commit_of_its_own(self, path, machine, monkeypatch):
        monkeypatch.setattr(upkeep, "LOOK_EVERY", 1e9)
        with sqsqlite.connect(path) as sqs:
            queue = sqs.create_queue("orders")
            until(
                lambda: sqs._store.upkeep._sweep_from is None
            )  # A commit of upkeep's includes what is remembered.
            noted = rows(sqs, DIFFERENCE)
            machine.is_paused(5 * DAY)
            version = rows(sqs, "PRAGMA data_version")
            assert queue.receive(wait=0) == []
            assert rows(sqs, DIFFERENCE) == noted
            assert rows(sqs, "PRAGMA data_version") == version

    def test_another_process_does_not_note_the_jump_again(self, path, machine):
        with sqsqlite.connect(path) as sqs:
            machine.is_paused(5 * DAY)
            sqs.create_queue("orders").send("hi")
            noted = rows(sqs, DIFFERENCE)
        with sqsqlite.connect(path) as sqs:
            sqs.queue("orders").send("hi")
            assert rows(sqs, DIFFERENCE) == noted

    def test_the_clock_never_goes_back_behind_a_noted_jump(self, path, machine):
        """The queues in use then were deleted, and the machine comes up in 1970."""
        with sqsqlite.connect(path) as sqs:
            queue = sqs.create_queue("orders")
            machine.runs(DAY)
            machine.is_paused(DAY)
            queue.send("hi")
            queue.delete()
            before = sqs._store.clock.now_ms()
        machine.boots(off=-20_000 * DAY)
        with sqsqlite.connect(path) as sqs:
            assert isinstance(sqs._store.clock, FileClock)
            assert before - 60_000 <= sqs._store.clock.now_ms() < before + HOUR * 1000


def test_an_injected_clock_never_jumps(path, machine):
    """Tests that inject a clock see its time only."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
    machine.boots(off=10 * DAY)
    with sqsqlite.connect(path) as sqs:
        now_ms = sqs._store.clock.now_ms()
    clock = sqsqlite.ManualClock(now_ms)
    with sqsqlite.connect(path, clock=clock) as sqs:
        queue = sqs.queue("orders")
        queue.send("hi")
        clock.advance(4 * DAY)
        assert queue.peek() == []
