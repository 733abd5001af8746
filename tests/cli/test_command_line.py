# SPDX-License-Identifier: Apache-2.0
"""Options, the file, exit codes, and the form of errors."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import sqsqlite
from sqsqlite.cli.verbs import VERBS

COMMAND = [sys.executable, "-m", "sqsqlite.cli"]

# The arguments that each command needs before it opens the file.
READING = {
    "queues": [],
    "send": ["q", "hi"],
    "receive": ["q"],
    "peek": ["q"],
    "tail": ["q"],
    "dlq": [],
    "metrics": [],
    "stats": [],
    "top": ["--once"],
    "report": ["backlog"],
    "export": ["--parquet", "lake"],
    "set": ["q", "--delay-seconds", "5"],
    "redrive": ["q", "--yes"],
    "purge": ["q", "--yes"],
    "delete": ["q", "--yes"],
    "delete-queue": ["--queue-url", "q"],
    "get-queue-url": ["--queue-name", "q"],
    "list-queues": [],
    "get-queue-attributes": ["--queue-url", "q"],
    "send-message": ["--queue-url", "q", "--message-body", "hi"],
    "receive-message": ["--queue-url", "q"],
}


@pytest.mark.parametrize("verb", READING)
def test_a_missing_file_is_reported_and_not_created(run, path, verb):
    refused = run(verb, *READING[verb])
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"NoSuchFile: {path}: there is no such file.")
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("verb", READING)
def test_an_empty_file_is_reported_and_left_empty(run, path, verb):
    """To SQLite it is a database without tables, and a look at it would write to it."""
    path.touch()
    refused = run(verb, *READING[verb])
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"NoSuchFile: {path}: the file is empty.")
    assert [(found.name, found.stat().st_size) for found in path.parent.iterdir()] == [(path.name, 0)]


def test_creating_a_queue_fills_an_empty_file(run, path):
    path.touch()
    assert run("create", "q").code == 0
    assert [row["queue"] for row in run("queues").rows] == ["q"]


@pytest.mark.parametrize(
    "words",
    [["create", "q"], ["create-queue", "--queue-name", "q"], ["send", "q", "hi", "--create"]],
    ids=" ".join,
)
def test_creating_a_queue_creates_the_file(run, path, words):
    assert run(*words).code == 0
    assert path.exists()
    assert [row["queue"] for row in run("queues").rows] == ["q"]


def test_option_db_may_come_before_or_after_the_verb(run, sqs, tmp_path):
    other = tmp_path / "other.db"
    assert run("--db", other, "create", "here").code == 0
    assert [row["queue"] for row in run("queues", "--db", other).rows] == ["here"]
    assert [row["queue"] for row in run("queues").rows] == ["orders"]


def test_option_db_after_the_verb_wins(run, sqs, path, tmp_path):
    assert run("--db", tmp_path / "none.db", "queues", "--db", path).code == 0


def test_without_db_and_environment_the_file_is_in_the_current_folder(run, path):
    assert run("create", "q", env={"SQSQLITE_DB": ""}).code == 0
    assert (path.parent / "sqsqlite.db").exists()
    assert not path.exists()


def test_verbose_prints_the_file_in_use_and_quiet_prints_nothing(run, path):
    assert f"file: {path}" in run("create", "q", "-v").err
    assert run("create", "q", "-q").err == ""


def test_opening_options_reach_the_file(run, path):
    run("create", "q")
    assert run("send", "q", "hi", "--delay", "1000").code == 1
    assert run("send", "q", "hi", "--delay", "1000", "--limits", "native").code == 0
    found = run(
        "get-queue-attributes", "--queue-url", "q", "--attribute-names", "QueueArn", "--region", "eu-west-1"
    )
    assert found.json["Attributes"]["QueueArn"] == "arn:aws:sqs:eu-west-1:000000000000:q"


def test_another_applications_file_needs_the_option_adopt(run, path):
    from sqsqlite.store.driver import dbapi

    connection = dbapi.connect(path)
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()
    refused = run("create", "q")
    assert (refused.code, refused.err.partition(":")[0]) == (1, "NotAdopted")
    assert run("create", "q", "--adopt").code == 0


@pytest.mark.parametrize("flag", ["--endpoint-url", "--profile"])
@pytest.mark.parametrize("verb", ["queues", "list-queues"])
def test_flags_without_a_meaning_here_are_refused(run, sqs, verb, flag):
    refused = run(verb, flag, "http://localhost:9324")
    assert refused.code == 2
    assert f"{flag} chooses a server or an account" in refused.err
    assert run(flag, "x", verb).code == 2


def test_an_error_of_sqs_shows_its_class_and_its_message(run, sqs):
    refused = run("send", "orders", "hi", "--delay", "901")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("InvalidParameterValue: Value 901 for parameter DelaySeconds is invalid.")


@pytest.mark.parametrize(
    "words",
    [["send", "x"], ["receive"], ["peek"], ["tail"], ["stats"], ["purge", "--yes"], ["delete", "--yes"]],
    ids=" ".join,
)
def test_error_about_a_missing_queue_names_the_file_and_its_queues(run, sqs, path, words):
    verb, *rest = words
    refused = run(verb, "ordesr", *rest)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == f"QueueDoesNotExist: ordesr: no such queue in {path} (its queues: orders)\n"


def test_error_about_a_missing_queue_suggests_similar_names(run, sqs, path):
    for number in range(20):
        sqs.create_queue(f"part-{number:02}")
    said = run("peek", "order").err
    assert said == f"QueueDoesNotExist: order: no such queue in {path} (its queues: orders, ...)\n"
    said = run("peek", "x").err
    assert said.endswith("(its queues: orders, part-00, part-01, part-02, part-03, ...)\n")


def test_error_about_a_missing_queue_mentions_a_file_without_queues(run, path):
    sqsqlite.connect(path).close()
    assert run("peek", "x").err.endswith(f"no such queue in {path} (it has no queues)\n")


def test_an_error_of_the_file_shows_its_class_and_its_message(run, path):
    path.write_bytes(b"this is a diary, not a database, and it is long enough for a header " * 20)
    refused = run("queues")
    assert (refused.code, refused.err.partition(":")[0]) == (1, "NotADatabase")


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "86401"])
def test_a_busy_timeout_is_at_most_a_day(run, path, seconds):
    assert run("create", "orders", "--busy-timeout", seconds).code == 2
    assert not path.exists()


def test_busy_exits_with_5(run, sqs):
    with sqs.transaction():
        refused = run_in_thread(run, "send", "orders", "hi", "--busy-timeout", "0.05")
    assert (refused.code, refused.err.partition(":")[0]) == (5, "Busy")


def run_in_thread(run, *words):
    """A thread of its own, because a thread that holds a transaction may not begin another."""
    ended = []
    thread = threading.Thread(target=lambda: ended.append(run(*words)))
    thread.start()
    thread.join()
    return ended[0]


def test_an_old_schema_exits_with_6(run, path):
    run("create", "q")
    from sqsqlite.store.driver import dbapi

    connection = dbapi.connect(path)
    connection.execute("UPDATE sqs_meta SET number = 0 WHERE name = 'schema_version'")
    connection.commit()
    connection.close()
    refused = run("queues")
    assert (refused.code, refused.err.partition(":")[0]) == (6, "SchemaTooOld")
    assert "db upgrade" in refused.err


def test_out_writes_the_data_to_a_file(run, sqs, path):
    ran = run("queues", "--out", "queues.json", "--output", "json")
    assert (ran.code, ran.out) == (0, "")
    assert '"queue": "orders"' in (path.parent / "queues.json").read_text()


def test_an_unwritable_out_stops_the_command_before_any_work(run, sqs):
    sqs.queue("orders").send("hi")
    refused = run("receive", "orders", "--delete", "--out", "no/such/folder.json")
    assert (refused.code, refused.err) == (1, "--out no/such/folder.json: No such file or directory\n")
    assert len(sqs.queue("orders")) == 1
    assert sqs.queue("orders").peek()[0].receive_count == 0


def test_an_invalid_query_stops_the_command_before_any_work(run, sqs):
    sqs.queue("orders").send("hi")
    refused = run("receive", "orders", "--query", "[0")
    assert refused.code == 2
    assert "not a JMESPath expression" in refused.err
    assert sqs.queue("orders").peek()[0].receive_count == 0


def test_no_argument_shows_the_help(run):
    shown = run()
    assert "Usage: sqsqlite" in shown.out + shown.err


def test_a_closed_pipe_ends_the_command_quietly(run, path, sqs):
    for _ in range(20):
        sqs.queue("orders").send_many(["x" * 1000] * 50)
    process = subprocess.Popen(
        [*COMMAND, "--db", path, "peek", "orders", "-n", "1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.read(10)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), errors) == (141, b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_without_a_traceback(path, sqs, number, code):
    process = subprocess.Popen(
        [*COMMAND, "--db", path, "tail", "orders", "-f"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    sqs.queue("orders").send("now it follows")
    assert b"now it follows" in process.stdout.readline()
    process.send_signal(number)
    out, errors = process.communicate()
    assert (process.returncode, out, errors) == (code, b"", b"")


@pytest.mark.parametrize(
    "words", [["send", "orders", "-"], ["load", "-"], ["purge", "orders"], ["top", "--once"]]
)
def test_closed_standard_input_reads_as_empty(path, sqs, words):
    """Schedulers and service managers start programs so."""
    command = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, "--db", path, *words]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=50)
    assert "Traceback" not in ran.stderr
    assert ran.returncode == {"load": 1, "purge": 2}.get(words[0], 0)


@pytest.mark.parametrize("form", ["jsonl", "table", "csv"])
def test_output_that_cannot_show_a_character_is_an_error_in_words(path, sqs, form):
    """A pipe on Windows is in cp1252, say. A message that could not be printed is not deleted."""
    sqs.queue("orders").send("\N{SNOWMAN}")
    ran = subprocess.run(
        [*COMMAND, "--db", path, "receive", "orders", "--delete", "--output", form],
        check=False,
        capture_output=True,
        text=True,
        timeout=50,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith(
        "standard output is in ascii, which has no '\\u2603': write to a file with --out"
    )
    assert len(sqs.queue("orders")) == 1


def test_the_table_of_reading_verbs_is_complete():
    """A new everyday verb belongs in READING, or here."""
    files = {"db", "backup", "restore", "check", "dump", "load", "demo", "completion", "create", "analytics"}
    files |= {"serve", "keys", "forward", "fetch", "payloads"}
    everyday = {verb for verb, found in VERBS.items() if not found.home.startswith("actions:")}
    assert everyday - files - READING.keys() == set()


def test_only_a_terminal_gets_colours(run, sqs):
    assert "\x1b" not in run("queues", "--output", "table").out
    assert "\x1b" not in run("receive", "nowhere").err


def test_the_version_is_the_package_s(run):
    assert run("--version").out == f"sqsqlite {sqsqlite.__version__}\n"
