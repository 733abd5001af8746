# SPDX-License-Identifier: Apache-2.0
"""A foreign program keeps SQLite's locks on the -shm: the error names it, and work resumes once it has ended."""

import pytest

import sqsqlite
from sqsqlite.errors import Busy
from tests.store.processes import Program

pytest.importorskip("fcntl")

KEEP_READERS_OUT = """
import fcntl, os
shm = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(shm, fcntl.LOCK_EX, 5, 123)
say("kept")
sys.stdin.readline()
"""


@pytest.mark.slow
def test_error_names_the_program_that_blocks_readers(path):
    with sqsqlite.connect(path, busy_timeout=0.1) as sqs:
        queue = sqs.create_queue("orders")
        queue.send("a")
        with Program(KEEP_READERS_OUT, f"{path}-shm") as keeper:
            assert keeper.hear() == "kept"
            with pytest.raises(Busy, match=rf"lock on the -shm .*; process {keeper.pid} \(python.* has it"):
                len(queue)
        assert len(queue) == 1
