# SPDX-License-Identifier: Apache-2.0
"""Loss of power at any instant: with synchronous=FULL nothing acknowledged is missing afterwards.

With NORMAL some of the last commits are, as is promised; that the same images show it proves that they could show it
for FULL.
"""

import os
import random
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sqsqlite.store.driver import dbapi
from tests.durability.recording import Disk, Said, record

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("power.py")
ROOT = Path(__file__).resolve().parents[2]
IMAGES = 400
COUNTS = """
SELECT
    (SELECT coalesce(sum(messages), 0) FROM sqs_queue_counts),
    (SELECT count(*) FROM sqs_leases),
    (SELECT count(*) FROM sqs_messages)
"""


@dataclass
class Score:
    """The findings of all images."""

    images: int = 0
    damaged: list[str] = field(default_factory=list)
    untrue_counts: int = 0
    missing: int = 0  # images in which an acknowledged message is missing
    returned: int = 0  # images in which a message is back whose delete was acknowledged
    worst_missing: int = 0


@dataclass
class Told:
    """The output of the process up to the cut."""

    sent: set[str] = field(default_factory=set)
    delete_attempted: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def hear(self, line: str) -> None:
        kind, _, key = line.partition(" ")
        kinds = {"send-ack": self.sent, "delete-attempt": self.delete_attempted, "delete-ack": self.deleted}
        if kind in kinds:
            kinds[kind].add(key)


def look_into(image, told, score):
    """Open the file as the next start of the machine would."""
    score.images += 1
    connection = dbapi.connect(str(image / "queues.db"), isolation_level=None)
    try:
        [(verdict,)] = connection.execute("PRAGMA integrity_check").fetchall()
        if verdict != "ok":
            score.damaged.append(verdict)
            return
        # NORMAL may lose even the very first commit, which creates the tables.
        found, counts = set(), {0}
        if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            found = {body for (body,) in connection.execute("SELECT body FROM sqs_messages")}
            counts = set(connection.execute(COUNTS).fetchone())
    except dbapi.Error as error:
        score.damaged.append(str(error))
        return
    finally:
        connection.close()
    score.untrue_counts += counts != {len(found)}
    missing = told.sent - told.delete_attempted - found
    score.missing += bool(missing)
    score.worst_missing = max(score.worst_missing, len(missing))
    score.returned += bool(told.deleted & found)


def cut_power(synchronous, tmp_path):
    command = [sys.executable, str(PROGRAM), str(tmp_path / "queues.db"), synchronous]
    events = record(["env", f"PYTHONPATH={ROOT}", *command], tmp_path / "strace.log")
    ready = events.index(Said("ready"))
    chance = random.Random(7)
    cuts = sorted(chance.randrange(ready + 1, len(events)) for _ in range(IMAGES))
    disk, told, score = Disk(), Told(), Score()
    for number, event in enumerate(events):
        disk.play(number, event)
        if isinstance(event, Said):
            told.hear(event.line)
        while cuts and cuts[0] == number:
            cuts.pop(0)
            image = tmp_path / "image"
            image.mkdir()
            disk.lose_power(chance, image)
            look_into(image, told, score)
            shutil.rmtree(image)
    os.unlink(tmp_path / "strace.log")
    print(synchronous, score)
    assert score.images == IMAGES
    return score


def test_full_loses_no_acknowledged_send_or_delete(tmp_path):
    score = cut_power("FULL", tmp_path)
    assert score == Score(images=IMAGES)


def test_normal_stays_whole_and_loses_the_last_commits_now_and_then(tmp_path):
    score = cut_power("NORMAL", tmp_path)
    assert score.damaged == []
    assert score.untrue_counts == 0
    assert score.missing > IMAGES // 10
    assert score.returned > 0
