# SPDX-License-Identifier: Apache-2.0
"""Two copies of SQLite on one file in one process break each other's locks: the second copy is refused."""

import gc
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

import pytest

import sqsqlite
from sqsqlite.errors import SecondSQLiteCopy
from sqsqlite.store import driver, foreign
from tests.store.inspection import bodies
from tests.store.processes import Program

pytestmark = pytest.mark.skipif(
    driver.is_standard_library, reason="the standard library's SQLite is the one copy that is in use here"
)

TRY_WRITE_LOCK = """
from sqsqlite.store.driver import dbapi
connection = dbapi.connect(sys.argv[1], isolation_level=None, timeout=0)
try:
    connection.execute("BEGIN IMMEDIATE")
except dbapi.OperationalError as error:
    say(error.sqlite_errorname)
else:
    say("taken")
"""


def standard_library(database, *, uri=False):
    """Open and close the file, as a program does for a look-up."""
    sqlite3.connect(database, uri=uri, timeout=0).close()


def _symbolic_link(path):
    link = path.with_name("link.db")
    link.symlink_to(path)
    return str(link)


def _hard_link(path):
    link = path.with_name("twin.db")
    os.link(path, link)
    return str(link)


@pytest.mark.parametrize(
    "spelled",
    [
        str,
        Path,
        os.fsencode,
        lambda path: f"{path.parent}/./{path.name}",
        os.path.relpath,
        _symbolic_link,
        _hard_link,
    ],
    ids=["text", "Path", "bytes", "dotted", "relative", "symbolic link", "hard link"],
)
def test_standard_library_is_refused_on_our_open_file(sqs, path, spelled):
    with pytest.raises(SecondSQLiteCopy, match="Two copies of SQLite"):
        standard_library(spelled(path))


@pytest.mark.parametrize(
    "name",
    ["queues.db", "a b?c#d%41.db", "größe.db", "\udcff\udcfe.db"],
    ids=["plain", "reserved", "UTF-8", "other bytes"],
)
@pytest.mark.parametrize("mode", ["ro", "rw", "rwc"])
def test_standard_library_is_refused_by_uri(tmp_path, name, mode):
    path = tmp_path / name
    with sqsqlite.connect(path), pytest.raises(SecondSQLiteCopy):
        standard_library(f"file:{quote(os.fsencode(path))}?mode={mode}", uri=True)


def test_an_opening_that_an_interrupt_cut_short_disturbs_no_later_one(sqs, path):
    """It is freed with the interrupt's traceback, perhaps while another thread opens the file."""
    cut_short = [foreign.opening(path)]
    cut_short[0].__enter__()
    with foreign.opening(path):
        cut_short.clear()
        gc.collect()
        connection = driver.dbapi.connect(path)
    with foreign.opening(path):
        pass  # it would be refused if the connection's descriptor had not been noted
    connection.close()


def test_refused_copy_leaves_our_lock_alone(sqs, path, queue):
    """The refusal comes before the file is touched. Another process still finds it locked, and the send is kept."""
    with sqs.transaction():
        queue.send("kept")
        with pytest.raises(SecondSQLiteCopy):
            standard_library(path)
        with Program(TRY_WRITE_LOCK, path) as other:
            assert other.hear() == "SQLITE_BUSY"
    assert bodies(queue) == ["kept"]


def test_connect_is_refused_while_another_copy_has_the_file_open(path):
    """The refusal also keeps the other copy's lock."""
    sqsqlite.connect(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SecondSQLiteCopy):
            sqsqlite.connect(path)
        with Program(TRY_WRITE_LOCK, path) as third:
            assert third.hear() == "SQLITE_BUSY"
    finally:
        other.close()
    with sqsqlite.connect(path) as sqs:
        assert sqs.queues() == []


def test_standard_library_may_open_the_file_once_ours_is_closed(path):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("hi")
    with sqsqlite.connect(path), pytest.raises(SecondSQLiteCopy):
        standard_library(path)
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("SELECT body FROM sqs_messages").fetchall() == [("hi",)]
    finally:
        connection.close()


def test_standard_library_may_open_other_files(sqs, tmp_path):
    for other in (":memory:", "", tmp_path / "other.db", str(tmp_path / "queues.db-other")):
        connection = sqlite3.connect(other)
        connection.execute("CREATE TABLE notes (text)")
        connection.close()


def test_file_stays_ours_while_one_of_two_is_open(path):
    with sqsqlite.connect(path):
        with sqsqlite.connect(path) as second:
            second.create_queue("orders")
        with pytest.raises(SecondSQLiteCopy):
            standard_library(path)


def test_unfinished_cursor_does_not_block_the_next_open(path):
    """SQLite keeps a closed connection's descriptors while one of its statements exists."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send_many(["a", "b", "c"])
        with sqs.transaction() as connection:
            cursor = connection.execute("SELECT body FROM sqs_messages")
            assert cursor.fetchone() == ("a",)
    with sqsqlite.connect(path) as sqs:
        assert bodies(sqs.queue("orders")) == ["a", "b", "c"]
