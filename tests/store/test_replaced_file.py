# SPDX-License-Identifier: Apache-2.0
"""A file that is deleted, replaced or upgraded behind a process that has it open."""

import os

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.store import headroom
from tests.store.waiting import until


def use_new_connections(sqs):
    """As after a fork, or in an idle process: the next call opens a new connection."""
    for pool in (sqs._store.file.writers, sqs._store.file.readers):
        pool.before_fork()
        pool.after_fork_in_parent()


def test_another_file_under_the_name_is_refused(path, tmp_path):
    with sqsqlite.connect(path) as sqs, sqsqlite.connect(tmp_path / "other.db") as other:
        queue = sqs.create_queue("orders")
        other.create_queue("orders")
        os.replace(tmp_path / "other.db", path)
        use_new_connections(sqs)  # not before: upkeep may open one to the old file
        with pytest.raises(errors.CannotOpen, match="replaced"):
            queue.send("paint the fence")


def test_file_of_another_version_is_refused_by_new_connections(path):
    """A process that was idle during an upgrade must not continue with its old statements."""
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        with sqs.transaction() as connection:
            connection.execute("UPDATE sqs_meta SET number = 99 WHERE name = 'schema_version'")
        use_new_connections(sqs)
        with pytest.raises(errors.SchemaTooNew):
            queue.send("paint the fence")


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_sends_to_a_deleted_file_are_refused(path, tmp_path, monkeypatch, what):
    """An acknowledged message would be lost with the process.

    The check runs ten times a second, like that of the margin.
    """
    monkeypatch.setattr(headroom, "LOOK_EVERY_SECONDS", 0.0)
    with sqsqlite.connect(path) as sqs, sqsqlite.connect(tmp_path / "other.db"):
        queue = sqs.create_queue("orders")
        queue.send("paint the fence")
        # A send may share a transaction with upkeep that checked before; then the next send is refused.
        until(lambda: sqs._store.upkeep._sweep_from is None)
        if what == "deleted":
            path.unlink()
        else:
            os.replace(tmp_path / "other.db", path)
        with pytest.raises(errors.CannotOpen, match="deleted or replaced"):
            queue.send("mow the lawn")
        with pytest.raises(errors.CannotOpen, match="deleted or replaced"), sqs.transaction():
            queue.send("mow the lawn")
