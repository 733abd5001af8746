# SPDX-License-Identifier: Apache-2.0
"""`redrive`: its plan, its result, and the state after Ctrl-C and after a kill."""

import os
import pty
import signal
import subprocess
import sys

import pytest

import sqsqlite
from sqsqlite.api import move_task
from tests.cli.runs import runner_on
from tests.store.full_disks import fill_by_another_program, small_disk
from tests.store.waiting import until

COMMAND = [sys.executable, "-m", "sqsqlite.cli"]


@pytest.fixture
def dead(sqs):
    """A dead-letter queue with 20 messages of `orders` and two of `mails`."""
    dead = sqs.create_queue("dead")
    for name, count in (("orders", 20), ("mails", 2)):
        queue = sqs.create_queue(name)
        queue.set_attributes({"RedrivePolicy": {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1}})
        queue.send_many([f"{name} {number}" for number in range(count)])
        while queue.receive(10, visibility_timeout=0) or len(queue):
            pass
    return dead


def latest(sqs):
    """The latest task, as ListMessageMoveTasks shows it."""
    return sqs.client.list_message_move_tasks(SourceArn=sqs.queue("dead").arn)["Results"][0]


def lengths(sqs):
    return {queue.name: len(queue) for queue in sqs.queues()}


def test_a_dry_run_counts_messages_by_source_and_destination(run, sqs, dead):
    dead.receive(1)
    ran = run("redrive", "dead", "--dry-run")
    assert ran.rows == [
        {"source": "mails", "destination": "mails", "messages": 2, "stays_because": None},
        {"source": "orders", "destination": "orders", "messages": 19, "stays_because": None},
        {"source": "orders", "destination": "orders", "messages": 1, "stays_because": "in flight"},
    ]
    assert (ran.code, ran.err) == (0, "would move 21 messages from dead\n")
    assert lengths(sqs) == {"dead": 22, "mails": 0, "orders": 0}


def test_each_message_goes_back_to_its_source(run, sqs, dead):
    ran = run("redrive", "dead", "--yes")
    assert ran.rows == [
        {"queue": "dead", "status": "COMPLETED", "moved": 22, "failure_reason": None, "task_handle": None}
    ]
    assert ran.code == 0
    assert lengths(sqs) == {"dead": 0, "mails": 2, "orders": 20}
    assert run("redrive", "dead", "--yes").err.startswith("dead: nothing to move")


def test_all_can_go_to_one_queue(run, sqs, dead):
    sqs.create_queue("by-hand")
    assert run("redrive", "dead", "--to", "by-hand", "--yes").code == 0
    assert lengths(sqs) == {"by-hand": 22, "dead": 0, "mails": 0, "orders": 0}


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--source", "mails"], 2),
        (["--body-contains", "orders 1"], 11),
        (["--min-receives", "1"], 22),
        (["--min-receives", "2"], 0),
        (["--source", "orders", "--body-contains", "3"], 2),
        (["--source", "nowhere"], 0),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else str(part),
)
def test_a_filter_selects_some_messages(run, sqs, dead, words, count):
    assert f"would move {count} messages" in run("redrive", "dead", *words, "--dry-run").err
    assert run("redrive", "dead", *words, "--yes").code == 0
    assert len(dead) == 22 - count


def test_redrives_undo_a_chain_step_by_step(run, sqs, dead):
    """The messages of `graves` died in `orders` and `mails`, and then in `dead`."""
    graves = sqs.create_queue("graves")
    dead.set_attributes(dead_letter_queue=graves, max_receive_count=1)
    while dead.receive(10, visibility_timeout=0) or len(dead):
        pass
    assert run("redrive", "graves", "--dry-run").err == "would move 22 messages from graves\n"
    assert run("redrive", "graves", "--yes").code == 0
    assert [(row["destination"], row["messages"]) for row in run("redrive", "dead", "--dry-run").rows] == [
        ("mails", 2),
        ("orders", 20),
    ]
    assert run("redrive", "dead", "--yes").code == 0
    assert lengths(sqs) == {"dead": 0, "graves": 0, "mails": 2, "orders": 20}


def test_without_a_terminal_nothing_moves_unless_yes_is_given(run, sqs, dead):
    refused = run("redrive", "dead")
    assert refused.code == 2
    assert "move 22 messages from dead to mails (2), orders (20)?" in refused.err
    assert "--yes" in refused.err
    assert len(dead) == 22


def test_the_question_counts_the_messages_that_stay(run, sqs, dead):
    dead.send("direct")
    sqs.queue("mails").delete()
    assert "move 20 messages from dead to orders; 3 stay?" in run("redrive", "dead").err
    dead.receive(10)
    assert "move 10 messages from dead to orders; 13 stay?" in run("redrive", "dead").err


def test_messages_without_a_source_are_mentioned_with_a_remedy(run, sqs, dead):
    run("redrive", "dead", "--yes")
    assert run("redrive", "dead").err == "dead: nothing to move\n"
    dead.send_many(["direct", "in flight"])
    dead.receive()
    said = run("redrive", "dead").err
    assert said.startswith(
        "dead: nothing to move; staying: 1 (of unknown origin), 1 (in flight). --to QUEUE moves"
    )
    dead.receive()
    assert run("redrive", "dead").err == "dead: nothing to move; staying: 2 (in flight)\n"


