# SPDX-License-Identifier: Apache-2.0
"""A full disk under a FIFO queue: a refused send leaves no deduplication id, and stored messages keep their order."""

import time

import pytest

import sqsqlite
from sqsqlite.errors import DiskFull
from sqsqlite.operators.check import check
from sqsqlite.store.driver import dbapi
from tests.store.full_disks import fill_by_another_program, small_disk
from tests.store.inspection import assert_whole, rows
from tests.store.processes import PATIENCE, Program

GROUPS = 5
MEMORY = "SELECT deduplication_id FROM sqs_deduplications ORDER BY sequence"
STORED = "SELECT deduplication_id FROM sqs_leases ORDER BY id"
GROUP_IDS = "SELECT group_id FROM sqs_message_groups ORDER BY group_id"

DRAIN = """
import sqsqlite
queue = sqsqlite.connect(sys.argv[1], synchronous=sys.argv[2]).queue("orders.fifo")
say("ready")
while True:
    for message in queue.receive(10, wait=20, visibility_timeout=600):
        message.delete()
        say(message.deduplication_id)
"""


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", size_mib=2) as mounted:
        yield mounted


@pytest.fixture(params=["FULL", "NORMAL"])
def level(request):
    return request.param


@pytest.fixture
def sqs(level, disk):
    with sqsqlite.connect(disk / "queues.db", synchronous=level) as opened:
        yield opened


@pytest.fixture
def queue(sqs):
    return sqs.create_queue("orders.fifo", fifo=True)


def message(number, size_bytes=3_000):
    return {"body": "x" * size_bytes, "group_id": f"g{number % GROUPS}", "deduplication_id": str(number)}


def fill(queue):
    """Send until a send is refused.

    Returns the number of accepted sends, which is the number of the refused one too.
    """
    number = 0
    try:
        while True:
            queue.send(**message(number))
            number += 1
    except DiskFull:
        return number


def drain(queue):
    """Receive and delete all messages. Returns their deduplication ids."""
    found = []
    while messages := queue.receive(10, visibility_timeout=600):
        for one in messages:
            one.delete()
            found.append(one.deduplication_id)
    return found


def assert_in_order(found, count):
    """Each message came once, and each group in the order of its sends."""
    assert sorted(found, key=int) == list(map(str, range(count)))
    for group in range(GROUPS):
        of_group = [int(each) for each in found if int(each) % GROUPS == group]
        assert of_group == sorted(of_group)


def assert_sound(sqs):
    assert_whole(sqs)
    assert check(sqs._store) == []


def test_refused_send_is_not_remembered(sqs, queue):
    count = fill(queue)
    assert count > 2 * GROUPS
    accepted = [(str(number),) for number in range(count)]
    assert rows(sqs, STORED) == rows(sqs, MEMORY) == accepted
    assert_in_order(drain(queue), count)
    # If its id had been remembered, the repeated send would be answered but never received.
    queue.send(**message(count))
    assert drain(queue) == [str(count)]
    assert_sound(sqs)


def test_refused_batch_leaves_no_group_and_no_deduplication_id(sqs, queue):
    count = fill(queue)
    groups = rows(sqs, GROUP_IDS)
    batch = [{**message(number, 200_000), "group_id": f"new-{number}"} for number in range(count, count + 5)]
    with pytest.raises(DiskFull, match="bytes are free"):
        queue.send_many(batch)
    assert rows(sqs, GROUP_IDS) == groups
    assert len(rows(sqs, MEMORY)) == len(rows(sqs, STORED)) == count
    assert_sound(sqs)


def test_transaction_that_fills_the_disk_forgets_its_deduplication_ids(sqs, queue):
    """The headroom does not include the application's own rows: SQLite's error comes in the middle."""
    with sqs.transaction() as connection:
        connection.execute("CREATE TABLE orders (content)")
    with pytest.raises(dbapi.OperationalError, match="full"):
        _order(sqs, queue, 8_000_000)
    assert rows(sqs, MEMORY) == rows(sqs, STORED) == rows(sqs, GROUP_IDS) == []
    queue.send(**message(0))
    assert drain(queue) == ["0"]
    assert_sound(sqs)


def _order(sqs, queue, size_bytes):
    with sqs.transaction() as connection:
        queue.send(**message(0))
        connection.execute("INSERT INTO orders VALUES (zeroblob(?))", (size_bytes,))


@pytest.mark.parametrize("left_bytes", [0, 64 * 1024])
def test_disk_filled_by_another_program_lets_groups_be_drained_in_order(sqs, queue, disk, left_bytes):
    for number in range(200):
        queue.send(**message(number, 1_000))
    fill_by_another_program(disk, leave=left_bytes)
    with pytest.raises(DiskFull):
        queue.send_many([message(number, 1_000_000) for number in range(200, 203)])
    assert_in_order(drain(queue), 200)
    assert len(rows(sqs, MEMORY)) == 200
    (disk / "somebody-elses").unlink()
    queue.send(**message(200))
    assert drain(queue) == ["200"]
    assert_sound(sqs)


def test_full_queue_is_drained_by_another_process_while_a_sender_keeps_trying(sqs, queue, disk, level):
    """Each batch is accepted, or refused with DiskFull and repeated under the same ids until it is accepted."""
    count = fill(queue)
    enough = count + 500
    with Program(DRAIN, disk / "queues.db", level) as consumer:
        assert consumer.hear() == "ready"
        gives_up_at = time.monotonic() + PATIENCE
        while count < enough:
            assert time.monotonic() < gives_up_at, f"{count} of {enough} sent"
            try:
                queue.send_many([message(number, 1_000) for number in range(count, count + 5)])
                count += 5
            except DiskFull:
                time.sleep(0.001)
        assert_in_order([consumer.hear() for _ in range(count)], count)
    assert len(queue) == 0
    assert len(rows(sqs, MEMORY)) == count
    assert_sound(sqs)
