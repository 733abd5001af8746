# SPDX-License-Identifier: Apache-2.0
"""The clock that runs and can be moved: what sleeps on it wakes when its instant has come, and not before."""

import threading

import pytest

import sqsqlite
from sqsqlite.testing.clock import MovableClock


def waiting(clock, until_ms):
    """A thread that sleeps until an instant, and what its wait returned."""
    event, found = threading.Event(), []
    thread = threading.Thread(target=lambda: found.append(clock.wait(event, until_ms)))
    thread.start()
    return event, thread, found


def test_it_runs():
    clock = MovableClock()
    started = clock.now_ms()
    assert not clock.wait(threading.Event(), started + 20)
    assert clock.now_ms() >= started + 20


def test_moving_it_ends_the_waits_whose_instant_has_come():
    clock = MovableClock()
    started = clock.now_ms()
    _, soon, of_soon = waiting(clock, started + 3_600_000)
    event, late, of_late = waiting(clock, started + 2 * 3_600_000)
    clock.advance(3_600)
    soon.join()
    assert of_soon == [False]
    assert not event.is_set()
    event.set()
    late.join()
    assert of_late == [True]


def test_two_moves_that_together_reach_the_instant_end_the_wait():
    clock = MovableClock()
    _, thread, found = waiting(clock, clock.now_ms() + 3_600_000)
    clock.advance(1_800)
    clock.advance(ms=1_800_000)
    thread.join()
    assert found == [False]


def test_an_instant_past_the_year_9999_is_waited_for():
    clock = MovableClock()
    event, thread, found = waiting(clock, 2**63 - 1)
    event.set()
    thread.join()
    assert found == [True]


def test_it_does_not_go_back():
    with pytest.raises(ValueError, match="time goes forward"):
        MovableClock().advance(-1)


def test_a_long_poll_ends_when_the_visibility_timeout_does(tmp_path):
    clock = MovableClock()
    with sqsqlite.connect(tmp_path / "q.db", synchronous="OFF", clock=clock) as sqs:
        queue = sqs.create_queue("q", visibility_timeout=3_600)
        queue.send("once")
        assert queue.receive()
        found = []
        clock.advance(3_600 - 10)
        thread = threading.Thread(target=lambda: found.extend(queue.receive(wait=20)))
        thread.start()
        clock.advance(10)
        thread.join()
        assert [message.receive_count for message in found] == [2]
