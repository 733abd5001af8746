# SPDX-License-Identifier: Apache-2.0
"""A dump into a slow pipe, a report, a replicator: whoever reads for long holds up nobody who writes."""

import pytest

import sqsqlite
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.operators.dump import dump
from sqsqlite.store import upkeep
from sqsqlite.store.checkpoints import RESTART_ABOVE, checkpoint

MEBIBYTE = 1_048_576


@pytest.fixture
def sqs(path, monkeypatch):
    """Checkpoints are the test's own. Whatever waits for others here waits for longer than a test may take."""
    monkeypatch.setattr(upkeep, "CHECKPOINT_EVERY_COMMITS", 1 << 30)
    with sqsqlite.connect(path, synchronous="OFF", busy_timeout=3_600) as sqs:
        yield sqs


def wal_bytes(sqs) -> int:
    """In use: the file keeps its size when the WAL begins again."""
    with sqs._store.file.watchers.lent() as connection:
        _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return frames * connection.execute("PRAGMA page_size").fetchone()[0]


def test_a_checkpoint_of_a_long_wal_does_not_wait_for_a_reader(sqs):
    """It holds the turn to write meanwhile, so all writers would wait with it. It is done once the reader is gone."""
    queue = sqs.create_queue("orders")
    queue.send("first")
    reader = dump(sqs._store, (), LOCAL)
    next(reader)
    for _ in range(20):
        queue.send("x" * MEBIBYTE)
    checkpoint(sqs._store.file)
    assert wal_bytes(sqs) > RESTART_ABOVE
    assert len(list(reader)) == 3  # its queue, the first message and the end
    checkpoint(sqs._store.file)
    queue.send("last")
    assert wal_bytes(sqs) < MEBIBYTE


def test_a_checkpoint_does_not_wait_for_a_reader_of_the_newest_rows_either(sqs):
    """All of the WAL can be copied then, and still it cannot begin again."""
    queue = sqs.create_queue("orders")
    for _ in range(20):
        queue.send("x" * MEBIBYTE)
    reader = dump(sqs._store, (), LOCAL)
    next(reader)
    checkpoint(sqs._store.file)
    queue.send("last")
    assert wal_bytes(sqs) > RESTART_ABOVE
    assert len(list(reader)) == 22
