# SPDX-License-Identifier: Apache-2.0
"""The lock files next to a file are open exactly as long as the file."""

import os
import threading

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.store import foreign
from sqsqlite.store.turns import let_go, turnstile_for

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are counted there")


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_files_opened_and_closed_leave_no_descriptor(tmp_path):
    sqsqlite.connect(tmp_path / "first.db").close()
    before = descriptors()
    for number in range(20):
        sqsqlite.connect(tmp_path / f"{number}.db").close()
    assert descriptors() == before


def test_file_that_could_not_be_opened_leaves_no_descriptor(path):
    """The file is empty, so opening must write, and another thread holds the turn."""
    path.touch()
    folder = path.with_name(path.name + "-sqs")
    folder.mkdir()
    sqsqlite.connect(path.with_name("first.db")).close()
    before = descriptors()
    turnstile = turnstile_for(foreign.identity(path), folder)
    held, refused = threading.Event(), threading.Event()

    def hold():
        with turnstile.taken(5):
            held.set()
            refused.wait(300)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(300)
    with pytest.raises(errors.Busy):
        sqsqlite.connect(path, busy_timeout=0)
    refused.set()
    holder.join()
    let_go(turnstile)
    assert descriptors() == before
