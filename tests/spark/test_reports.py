# SPDX-License-Identifier: Apache-2.0
"""Every number of every report equals that of plain SQL, by a snapshot and live."""

import pytest

from sqsqlite.spark import catalogue, reports, tables
from sqsqlite.spark.catalogue import Options
from sqsqlite.spark.facts import take_facts
from tests.spark import oracles

HOUR_MS = 3_600_000
# Longest first: activity, sends, moves and receives on both sides of each.
SINCE_MS = (100 * HOUR_MS, 40 * HOUR_MS, HOUR_MS)


@pytest.fixture(scope="session")
def facts(busy_file, tmp_path_factory):
    return take_facts([busy_file], tmp_path_factory.mktemp("facts") / "facts.sqlite")


@pytest.fixture(params=["snapshot", "live"])
def tables_and_now(request, session, facts, busy_file):
    """`open(name)` gives the tables that this report declares to read, no others, and their instant."""
    from contextlib import contextmanager

    @contextmanager
    def opened(name):
        if request.param == "snapshot":
            yield tables.read_facts(session, facts, catalogue.reads_of(name), partitions=3), facts.taken_at
            return
        with tables.live_tables(session, busy_file, catalogue.reads_of(name)) as found:
            yield found, found["queues"].first().now_ms

    return opened


def report_rows(name, found, options):
    rows = catalogue.rows_of(catalogue.make_report(name, found, options))
    return catalogue.without_constants(rows, one_file=True)


@pytest.mark.parametrize("since_ms", SINCE_MS)
def test_backlog_equals_a_count_message_by_message(tables_and_now, busy_file, since_ms):
    with tables_and_now("backlog") as (found, now_ms):
        rows = report_rows("backlog", found, Options(since_ms=now_ms - since_ms))
    assert rows == oracles.backlog(busy_file, now_ms=now_ms, since=now_ms - since_ms)
    names = "dead empty forgotten frail graves jobs.fifo later.fifo orders shared"
    assert [row["queue"] for row in rows] == names.split()


@pytest.mark.parametrize("name", oracles.ORACLES)
@pytest.mark.parametrize("since_ms", [SINCE_MS[0], SINCE_MS[-1]], ids=["all", "the last hour"])
def test_report_equals_plain_sql(tables_and_now, busy_file, name, since_ms):
    with tables_and_now(name) as (found, now_ms):
        rows = report_rows(name, found, Options(since_ms=now_ms - since_ms))
    expected = oracles.rows(busy_file, oracles.ORACLES[name], now_ms=now_ms, since=now_ms - since_ms)
    for row in expected:
        for column in {"at", "first_moved_at", "last_moved_at", "expires_at"} & row.keys():
            row[column] = catalogue.iso(row[column])
        if "held_mean_seconds" in row:
            row["held_mean_seconds"] = int(row["held_mean_seconds"])
    if name == "fleet":
        assert [row.pop("file") for row in rows] == [str(busy_file)]
    assert rows == expected
    assert [list(row) for row in rows[:1]] == [list(row) for row in expected[:1]]
    assert rows or since_ms == HOUR_MS  # the busy file has rows for each


def test_the_busy_file_gives_every_report_rows(tables_and_now):
    """Otherwise the compared numbers would all be zero."""
    with tables_and_now("groups") as (found, _):
        groups = {row["group_id"]: row for row in report_rows("groups", found, Options())}
    assert groups["group-0"]["blocked"] == 3
    assert (groups["later"]["delayed"], groups["later"]["blocked"]) == (3, 2)
    assert [groups[name]["queue"] for name in ("tenant-0", "tenant-1")] == ["graves", "graves"]
    assert groups["noisy"]["turns_ahead"] > groups["quiet"]["turns_ahead"]
    with tables_and_now("receives") as (found, _):
        assert sum(row["poison_candidates"] for row in report_rows("receives", found, Options())) > 0


def test_a_window_ends_at_the_files_own_instant(session, facts):
    found = tables.read_facts(session, facts, catalogue.reads_of("throughput"))
    by_window = report_rows("throughput", found, Options(window_ms=HOUR_MS))
    by_instant = report_rows("throughput", found, Options(since_ms=facts.taken_at - HOUR_MS))
    assert by_window == by_instant != []


@pytest.mark.parametrize(("every", "length"), [("minute", 60_000), ("hour", HOUR_MS), ("day", 24 * HOUR_MS)])
def test_periods_of_throughput_begin_at_their_own_length(session, facts, every, length):
    found = tables.read_facts(session, facts, catalogue.reads_of("throughput"))
    frame = catalogue.make_report("throughput", found, Options(since_ms=0, every=every))
    starts = [row.at for row in frame.selectExpr("unix_millis(at) AS at").collect()]
    assert starts != []
    assert [start for start in starts if start % length] == []


def test_queues_are_selected_by_their_exact_names(session, facts):
    """A comparison that SQLite makes as LIKE would not distinguish capitals from small letters."""
    found = tables.read_facts(session, facts, catalogue.reads_of("backlog"))
    rows = report_rows("backlog", found, Options(queues=("orders", "EMPTY")))
    assert [row["queue"] for row in rows] == ["orders"]


def test_a_list_has_at_most_the_requested_length(session, facts):
    found = tables.read_facts(session, facts, catalogue.reads_of("expiring"))
    assert len(report_rows("expiring", found, Options(top=2))) == 2


def test_every_report_names_its_columns_the_same_with_and_without_rows(session, tmp_path):
    import sqsqlite

    with sqsqlite.connect(tmp_path / "empty.db"):
        pass
    nothing = take_facts([tmp_path / "empty.db"], tmp_path / "facts.sqlite")
    for name in catalogue.REPORTS:
        found = tables.read_facts(session, nothing, catalogue.reads_of(name))
        frame = catalogue.make_report(name, found, Options())
        assert len(frame.columns) > 4
        assert frame.count() == (1 if name == "fleet" else 0)


def test_each_cloudwatch_name_belongs_to_a_column_of_a_report(session, facts):
    columns = set()
    for name in ("backlog", "throughput"):
        found = tables.read_facts(session, facts, catalogue.reads_of(name))
        columns.update(catalogue.make_report(name, found, Options()).columns)
    assert catalogue.CLOUDWATCH.keys() - columns == set()


def test_age_classes_are_ascending():
    assert sorted(set(reports.AGE_CLASSES)) == list(reports.AGE_CLASSES)
