# SPDX-License-Identifier: Apache-2.0
"""The progress line on standard error: only on a terminal, and removed at the end."""

import os
import pty
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "sqsqlite.cli"]
LINES = 20_000


@pytest.fixture
def terminal():
    """`terminal("send", "orders", "-", ...)` runs the command on a terminal, and returns its output."""

    def run(*words, term="xterm", code=0, **options):
        ours, theirs = pty.openpty()
        environment = {**os.environ, "COLUMNS": "100", "TERM": term}
        process = subprocess.Popen(
            [*COMMAND, *words],
            stdout=options.pop("stdout", theirs),
            stderr=theirs,
            env=environment,
            **options,
        )
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:
            pass  # how Linux reports that the other end is closed
        os.close(ours)
        assert process.wait() == code
        return shown.decode()

    return run


@pytest.fixture
def lines(tmp_path):
    file = tmp_path / "lines"
    file.write_text("".join(f"{number}\n" for number in range(LINES)))
    return file


@pytest.mark.slow
def test_input_from_a_file_has_a_bar_that_is_removed_at_the_end(terminal, sqs, path, lines):
    with lines.open("rb") as source:
        shown = terminal("--db", str(path), "send", "orders", "-", stdin=source)
    assert "━" in shown
    assert "% " in shown
    assert "\x1b[?25l" in shown
    assert shown.index("\x1b[?25l") < shown.rindex("\x1b[?25h")
    assert f"{LINES:,} sent in " in shown.rpartition("\x1b[2K")[2]


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--quiet"], ["--no-color"]])
def test_quiet_shows_no_progress_and_no_color_no_colours(terminal, sqs, path, lines, words):
    with lines.open("rb") as source:
        shown = terminal("--db", str(path), *words, "send", "orders", "-", stdin=source)
    assert "\x1b[3" not in shown.replace("\x1b[?25", "")
    assert ("━" in shown) is ("--quiet" not in words)
    assert shown == "" or "--quiet" not in words


@pytest.mark.slow
@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_without_escape_codes_gets_none(terminal, sqs, path, lines, term):
    shown = terminal("--db", str(path), "queues", term=term)
    assert "orders" in shown
    with lines.open("rb") as source:
        shown += terminal("--db", str(path), "send", "orders", "-", stdin=source, term=term)
    shown += terminal("--db", str(path), "delete", "missing", "--yes", term=term, code=1)
    assert f"{LINES:,} sent in " in shown
    assert "\x1b" not in shown
