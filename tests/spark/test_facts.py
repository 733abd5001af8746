# SPDX-License-Identifier: Apache-2.0
"""A snapshot shows one instant despite other readers and writers, and a bad file does not spoil the others."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import sqsqlite
from sqsqlite.errors import CannotOpen
from sqsqlite.spark import catalogue, tables
from sqsqlite.spark.errors import NoFacts
from sqsqlite.spark.facts import find_files, take_facts
from sqsqlite.store.connections import uri
from sqsqlite.store.driver import dbapi
from tests.spark import oracles
from tests.store.full_disks import small_disk
from tests.store.machine import DAY, Machine

MESSAGES = "SELECT count(*) AS n FROM sqs_facts"


def make(path, count=3):
    with sqsqlite.connect(path, synchronous="OFF") as sqs:
        if count:
            sqs.create_queue("orders").send_many([f"message {number}" for number in range(count)])
    return path


def test_taking_facts_does_not_change_the_file(tmp_path):
    path = make(tmp_path / "queues.db")
    before = path.read_bytes()
    facts = take_facts([path], tmp_path / "facts.sqlite")
    assert (facts.files, facts.messages, facts.problems) == (1, 3, {})
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["facts.sqlite", "queues.db", "queues.db-sqs"]


def test_the_connection_that_takes_facts_syncs(tmp_path, monkeypatch):
    """If it is the last to close the file, it copies the WAL, whose commits were promised to be kept, into it."""
    from sqsqlite.spark import facts as module

    levels = []
    original = module.disconnect

    def disconnect(connection, path):
        levels.append(connection.execute("PRAGMA main.synchronous").fetchone()[0])
        original(connection, path)

    monkeypatch.setattr(module, "disconnect", disconnect)
    take_facts([make(tmp_path / "queues.db")], tmp_path / "facts.sqlite")
    assert levels == [2]


def test_facts_contain_messages_from_before_the_last_boot(tmp_path, monkeypatch):
    """The file's clock jumped ten days. A copy that was not opened since is read as if it had been."""
    machine = Machine(monkeypatch)
    path = make(tmp_path / "queues.db")
    machine.boots(off=10 * DAY)
    assert take_facts([path], tmp_path / "before.sqlite").messages == 3
    make(path, 2)
    assert take_facts([path], tmp_path / "after.sqlite").messages == 5
    machine.runs(3 * DAY)
    make(path, 1)
    machine.boots(off=DAY)
    machine.runs(2 * DAY)
    assert take_facts([path], tmp_path / "again.sqlite").messages == 6
    make(path, 0)
    machine.runs(3 * DAY)
    assert take_facts([path], tmp_path / "later.sqlite").messages == 1


def test_live_tables_contain_messages_from_before_the_last_boot(session, tmp_path, monkeypatch):
    machine = Machine(monkeypatch)
    machine.is_paused(-10 * DAY)  # the views use the machine's own clock
    path = make(tmp_path / "queues.db")
    machine.boots(off=10 * DAY)
    make(path, 2)
    with tables.live_tables(session, path, {"messages": ("id",)}) as found:
        assert found["messages"].count() == 5


def test_facts_hold_no_bodies(tmp_path):
    with sqsqlite.connect(tmp_path / "queues.db") as sqs:
        sqs.create_queue("orders").send("a very secret body")
    take_facts([tmp_path / "queues.db"], tmp_path / "facts.sqlite")
    assert b"secret" not in (tmp_path / "facts.sqlite").read_bytes()


def test_the_sequence_is_dense_over_all_files(tmp_path):
    paths = [make(tmp_path / f"{number}.db", number) for number in range(5)]
    facts = take_facts(paths, tmp_path / "facts.sqlite")
    found = oracles.rows(facts.path, "SELECT seq FROM sqs_facts ORDER BY seq")
    assert [row["seq"] for row in found] == list(range(1, 11))


def test_partitions_of_facts_see_one_instant_while_others_write(session, tmp_path):
    """A writer replaces messages, so their number never changes. Partitions of the live file would count more."""
    path = make(tmp_path / "queues.db", 2000)
    stop = threading.Event()
    turns = 0

    def write():
        nonlocal turns
        with sqsqlite.connect(path, synchronous="OFF") as sqs:
            queue = sqs.queue("orders")
            while not stop.is_set():
                with sqs.transaction():
                    for message in queue.receive(10):
                        message.delete()
                        queue.send(message.body)
                turns += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for attempt in range(3):
            facts = take_facts([path], tmp_path / f"{attempt}.facts")
            found = tables.read_facts(session, facts, {"messages": ()}, partitions=4)["messages"]
            assert found.rdd.getNumPartitions() == 4
            assert (found.count(), found.select("id").distinct().count()) == (2000, 2000)
            with tables.live_tables(session, path, {"messages": ("id",)}) as live:
                assert live["messages"].count() == 2000
    finally:
        stop.set()
        writer.join()
    assert turns > 10


