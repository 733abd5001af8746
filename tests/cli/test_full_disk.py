# SPDX-License-Identifier: Apache-2.0
"""Commands that write another file to a full disk: one line, exit code 1, and no unfinished file under the name."""

import pytest

import sqsqlite
from tests.store.full_disks import small_disk
from tests.store.inspection import assert_whole


@pytest.fixture
def disk(path, sqs, tmp_path):
    sqs.queue("orders").send_many(["x" * 10_000] * 300)
    with small_disk(tmp_path / "disk", size_mib=1) as mounted:
        yield mounted


def assert_full(run):
    assert run.code == 1, run.err
    assert run.err.splitlines()[-1].startswith("DiskFull: "), run.err
    assert "Traceback" not in run.err


def test_backup(run, disk):
    assert_full(run("backup", disk / "orders.backup"))
    assert list(disk.iterdir()) == []


def test_backup_in_place_of_another_leaves_that(run, disk):
    (disk / "orders.backup").write_bytes(b"the one before")
    assert_full(run("backup", disk / "orders.backup", "--force"))
    assert [(file.name, file.read_bytes()) for file in disk.iterdir()] == [
        ("orders.backup", b"the one before")
    ]


def test_restore(run, disk, tmp_path):
    assert run("backup", tmp_path / "orders.backup").code == 0
    assert_full(run("restore", tmp_path / "orders.backup", disk / "orders.db"))
    assert list(disk.iterdir()) == []


def test_load(run, disk, tmp_path):
    assert run("dump", "--out", tmp_path / "orders.jsonl").code == 0
    target = disk / "orders.db"
    assert_full(run("--db", target, "load", tmp_path / "orders.jsonl"))
    with sqsqlite.connect(target) as loaded:
        assert_whole(loaded)


def test_dump_leaves_the_one_before(run, disk):
    (disk / "orders.jsonl").write_text("yesterday's\n")
    assert_full(run("dump", "--out", disk / "orders.jsonl"))
    assert [(file.name, file.read_text()) for file in disk.iterdir()] == [("orders.jsonl", "yesterday's\n")]
