# SPDX-License-Identifier: Apache-2.0
"""`receive`: messages are printed, deleted, or passed to a command."""

import os
import signal
import subprocess
import sys

import pytest

from sqsqlite.cli.receive import Receiving

COMMAND = [sys.executable, "-m", "sqsqlite.cli"]


@pytest.fixture
def queue(sqs):
    return sqs.queue("orders")


def test_a_received_message_is_printed_in_full_and_hidden(run, queue):
    sent = queue.send("hi", attributes={"kind": "x", "n": 5}, group_id="alice", trace_header="Root=1")
    [row] = run("receive", "orders").rows
    assert (row["message_id"], row["body"], row["receive_count"]) == (sent.message_id, "hi", 1)
    assert (row["attributes"], row["group_id"], row["trace_header"]) == (
        {"kind": "x", "n": 5},
        "alice",
        "Root=1",
    )
    assert row["receipt_handle"]
    assert run("receive", "orders").rows == []


def test_more_than_ten_messages_can_be_received(run, queue):
    queue.send_many([str(number) for number in range(35)])
    assert [row["body"] for row in run("receive", "orders", "-n", 25).rows] == [str(n) for n in range(25)]
    assert len(run("receive", "orders", "-n", 25).rows) == 10


def test_delete_deletes_the_printed_messages(run, queue):
    queue.send_many(["a"] * 13)
    assert len(run("receive", "orders", "-n", 12, "--delete").rows) == 12
    assert len(queue) == 1


def test_a_message_that_could_not_be_printed_is_not_deleted(run, queue, monkeypatch):
    queue.send("precious")
    from sqsqlite.cli.output import Output

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Output, "flush", full)
    refused = run("receive", "orders", "--delete")
    assert refused.code == 1
    assert len(queue) == 1


def test_a_failed_delete_is_reported_and_exits_with_4(run, queue, monkeypatch):
    """With a visibility timeout of 0 another consumer may receive the message as soon as it is printed."""
    queue.send("hi")
    ran = run("receive", "orders", "--delete", "--visibility-timeout", 0)
    assert ran.code == 4
    assert ran.err.endswith("1 printed, but not deleted\n")
    assert len(queue) == 1


def test_an_empty_queue_is_an_error_only_on_request(run, queue):
    ran = run("receive", "orders")
    assert (ran.code, ran.out, ran.err) == (0, "", "orders: no message\n")
    assert run("receive", "orders", "--fail-empty").code == 3
    assert run("receive", "orders", "--fail-empty", "--exec", "true").code == 3
    queue.send("hi")
    assert run("receive", "orders", "--fail-empty").code == 0


@pytest.mark.parametrize(
    "words",
    [["--delete", "--exec", "true"], ["--retry-after", "5"], ["-n", "0"], ["--wait", "soon"]],
    ids=" ".join,
)
def test_options_that_make_no_sense_are_refused(run, queue, words):
    queue.send("hi")
    assert run("receive", "orders", *words).code == 2
    assert queue.peek()[0].receive_count == 0


@pytest.mark.parametrize(
    "words",
    [["--wait", 21], ["--visibility-timeout", 43_201], ["--exec", "exit 1", "--retry-after", 43_201]],
    ids=str,
)
def test_seconds_beyond_sqss_ranges_are_refused_before_the_receive(run, queue, words):
    queue.send("hi")
    refused = run("receive", "orders", *words)
    assert (refused.code, refused.err.partition(":")[0]) == (1, "InvalidParameterValue")
    assert queue.peek()[0].receive_count == 0


def test_native_limits_allow_a_longer_wait(run, queue):
    queue.send("hi")
    assert run("receive", "orders", "--wait", 30).code == 1
    assert [row["body"] for row in run("--limits", "native", "receive", "orders", "--wait", 30).rows] == [
        "hi"
    ]


def test_a_command_gets_the_message_and_exit_0_deletes_it(run, queue, path):
    queue.send("größe\nx", attributes={"kind": "chore"})
    script = (
        'cat > got; echo "$SQSQLITE_QUEUE $SQSQLITE_RECEIVE_COUNT $SQSQLITE_DB $SQSQLITE_ATTRIBUTES" > env'
    )
    assert run("receive", "orders", "--exec", script).code == 0
    assert (path.parent / "got").read_text(encoding="utf-8") == "größe\nx"
    assert (path.parent / "env").read_text() == f'orders 1 {path} {{"kind": "chore"}}\n'
    assert len(queue) == 0


PRINT_ENVIRONMENT = 'cat >> got; echo " ${#SQSQLITE_ATTRIBUTES} $SQSQLITE_LEFT_OUT" >> got'


