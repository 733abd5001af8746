# SPDX-License-Identifier: Apache-2.0
"""`stats` and `top`: exact counts, activity across the end of a minute, rates, and the key that ends `top`."""

import io
import os
import pty
import signal
import subprocess
import sys
import termios
from dataclasses import replace

import pytest

import sqsqlite
from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.drawing import Screen
from sqsqlite.cli.stats import _refreshed, _top_row, quit_key
from sqsqlite.cli.table import Column

COMMAND = [sys.executable, "-m", "sqsqlite.cli"]


@pytest.fixture
def clock():
    return sqsqlite.ManualClock()


@pytest.fixture
def watched(path, clock):
    """A file on a manual clock at the beginning of a minute, with the queue `orders`."""
    with sqsqlite.connect(path, clock=clock) as opened:
        opened.create_queue("orders")
        clock.advance(ms=60_000 - clock.now_ms() % 60_000)
        yield opened


def test_stats_count_exactly(run, sqs):
    queue = sqs.queue("orders")
    queue.send_many(["a", "b"])
    queue.receive()[0].delete()
    sqs.create_queue("orders-2")
    [row] = run("stats", "orders").rows
    assert (row["queue"], row["visible"], row["in_flight"], row["sent"]) == ("orders", 1, 0, 2)
    assert [row["queue"] for row in run("stats").rows] == ["orders", "orders-2"]
    assert run("stats", "nowhere").code == 1


def test_activity_covers_the_current_minute_and_the_previous_one(watched, clock):
    """At the beginning of a minute it does not fall to zero. Activity of two minutes ago is not included."""
    queue = watched.queue("orders")
    began = clock.now_ms()
    queue.send_many(["a", "b"])
    sent, since = [], []
    for _ in range(4):
        [found] = watched.stats()
        sent.append(found.sent)
        since.append(found.activity_since - began)
        clock.advance(seconds=30)
    assert (sent, since) == ([2, 2, 2, 2], [-60_000, -60_000, 0, 0])
    assert watched.stats()[0].sent == 0


def test_activity_adds_the_closed_minute_to_the_open_one(watched, clock):
    queue = watched.queue("orders")
    queue.send_many(["a", "b"])
    clock.advance(seconds=60)
    queue.send("c")
    queue.receive()[0].delete()
    [found] = watched.stats()
    assert (found.sent, found.received, found.deleted, found.dead_lettered) == (3, 1, 1, 0)


def test_top_once_shows_every_queue_in_the_requested_order(run, sqs):
    sqs.create_queue("busy").send_many(["a"] * 3)
    words = ["top", "--once", "--interval", "0.1"]
    assert [row["queue"] for row in run(*words, "--output", "jsonl").rows] == ["busy", "orders"]
    lines = run(*words, "--sort", "name").out.splitlines()
    assert lines[0].split()[:2] == ["queue", "visible"]
    assert [line.split()[0] for line in lines[1:]] == ["busy", "orders"]


def test_rates_are_counted_from_one_look_to_the_next(watched):
    [before] = watched.stats()
    row = _top_row(replace(before, sent=30, received=4), before, 2.0)
    assert (row["sent_per_s"], row["received_per_s"], row["deleted_per_s"]) == (15.0, 2.0, 0.0)
    assert _top_row(replace(before, sent=30), None, 2.0)["sent_per_s"] == 15.0


def test_rates_miss_nothing_at_the_end_of_a_minute(watched, clock, path):
    """Ten messages every 20 s, sent before and after the end of a minute."""
    line = CommandLine({"db": str(path)})
    line._sqs = watched
    rates = []

    def wait(_seconds):
        watched.queue("orders").send_many(["before"] * 5)
        clock.advance(seconds=20)
        watched.queue("orders").send_many(["after"] * 5)
        return len(rates) == 12

    for [row] in _refreshed(line, 20.0, wait):
        rates.append(row["sent_per_s"])
    assert rates == [0.5] * 12


def test_q_ends_the_wait_and_other_keys_do_not(monkeypatch):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        with quit_key() as wait:
            os.write(ours, b"x")
            assert not wait(0.05)
            os.write(ours, b"q")
            assert wait(50)
    os.close(ours)


@pytest.fixture
def top(path, sqs):
    """`top` on a terminal of 80 by 24: the process, once it shows a queue, its output, and our end of the terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    command = [*COMMAND, "--db", path, "top", "--interval", "0.1"]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""
    while b"orders" not in shown:
        shown += os.read(ours, 4096)
    yield process, shown.decode(), ours
    os.close(ours)


def rest_of(terminal):
    shown = b""
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:
        pass  # how Linux reports that the other end is closed
    return shown.decode()


OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
NO_CURSOR, CURSOR = "\x1b[?25l", "\x1b[?25h"


def test_q_ends_top_on_a_terminal(top):
    process, shown, terminal = top
    assert OTHER_SCREEN in shown
    assert NO_CURSOR in shown
    os.write(terminal, b"q")
    rest = rest_of(terminal)
    assert process.wait() == 0
    assert OWN_SCREEN in rest
    assert CURSOR in rest


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_top_and_restores_the_terminal(top, number, code):
    process, _, terminal = top
    process.send_signal(number)
    rest = rest_of(terminal)
    assert process.wait() == code
    assert OWN_SCREEN in rest
    assert CURSOR in rest


def test_top_counts_the_queues_that_do_not_fit_on_the_screen():
    out = io.StringIO()
    screen = Screen(out, coloured=False)
    screen.console.size = (60, 10)
    screen.show("a\x1b[31mtitle", [Column("queue")], [[f"queue-{n}"] for n in range(100)])
    screen.close()
    shown = out.getvalue()
    assert r"a\u001b[31mtitle" in shown
    assert "queue-5 " in shown
    assert "queue-6 " not in shown
    assert "and 94 more" in shown


def test_top_cuts_lines_on_a_narrow_screen_and_still_shows_the_queues():
    out = io.StringIO()
    screen = Screen(out, coloured=False)
    screen.console.size = (12, 6)
    columns = [Column("queue"), Column("visible"), Column("flight")]
    screen.show("a title of three lines if wrapped", columns, [["orders", 1, 2]])
    screen.close()
    assert "orders" in out.getvalue()