@pytest.mark.parametrize(("answer", "code", "left"), [(b"y\n", 0, 20), (b"n\n", 1, 22)])
def test_redrive_asks_first_on_a_terminal(path, sqs, dead, answer, code, left):
    ours, theirs = pty.openpty()
    words = ["--db", path, "redrive", "dead", "--source", "mails"]
    process = subprocess.Popen([*COMMAND, *words], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 4096)
    assert b"move 2 messages from dead to mails?" in shown
    os.write(ours, answer)
    try:
        while os.read(ours, 4096):
            pass
    except OSError:
        pass  # how Linux reports that the other end is closed
    os.close(ours)
    assert (process.wait(), len(dead)) == (code, left)


def begun(path, dead, *words):
    """The command in a process of its own, after its first moves."""
    process = subprocess.Popen(
        [*COMMAND, "--db", path, "redrive", "dead", "--yes", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: len(dead) < 22)
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_cancels_the_task_and_prints_the_number_of_moves(path, sqs, dead, number, code):
    process = begun(path, dead, "--rate", "10")
    process.send_signal(number)
    out, errors = process.communicate()
    task = latest(sqs)
    assert (process.returncode, out, task["Status"]) == (code, "", "CANCELLED")
    moved = task["ApproximateNumberOfMessagesMoved"]
    assert errors == f"dead: cancelled; {moved} of 22 moved, the others stay\n"
    assert 0 < moved < 22
    assert lengths(sqs) == {"dead": 22 - moved, "mails": 0, "orders": moved}


def test_the_next_process_continues_the_task_of_a_killed_one(path, sqs, dead):
    process = begun(path, dead, "--rate", "10")
    process.kill()
    process.communicate()
    assert latest(sqs)["Status"] == "RUNNING"
    with sqsqlite.connect(path):
        until(lambda: latest(sqs)["Status"] == "COMPLETED")
    assert lengths(sqs) == {"dead": 0, "mails": 2, "orders": 20}


def test_a_task_in_the_background_is_left_to_the_other_processes(run, sqs, dead):
    ran = run("redrive", "dead", "--rate", "20", "--background", "--yes")
    assert (ran.code, ran.rows[0]["status"]) == (0, "RUNNING")
    assert ran.err == "dead: started; any process that has the file open continues the move\n"
    with sqsqlite.connect(sqs._store.path):
        until(lambda: len(dead) == 0)


def test_error_about_a_running_task_names_the_command_that_stops_it(run, sqs, dead):
    run("redrive", "dead", "--rate", "1", "--background", "--yes")
    ran = run("redrive", "dead", "--yes")
    assert ran.code == 1
    assert "InvalidParameterValue: There is already a task running." in ran.err
    words = ran.err.partition("To stop it: sqsqlite ")[2].splitlines()[0].split()
    assert run(*words).code == 0
    assert latest(sqs)["Status"] == "CANCELLED"


def test_a_full_disk_is_reported_and_the_task_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(move_task, "_STILL", 0.2)
    with small_disk(tmp_path / "disk", 24) as disk:
        path = disk / "queues.db"
        with sqsqlite.connect(path) as sqs:
            dead = sqs.create_queue("dead")
            queue = sqs.create_queue("orders", dead_letter_queue=dead, max_receive_count=1)
            queue.send_many(["x" * 1000] * 10)
            while queue.receive(10, visibility_timeout=0) or len(queue):
                pass
            fill_by_another_program(disk)
            ran = runner_on(path)("redrive", "dead", "--yes")
            assert (ran.code, ran.out) == (1, "")
            assert ran.err.startswith("dead: the task is kept, and continues as soon as possible\nDiskFull: ")
            assert lengths(sqs) == {"dead": 10, "orders": 0}
            (disk / "somebody-elses").unlink()
            with sqsqlite.connect(path):
                until(lambda: len(queue) == 10)


def test_a_message_that_cannot_be_moved_exits_with_4(run, sqs, dead):
    dead.send("direct")
    ran = run("redrive", "dead", "--yes")
    assert (ran.code, ran.rows[0]["status"], ran.rows[0]["moved"]) == (4, "FAILED", 22)
    assert ran.err == "some messages stay where they are: CouldNotDetermineMessageSource\n"
    assert len(dead) == 1


def test_groups_go_back_in_order(run, sqs):
    dead = sqs.create_queue("dead.fifo", fifo=True)
    queue = sqs.create_queue(
        "orders.fifo",
        fifo=True,
        content_based_deduplication=True,
        dead_letter_queue=dead,
        max_receive_count=1,
    )
    queue.send_many([{"body": str(number), "group_id": "g"} for number in range(5)])
    while queue.receive(10, visibility_timeout=0) or len(queue):
        pass
    assert run("redrive", "dead.fifo", "--yes").code == 0
    assert [message.body for message in queue.receive(10)] == ["0", "1", "2", "3", "4"]


def test_invalid_requests_are_explained(run, sqs, dead):
    for words, code in (
        (["nowhere"], 1),
        (["dead", "--to", "nowhere"], 1),
        (["dead", "--source", "no name"], 1),
        (["orders"], 1),
        (["dead", "--to", "dead"], 1),
        (["dead", "--rate", "0"], 2),
        (["dead", "--rate", "501"], 2),
        (["dead", "--min-receives", "0"], 2),
    ):
        ran = run("redrive", *words, "--yes")
        assert (ran.code, ran.out) == (code, ""), words
        assert ran.err != ""
        assert ("'--rate'" in ran.err) == ("--rate" in words)
    assert len(dead) == 22
    assert sqs.client.list_message_move_tasks(SourceArn=dead.arn)["Results"] == []