def test_attributes_too_large_for_a_variable_are_left_out(run, queue, path):
    """One string of an environment has 128 KiB at most on Linux: this message and the later ones are still handled."""
    sent = queue.send("large", attributes={"kind": "x" * 140_000})
    queue.send("small", attributes={"kind": "x"})
    ran = run(
        "receive", "orders", "-n", 2, "--exec", PRINT_ENVIRONMENT, env={"SQSQLITE_LEFT_OUT": "another's"}
    )
    assert ran.code == 0, ran.err
    assert (path.parent / "got").read_text() == "large 0 SQSQLITE_ATTRIBUTES\nsmall 13 \n"
    assert ran.err == (
        f"{sent.message_id}: SQSQLITE_ATTRIBUTES is left out of the command's environment: "
        "its 140,012 bytes make the environment too large for the system\n2 done, 0 failed\n"
    )
    assert len(queue) == 0


def test_attributes_that_make_the_whole_environment_too_large_are_left_out(queue, path):
    """A small stack leaves 128 KiB for the environment and the command line together."""
    queue.send("large", attributes={"kind": "x" * 110_000})
    command = [*COMMAND, "--db", path, "receive", "orders", "--exec", PRINT_ENVIRONMENT]
    subprocess.run(
        ["sh", "-c", 'ulimit -s 512 && exec "$@"', "sh", *command],
        env={**os.environ, "LARGE": "x" * 60_000},
        check=True,
        timeout=50,
    )
    assert (path.parent / "got").read_text() == "large 0 SQSQLITE_ATTRIBUTES\n"
    assert len(queue) == 0


@pytest.mark.parametrize(
    "setting", [{}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}], ids=str
)
def test_attributes_are_utf_8_in_the_environment_in_every_locale(queue, path, setting):
    queue.send("a", attributes={"kind": "größe"})
    command = [*COMMAND, "--db", path, "receive", "orders", "--exec", 'echo "$SQSQLITE_ATTRIBUTES" > got']
    subprocess.run(command, env={**os.environ, **setting}, check=True, timeout=50)
    assert (path.parent / "got").read_bytes() == '{"kind": "größe"}\n'.encode()


def test_a_body_reaches_the_command_only_as_data(run, queue, path):
    queue.send("$(touch broken); `touch broken`")
    run("receive", "orders", "--exec", "cat > got")
    assert (path.parent / "got").read_text() == "$(touch broken); `touch broken`"
    assert not (path.parent / "broken").exists()


def test_a_failing_command_leaves_the_message_hidden(run, queue):
    queue.send("hi")
    ran = run("receive", "orders", "--exec", "exit 3")
    assert ran.code == 4
    assert "the command ended with 3" in ran.err
    assert "0 done, 1 failed" in ran.err
    assert [message.state for message in queue.peek(hidden=True)] == ["in flight"]


def test_retry_after_0_makes_the_message_visible_at_once(run, queue):
    queue.send("hi")
    run("receive", "orders", "--exec", "exit 3", "--retry-after", 0)
    [message] = queue.peek()
    assert message.receive_count == 1


def test_the_requested_number_of_messages_is_handled(run, queue):
    queue.send_many(["a", "b", "c"])
    assert run("receive", "orders", "-n", 2, "--exec", "true").code == 0
    assert [message.body for message in queue.peek()] == ["c"]
    assert "1 done, 0 failed" in run("receive", "orders", "-n", 2, "--exec", "true").err


def test_the_timeout_is_extended_while_the_command_runs(run, queue, path):
    """The command runs until the heartbeat has been seen: its message is hidden for longer than at the start."""
    queue.send("slow")
    look = f"{sys.executable} -m sqsqlite.cli peek orders --hidden --query '[0].visible_at' --output text"
    script = f'first=$({look}); until [ "$({look})" != "$first" ]; do :; done'
    assert run("receive", "orders", "--visibility-timeout", 2, "--exec", script).code == 0
    assert len(queue) == 0


OTHER = f"{sys.executable} -m sqsqlite.cli receive orders -q"


@pytest.mark.parametrize(
    ("command", "said", "left"),
    [
        ("true", "its visibility timeout had ended", 1),
        (f"{OTHER} --visibility-timeout 60 > got", "another consumer has received the message", 1),
        (f"{OTHER} --delete > got", "another consumer has deleted the message", 0),
    ],
)
def test_a_command_that_loses_its_message_has_not_finished_it(run, queue, command, said, left):
    """The timeout ends during the command, since 0 is never extended. A message deleted by another was its work too."""
    sent = queue.send("hi")
    ran = run("receive", "orders", "--visibility-timeout", 0, "--exec", command)
    assert ran.code == 4
    first, summary = ran.err.splitlines()
    assert first.startswith(f"{sent.message_id}: lost, {said}")
    assert summary == "0 done, 0 failed, 1 lost"
    assert len(queue) == left


def test_a_message_that_became_a_dead_letter_during_its_command_is_lost(run, sqs):
    dead = sqs.create_queue("dead")
    frail = sqs.create_queue("frail", dead_letter_queue=dead, max_receive_count=1)
    frail.send("hi")
    words = ["--visibility-timeout", 0, "--exec", OTHER.replace("orders", "frail")]
    ran = run("receive", "frail", *words)
    assert (ran.code, len(frail), len(dead)) == (4, 0, 1)
    assert "lost, the message is in the dead-letter queue" in ran.err


