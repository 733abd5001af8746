# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite report`, `export` and `analytics` as typed, with the tests' own session."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest

import sqsqlite
from sqsqlite.cli import report as report_command
from sqsqlite.spark import catalogue
from sqsqlite.spark import session as spark
from sqsqlite.spark.errors import SparkFailed
from tests.cli.runs import runner_on
from tests.spark import oracles

BACKLOG_KEYS = [
    "queue",
    "visible",
    "in_flight",
    "delayed",
    "oldest_age_seconds",
    "age_p50_seconds",
    "age_p95_seconds",
    "bytes",
    "sent_per_minute",
    "deleted_per_minute",
    "drain_seconds",
]


@pytest.fixture
def run(busy_file, session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return runner_on(busy_file)


@pytest.fixture
def small(tmp_path):
    """Two files of a fleet, and one that does not exist."""
    for name in ("a.db", "b.db"):
        with sqsqlite.connect(tmp_path / name) as sqs:
            sqs.create_queue(f"queue-of-{name[0]}").send("hello")
    return tmp_path


@pytest.mark.parametrize("how", [[], ["--live"]], ids=["snapshot", "live"])
def test_backlog_as_json_has_these_keys_in_this_order(run, busy_file, how):
    done = run("report", "backlog", "--output", "json", *how)
    assert done.code == 0, done.err
    assert [list(row) for row in done.json] == [BACKLOG_KEYS] * 9
    counts = {row["queue"]: (row["visible"], row["in_flight"], row["delayed"]) for row in done.json}
    with sqsqlite.connect(busy_file) as sqs:
        assert counts == {
            found.name: (found.visible, found.in_flight, found.delayed) for found in sqs.stats()
        }


def test_the_command_lists_the_reports():
    assert tuple(catalogue.REPORTS) == report_command.NAMES


def test_messages_go_to_standard_error_and_quiet_drops_them(run):
    done = run("report", "backlog")
    assert done.rows[0]["queue"] == "dead"
    assert "messages of 1 file, snapshot" in done.err
    assert run("report", "backlog", "--quiet").err == ""


@pytest.mark.parametrize("form", ["csv", "csv-safe"])
def test_csv_has_a_heading_and_one_line_per_row(run, form):
    done = run("report", "backlog", "--queue", "orders", "--queue", "shared", "--output", form)
    found = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["queue"] for row in found] == ["orders", "shared"]
    assert list(found[0]) == BACKLOG_KEYS


def test_a_table_has_the_histogram_below(run):
    done = run("report", "backlog", "--output", "table")
    assert done.out.splitlines()[0].split()[:4] == ["queue", "visible", "in_flight", "delayed"]
    assert any(line.split()[:3] == ["queue", "from", "to"] for line in done.out.splitlines())


def test_data_goes_to_a_file(run, tmp_path):
    done = run(
        "report", "throughput", "--since", "100h", "--every", "day", "--output", "json", "--out", "t.json"
    )
    assert (done.code, done.out) == (0, "")
    assert {row["at"][11:] for row in json.loads((tmp_path / "t.json").read_text())} == {"00:00:00.000Z"}


def test_parquet_is_written_once(run, session, tmp_path):
    done = run("report", "backlog", "--output", "parquet", "--out", "backlog.parquet")
    assert done.code == 0, done.err
    found = session.read.parquet(str(tmp_path / "backlog.parquet"))
    assert found.count() == 9
    assert set(BACKLOG_KEYS) < set(found.columns)
    refused = run("report", "backlog", "--output", "parquet", "--out", "backlog.parquet")
    assert (refused.code, refused.err) == (1, "TargetExists: backlog.parquet: the folder exists already\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "is not one of"),
        (["backlog", "--since", "yesterday"], "neither a length of time"),
        (["backlog", "--output", "parquet"], "writes a folder: add --out DIR"),
        (["backlog", "--output", "text"], "is not one of"),
        (["all"], "--output html --out FILE"),
        (["backlog", "--conf", "spark"], "a setting is NAME=VALUE"),
        (["backlog", "a.db", "b.db", "--live"], "--live reads one file"),
    ],
)
def test_a_wrong_command_line_names_its_mistake(run, words, said):
    refused = run("report", *words)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err


def test_a_format_before_the_verb_that_no_report_has_is_refused(run):
    refused = run("--output", "text", "report", "backlog")
    assert refused.code == 2
    assert "--output text: choose one of table" in refused.err


def test_settings_for_a_running_session_are_refused(run):
    refused = run("report", "backlog", "--master", "local[1]")
    assert refused.code == 1
    assert refused.err.startswith(f"{SparkFailed.__name__}: Spark is running already")


def test_a_fleet_is_reported_with_its_problems(run, small):
    done = run("report", "fleet", "*.db", "none.db", "--output", "json")
    assert done.code == 0
    assert [(row["file"], row["visible"]) for row in done.json] == [
        (str(small / "a.db"), 1),
        (str(small / "b.db"), 1),
        (str(small / "none.db"), 0),
    ]
    assert "no such file" in done.json[2]["problem"]
    assert f"problem: {small}/none.db: there is no such file" in done.err


def test_rows_of_many_files_name_their_file(run, small):
    done = run("report", "backlog", "a.db", "b.db", "--output", "json")
    assert [(row["file"], row["queue"]) for row in done.json] == [
        (str(small / "a.db"), "queue-of-a"),
        (str(small / "b.db"), "queue-of-b"),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none*.db"], "NoSuchFile: none*.db: no file has this name"),
        (["none.db"], "CannotOpen: "),
        (["none.db", "nor.db"], "NoFacts: "),
        (["none.db", "--live"], "CannotOpen: "),
    ],
)
def test_nothing_to_read_is_an_error(run, words, said):
    refused = run("report", "backlog", *words)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(said)


