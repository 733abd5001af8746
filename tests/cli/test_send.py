# SPDX-License-Identifier: Apache-2.0
"""`send`: one message, or standard input as messages."""

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import sqsqlite
from sqsqlite.cli import feed
from tests.cli.runs import runner_on
from tests.packaging.checkout import ROOT
from tests.store.full_disks import small_disk
from tests.store.waiting import until

COMMAND = [sys.executable, "-m", "sqsqlite.cli"]


@pytest.fixture
def bodies(sqs):
    """The bodies in the queue, in order of sending."""

    def found():
        with_ids = sqs.queue("orders").peek(5000)
        return [message.body for message in with_ids]

    return found


def test_send_stores_the_message_and_prints_its_id(run, sqs):
    [row] = run("send", "orders", "paint the fence").rows
    [message] = sqs.queue("orders").peek()
    assert (message.body, message.message_id) == ("paint the fence", row["message_id"])


def test_a_sent_message_has_its_attributes_delay_and_tenant(run, sqs):
    words = ["-a", "kind=chore=home", "-a", "price:Number=12.50", "-a", "name:String.nick=x"]
    assert run("send", "orders", "hi", *words, "--delay", 60, "--group", "alice").code == 0
    [message] = sqs.queue("orders").peek(hidden=True)
    assert (message.state, message.group_id) == ("delayed", "alice")
    typed = {name: (value.data_type, value.string_value) for name, value in message.attributes.items()}
    assert typed == {
        "kind": ("String", "chore=home"),
        "price": ("Number", "12.50"),
        "name": ("String.nick", "x"),
    }


@pytest.mark.parametrize("word", ["kind", "=x", "raw:Binary=x"])
def test_a_malformed_attribute_is_a_usage_error(run, sqs, word):
    assert run("send", "orders", "hi", "-a", word).code == 2
    assert len(sqs.queue("orders")) == 0


def test_each_line_of_standard_input_is_a_message(run, sqs, bodies):
    ran = run("send", "orders", "-", input="one\ntwo\r\n\n  three\nno line end")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("4 sent in ")
    assert bodies() == ["one", "two", "  three", "no line end"]


def test_thousands_of_lines_keep_their_order(run, sqs, bodies):
    wanted = [f"line {number}" for number in range(2345)]
    assert run("send", "orders", "-", "-q", input="\n".join(wanted)).err == ""
    assert bodies() == wanted


@pytest.mark.parametrize("size", [1, 7, 64])
def test_records_are_whole_however_the_input_is_cut(size, monkeypatch):
    """Also if a piece ends between the bytes of a character."""
    import io

    text = "größe\nx\n\nlängste Zeile von allen\nend"
    monkeypatch.setattr(feed, "_READ_BYTES", size)
    found = [record for portion in feed.records(io.BytesIO(text.encode()), b"\n") for record in portion]
    assert found == [(number, line.encode()) for number, line in enumerate(text.split("\n"), 1)]


def test_a_portion_is_limited_in_messages_and_bytes():
    import io

    sizes = [len(portion) for portion in feed.records(io.BytesIO(b"x\n" * 1200), b"\n")]
    assert sizes == [500, 500, 200]
    large = b"x" * 1_000_000 + b"\n"
    portions = list(feed.records(io.BytesIO(large * 20), b"\n"))
    assert max(sum(len(raw) for _, raw in portion) for portion in portions) <= 8 << 20
    assert sum(len(portion) for portion in portions) == 20


def test_a_slow_writer_s_line_is_sent_before_the_next_comes(path, sqs):
    process = subprocess.Popen(
        [sys.executable, "-m", "sqsqlite.cli", "--db", path, "-q", "send", "orders", "-"],
        stdin=subprocess.PIPE,
    )
    process.stdin.write(b"first\n")
    process.stdin.flush()
    [message] = sqs.queue("orders").receive(wait=20)
    assert message.body == "first"
    process.communicate(b"second\n")
    assert process.returncode == 0
    assert [message.body for message in sqs.queue("orders").receive()] == ["second"]


def test_nul_separates_records_with_line_ends(run, sqs, bodies):
    run("send", "orders", "-", "--nul", input="a\nb\n\0c\r\0")
    assert bodies() == ["a\nb\n", "c\r"]


def test_raw_input_is_one_message_byte_for_byte(run, sqs, bodies):
    run("send", "orders", "-", "--raw", input="a\n\nb\n")
    assert bodies() == ["a\n\nb\n"]


