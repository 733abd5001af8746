# SPDX-License-Identifier: Apache-2.0
"""`receive --delete` deletes exactly the messages that were printed."""

import os
import pty
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "sqsqlite.cli"]


@pytest.fixture
def queue(sqs):
    return sqs.queue("orders")


def states(queue):
    return [(message.body, message.state) for message in queue.peek(hidden=True)]


@pytest.mark.parametrize(
    "query",
    ["body", "[0].body", "[:2].body", "[-1]", "length(@)", "[].body | [0]", "*.body", "{all: [].body}"],
)
def test_a_query_that_hides_which_messages_it_prints_is_refused(run, queue, query):
    queue.send_many(["a", "b", "c"])
    refused = run("receive", "orders", "-n", 10, "--delete", "--query", query)
    assert refused.code == 2
    assert "must begin with [], [*] or [?...]" in " ".join(refused.err.split())
    assert [message.receive_count for message in queue.peek()] == [0, 0, 0]


@pytest.mark.parametrize("query", ["[].body", "[*].body", "[?body].body", "[0].body", "[] | [0]"])
def test_in_a_loop_a_query_of_a_list_is_refused(run, queue, query):
    queue.send("a")
    assert run("receive", "orders", "--loop", "--delete", "--query", query).code == 2
    assert queue.peek()[0].receive_count == 0


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "text", "table"])
@pytest.mark.parametrize("query", ["[].body", "@[*].body", "[?body != 'x'].[body, message_id][]", "@"])
def test_messages_printed_by_a_query_are_deleted(run, queue, form, query):
    queue.send_many(["a1", "b2", "c3"])
    ran = run("receive", "orders", "-n", 10, "--delete", "--query", query, "--output", form)
    assert (ran.code, ran.err) == (0, "")
    assert all(body in ran.out for body in ("a1", "b2", "c3"))
    assert len(queue) == 0


@pytest.mark.parametrize(
    ("query", "out"),
    [
        ("[?attributes.kind == 'red'].body", ["b"]),
        ("[].attributes.kind", ["red"]),
        ("[].{kind: attributes.kind}", [{"kind": None}, {"kind": "red"}, {"kind": None}]),
        ("[].[attributes.kind]", [[None], ["red"], [None]]),
    ],
)
def test_a_message_without_a_result_of_the_query_is_kept(run, queue, query, out):
    queue.send("a")
    queue.send("b", attributes={"kind": "red"})
    queue.send("c")
    ran = run("receive", "orders", "-n", 10, "--delete", "--query", query, "--output", "json")
    assert ran.json == out
    assert ran.code == 4
    assert ran.err == "2 received, but not deleted: --query prints nothing for them\n"
    assert states(queue) == [("a", "in flight"), ("c", "in flight")]


def test_a_query_that_fails_on_the_data_deletes_nothing(run, queue):
    queue.send("a")
    refused = run("receive", "orders", "--delete", "--query", "[].length(receive_count)")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("--query: ")
    assert states(queue) == [("a", "in flight")]


def test_rows_of_different_members_are_printed_whole(run, queue):
    queue.send("a", attributes={"first": "x1"})
    queue.send("b", attributes={"second": "y2"})
    ran = run("receive", "orders", "-n", 2, "--delete", "--query", "[].attributes", "--output", "csv")
    assert ran.out == "first,second\nx1,\n,y2\n"
    assert len(queue) == 0


def test_a_loop_deletes_what_it_printed_and_ends_at_a_message_without_a_result(queue, path):
    queue.send("a", attributes={"kind": "red"})
    queue.send("b")
    words = ["receive", "orders", "--loop", "--delete", "--query", "attributes.kind"]
    ran = subprocess.run(
        [*COMMAND, "--db", path, *words], check=False, capture_output=True, text=True, timeout=50
    )
    assert (ran.returncode, ran.stdout) == (4, '"red"\nnull\n')
    assert ran.stderr == "1 received, but not deleted: --query prints nothing for them\n"
    assert states(queue) == [("b", "in flight")]


@pytest.mark.parametrize("words", [["-n", "3"], ["--loop"], ["-n", "3", "--query", "[].body"]], ids=" ".join)
@pytest.mark.parametrize(("place", "code"), [("/dev/full", 1), ("pipe", 141), ("closed", 1)])
def test_messages_that_could_not_be_written_are_kept(queue, path, words, place, code):
    """Three large messages: some are written before the buffer is flushed at the end."""
    queue.send_many([letter * 50_000 for letter in "abc"])
    command = [*COMMAND, "--db", str(path), "receive", "orders", "--delete", *words]
    out = None
    if place == "pipe":
        read_end, out = os.pipe()
        os.close(read_end)
    elif place == "closed":
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    else:
        out = os.open(place, os.O_WRONLY)
    ran = subprocess.run(command, check=False, stdout=out, stderr=subprocess.PIPE, text=True, timeout=50)
    if out is not None:
        os.close(out)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    assert len(queue) == 3


def test_deleted_messages_are_printed_in_full_on_a_terminal(queue, path):
    queue.send("long " + "x" * 300, attributes={"kind": "red"})
    seen, terminal = pty.openpty()
    ran = subprocess.run(
        [*COMMAND, "--db", path, "receive", "orders", "--delete"],
        check=False,
        stdout=terminal,
        env={**os.environ, "COLUMNS": "60"},
        timeout=50,
    )
    os.close(terminal)
    printed = os.read(seen, 10_000).decode()
    os.close(seen)
    assert ran.returncode == 0
    assert "x" * 300 in printed
    assert '{"kind": "red"}' in printed
    assert len(queue) == 0
