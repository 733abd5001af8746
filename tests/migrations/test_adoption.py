# SPDX-License-Identifier: Apache-2.0
"""The application's own file: its tables, header and indexes stay as they are."""

import sqlite3

import pytest

import sqsqlite
from sqsqlite.store import migrate

APPLICATION = """
PRAGMA application_id = 77;
PRAGMA user_version = 5;
CREATE TABLE alembic_version (version_num TEXT);
INSERT INTO alembic_version VALUES ('theirs');
CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT CHECK (name <> ''));
CREATE INDEX orders_by_name ON orders (name);
CREATE VIEW names AS SELECT name FROM orders;
CREATE TRIGGER trimmed AFTER INSERT ON orders BEGIN UPDATE orders SET name = trim(name) WHERE id = new.id; END;
INSERT INTO orders (name) VALUES (' fence ');
"""


def theirs(path) -> list:
    """All that is not ours."""
    connection = sqlite3.connect(path)
    try:
        found = [
            connection.execute(statement).fetchall()
            for statement in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sq%' ORDER BY name",
                "SELECT * FROM orders",
                "SELECT * FROM alembic_version",
            )
        ]
    finally:
        connection.close()
    return found


@pytest.fixture
def application(tmp_path):
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript(APPLICATION)
    connection.close()
    return tmp_path / "shop.db"


def test_adopting_and_upgrading_leave_the_applications_part_alone(application, next_release):
    before = theirs(application)
    with sqsqlite.connect(application, adopt=True) as sqs:
        sqs.create_queue("orders").send("hi")
    assert theirs(application) == before
    migrate.upgrade(application, scripts=next_release())
    assert migrate.current(application) == 3
    assert theirs(application) == before


def test_an_adopted_file_needs_the_option_adopt_once(application):
    sqsqlite.connect(application, adopt=True).close()
    assert migrate.check(application) == []
    with sqsqlite.connect(application) as sqs:
        assert sqs.queues() == []