def test_options_apply_to_every_line_that_has_no_value_of_its_own(run, sqs):
    lines = '{"body": "a"}\n{"body": "b", "delay": 0}\n'
    run("send", "orders", "-", "--jsonl", "--delay", 60, input=lines)
    assert [message.body for message in sqs.queue("orders").peek()] == ["b"]
    assert [message.body for message in sqs.queue("orders").peek(hidden=True)] == ["a"]


def test_output_of_peek_can_be_sent_again_unchanged(run, sqs):
    sqs.create_queue("copies")
    attributes = {
        "text": "x",
        "whole": {"DataType": "Number", "StringValue": "12"},
        "part": {"DataType": "Number", "StringValue": "1.50"},
        "zero": {"DataType": "Number", "StringValue": "007"},
        "labelled": {"DataType": "Number.euro", "StringValue": "5"},
        "raw": b"\x00\xff",
    }
    sqs.queue("orders").send("hi\nthere", attributes=attributes, group_id="alice", trace_header="Root=1")
    printed = run("peek", "orders").out
    assert run("send", "copies", "-", "--jsonl", input=printed).code == 0
    [original], [copy] = sqs.queue("orders").peek(), sqs.queue("copies").peek()
    assert (copy.body, copy.attributes, copy.group_id, copy.trace_header) == (
        original.body,
        original.attributes,
        original.group_id,
        original.trace_header,
    )
    received = run("receive", "orders").out
    assert run("send", "copies", "-", "--jsonl", input=received).code == 0
    assert sqs.queue("copies").peek()[1].attributes == original.attributes


MIXED = [
    b'{"body": "1"}',
    b'{"body": "2", "delay": 901}',
    b'{"body": "3", "attributes": {"raw": {"DataType": "Binary", "BinaryValue": "AP8="}}}',
    b"not JSON",
    b'{"body": 5}',
    b"[]",
    b'{"body": "7", "colour": "red"}',
    b'{"body": "8", "attributes": {"kind": true}}',
    b'{"body": "\xff"}',
    b'{"body": "10"}',
    b'{"body": "", "attributes": {"price": 1.5, "exact": 1.50}}',
    b"[" * 200_000,
    b'{"body": "13"}',
]
REFUSED = [2, 4, 5, 6, 7, 8, 9, 11, 12]


def test_refused_lines_are_set_aside_and_the_others_sent(run, sqs, bodies, path):
    ran = run("send", "orders", "-", "--jsonl", "--continue-on-error", input=b"\n".join(MIXED))
    assert ran.code == 4
    assert "9 refused: orders-refused.jsonl" in ran.err
    assert bodies() == ["1", "3", "10", "13"]
    aside = [json.loads(line) for line in (path.parent / "orders-refused.jsonl").read_text().splitlines()]
    assert [line["line"] for line in aside] == REFUSED
    assert all(line["error"] for line in aside)


def test_rejected_lines_can_be_repaired_and_sent_again(run, sqs, bodies, path):
    lines = '{"body": "late", "delay": 901, "attributes": {"kind": "x"}}\n'
    run("send", "orders", "-", "--jsonl", "--continue-on-error", "--refused", "aside.jsonl", input=lines)
    mended = (path.parent / "aside.jsonl").read_text().replace("901", "0")
    assert run("send", "orders", "-", "--jsonl", input=mended).code == 0
    assert bodies() == ["late"]


def test_rejected_lines_keep_the_digits_of_numbers(run, sqs, path):
    lines = '{"body": "", "attributes": {"price": 1.5, "exact": 1.50}}\n{"body": "x", "delay": 0.5}\n'
    run("send", "orders", "-", "--jsonl", "--continue-on-error", "--refused", "aside.jsonl", input=lines)
    first, second = (path.parent / "aside.jsonl").read_text().splitlines()
    assert json.loads(second)["delay"] == 0.5
    assert run("send", "orders", "-", "--jsonl", input=first.replace('""', '"mended"')).code == 0
    [message] = sqs.queue("orders").peek()
    numbers = {name: (value.data_type, value.string_value) for name, value in message.attributes.items()}
    assert numbers == {"price": ("Number", "1.5"), "exact": ("Number", "1.50")}


def test_refused_lines_never_overwrite_earlier_ones(run, sqs, path):
    (path.parent / "orders-refused.jsonl").write_text("precious")
    refused = run("send", "orders", "-", "--continue-on-error", input="x")
    assert refused.code == 2
    assert (path.parent / "orders-refused.jsonl").read_text() == "precious"
    assert len(sqs.queue("orders")) == 0


