# SPDX-License-Identifier: Apache-2.0
"""The recorder is tested before it is trusted: synced data is always present, other data only sometimes."""

import random
import sys

import pytest

from tests.durability.recording import Disk, Removal, Said, Sync, Write, record


def left(disk, folder, seed):
    disk.lose_power(random.Random(seed), folder)
    return (folder / "a").read_bytes()


def played(*events):
    disk = Disk()
    for number, event in enumerate(events):
        disk.play(number, event)
    return disk


def test_synced_write_is_in_every_image(tmp_path):
    disk = played(Write("a", 0, b"x" * 1024), Sync("a", 1))
    assert {left(disk, tmp_path, seed) for seed in range(50)} == {b"x" * 1024}


def test_write_without_a_sync_is_present_missing_or_torn(tmp_path):
    disk = played(Write("a", 0, b"x" * 1024))
    images = {left(disk, tmp_path, seed) for seed in range(200)}
    half, zeroes = b"x" * 512, bytes(512)
    assert images == {b"", half, zeroes + half, half + half}


def test_later_write_may_be_present_without_an_earlier_one(tmp_path):
    disk = played(Write("a", 0, b"x" * 512), Write("a", 512, b"y" * 512))
    assert bytes(512) + b"y" * 512 in {left(disk, tmp_path, seed) for seed in range(200)}


def test_sync_covers_earlier_writes_to_its_file_alone(tmp_path):
    disk = played(Write("a", 0, b"x"), Write("a", 1, b"y"), Write("b", 0, b"z"), Sync("a", 1))
    images = {left(disk, tmp_path, seed) for seed in range(200)}
    assert images == {b"x", b"xy"}


def test_truncation_of_a_file_is_played_in_order(tmp_path):
    disk = played(Write("a", 0, b"xyz"), Write("a", 1, None), Write("a", 3, b"q"), Sync("a", 3))
    assert left(disk, tmp_path, 0) == b"x\0\0q"


def test_removed_file_is_gone(tmp_path):
    played(Write("a", 0, b"x"), Sync("a", 1), Removal("a")).lose_power(random.Random(0), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_record_returns_writes_syncs_and_output_in_order(tmp_path):
    program = (
        "import os, sys; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); os.pwrite(f, b'abc', 5); os.fsync(f); "
        "os.write(1, b'done\\n'); os.ftruncate(f, 2); os.fdatasync(f); "
        "os.unlink(sys.argv[1])"
    )
    events = record([sys.executable, "-S", "-c", program, str(tmp_path / "a")], tmp_path / "log")
    assert events == [
        Write("a", 5, b"abc"),
        Sync("a", 1),
        Said("done"),
        Write("a", 2, None),
        Sync("a", 4),
        Removal("a"),
    ]
