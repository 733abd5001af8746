# SPDX-License-Identifier: Apache-2.0
"""Folders of snapshots: removed at the end, or by the next snapshot after their process was killed."""

import subprocess
import sys

import pytest

from sqsqlite.spark.snapshot_folder import PREFIX, snapshot_folder

HOLD = """
import sys
from sqsqlite.spark.snapshot_folder import snapshot_folder
with snapshot_folder(sys.argv[1]) as folder:
    (folder / "facts.sqlite").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that has a snapshot, and its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process, process.stdout.readline().strip()
    process.kill()
    process.communicate()


def names(folder):
    return {str(path) for path in folder.iterdir()}


def test_a_folder_is_removed_at_the_end(tmp_path):
    with snapshot_folder(tmp_path) as folder:
        assert names(tmp_path) == {str(folder)}
    assert names(tmp_path) == set()


def test_folders_of_killed_processes_are_removed_and_those_of_living_ones_kept(tmp_path, holder):
    process, left = holder
    with snapshot_folder(tmp_path) as folder:
        assert names(tmp_path) == {left, str(folder)}
    process.kill()
    process.wait()
    assert names(tmp_path) == {left}
    with snapshot_folder(tmp_path) as folder:
        assert names(tmp_path) == {str(folder)}


def test_folders_with_an_unknown_owner_stay(tmp_path):
    nobody_s, another_machine_s = tmp_path / f"{PREFIX}1", tmp_path / f"{PREFIX}2"
    nobody_s.mkdir()
    another_machine_s.mkdir()
    (another_machine_s / "owner").write_text("1 of-another-name")
    with snapshot_folder(tmp_path):
        pass
    assert names(tmp_path) == {str(nobody_s), str(another_machine_s)}