def test_an_unwritable_file_for_refused_lines_stops_before_the_first_send(run, sqs):
    words = ["--continue-on-error", "--refused", "no/such/folder.jsonl"]
    refused = run("send", "orders", "-", *words, input="x")
    assert refused.code == 1
    assert refused.err.startswith("no/such/folder.jsonl: No such file or directory")
    assert len(sqs.queue("orders")) == 0


def test_without_refused_lines_no_file_is_left(run, sqs, path):
    assert run("send", "orders", "-", "--continue-on-error", input="x").code == 0
    assert not (path.parent / "orders-refused.jsonl").exists()


def test_an_empty_file_of_a_killed_run_is_reused_for_refused_lines(run, sqs, path):
    (path.parent / "orders-refused.jsonl").touch()
    assert run("send", "orders", "-", "--continue-on-error", input="x\n\xff").code == 0


@pytest.mark.parametrize("bad", REFUSED)
def test_a_refused_line_ends_the_input_and_keeps_the_lines_before(run, sqs, bodies, bad):
    good = [b'{"body": "before"}'] * 3
    ran = run(
        "send", "orders", "-", "--jsonl", input=b"\n".join([*good, MIXED[bad - 1], b'{"body": "after"}'])
    )
    assert ran.code == 1
    assert ran.err.startswith("line 4: ")
    assert ran.err.endswith("3 sent before it, and none after it\n")
    assert bodies() == ["before"] * 3


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"not JSON", "not JSON, from character 1 on"),
        (b'{"body": "a"} {}', "not JSON, from character 15 on"),
        (b'{"body": "a", "delay": "x"}', 'delay is "x": it must be a whole number of seconds'),
        (b'{"body": "a", "delay": 0.5}', "delay is "),
        (b'{"body": "a", "delay": true}', "delay is true: it must be a whole number"),
        (b'{"body": "a", "group_id": 5}', "group_id is 5: it must be text"),
        (
            b'{"body": "a", "attributes": {"k": true}}',
            "attribute k is true: it must be text, a number, or an object",
        ),
        (b'{"body": "a", "attributes": {"k": null}}', "attribute k is null: it must be text"),
        (
            b'{"body": "a", "attributes": {"k": {"Type": "String"}}}',
            'attribute k is {"Type": "String"}: it must be text',
        ),
        (b'{"body": "a", "attributes": {"k": {"DataType": "Number", "StringValue": 5}}}', "attribute k is "),
        (
            b'{"body": "a", "attributes": {"k": {"DataType": "Binary", "BinaryValue": "A"}}}',
            "attribute k: its BinaryValue is not Base64",
        ),
        (b'{"body": "a\xff"}', "not UTF-8: byte 12 does not belong to a character"),
    ],
)
def test_error_in_a_line_names_its_number_and_its_json_fault(run, sqs, line, text):
    refused = run("send", "orders", "-", "--jsonl", input=b'{"body": "before"}\n' + line)
    assert refused.code == 1
    assert refused.err.startswith(f"line 2: {text}")
    assert refused.err.endswith("1 sent before it, and none after it\n")
    assert len(refused.err.splitlines()) == 2


def test_lines_that_are_not_utf_8_are_refused(run, sqs, bodies):
    assert run("send", "orders", "-", input=b"fine\n\xff\xfe\n").code == 1
    assert bodies() == ["fine"]


def test_with_output_each_sent_message_is_a_row(run, sqs):
    ran = run("send", "orders", "-", "--output", "jsonl", input="a\nb\n")
    assert [row["message_id"] for row in ran.rows] == [
        found.message_id for found in sqs.queue("orders").peek()
    ]


def test_the_examples_in_the_document_run(run, sqs, path):
    """The test creates the queues that the examples do not."""
    sqs.create_queue("reports")
    folder = path.parent
    (folder / "messages.jsonl").write_text('{"body": "hi"}\n')
    (folder / "report.txt").write_text("two\nlines\n")
    (folder / "program.py").touch()
    section = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").partition("### Sending from standard")[2]
    script = section.split("```")[1].replace("sqsqlite", f"{sys.executable} -m sqsqlite.cli")
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "SQSQLITE_DB": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert [queue.name for queue in sqs.queues()] == ["files", "orders", "reports"]


def test_input_forms_exclude_each_other(run, sqs):
    assert run("send", "orders", "-", "--raw", "--jsonl", input="x").code == 2


def test_a_file_for_refused_lines_needs_the_option_to_continue(run, sqs):
    assert run("send", "orders", "-", "--refused", "aside.jsonl", input="x").code == 2
    assert len(sqs.queue("orders")) == 0


def test_an_unknown_queue_is_reported_before_input_is_read(run, sqs):
    refused = run("send", "nowhere", "-", input="x")
    assert (refused.code, refused.err.partition(":")[0]) == (1, "QueueDoesNotExist")


