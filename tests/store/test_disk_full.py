# SPDX-License-Identifier: Apache-2.0
"""A full disk: sends are refused, receives and deletes still work, and no operation is half done."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import sqsqlite
from sqsqlite.errors import DiskFull
from sqsqlite.store.driver import dbapi
from tests.store.full_disks import CHUNK, fill_by_another_program, fill_with_sends, free_bytes, small_disk
from tests.store.inspection import assert_whole, rows


@pytest.fixture
def disk(tmp_path):
    """A disk of 2 MiB; each test fills it."""
    with small_disk(tmp_path / "disk", size_mib=2) as mounted:
        yield mounted


@pytest.fixture(params=["FULL", "NORMAL"])
def sqs(request, disk):
    with sqsqlite.connect(disk / "queues.db", synchronous=request.param) as opened:
        yield opened


def drain(queue):
    found = []
    while messages := queue.receive(10, visibility_timeout=600):
        for message in messages:
            message.delete()
            found.append(message.message_id)
    return found


@pytest.mark.parametrize("size_bytes", [500, pytest.param(3_000, marks=pytest.mark.slow), 200_000])
def test_full_queue_refuses_sends_can_be_drained_and_takes_sends_again(sqs, size_bytes):
    queue = sqs.create_queue("orders")
    sent = fill_with_sends(queue, "x" * size_bytes)
    assert len(sent) >= 3
    assert_whole(sqs)
    assert sorted(drain(queue)) == sorted(sent)
    assert_whole(sqs)
    again = [queue.send("x" * size_bytes).message_id for _ in range(max(1, len(sent) // 4))]
    assert sorted(drain(queue)) == sorted(again)
    assert_whole(sqs)


def test_refused_send_leaves_nothing(sqs):
    queue = sqs.create_queue("orders")
    sent = fill_with_sends(queue, "x" * 3_000)
    with pytest.raises(DiskFull, match="bytes are free"):
        queue.send_many(["y" * 200_000] * 5)
    with pytest.raises(DiskFull, match="bytes are free"):
        queue.send("y" * 1_000_000)
    assert len(queue) == len(sent)
    assert rows(sqs, "SELECT count(*) FROM sqs_messages WHERE body LIKE 'y%'") == [(0,)]
    assert_whole(sqs)


@pytest.mark.parametrize("left_bytes", [0, 16 * 1024, 64 * 1024])
def test_disk_filled_by_another_program_still_lets_consumers_drain(sqs, disk, left_bytes):
    """The ballast is given up for them. Sends are refused until the disk has space, and then work again."""
    queue = sqs.create_queue("orders")
    sent = [queue.send("x" * 1_000).message_id for _ in range(300)]
    fill_by_another_program(disk, leave=left_bytes)
    assert free_bytes(disk) <= left_bytes + CHUNK
    assert sorted(drain(queue)) == sorted(sent)
    with pytest.raises(DiskFull):
        queue.send_many(["x" * 1_000_000] * 3)
    assert_whole(sqs)
    (disk / "somebody-elses").unlink()
    sent = [queue.send("x" * 1_000).message_id for _ in range(100)]
    assert sorted(drain(queue)) == sorted(sent)
    assert_whole(sqs)


def test_messages_of_one_long_transaction_can_be_drained(sqs, disk):
    """Upkeep soon copies a long transaction into the file, because the ballast must cover what the WAL still holds."""
    queue = sqs.create_queue("orders")
    path = disk / "queues.db"
    before = path.stat().st_size
    sent = [one.message_id for one in queue.send_many(["x" * 1_000] * 200)]
    deadline = time.monotonic() + 300
    while path.stat().st_size < before + 200_000:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    fill_by_another_program(disk)
    assert sorted(drain(queue)) == sorted(sent)
    assert_whole(sqs)


def test_consumers_in_threads_get_no_disk_full_while_space_can_be_freed(sqs, disk):
    """They wait for checkpoints and short readers of other threads, which can still free space."""
    queue = sqs.create_queue("orders")
    sent = [queue.send("x" * 200).message_id for _ in range(400)]
    fill_by_another_program(disk)
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(drain, queue) for _ in range(4)]
    assert sorted(gone for each in found for gone in each.result()) == sorted(sent)
    assert_whole(sqs)


def test_transaction_that_fills_the_disk_is_rolled_back_whole(sqs, disk):
    """The headroom does not include the application's own rows: the driver raises its error, and all is rolled back."""
    queue = sqs.create_queue("orders")
    with sqs.transaction() as connection:
        connection.execute("CREATE TABLE orders (content)")
    with pytest.raises(dbapi.OperationalError, match="full"):
        _order_of(sqs, queue, 8_000_000)
    assert len(queue) == 0
    assert rows(sqs, "SELECT count(*) FROM orders") == [(0,)]
    queue.send("next")
    assert_whole(sqs)


def _order_of(sqs, queue, size_bytes):
    with sqs.transaction() as connection:
        queue.send("with the order")
        connection.execute("INSERT INTO orders VALUES (zeroblob(?))", (size_bytes,))


def test_new_file_on_a_full_disk_is_a_typed_error(disk):
    fill_by_another_program(disk)
    with pytest.raises(DiskFull):
        sqsqlite.connect(disk / "queues.db")


@pytest.mark.parametrize("by", ["sends alone", "another program, too"])
def test_full_queue_opens_again_and_drains(sqs, disk, by):
    """After a restart on a full disk, the ballast also makes space for SQLite's own files."""
    queue = sqs.create_queue("orders")
    sent = fill_with_sends(queue, "x" * 3_000)
    sqs.close()
    if by == "another program, too":
        fill_by_another_program(disk)
    with sqsqlite.connect(disk / "queues.db") as again:
        assert sorted(drain(again.queue("orders"))) == sorted(sent)
        assert_whole(again)
