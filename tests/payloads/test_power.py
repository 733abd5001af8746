# SPDX-License-Identifier: Apache-2.0
"""A payload is on the disk before the message that points to it: the order of a send's system calls."""

import os
import re
import subprocess
import sys

import pytest

from tests.clients.tools import need
from tests.packaging.checkout import ROOT

pytestmark = pytest.mark.slow

SEND = """
import os, sys, sqsqlite
from sqsqlite.payloads import PayloadStore, extend

sqs = sqsqlite.connect(sys.argv[1])
queue = extend(sqs.create_queue("orders"), PayloadStore(sys.argv[2], threshold=0))
os.write(1, b"sending\\n")
queue.send("x" * 10_000)
os.write(1, b"sent\\n")
os._exit(0)
"""
# In this order, among other calls.
WANTED = [
    r'write\(1<.*"sending',
    r'mkdir\(".*/payloads/[0-9a-f]{32}"',
    r"fsync\(\d+<.*/payloads>",
    r"write\(\d+<.*/payloads/[0-9a-f]{32}/\..*\.partial>.* = 10000",
    r"fsync\(\d+<.*\.partial>",
    r'rename\(".*\.partial", ".*/[0-9a-f-]{36}"',
    r"fsync\(\d+<.*/payloads/[0-9a-f]{32}>",
    r"pwrite64\(\d+<.*shop\.db-wal>",
    r"f(data)?sync\(\d+<.*shop\.db-wal>",
    r'write\(1<.*"sent',
]


def test_the_payload_is_synced_under_its_name_before_the_message_is_written(tmp_path):
    """The program has written nothing to the WAL between `sending` and the last sync of the payload."""
    strace = need("strace", "apt-get install strace")
    log = tmp_path / "strace.log"
    traced = "trace=write,pwrite64,fsync,fdatasync,rename,mkdir"
    subprocess.run(
        [
            *(strace, "-f", "-y", "-s", "200", "-e", traced, "-o", log),
            *(sys.executable, "-c", SEND, tmp_path / "shop.db", tmp_path / "payloads"),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    lines = log.read_text("utf-8", errors="replace").splitlines()
    places = []
    for wanted in WANTED:
        start = places[-1] + 1 if places else 0
        found = [place for place in range(start, len(lines)) if re.search(wanted, lines[place])]
        assert found, f"no {wanted} after line {start} of\n" + "\n".join(lines)
        places.append(found[0])
    before = lines[places[0] : places[6]]
    assert [line for line in before if "shop.db" in line and "write" in line] == []