TOLD = re.compile(
    r"([\d,]+) sent: the first ([\d,]+) lines of the input are in the queue; tail -n \+(\d+) prints the others\n"
)


def told(err):
    """The sent messages, the lines that are in, the line to continue from; and all other output."""
    found = TOLD.match(err)
    assert found, err
    return [int(number.replace(",", "")) for number in found.groups()], err[found.end() :]


def test_error_of_a_full_disk_names_the_stored_lines_and_the_way_to_continue(tmp_path):
    """Lines of half a kilobyte, every tenth empty, on 24 MiB: each commit holds 500."""
    lines = [f"{number} {'x' * 500}" if number % 10 else "" for number in range(1, 60_001)]
    (tmp_path / "lines").write_text("\n".join(lines))
    with small_disk(tmp_path / "disk", 24) as disk, sqsqlite.connect(disk / "queues.db") as sqs:
        queue = sqs.create_queue("orders")
        ran = runner_on(disk / "queues.db")("send", "orders", "-", input=(tmp_path / "lines").read_bytes())
        (sent, through, next_line), rest = told(ran.err)
        assert (ran.code, rest.partition(":")[0]) == (1, "DiskFull")
        assert (sent, through, next_line) == (len(queue), sent + through // 10, through + 1)
        assert 500 <= sent < 54_000
        others = subprocess.run(
            ["tail", "-n", f"+{next_line}", tmp_path / "lines"], capture_output=True, text=True, check=True
        ).stdout.split("\n")
        assert others == lines[through:]
        assert runner_on(disk / "queues.db")("tail", "orders", "-n", 1).rows[0]["body"] == next(
            line for line in reversed(lines[:through]) if line
        )


def test_error_of_a_busy_file_names_the_stored_lines(run, sqs):
    with ThreadPoolExecutor(1) as other, sqs.transaction():
        ran = other.submit(run, "--busy-timeout", 0.1, "send", "orders", "-", input="a\n").result(60)
    assert ran.code == 5
    assert ran.err.startswith("0 sent: no line of the input is in the queue\nBusy: ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["--nul"],
            "500 sent: the first 500 records of the input are in the queue; tail -z -n +501 prints the others\n",
        ),
        (["--raw"], "1 sent: the whole input is in the queue\n"),
    ],
)
def test_messages_that_could_not_be_printed_are_reported_as_sent(path, sqs, words, text):
    command = [*COMMAND, "--db", str(path), "send", "orders", "-", "--output", "jsonl", *words]
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            command,
            input="a" + "\0b" * 2_000 if "--nul" in words else "a\nb",
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=50,
        )
    assert (ran.returncode, ran.stderr[: len(text)]) == (1, text)
    assert len(sqs.queue("orders")) == int(text.split()[0])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("at_least", [1, 700, 2_500, 6_000])
def test_a_signal_ends_send_with_the_exact_count_of_stored_lines(path, sqs, number, code, at_least):
    """At any instant: the command waits for the commit under way, and counts it."""
    lines = subprocess.Popen(["yes", "line"], stdout=subprocess.PIPE)
    process = subprocess.Popen(
        [*COMMAND, "--db", path, "send", "orders", "-"], stdin=lines.stdout, stderr=subprocess.PIPE, text=True
    )
    lines.stdout.close()
    until(lambda: len(sqs.queue("orders")) >= at_least, 90)
    process.send_signal(number)
    _, err = process.communicate(timeout=100)
    lines.wait()
    count = len(sqs.queue("orders"))
    assert (process.returncode, told(err)) == (code, ([count, count, count + 1], ""))


def test_a_refused_line_of_a_commit_that_failed_is_not_set_aside(tmp_path, monkeypatch):
    """It is read again with the lines that are not in."""
    monkeypatch.chdir(tmp_path)
    lines = [b"x" * 500 if number % 10 else b"\xff" for number in range(1, 60_001)]
    with small_disk(tmp_path / "disk", 24) as disk, sqsqlite.connect(disk / "queues.db") as sqs:
        sqs.create_queue("orders")
        words = ["send", "orders", "-", "--continue-on-error"]
        ran = runner_on(disk / "queues.db")(*words, input=b"\n".join(lines))
        (_, through, _), rest = told(ran.err)
        assert rest.startswith(f"{through // 10:,} refused: orders-refused.jsonl\nDiskFull: ")
        aside = (tmp_path / "orders-refused.jsonl").read_text().splitlines()
        assert [json.loads(row)["line"] for row in aside] == list(range(10, through + 1, 10))
