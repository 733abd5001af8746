# SPDX-License-Identifier: Apache-2.0
"""A dump into a slow pipe, a report, a replicator: a long read holds up no writer."""

import pytest

import sqsqlite
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.operators.dump import dump
from sqsqlite.store import upkeep
from sqsqlite.store.checkpoints import RESTART_ABOVE, checkpoint

MEBIBYTE = 1_048_576


@pytest.fixture
def sqs(path, monkeypatch):
    """The test runs its own checkpoints. Any wait for others here is longer than a test may take."""
    monkeypatch.setattr(upkeep, "CHECKPOINT_EVERY_COMMITS", 1 << 30)
    with sqsqlite.connect(path, synchronous="OFF", busy_timeout=3_600) as sqs:
        yield sqs


def wal_bytes(sqs) -> int:
    """The bytes in use: the file keeps its size when the WAL restarts."""
    with sqs._store.file.watchers.lent() as connection:
        _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return frames * connection.execute("PRAGMA page_size").fetchone()[0]


def test_a_checkpoint_of_a_long_wal_does_not_wait_for_a_reader(sqs):
    """The checkpoint holds the turn to write, so all writers would wait with it.

    It is done once the reader has ended.
    """
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


def test_a_checkpoint_does_not_wait_for_a_reader_of_the_newest_rows(sqs):
    """The whole WAL can be copied then, but it still cannot restart."""
    queue = sqs.create_queue("orders")
    for _ in range(20):
        queue.send("x" * MEBIBYTE)
    reader = dump(sqs._store, (), LOCAL)
    next(reader)
    checkpoint(sqs._store.file)
    queue.send("last")
    assert wal_bytes(sqs) > RESTART_ABOVE
    assert len(list(reader)) == 22
