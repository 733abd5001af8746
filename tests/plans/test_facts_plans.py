# SPDX-License-Identifier: Apache-2.0
"""How SQLite copies a queue file's facts: it walks each table once, in the order of its row ids."""

import sqsqlite
from sqsqlite.sql import facts as sql
from tests.plans.sql import Statement


def test_facts_are_copied_in_one_walk_of_each_table(tmp_path):
    """The small temporary table is searched by its key. The query needs no sort and no index of its own."""
    with sqsqlite.connect(tmp_path / "queues.db") as sqs, sqs.transaction() as connection:
        connection.execute("ATTACH ':memory:' AS facts")
        for statement in (*sql.CREATE_FACTS, sql.CREATE_READING):
            connection.execute(statement)
        plans = {
            name: Statement(name, getattr(sql, name)).plan(connection)
            for name in ("INSERT_MESSAGES", "INSERT_DEAD_LETTERS")
        }
    key = "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"
    assert plans["INSERT_MESSAGES"][:2] == ["SCAN l", key]
    assert [step for step in plans["INSERT_MESSAGES"][2:] if step.startswith("SCAN")] == []
    assert plans["INSERT_DEAD_LETTERS"] == ["SCAN d", key, "SEARCH l USING INTEGER PRIMARY KEY (rowid=?)"]
