# SPDX-License-Identifier: Apache-2.0
"""The write-ahead log as it lies on the disk. Source: SQLite, "Database File Format", section 4."""

import struct
from pathlib import Path

_HEADER = 32
_FRAME_HEADER = 24


def count_commits(path: Path) -> int:
    """The number of transactions in the log since it last restarted.

    A frame belongs to the running log when its salt is the header's; the last of a transaction tells the size of the
    database in pages. The log itself carries no locks, so that reading it disturbs no process.
    """
    log = Path(f"{path}-wal").read_bytes()
    page_size = struct.unpack_from(">I", log, 8)[0]
    salt = log[16:24]
    commits = 0
    for start in range(_HEADER, len(log) - _FRAME_HEADER + 1, _FRAME_HEADER + page_size):
        if log[start + 8 : start + 16] != salt:
            break
        commits += struct.unpack_from(">I", log, start + 4)[0] > 0
    return commits
