# SPDX-License-Identifier: Apache-2.0
"""A file of schema version 1 is refused; upgraded, it equals a new one and keeps all its content."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.operators.check import check
from sqsqlite.store import migrate
from tests.cli.runs import runner_on


@pytest.fixture
def old(tmp_path):
    """A file as the code of that version left it."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(Path(__file__).with_name("version_1.sql").read_text())
    return path


def redrive(sqs, name):
    return sqs.queue(name).start_move_task().wait(20)


def test_a_file_of_version_1_is_refused_with_the_upgrade_command(old):
    with pytest.raises(
        errors.SchemaTooOld, match=r"schema version 1, this SQSQLite needs 2: run `sqsqlite .* db upgrade`"
    ):
        sqsqlite.connect(old)
    assert migrate.check(old) == ["schema version 1, needed is 2: run `sqsqlite db upgrade`"]


def test_the_upgrade_gives_the_schema_of_a_new_file_and_keeps_a_backup(old):
    ran = runner_on(old)("db", "upgrade")
    assert ran.code == 0
    assert migrate.current(old) == 2
    assert migrate.check(old) == []
    [backup] = old.parent.glob("old.db.v1-*.backup")
    assert migrate.current(backup) == 1


def test_messages_survive_the_upgrade(old):
    migrate.upgrade(old, backup=False)
    with sqsqlite.connect(old, clock=sqsqlite.ManualClock()) as sqs:
        assert {queue.name: len(queue) for queue in sqs.queues()} == {
            "failed": 1,
            "first.fifo": 1,
            "graves": 1,
            "last.fifo": 1,
            "orders": 2,
        }
        assert check(sqs._store, bodies=True) == []
        [message] = sqs.queue("failed").receive()
        assert (message.body, message.dead_letter_source_arn) == ("died once", sqs.queue("orders").arn)


def test_messages_that_died_since_the_upgrade_go_back_step_by_step(old):
    """A message that had died twice before keeps its last step, as that version kept it."""
    migrate.upgrade(old, backup=False)
    clock = sqsqlite.ManualClock()
    with sqsqlite.connect(old, clock=clock) as sqs:
        failed, graves, orders = (sqs.queue(name) for name in ("failed", "graves", "orders"))
        failed.receive(visibility_timeout=0)
        assert failed.receive() == []
        assert len(graves) == 2
        assert redrive(sqs, "graves").status == "COMPLETED"
        assert redrive(sqs, "failed").failure_reason == "CouldNotDetermineMessageSource"
        assert [message.body for message in failed.peek()] == ["died twice"]
        assert "died once" in [message.body for message in orders.peek()]
