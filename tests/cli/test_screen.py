# SPDX-License-Identifier: Apache-2.0
"""Data cannot control a terminal. A pipe and a file get the data unchanged."""

import json
import os
import pty
import re
import sys

import pytest

from sqsqlite.cli import main

# Sets the colours by C1's CSI, then shows "gpj.exe" as "exe.jpg", then DEL. SQS accepts all of them in a body.
BODY = "\x9b31mred\x85\u202egpj.exe\u202c\u2066x\u2069\u200e\u200f\u061c\x7f\rback\nnext\tö\U0001f600"
STEERING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

PRINTED = [
    ("peek", "orders"),
    ("peek", "orders", "--output", "json"),
    ("peek", "orders", "--output", "jsonl"),
    ("peek", "orders", "--output", "csv"),
    ("peek", "orders", "--output", "text"),
    ("peek", "orders", "--output", "table"),
    ("peek", "orders", "--query", "[].body"),
    ("receive-message", "--queue-url", "orders"),
    ("receive-message", "--queue-url", "orders", "--output", "text", "--query", "Messages[].Body"),
]


@pytest.fixture
def orders(sqs):
    queue = sqs.queue("orders")
    queue.send(BODY)
    return queue


@pytest.fixture
def terminal(path, monkeypatch):
    """`terminal("peek", "orders")` runs the command on a terminal. Returns what it shows."""

    def run(*words, out=None):
        seen, end = pty.openpty()
        name = os.ttyname(end)
        with os.fdopen(end, "w", encoding="utf-8", newline="\n") as screen, monkeypatch.context() as patched:
            patched.setenv("COLUMNS", "1000")
            patched.setattr(sys, "stdout", screen)
            patched.setattr(sys, "stderr", screen)
            with pytest.raises(SystemExit):
                main(["--db", str(path), "--no-color", *words, *(["--out", name] if out else [])])
        shown = b""
        try:
            while part := os.read(seen, 1 << 16):  # the terminal passes lines on, one by one
                shown += part
        except OSError:
            pass  # how Linux reports that the other end is closed
        os.close(seen)
        return shown.decode().replace("\r\n", "\n")  # the terminal's own carriage returns

    return run


@pytest.mark.parametrize("words", PRINTED, ids=" ".join)
def test_data_cannot_control_a_terminal(orders, terminal, words):
    shown = terminal(*words)
    assert not STEERING.findall(shown)
    assert "\r" not in shown
    assert re.search(r"\\(u00|x)9b31m.*\\u202e", shown)


def test_json_on_a_terminal_is_the_same_data(orders, terminal):
    assert json.loads(terminal("peek", "orders", "--output", "jsonl"))["body"] == BODY
    assert "ö\U0001f600" in terminal("peek", "orders", "--output", "jsonl")


def test_data_cannot_control_a_terminal_given_as_out(orders, terminal):
    assert not STEERING.findall(terminal("peek", "orders", "--output", "csv", out=True))


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_a_pipe_and_a_file_get_the_data_unchanged(orders, run, tmp_path, form):
    file = tmp_path / "out"
    run("peek", "orders", "--output", form, "--out", file)
    expected = BODY if form == "csv" else json.dumps(BODY, ensure_ascii=False)
    assert expected in file.read_bytes().decode()
    assert expected in run("peek", "orders", "--output", form).out


def test_errors_about_the_input_cannot_control_a_terminal(orders, run):
    """Standard error quotes a line that names something unknown."""
    line = json.dumps({"body": "x", "a\x9b31m\u202eb": 1})
    said = run("send", "orders", "-", "--jsonl", input=line)
    assert said.code == 1
    assert "a\\u009b31m\\u202eb: unknown" in said.err


@pytest.mark.parametrize("words", [("no\x9b31m\u202everb",), ("queues", "--query", "[\x9b31m\u202e")])
def test_errors_about_the_command_line_cannot_control_a_terminal(orders, run, words):
    """A script may pass on data in its arguments."""
    said = run(*words)
    assert said.code == 2
    assert not STEERING.findall(said.err)
