# SPDX-License-Identifier: Apache-2.0
"""Damaged rows of sqs_meta, and of the rows that set the clock: an error of ours at once, or no error at all."""

import re
import time
from contextlib import closing

import pytest

import sqsqlite
from sqsqlite.errors import Corrupt
from sqsqlite.operators.backup import backup, restore
from sqsqlite.store import migrate
from sqsqlite.store.driver import dbapi

pytestmark = pytest.mark.skipif(
    not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no boot-time clock"
)
FORGET_THE_BOOT = "DELETE FROM sqs_meta WHERE name = 'boot'"
LAST_NUMBER = 2**63 - 1


@pytest.fixture
def made(path):
    """A file of the real clock, with a message."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("one")
    return path


def damage(path, statement, *loose):
    """Run a statement on tables that take any value."""
    with closing(dbapi.connect(str(path), isolation_level=None)) as connection:
        strict = dict(
            connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql LIKE '%STRICT%'").fetchall()
        )
        connection.execute("PRAGMA writable_schema = ON")
        update = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
        for name in loose:
            connection.execute(
                update, (re.sub(",? *STRICT", "", strict[name]).replace(" NOT NULL", ""), name)
            )
    with closing(dbapi.connect(str(path), isolation_level=None)) as connection:
        connection.execute(statement)
        connection.execute("PRAGMA writable_schema = ON")
        for name in loose:
            connection.execute(update, (strict[name], name))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("boot", "number = 'a text'"),
        ("boot", f"number = {LAST_NUMBER}"),
        ("difference", "number = NULL, bytes = CAST('1' AS BLOB)"),
        ("difference", "number = 0, bytes = NULL"),
        ("difference", "number = 0, bytes = CAST('soon' AS BLOB)"),
        ("difference", "number = 0, bytes = CAST('99999999999999999999' AS BLOB)"),
        ("jumps", "bytes = x'ff00'"),
        ("jumps", "bytes = CAST('5' AS BLOB)"),
        ("jumps", "bytes = CAST('[[1,2,3]]' AS BLOB)"),
        ("jumps", """bytes = CAST('[["a","b"]]' AS BLOB)"""),
        ("jumps", "bytes = CAST('[[1800000000000,-5]]' AS BLOB)"),
        ("jumps", "bytes = CAST('[[1e400,1]]' AS BLOB)"),
    ],
)
def test_a_damaged_row_of_the_clock_is_named(made, name, change):
    damage(made, f"UPDATE sqs_meta SET {change} WHERE name = '{name}'", "sqs_meta")
    with pytest.raises(Corrupt, match=f"the row {name} of sqs_meta"):
        sqsqlite.connect(made)


@pytest.mark.parametrize("minute_at", ["'a text'", str(LAST_NUMBER), "x'ff'"])
def test_a_damaged_count_does_not_set_the_clock_after_a_boot(made, minute_at):
    """Otherwise the clock would stay centuries ahead, because it never runs backwards."""
    damage(made, f"UPDATE sqs_queue_counts SET minute_at = {minute_at}", "sqs_queue_counts")
    damage(made, FORGET_THE_BOOT)
    with sqsqlite.connect(made) as sqs:
        assert abs(sqs._store.clock.now_ms() - time.time() * 1000) < 3_600_000


def test_a_schema_version_that_is_not_a_number_is_damage_to_every_reader(made, tmp_path):
    with sqsqlite.connect(made) as sqs:
        backup(sqs._store, tmp_path / "copy")
    for path in (made, tmp_path / "copy"):
        damage(path, "UPDATE sqs_meta SET number = 'new' WHERE name = 'schema_version'", "sqs_meta")
    for asked in (migrate.current, migrate.check, migrate.upgrade, sqsqlite.connect):
        with pytest.raises(Corrupt, match="schema version"):
            asked(made)
    with pytest.raises(Corrupt):
        restore(tmp_path / "copy", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_format_that_sqlite_does_not_know_is_damage(made):
    data = bytearray(made.read_bytes())
    data[44:48] = (9).to_bytes(4, "big")
    made.write_bytes(data)
    with pytest.raises(Corrupt, match="header"):
        sqsqlite.connect(made)
    with pytest.raises(Corrupt, match="header"):
        migrate.current(made)
