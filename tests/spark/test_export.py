# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite export`: the content of the folder afterwards, as readers see it."""

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import sqsqlite
from sqsqlite.spark.errors import ExportIncomplete
from sqsqlite.spark.export import write_parquet
from tests.cli.runs import runner_on

HOUR_S = 3600
DAY_S = 24 * HOUR_S


@pytest.fixture
def clock():
    """Two days ago, an hour after midnight."""
    return sqsqlite.ManualClock(((time.time_ns() // 10**9 // DAY_S - 2) * DAY_S + HOUR_S) * 1000)


@pytest.fixture
def sqs(tmp_path, clock):
    with sqsqlite.connect(tmp_path / "queues.db", clock=clock) as sqs:
        yield sqs


@pytest.fixture
def run(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return runner_on(tmp_path / "queues.db")


@pytest.fixture
def lake(session, tmp_path):
    """`lake()`: the frame that Spark reads without any options."""
    return lambda: session.read.parquet(str(tmp_path / "lake"))


@pytest.fixture
def setting(session):
    """`setting(name, value)` sets a setting of the session until the end of the test."""
    before = {}

    def change(name, value):
        before.setdefault(name, session.conf.get(name))
        session.conf.set(name, value)

    yield change
    for name, value in before.items():
        session.conf.set(name, value)


def day_of(clock):
    return time.strftime("%Y-%m-%d", time.gmtime(clock.now_ms() / 1000))


def parquet_files(folder):
    return sorted(path for path in folder.rglob("*.parquet") if path.is_file())


def test_days_are_those_of_utc_in_a_session_of_any_time_zone(run, setting, sqs, clock, lake):
    """A session that runs already keeps its time zone: in this one days begin 14 hours earlier than in UTC."""
    setting("spark.sql.session.timeZone", "Pacific/Kiritimati")
    queue, day = sqs.create_queue("orders"), day_of(clock)
    queue.send("at one")
    clock.advance(seconds=22 * HOUR_S)
    queue.send("at twenty-three")
    assert run("export", "--parquet", "lake").code == 0
    assert [str(row.day) for row in lake().select("day").collect()] == [day, day]


def test_instants_have_64_bits_under_any_setting_of_the_session(run, session, setting, sqs, tmp_path):
    """Spark writes INT96 by default, and the session keeps its setting."""
    name = "spark.sql.parquet.outputTimestampType"
    setting(name, "INT96")
    sqs.create_queue("orders").send("hello")
    assert run("export", "--parquet", "lake").code == 0
    [file] = parquet_files(tmp_path / "lake")
    assert session.conf.get(name) == "INT96"
    jvm, conf = session._jvm, session._jsc.hadoopConfiguration()
    path = jvm.org.apache.hadoop.fs.Path(str(file))
    footer = jvm.org.apache.parquet.hadoop.ParquetFileReader.readFooter(conf, path)
    types = footer.getFileMetaData().getSchema().toString()
    assert "int64 taken_at (TIMESTAMP(MICROS,true))" in types
    assert "int96" not in types


def test_queues_keep_names_that_look_like_numbers_or_null(run, sqs, lake, tmp_path):
    """Readers guess the types of folders: 007 and 7 would be one number, and Hive's name for NULL no queue at all."""
    names = ["007", "7", "1e3", "2026-11-21", "true", "NaN", "__HIVE_DEFAULT_PARTITION__", "jobs-1.fifo"]
    for name in names:
        queue = sqs.create_queue(name, fifo=name.endswith(".fifo"))
        queue.send("hello", **({"group_id": "a", "deduplication_id": "a"} if ".fifo" in name else {}))
    assert run("export", "--parquet", "lake").code == 0
    assert Counter(row.queue for row in lake().collect()) == Counter(names)
    assert {path.name for path in (tmp_path / "lake").glob("queue*")} == {
        f"queue_folder=q-{name}" for name in names
    }
    assert dict(lake().dtypes)["queue_folder"] == "string"
    assert lake().where("queue_folder = 'q-007'").count() == 1


def test_exports_into_one_folder_at_once_lose_nothing(session, tmp_path):
    """Spark's own committer would share a folder, which the first export to end removes."""
    rows = session.range(40).selectExpr(
        "id", "concat('q-', id % 4) AS queue_folder", "DATE '2026-11-21' AS day"
    )
    with ThreadPoolExecutor(4) as threads:
        written = list(threads.map(lambda _: write_parquet(rows, tmp_path / "lake", expected=40), range(8)))
    assert written == [40] * 8
    assert session.read.parquet(str(tmp_path / "lake")).groupBy("id").count().where("count = 8").count() == 40
    assert list((tmp_path / "lake").glob(".*")) == []


@pytest.mark.parametrize("expected", [0, 39, 41])
def test_a_folder_that_does_not_hold_the_snapshot_is_an_error_and_nothing_is_added(
    session, tmp_path, expected
):
    rows = session.range(40).selectExpr("id", "'q-a' AS queue_folder", "DATE '2026-11-21' AS day")
    with pytest.raises(ExportIncomplete, match=f"40 of {expected} messages of the snapshot"):
        write_parquet(rows, tmp_path / "lake", expected=expected)
    assert not (tmp_path / "lake").exists()
    write_parquet(rows, tmp_path / "lake", expected=40)
    before = sorted((tmp_path / "lake").rglob("*"))
    with pytest.raises(ExportIncomplete):
        write_parquet(rows, tmp_path / "lake", expected=expected)
    assert sorted((tmp_path / "lake").rglob("*")) == before


def test_the_named_queues_alone_are_expected(run, sqs, lake):
    for name, count in [("orders", 3), ("mails", 2), ("others", 4)]:
        sqs.create_queue(name).send_many(["hello"] * count)
    words = ["--queue", "orders", "--queue", "mails", "--output", "json"]
    assert run("export", "--parquet", "lake", *words).json[0]["messages"] == 5
    assert lake().count() == 5


def test_a_crash_leaves_a_hidden_folder_which_is_removed_after_a_day(run, sqs, lake, tmp_path):
    sqs.create_queue("orders").send("hello")
    days = {".export-old": 2, ".export-new": 0}
    for name, age in days.items():
        part = tmp_path / "lake" / name / "queue_folder=q-orders" / "day=2026-11-21" / "part-0.parquet"
        part.parent.mkdir(parents=True)
        part.write_bytes(b"half of a fi")
        then = time.time() - age * DAY_S
        os.utime(tmp_path / "lake" / name, (then, then))
    assert run("export", "--parquet", "lake", "--output", "json").json[0]["messages"] == 1
    assert lake().count() == 1
    assert [path.name for path in (tmp_path / "lake").glob(".*")] == [".export-new"]


def test_a_folder_with_glob_characters_in_its_name_is_one_folder(run, sqs, tmp_path):
    sqs.create_queue("orders").send("hello")
    assert run("export", "--parquet", "[l]ake {a,b}*", "--output", "json").json[0]["messages"] == 1
    assert len(parquet_files(tmp_path / "[l]ake {a,b}*")) == 1


@pytest.mark.parametrize("target", ["hdfs://name/lake", "s3a://bucket/lake", "file:///lake"])
def test_a_url_is_refused(run, sqs, target, tmp_path):
    sqs.create_queue("orders")
    refused = run("export", "--parquet", target)
    assert refused.code == 2
    assert f"{target}: name a folder of this machine" in " ".join(refused.err.split())
    assert not list(tmp_path.glob("*:"))


def test_an_export_of_nothing_into_a_new_folder_can_be_read(run, sqs, lake, tmp_path):
    queue = sqs.create_queue("orders")
    for _ in range(2):
        assert run("export", "--parquet", "lake", "--output", "json").json[0]["messages"] == 0
        assert lake().count() == 0
    assert len(parquet_files(tmp_path / "lake")) == 1
    types = lake().dtypes
    queue.send("hello")
    assert run("export", "--parquet", "lake", "--output", "json").json[0]["messages"] == 1
    assert lake().count() == 1
    assert lake().dtypes == types
