# SPDX-License-Identifier: Apache-2.0
"""The repository holds what was written for it: no archive, program or other binary file."""

import subprocess

import pytest

from tests.packaging.checkout import ROOT


def test_each_tracked_file_is_text():
    if not (ROOT / ".git").exists():
        pytest.skip("an archive: git tracks nothing here")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    names = listed.decode().rstrip("\0").split("\0")
    assert len(names) > 500
    assert [name for name in names if b"\0" in (ROOT / name).read_bytes()] == []
