# SPDX-License-Identifier: Apache-2.0
"""A long reader keeps the WAL from restarting: the disk fills, and is usable as soon as the reader has ended."""

import contextlib

import pytest

import sqsqlite
from sqsqlite.errors import DiskFull
from sqsqlite.store.driver import dbapi
from tests.store.full_disks import fill_with_sends, small_disk
from tests.store.inspection import assert_whole, rows


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", 6) as mounted:
        yield mounted


@pytest.fixture(params=["FULL", "NORMAL"])
def sqs(request, disk, clock):
    with sqsqlite.connect(disk / "queues.db", synchronous=request.param, clock=clock) as opened:
        yield opened


@contextlib.contextmanager
def reader(sqs):
    """A snapshot that stays open."""
    with sqs.read_engine.connect() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM sqs_messages").fetchall()
        yield


def drain_into(gone, queue):
    """Receive and delete messages one by one, and add their ids to `gone`."""
    while messages := queue.receive(1):
        messages[0].delete()
        gone.append(messages[0].message_id)


@pytest.mark.parametrize("reopened", [False, True], ids=["open", "opened again"])
def test_queue_filled_during_a_long_read_is_usable_after_the_read(sqs, disk, clock, reopened):
    """Receives and deletes use the margin, then are refused. The space that a checkpoint needs is never used."""
    queue = sqs.create_queue("orders")
    sent = [queue.send("x" * 100).message_id]
    with reader(sqs):
        sent += fill_with_sends(queue, "x" * 100)
        gone = []
        with pytest.raises(DiskFull, match="long reader"):
            drain_into(gone, queue)
        assert 5 <= len(gone) < len(sent)
        assert len(queue) == len(sent) - len(gone)
    if reopened:
        sqs.close()
        sqs = sqsqlite.connect(disk / "queues.db", clock=clock)
        queue = sqs.queue("orders")
    with sqs:
        clock.advance(seconds=30)  # The message whose delete was refused becomes visible again.
        drain_into(gone, queue)
        assert sorted(gone) == sorted(sent)
        assert_whole(sqs)
        gone, again = [], [queue.send("x" * 100).message_id for _ in range(len(sent) // 2)]
        drain_into(gone, queue)
        assert sorted(gone) == sorted(again)
        assert_whole(sqs)


def test_transaction_refused_during_a_long_read_leaves_nothing(sqs):
    """A transaction that would make the WAL too long to copy is refused before its COMMIT, the application's too."""
    queue = sqs.create_queue("orders")
    with sqs.transaction() as connection:
        connection.execute("CREATE TABLE orders (content)")
    with reader(sqs):
        sent = fill_with_sends(queue, "x" * 100)
        for size_bytes in (600_000, 3_000_000):
            with (
                pytest.raises((DiskFull, dbapi.OperationalError), match=r"long reader|full"),
                sqs.transaction() as tx,
            ):
                tx.execute("INSERT INTO orders VALUES (zeroblob(?))", (size_bytes,))
        assert rows(sqs, "SELECT count(*) FROM orders") == [(0,)]
        assert len(queue) == len(sent)
    gone = []
    drain_into(gone, queue)
    assert sorted(gone) == sorted(sent)
    assert_whole(sqs)
