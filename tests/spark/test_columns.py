# SPDX-License-Identifier: Apache-2.0
"""JDBC loses nothing of a number: each column has a declared type, whatever Spark would guess."""

import pytest

import sqsqlite
from sqsqlite.errors import CannotOpen
from sqsqlite.spark import facts as facts_module
from sqsqlite.spark import tables
from sqsqlite.spark.facts import Facts, take_facts
from sqsqlite.spark.tables import FACTS, VIEWS, custom_schema
from sqsqlite.store.connections import uri
from sqsqlite.store.driver import dbapi
from tests.spark import oracles

BIG = 1_795_240_000_000  # 32 bits of it are -56329728
# Columns that depend on the clock at the moment of the query.
MOVING = {"now_ms", "age_seconds", "held_seconds", "expires_in_seconds", "dead_seconds"}


def columns(path, table):
    return [row["name"] for row in oracles.rows(path, "SELECT name FROM pragma_table_xinfo(:t)", t=table)]


def read(session, path, table, types):
    return (
        tables._reader(session, tables.jdbc_url(path), custom_schema(types)).option("dbtable", table).load()
    )


def test_every_column_of_every_reporting_view_has_a_type(busy_file):
    views = oracles.rows(
        busy_file,
        "SELECT name FROM sqlite_schema WHERE type = 'view' AND name LIKE 'sqs_report_%' ORDER BY name",
    )
    assert [view["name"] for view in views] == sorted(VIEWS)
    assert {view: columns(busy_file, view) for view in VIEWS} == {
        view: list(types) for view, types in VIEWS.items()
    }


@pytest.fixture
def no_facts(tmp_path):
    """A facts file without rows."""
    path = tmp_path / "facts.sqlite"
    facts_module._lay(path)
    return path


def test_every_column_of_the_facts_has_a_type(no_facts):
    found = oracles.rows(no_facts, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    assert [table["name"] for table in found] == sorted(FACTS)
    assert {table: columns(no_facts, table) for table in FACTS} == {
        table: list(types) for table, types in FACTS.items()
    }


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "sqs_report_now"])
def test_a_view_read_by_jdbc_equals_what_sqlite_reads(session, busy_file, view):
    """Instants, row ids beyond 32 bits, texts that are NULL in the first row, computed columns."""
    names = [name for name in VIEWS[view] if name not in MOVING]
    found = read(session, busy_file, view, VIEWS[view]).select(*names).collect()
    listed = ", ".join(names)
    expected = oracles.rows(busy_file, f"SELECT {listed} FROM {view}")
    assert [row.asDict() for row in found] == expected != []


def test_ids_of_the_busy_file_are_beyond_32_bits(busy_file):
    [found] = oracles.rows(
        busy_file, "SELECT max(id) AS id, min(sent_at) AS sent_at FROM sqs_report_messages"
    )
    assert found["id"] > 5_000_000_000
    assert found["sent_at"] > 2**32


@pytest.mark.parametrize("table", FACTS)
def test_facts_cross_jdbc_whole_with_nothing_first(session, no_facts, table):
    """A first row of NULLs, where they are allowed, and a second of large numbers."""
    types = FACTS[table]
    nullable = {
        row["name"]
        for row in oracles.rows(
            no_facts, 'SELECT name FROM pragma_table_xinfo(:t) WHERE NOT "notnull"', t=table
        )
    }
    second = [
        f"Ünï {name}" if kind == "STRING" else BIG + place for place, (name, kind) in enumerate(types.items())
    ]
    first = [None if name in nullable else value for name, value in zip(types, second, strict=True)]
    first[0] = 1
    connection = dbapi.connect(uri(no_facts, "rw"), uri=True)
    marks = ", ".join("?" * len(types))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", [first, second])
    connection.commit()
    connection.close()
    found = read(session, no_facts, table, types).collect()
    assert [tuple(row) for row in found] == [tuple(first), tuple(second)]


def test_an_instant_compares_as_a_number(session, busy_file):
    """The comparison is pushed down to SQLite, where a text or a wrapped number would match nothing."""
    view = read(session, busy_file, "sqs_report_messages", VIEWS["sqs_report_messages"])
    [expected] = oracles.rows(
        busy_file, "SELECT count(*) AS n FROM sqs_report_messages WHERE sent_at >= :b", b=BIG
    )
    assert view.where(f"sent_at >= {BIG}").count() == expected["n"] > 0


def test_the_schema_that_is_printed_is_spark_s(session, capsys, busy_file):
    from sqsqlite.cli import main

    main(["analytics", "schema", "sqs_report_leases", "--output", "json"], "sqsqlite", standalone_mode=False)
    import json

    [printed] = json.loads(capsys.readouterr().out)
    frame = (
        session.read.format("jdbc")
        .option("driver", "org.sqlite.JDBC")
        .option("url", tables.jdbc_url(busy_file))
        .option("dbtable", printed["view"])
        .option("customSchema", printed["custom_schema"])
        .load()
    )
    assert {kind for _, kind in frame.dtypes} == {"bigint", "double", "string"}


@pytest.mark.parametrize(
    "name", ["a b.db", "what?.db", "50%20.db", "x#y;z&mode=rw.db", "quo'te\".db", "Ünï.db"]
)
def test_a_file_of_any_name_is_read_and_no_other_is_created(session, tmp_path, name):
    folder = tmp_path / name.replace(".db", " folder")
    folder.mkdir()
    with sqsqlite.connect(folder / name) as sqs:
        sqs.create_queue("orders").send("paint the fence")
        with tables.live_tables(session, folder / name, {"messages": ("sent_at",)}) as found:
            assert found["messages"].count() == 1
        facts = take_facts([folder / name], folder / f"facts of {name}")
        assert tables.read_facts(session, facts, {"messages": ()})["messages"].count() == 1
    assert {path.name for path in folder.iterdir()} <= {
        name,
        f"{name}-sqs",
        f"{name}-wal",
        f"{name}-shm",
        f"facts of {name}",
    }


def test_a_missing_file_is_an_error_and_stays_missing(session, tmp_path):
    with (
        pytest.raises(CannotOpen, match="no such file"),
        tables.live_tables(session, tmp_path / "missing.db", {"messages": ("sent_at",)}),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_facts_of_one_row_are_read(session, tmp_path):
    with sqsqlite.connect(tmp_path / "one.db") as sqs:
        sqs.create_queue("orders").send("alone")
    facts = take_facts([tmp_path / "one.db"], tmp_path / "facts.sqlite")
    assert isinstance(facts, Facts)
    assert tables.read_facts(session, facts, {"messages": ()}, partitions=4)["messages"].count() == 1
