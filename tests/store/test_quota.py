# SPDX-License-Identifier: Apache-2.0
"""`ulimit -f` and quotas count as a full disk: the error is the same, and the queue can be drained."""

import pytest

import sqsqlite
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Program

# Fills the file until three sends in a row are refused, then receives and deletes everything, and sends again.
FILL_AND_DRAIN = """
import resource, sqsqlite
path, limit, when, size = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
def lower():
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
if when == "before":
    lower()
sqs = sqsqlite.connect(path)
queue = sqs.queue("orders")
if when == "later":
    queue.send("first" + "x" * size)
    lower()
def fill(most):
    count = refused = 0
    while refused < 3 and count < most:
        try:
            queue.send("x" * size)
            count, refused = count + 1, 0
        except sqsqlite.errors.StoreError as error:
            refused += 1
            say(type(error).__name__)
    say("filled")
    return count + (when == "later")
def drain():
    count = 0
    while messages := queue.receive(10):
        for message in messages:
            message.delete()
            count += 1
    return count
sent = fill(10**6)
say(sent >= 3, drain() == sent)
say(fill(3) >= 3, drain() >= 3)
"""


@pytest.fixture
def shop(path):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
    return path


@pytest.mark.parametrize("when", ["before", "later"])
@pytest.mark.parametrize(("limit", "size"), [(3_000_000, 500), (3_000_000, 100_000), (9_000_000, 1_000_000)])
def test_queue_at_the_limit_on_file_sizes_refuses_sends_and_can_be_drained(shop, limit, size, when):
    with Program(FILL_AND_DRAIN, shop, limit, when, size) as program:
        refusals = []
        while (said := program.hear(patience=120)) != "filled":
            refusals.append(said)
        assert refusals
        assert set(refusals) == {"DiskFull"}
        assert program.hear(patience=120) == "True True"
        assert program.hear(patience=120) == "filled"
        assert program.hear(patience=120) == "True True"
    with sqsqlite.connect(shop) as sqs:
        assert_whole(sqs)


LONG_TRANSACTION = """
import resource, sqsqlite
sqs = sqsqlite.connect(sys.argv[1])
queue = sqs.queue("orders")
queue.send("before")
with sqs.transaction() as connection:
    connection.execute("CREATE TABLE rows (content)")
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
try:
    with sqs.transaction() as connection:
        queue.send("with the rows")
        connection.executemany("INSERT INTO rows VALUES (zeroblob(?))", [(100_000,)] * 8)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))
except sqsqlite.errors.StoreError as error:
    say(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
queue.send("after")
say("sent")
sys.stdin.readline()
"""


def test_commit_beyond_the_limit_leaves_nothing_behind(shop):
    """Not after a kill either: recovery finds in the WAL exactly what was acknowledged."""
    with Program(LONG_TRANSACTION, shop) as program:
        assert program.hear() == "DiskFull"
        assert program.hear() == "sent"
        program.kill()
    with sqsqlite.connect(shop) as sqs:
        assert_whole(sqs)
        assert bodies(sqs.queue("orders")) == ["before", "after"]


BACKUP = """
import os, resource, sqsqlite
from sqsqlite.operators import backup
sqs = sqsqlite.connect(sys.argv[1])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
try:
    backup.backup(sqs._store, sys.argv[2])
except sqsqlite.errors.StoreError as error:
    say(type(error).__name__)
"""


def test_backup_beyond_the_limit_is_a_full_disk(shop, tmp_path):
    with sqsqlite.connect(shop) as sqs:
        sqs.queue("orders").send_many(["x" * 10_000] * 100)
    target = tmp_path / "backups"
    target.mkdir()
    with Program(BACKUP, shop, target / "orders.backup") as program:
        assert program.hear() == "DiskFull"
        program.end()
    assert list(target.iterdir()) == []
