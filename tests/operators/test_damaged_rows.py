# SPDX-License-Identifier: Apache-2.0
"""Rows that break their schema make an operation fail: the error names the damage, but only if the file is damaged."""

import contextlib

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.operators.check import check
from sqsqlite.spark.facts import take_facts
from sqsqlite.store.driver import dbapi
from sqsqlite.store.store import Store


def damage(sqs, *statements: str) -> None:
    with sqs.transaction() as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "step"),
    [
        ("DELETE FROM sqs_queue_counts", lambda queue: queue.receive()),
        ("DELETE FROM sqs_queue_counts", lambda queue: queue.attributes),
        (
            "UPDATE sqs_queue_counts SET sent = 9223372036854775807",
            lambda queue: queue.send("x", group_id="g"),
        ),
        ("DELETE FROM sqs_message_groups", lambda queue: queue.send("x", group_id="g")),
        ("UPDATE sqs_queues SET message_retention_period_seconds = 9e17", lambda queue: queue.receive()),
        ("UPDATE sqs_queues SET redrive_allow_policy = '{'", lambda queue: queue.attributes),
        ("UPDATE sqs_queues SET policy = CAST(x'ff' AS TEXT)", lambda queue: queue.attributes),
    ],
)
def test_an_operation_on_damaged_rows_raises_an_error_of_ours(sqs, statement, step):
    queue = sqs.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)
    queue.send_many([{"body": str(place), "group_id": "g"} for place in range(3)])
    damage(sqs, statement)
    with contextlib.suppress(errors.SQSQLiteError):
        step(queue)


def test_check_reports_a_missing_table_of_row_ids(sqs, queue, path):
    """SQLite's own checks do not miss it."""
    queue.send("one")
    sqs.close()
    connection = dbapi.connect(str(path), isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("DELETE FROM sqlite_schema WHERE name = 'sqlite_sequence'")
    connection.close()
    with sqsqlite.connect(path) as again, pytest.raises(errors.Corrupt, match="sqlite_sequence"):
        check(again._store)


def test_a_bug_of_ours_in_a_sound_file_is_not_reported_as_damage(sqs, queue):
    """A user must not restore a backup because of it."""
    store: Store = sqs._store

    def bug(tx):
        tx.execute("INSERT INTO sqs_queue_tags VALUES (1, 'a', 'b')")
        return None + 1

    with pytest.raises(TypeError, match="NoneType"):
        store.write(bug)
    with pytest.raises(TypeError, match="NoneType"), sqs.transaction():
        store.write(bug)
    with pytest.raises(TypeError, match="unhashable"), store.reading():
        hash([])


def test_the_same_error_in_a_damaged_file_is_corrupt_and_keeps_its_cause(sqs, queue):
    queue.send("one")
    damage(sqs, "DELETE FROM sqs_messages")

    def odd(tx):
        return None + 1

    for step in (lambda: sqs._store.write(odd), lambda: joined(sqs, odd)):
        with pytest.raises(errors.Corrupt, match="sqsqlite check") as caught:
            step()
        assert isinstance(caught.value.__cause__, TypeError)


def joined(sqs, operation):
    with sqs.transaction():
        sqs._store.write(operation)


@pytest.mark.parametrize("name", ["file_id", "secret"])
def test_a_file_without_its_own_facts_does_not_open(sqs, path, name):
    damage(sqs, f"DELETE FROM sqs_meta WHERE name = '{name}'")
    sqs.close()
    with pytest.raises(errors.Corrupt, match="sqs_meta"):
        sqsqlite.connect(path)


def test_a_file_whose_move_tasks_cannot_be_read_opens(sqs, queue, path):
    queue.send("one")
    with sqs._store.reading() as connection:
        [page] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'sqs_move_tasks'"
        ).fetchone()
    sqs.close()
    data = bytearray(path.read_bytes())
    data[(page - 1) * 2048 : page * 2048] = b"\xff" * 2048
    path.write_bytes(data)
    with sqsqlite.connect(path) as again:
        assert [message.body for message in again.queue("orders").peek()] == ["one"]


@pytest.mark.parametrize(
    "value",
    ["x'ff'", "CAST(x'ff' AS TEXT)"],
)
def test_a_reports_snapshot_of_a_damaged_file_names_the_damage(sqs, queue, path, tmp_path, value):
    """A value that neither its STRICT table nor that of the snapshot allows."""
    queue.send("one")
    sqs.close()
    connection = dbapi.connect(str(path), isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    [strict] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'sqs_leases'").fetchone()
    set_sql = "UPDATE sqlite_schema SET sql = ? WHERE name = 'sqs_leases'"
    connection.execute(set_sql, (strict.replace(" STRICT", ""),))
    connection.close()
    connection = dbapi.connect(str(path), isolation_level=None)
    connection.execute(f"UPDATE sqs_leases SET first_received_at = {value}")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(set_sql, (strict,))
    connection.close()
    with pytest.raises(errors.Corrupt, match="sqsqlite check"):
        take_facts([path], tmp_path / "facts.db")


def test_a_value_error_with_a_sound_file_is_not_taken_for_damage(sqs):
    """A bug of ours raises one, or a signal handler of the program's in the midst of a send."""

    def fail(tx):
        raise ValueError("not of the file")

    with pytest.raises(ValueError, match="not of the file"):
        sqs._store.write(fail)


def test_an_attempt_of_a_receive_that_cannot_be_read_is_damage(sqs):
    fifo = sqs.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)
    fifo.send("one", group_id="g")
    fifo.receive(1, attempt_id="once")
    damage(sqs, "UPDATE sqs_receive_attempts SET leases = '7'")
    with pytest.raises(errors.Corrupt, match="can't be decoded"):
        fifo.receive(1, attempt_id="once")