def test_the_scan_is_jdbc_s_and_prunes_columns(session, tmp_path):
    facts = take_facts([make(tmp_path / "queues.db")], tmp_path / "facts.sqlite")
    frame = tables.read_facts(session, facts, {"messages": ()})["messages"].groupBy("queue_key").count()
    plan = frame._jdf.queryExecution().toString()
    assert "Scan JDBC" in plan
    assert "sqs_facts" in plan
    assert "size_bytes" not in plan.partition("Physical Plan")[2]


@pytest.mark.parametrize(
    ("names", "kept"), [(["ages"], False), (["backlog"], True), (["ages", "receives"], True)]
)
def test_messages_that_are_read_several_times_cross_jdbc_once(session, tmp_path, names, kept):
    path = make(tmp_path / "queues.db")
    in_memory = session.sparkContext._jsc.getPersistentRDDs
    with tables.tables_of(session, [path], names) as taken:
        for name in names:
            frame = catalogue.make_report(name, taken.tables)
            rows = catalogue.rows_of(frame)
            plan = frame._jdf.queryExecution().toString().partition("Physical Plan")[2]
            assert ("InMemoryTableScan" in plan) is kept
            assert "Scan JDBC" in plan
        assert len(in_memory()) == kept
        assert rows
    assert len(in_memory()) == 0


def old(path):
    make(path)
    connection = dbapi.connect(uri(path, "rw"), uri=True)
    connection.execute("UPDATE sqs_meta SET number = 0 WHERE name = 'schema_version'")
    connection.commit()
    connection.close()