def test_a_failed_command_that_lost_its_message_is_reported_as_both(run, queue):
    queue.send("hi")
    words = ["--visibility-timeout", 0, "--exec", f"{OTHER} --delete > got; exit 3", "--retry-after", 5]
    ran = run("receive", "orders", *words)
    assert "the command ended with 3\n" in ran.err
    assert ran.err.endswith("0 done, 0 failed, 1 lost\n")


def test_a_loop_works_until_sigterm_and_ends_its_command_first(queue, path):
    queue.send_many(["a", "b"])
    stop = "kill -TERM $PPID; sleep 0.2; echo end >> got"
    script = f"cat >> got; echo >> got; if [ -e second ]; then {stop}; fi; touch second"
    process = subprocess.run(
        [*COMMAND, "--db", path, "receive", "orders", "--loop", "--exec", script],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 143, process.stderr
    assert "waiting for the running command to end" in process.stderr
    assert (path.parent / "got").read_text().split() == ["a", "b", "end"]
    assert len(queue) == 0


def test_a_second_signal_ends_the_running_command(queue, path):
    """The command prints its process number, ignores the terminal's signals, and would run for long."""
    queue.send("a")
    process = subprocess.Popen(
        [*COMMAND, "--db", path, "receive", "orders", "--loop", "--exec", "echo $$; exec sleep 40"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    running = int(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == b"waiting for the running command to end; another Ctrl-C ends it\n"
    os.kill(running, 0)
    process.send_signal(signal.SIGINT)
    assert process.communicate() == (b"", b"")
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(running, 0)


TWICE_STOPPED_AT_THE_START = """
import os, signal, subprocess, sys
from sqsqlite.cli import main

start = subprocess.Popen._execute_child

def start_and_signal(self, *args):
    start(self, *args)
    print(self.pid, flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)

subprocess.Popen._execute_child = start_and_signal
main(sys.argv[1:])
"""


def test_two_signals_during_its_start_end_the_command_too(queue, path):
    """Both arrive when the system has started the command, but its caller does not know it yet."""
    queue.send("a")
    receive = ["--db", path, "receive", "orders", "--loop", "--exec", "exec sleep 40 >&- 2>&-"]
    ended = subprocess.run(
        [sys.executable, "-c", TWICE_STOPPED_AT_THE_START, *receive],
        check=False,
        capture_output=True,
        timeout=600,
    )
    assert (ended.returncode, ended.stderr.count(b"waiting for the running command")) == (143, 1)
    with pytest.raises(ProcessLookupError):
        os.kill(int(ended.stdout), 0)


def test_an_idle_loop_ends_at_once(queue, path):
    process = subprocess.Popen(
        [*COMMAND, "--db", path, "receive", "orders", "--loop"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    queue.send("printed")
    assert b"printed" in process.stdout.readline()
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate() == (b"", b"")
    assert process.returncode == 130


def test_only_the_first_receive_waits_for_messages(sqs, queue):
    queue.send_many(["a"] * 12)
    source = Receiving(sqs.client, "orders", 20, None)
    portions = source.up_to(30)
    assert [len(next(portions)), len(next(portions))] == [10, 2]
    assert list(portions) == []


@pytest.mark.parametrize("own", [0, 30])
def test_with_a_visibility_timeout_of_0_no_message_is_received_twice(run, queue, own):
    """Each receive counts, and may exceed the limit. The queue's own 0 has the same effect as the option."""
    queue.set_attributes({"VisibilityTimeout": own})
    queue.send_many(["a", "b", "c"])
    words = ["--visibility-timeout", 0] if own else []
    assert [row["body"] for row in run("receive", "orders", "-n", 10, *words).rows] == ["a", "b", "c"]
    assert [message.receive_count for message in queue.peek()] == [1, 1, 1]


def test_with_a_visibility_timeout_of_0_ten_are_received_at_most(run, queue):
    queue.send_many([str(number) for number in range(12)])
    assert len(run("receive", "orders", "-n", 25, "--visibility-timeout", 0).rows) == 10
    assert sorted(message.receive_count for message in queue.peek(20)) == [0] * 2 + [1] * 10


def test_with_a_visibility_timeout_of_0_a_command_gets_each_message_once(run, queue, path):
    queue.send_many(["a", "b"])
    ran = run("receive", "orders", "-n", 5, "--visibility-timeout", 0, "--exec", "cat >> got")
    assert (path.parent / "got").read_text() == "ab"
    assert "0 done, 0 failed, 2 lost" in ran.err


@pytest.mark.parametrize("words", [[], ["--exec", "true"], ["--delete"]], ids=" ".join)
def test_a_loop_with_a_visibility_timeout_of_0_is_refused(run, queue, words):
    queue.send("hi")
    refused = run("receive", "orders", "--loop", "--visibility-timeout", 0, *words)
    assert refused.code == 2
    assert "peek" in refused.err
    assert queue.peek()[0].receive_count == 0
