# SPDX-License-Identifier: Apache-2.0
"""Two ways to one schema: schema.sql, and the migrations."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import sqsqlite
from sqsqlite.sql import schema
from sqsqlite.store import migrate
from sqsqlite.store.driver import dbapi


@contextmanager
def database(path: object = ":memory:") -> Iterator:
    connection = dbapi.connect(str(path), isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def rows(connection, statement: str) -> list[tuple]:
    return sorted(connection.execute(statement).fetchall(), key=repr)


def shape(connection) -> dict[str, list[tuple]]:
    """All that SQLite knows of the tables and indexes, and the SQL of everything else."""
    found = {
        "table_list": rows(connection, "PRAGMA table_list"),
        "sql": sorted(migrate.objects(connection).items()),
    }
    for (table,) in rows(connection, "SELECT name FROM sqlite_schema WHERE type = 'table'"):
        found[f"{table}: columns"] = rows(connection, f"PRAGMA table_xinfo({table})")
        found[f"{table}: indexes"] = rows(connection, f"PRAGMA index_list({table})")
    for (index,) in rows(connection, "SELECT name FROM sqlite_schema WHERE type = 'index'"):
        found[f"{index}: columns"] = rows(connection, f"PRAGMA index_xinfo({index})")
    return found


def test_a_file_keeps_no_comment_of_the_schema():
    assert not [statement for statement in schema.statements() if "--" in statement]


def test_migrations_build_the_schema_of_a_new_file():
    """By table_list, table_xinfo, index_list, index_xinfo and the SQL of tables, indexes, views and triggers."""
    with database() as migrated, database() as new:
        migrate.run(migrated, migrate.pending(0))
        for statement in schema.statements():
            new.execute(statement)
        assert shape(migrated) == shape(new)


def test_a_file_built_by_migrations_alone_serves_messages(tmp_path):
    """With an id and secret of its own, under the versions that an open file needs."""
    with database(tmp_path / "a.db") as connection:
        migrate.run(connection, migrate.pending(0))
    with sqsqlite.connect(tmp_path / "a.db") as sqs:
        queue = sqs.create_queue("orders")
        queue.send("hi")
        [message] = queue.receive()
        message.delete()
        assert len(queue) == 0
    assert migrate.check(tmp_path / "a.db") == []


def test_the_newest_revision_is_the_schema_version():
    assert migrate.pending(0)[-1].version == schema.SCHEMA_VERSION
    assert migrate.pending(0)[-1].revision == schema.ALEMBIC_VERSION


def test_revisions_import_nothing_of_the_package():
    """A revision must keep its effect when the code changes."""
    from importlib.resources import files

    texts = [
        file.read_text() for file in files("sqsqlite.migrations.versions").iterdir() if file.name[0].isdigit()
    ]
    assert texts
    assert not any(re.search(r"^\s*(?:from|import) +sqsqlite", text, re.MULTILINE) for text in texts)