def damaged(path):
    make(path, 2000)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 4)
        file.write(b"\xff" * (path.stat().st_size // 2))


BAD = {
    "missing": (lambda _: None, "there is no such file"),
    "a folder": (lambda path: path.mkdir(), "there is no such file"),
    "empty": (lambda path: path.touch(), "without queues"),
    "a text": (lambda path: path.write_text("no database\n" * 200), "not a SQLite database"),
    "old": (old, "db upgrade"),
    "damaged": (damaged, "damaged"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_a_problem_and_the_others_are_read(tmp_path, kind):
    spoil, words = BAD[kind]
    bad = tmp_path / "bad.db"
    spoil(bad)
    first, last = make(tmp_path / "first.db", 2), make(tmp_path / "last.db", 3)
    facts = take_facts([first, bad, last], tmp_path / "facts.sqlite")
    assert list(facts.problems) == [str(bad)]
    assert words in facts.problems[str(bad)]
    assert (facts.files, facts.messages) == (3, 5)
    assert oracles.rows(facts.path, MESSAGES) == [{"n": 5}]
    files = oracles.rows(facts.path, "SELECT file, messages, problem IS NOT NULL AS bad FROM sqs_fact_files")
    assert [tuple(row.values()) for row in files] == [(str(first), 2, 0), (str(bad), 0, 1), (str(last), 3, 0)]


def test_a_locked_file_is_a_problem(tmp_path, monkeypatch):
    """A reader of a WAL waits only for a process that has locked the whole file."""
    from sqsqlite.spark import facts as module

    monkeypatch.setattr(module, "BUSY_TIMEOUT", 0.1)
    locked, free = make(tmp_path / "locked.db"), make(tmp_path / "free.db")
    program = (
        "import sys\nfrom sqsqlite.store.driver import dbapi\n"
        "connection = dbapi.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA locking_mode = EXCLUSIVE').fetchall()\n"
        "connection.execute('BEGIN EXCLUSIVE')\n"
        "print('locked', flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(locked)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        facts = take_facts([locked, free], tmp_path / "facts.sqlite")
        other.stdin.close()
    assert list(facts.problems) == [str(locked)]
    assert facts.messages == 3


def test_error_without_a_readable_file_gives_the_reasons(tmp_path):
    with pytest.raises(CannotOpen, match=r"none\.db: there is no such file"):
        take_facts([tmp_path / "none.db"], tmp_path / "facts.sqlite")
    with pytest.raises(NoFacts, match=r"none\.db: there is no such file\n.*nor\.db: there is no such file"):
        take_facts([tmp_path / "none.db", tmp_path / "nor.db"], tmp_path / "other.sqlite")
    with pytest.raises(NoFacts, match="there is no file to read"):
        take_facts([], tmp_path / "nothing.sqlite")


def test_facts_never_overwrite_another_file(tmp_path):
    path = make(tmp_path / "queues.db")
    with pytest.raises(NoFacts, match="exists already"):
        take_facts([path], path)
    assert make(tmp_path / "again.db").exists()


def test_globs_find_the_databases_and_no_other_files(tmp_path):
    for name in ("b.db", "a.db", "a.db-wal", "a.db-shm", "deep/c.db"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a.db-sqs").mkdir()
    (tmp_path / "[x].db").touch()
    found = find_files(
        [f"{tmp_path}/*.db*", f"{tmp_path}/**/*.db", tmp_path / "[x].db", tmp_path / "none.db"]
    )
    names = [str(path.relative_to(tmp_path)) for path in found]
    assert names == ["[x].db", "a.db", "b.db", "deep/c.db", "none.db"]
    assert find_files([f"{tmp_path}/*.sqlite"]) == []


def test_two_links_to_a_file_are_one_file(tmp_path):
    (tmp_path / "b.db").touch()
    (tmp_path / "a.db").symlink_to("b.db")
    (tmp_path / "c.db").hardlink_to(tmp_path / "b.db")
    assert find_files([tmp_path / "b.db", f"{tmp_path}/*.db"]) == [tmp_path / "b.db"]
    assert find_files([f"{tmp_path}/none.db", f"{tmp_path}/*.db"]) == [
        tmp_path / "none.db",
        tmp_path / "a.db",
    ]


def test_a_full_disk_for_the_snapshot_is_not_a_problem_of_the_files(tmp_path):
    paths = [make(tmp_path / "many.db", 20_000), make(tmp_path / "few.db")]
    with small_disk(tmp_path / "disk", size_mib=1) as disk:
        (disk / "another").write_bytes(bytes(600_000))
        for some in (paths[:1], paths):
            with pytest.raises(NoFacts, match=r"disk/facts.*no room for the snapshot.*--snapshot-dir"):
                take_facts(some, disk / f"facts-{len(some)}.sqlite")


def test_a_name_that_is_not_utf_8_is_shown_by_its_bytes(session, tmp_path):
    make(tmp_path / "good.db")
    path = Path(os.fsdecode(bytes(tmp_path) + b"/bad\xff.db"))
    make(path)
    missing = Path(os.fsdecode(bytes(tmp_path) + b"/none\xfe.db"))
    with tables.tables_of(session, [path, tmp_path / "good.db", missing], ["fleet", "backlog"]) as taken:
        rows = catalogue.rows_of(catalogue.make_report("fleet", taken.tables))
        files = {row["file"].rpartition("/")[2]: (row["messages"], row["problem"] is None) for row in rows}
        assert files == {"bad\\xff.db": (3, True), "good.db": (3, True), "none\\xfe.db": (0, False)}
        assert [name.rpartition("/")[2] for name in taken.facts.problems] == ["none\\xfe.db"]
        backlog = catalogue.rows_of(catalogue.make_report("backlog", taken.tables))
        assert sorted(row["file"].rpartition("/")[2] for row in backlog) == ["bad\\xff.db", "good.db"]


def test_each_file_of_a_fleet_has_its_own_instant(session, tmp_path):
    """Ages follow each file's own clock: one that is a day ahead makes no message of the others older."""
    clocks = [sqsqlite.ManualClock(1_800_000_000_000 + day * 86_400_000) for day in range(2)]
    found = {}
    for number, clock in enumerate(clocks):
        path = tmp_path / f"{number}.db"
        with sqsqlite.connect(path, clock=clock) as sqs:
            sqs.create_queue("orders").send("hello")
        clock.advance(seconds=100 + number)
        found[path] = clock.now_ms()
    names = ("fleet", "backlog", "ages")
    from sqsqlite.spark import facts as module

    instants = iter(found.values())
    original = module._now_ms
    module._now_ms = lambda _: next(instants)
    try:
        facts = take_facts(list(found), tmp_path / "facts.sqlite")
    finally:
        module._now_ms = original
    read = tables.read_facts(session, facts, catalogue.reads_of(*names))
    rows = catalogue.rows_of(catalogue.make_report("backlog", read))
    assert [(row["file"], row["oldest_age_seconds"]) for row in rows] == [
        (str(path), 100 + number) for number, path in enumerate(found)
    ]
    fleet = catalogue.rows_of(catalogue.make_report("fleet", read))
    assert [row["oldest_age_seconds"] for row in fleet] == [100, 101]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root alone can become nobody")
def test_a_folder_that_a_report_may_not_write_is_refused_with_advice(tmp_path):
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        os.chmod(folder, 0o755)
        path = make(Path(folder, "queues.db"))
        path.chmod(0o644)
        program = (
            "import os, sys\nfrom sqsqlite.spark.facts import check_file\n"
            "os.setgroups([]); os.setgid(65534); os.setuid(65534)\ncheck_file(sys.argv[1])"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    assert "ReadOnlyFile: " in done.stderr
    assert "must be allowed to write the file's folder" in done.stderr
    assert "sqsqlite backup" in done.stderr
