# SPDX-License-Identifier: Apache-2.0
"""Which SQLite may open a queue's file: one without the WAL-reset bug."""

import pytest

from sqsqlite.store import driver
from tests.store.processes import Program

# In a process of its own that finds neither pysqlite3 nor a new SQLite in the standard library.
AFFECTED = """
import sqlite3, warnings
sqlite3.sqlite_version_info = (3, 46, 1)
sys.modules["pysqlite3"] = None
import sqsqlite
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as warned:
    try:
        sqsqlite.connect(sys.argv[1]).close()
    except sqsqlite.errors.UnsafeSQLite as error:
        say("refused:", error)
    else:
        say("opened:", *[f"{each.category.__name__} {each.message}" for each in warned])
"""


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 0), False),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 52, 0), False),
        ((3, 53, 0), True),
        ((4, 0, 0), True),
    ],
)
def test_versions_with_the_wal_reset_bug_are_known(version, safe):
    assert driver.is_safe(version) is safe


def test_driver_in_use_is_free_of_the_bug():
    assert driver.is_safe(driver.dbapi.sqlite_version_info)


def test_affected_sqlite_is_refused_and_creates_no_file(path):
    with Program(AFFECTED, path) as program:
        said = program.hear()
    assert said.startswith("refused:")
    assert "WAL-reset bug" in said
    assert "pysqlite3" in said
    assert not path.exists()


def test_affected_sqlite_opens_by_override_and_warns(path, monkeypatch):
    monkeypatch.setenv("SQSQLITE_ALLOW_UNSAFE_SQLITE", "1")
    with Program(AFFECTED, path) as program:
        said = program.hear()
    assert said.startswith("opened: RuntimeWarning SQLite 3.")