@pytest.mark.parametrize("how", [[], ["--live"]], ids=["snapshot", "live"])
def test_error_about_a_file_of_an_older_version_names_the_upgrade(run, small, how):
    with sqsqlite.connect(small / "a.db") as sqs, sqs.transaction() as connection:
        connection.execute("UPDATE sqs_meta SET number = 0 WHERE name = 'schema_version'")
    refused = run("report", "backlog", "a.db", *how)
    assert (refused.code, refused.out) == (6, "")
    assert "db upgrade" in refused.err
    fleet = run("report", "fleet", "a.db", "b.db", "--output", "json").json
    assert [(row["visible"], "db upgrade" in (row["problem"] or "")) for row in fleet] == [
        (1, False),
        (0, True),
    ]


def test_an_unknown_queue_is_refused_with_similar_names(run):
    refused = run("report", "backlog", "--queue", "order")
    assert (refused.code, refused.out) == (1, "")
    assert "QueueDoesNotExist: order: no such queue" in refused.err
    assert "its queues: orders" in refused.err


def test_queues_of_another_account_are_named_with_it(run, tmp_path):
    with sqsqlite.connect(tmp_path / "two.db") as sqs:
        sqs.create_queue("mine")
        with sqs.transaction() as connection:
            connection.execute("UPDATE sqs_queues SET account_id = '123456789012'")
        sqs.create_queue("mine")
    rows = run("report", "backlog", "two.db", "--output", "json").json
    assert [(row["account_id"], row["queue"]) for row in rows] == [
        ("000000000000", "mine"),
        ("123456789012", "mine"),
    ]


def test_exports_add_snapshots_by_queue_and_day(run, session, busy_file, tmp_path):
    first = run("export", "--parquet", "lake", "--output", "json")
    assert first.code == 0, first.err
    second = run("export", "--parquet", "lake", "--queue", "orders", "--output", "json")
    lake = session.read.parquet(str(tmp_path / "lake"))
    taken = {
        row.taken_at.isoformat(timespec="milliseconds")
        for row in lake.select("taken_at").distinct().collect()
    }
    assert len(taken) == 2
    assert first.json[0]["taken_at"] < second.json[0]["taken_at"]
    whole = oracles.rows(
        busy_file,
        "SELECT count(*) AS n FROM sqs_report_messages WHERE queue <> 'forgotten'",
    )[0]["n"]
    ours = oracles.rows(busy_file, "SELECT count(*) AS n FROM sqs_report_messages WHERE queue = 'orders'")[0][
        "n"
    ]
    assert lake.count() == whole + ours
    assert (first.json[0]["messages"], second.json[0]["messages"]) == (whole, ours)
    assert (
        "QueueDoesNotExist: order: no such queue"
        in run("export", "--parquet", "lake", "--queue", "order").err
    )
    days = {path.name for path in (tmp_path / "lake" / "queue_folder=q-orders").iterdir()}
    assert days
    assert all(day.startswith("day=20") for day in days)
    ids = [row.message_id for row in lake.where("queue = 'orders'").select("message_id").distinct().collect()]
    with sqsqlite.connect(busy_file) as sqs:
        assert {message.message_id for message in sqs.queue("orders").peek(100)} < set(ids)
    assert {kind for _, kind in lake.dtypes} == {"timestamp", "string", "bigint", "date"}


def test_a_report_of_an_empty_folder_of_queues_is_empty(run, tmp_path):
    with sqsqlite.connect(tmp_path / "empty.db"):
        pass
    assert run("report", "backlog", "empty.db", "--output", "json").json == []
    assert run("report", "backlog", "empty.db", "--live", "--output", "json").json == []
    assert run("report", "backlog", "empty.db", "--output", "csv").out == ",".join(BACKLOG_KEYS) + "\n"


def test_a_files_name_can_neither_break_a_line_nor_control_the_terminal(run, small):
    for name in ("new\nline.db", "\x1b[31m.db"):
        (small / name).write_text("no database")
    done = run("report", "fleet", "*.db", "--output", "json")
    assert done.code == 0
    problems = [line for line in done.err.splitlines() if line.startswith("problem: ")]
    assert [name in line for name, line in zip((r"\x1b[31m.db", r"new\nline.db"), problems, strict=True)] == [
        True
    ] * 2
    assert "\x1b" not in done.err


def test_the_driver_is_named(run, jar):
    assert run("analytics", "fetch-driver").rows[0]["driver"] == str(jar)


def test_an_unknown_view_is_refused(run):
    refused = run("analytics", "schema", "sqs_messages")
    assert refused.code == 2
    assert "there is no reporting view sqs_messages: the views are sqs_report_now" in refused.err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a priority is the whole process's")
def test_spark_is_started_with_a_low_priority_and_this_process_keeps_its_own(monkeypatch):
    monkeypatch.setattr(spark, "NICE", 10)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    seen = []

    class Builder:
        def getOrCreate(self):  # noqa: N802 - Spark's name
            seen.append(os.getpriority(os.PRIO_PROCESS, 0))

    spark._started(Builder())
    assert seen == [max(10, own), own]


@pytest.mark.slow
def test_a_command_prints_its_data_without_sparks_messages(jar, busy_file, tmp_path):
    """Without a session of the tests: the words of Spark and Java must not reach the terminal."""
    program = "import sys; from sqsqlite.cli import main; main(sys.argv[1:], 'sqsqlite')"
    words = [
        "--db",
        busy_file,
        "--quiet",
        "report",
        "backlog",
        "--output",
        "json",
        "--conf",
        "spark.app.name=own",
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words), "--master", "local[1]", "--jdbc-jar", str(jar)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)) == 9
    assert [path.name for path in tmp_path.iterdir() if "facts" in path.name] == []
