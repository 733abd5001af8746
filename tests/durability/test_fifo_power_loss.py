# SPDX-License-Identifier: Apache-2.0
"""Loss of power on a FIFO queue: all acknowledged messages, their order and their deduplication ids are kept."""

import random
import shutil
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest

import sqsqlite
from sqsqlite.operators.check import check
from tests.durability.recording import Disk, Said, record
from tests.store.inspection import rows

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("fifo_power.py")
ROOT = Path(__file__).resolve().parents[2]
IMAGES = 250
QUEUE = "orders.fifo"


@dataclass
class Told:
    """The output of the process up to the cut."""

    attempted: list[str] = field(default_factory=list)
    sent: dict[str, str] = field(default_factory=dict)  # message ids by key
    delete_attempted: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def hear(self, line: str) -> None:
        match line.split():
            case ["send-attempt", key]:
                self.attempted.append(key)
            case ["send-ack", key, message_id]:
                self.sent[key] = message_id
            case ["delete-attempt", key]:
                self.delete_attempted.add(key)
            case ["delete-ack", key]:
                self.deleted.add(key)


def look_into(path, told):
    """Open the file as the next start of the machine would. Returns the violations by name."""
    try:
        with sqsqlite.connect(path) as sqs:
            wrong = [*map(str, check(sqs._store))]
            if QUEUE in [queue.name for queue in sqs.queues()]:
                wrong += _compare(sqs, told)
            elif told.sent:
                wrong.append("missing")
            return wrong
    except sqsqlite.errors.SQSError as error:
        return [f"not opened: {error}"]


def _compare(sqs, told):
    """Compare the stored messages, their order and their deduplication ids with the output of the process."""
    there = dict(rows(sqs, "SELECT deduplication_id, id FROM sqs_leases ORDER BY id"))
    remembered = {
        key: str(UUID(bytes=message_id))
        for key, message_id in rows(sqs, "SELECT deduplication_id, message_id FROM sqs_deduplications")
    }
    ids = dict(
        rows(
            sqs,
            "SELECT l.deduplication_id, m.message_id FROM sqs_leases AS l JOIN sqs_messages AS m USING (id)",
        )
    )
    kept = {key: str(UUID(bytes=message_id)) for key, message_id in ids.items()}
    expected = {
        "missing": not told.sent.keys() - told.delete_attempted <= there.keys(),
        "back": bool(told.deleted & there.keys()),
        "not in order": [*there] != sorted(there, key=int),
        "invented": not there.keys() <= set(told.attempted),
        "stored and not remembered": not kept.items() <= remembered.items(),
        "remembered and not stored": not remembered.keys() <= there.keys() | told.delete_attempted,
        "forgotten": not told.sent.items() <= remembered.items(),
        "sent twice": _sent_again(sqs, told, remembered),
    }
    return [name for name, is_so in expected.items() if is_so]


def _sent_again(sqs, told, remembered):
    """Whether the last send, which its sender may repeat, is stored a second time."""
    if not told.attempted:
        return False
    key = told.attempted[-1]
    before = len(sqs.queue(QUEUE))
    again = sqs.queue(QUEUE).send("again", group_id="again", deduplication_id=key)
    is_new = len(sqs.queue(QUEUE)) > before
    return is_new if key in remembered else not is_new or again.message_id in remembered.values()


def cut_power(synchronous, tmp_path):
    """Cut the power in many images. Returns how often each violation was found."""
    command = [sys.executable, str(PROGRAM), str(tmp_path / "queues.db"), synchronous]
    events = record(["env", f"PYTHONPATH={ROOT}", *command], tmp_path / "strace.log")
    chance = random.Random(8)
    ready = events.index(Said("ready"))
    cuts = Counter(chance.randrange(ready + 1, len(events)) for _ in range(IMAGES))
    disk, told, found = Disk(), Told(), Counter()
    for number, event in enumerate(events):
        disk.play(number, event)
        if isinstance(event, Said):
            told.hear(event.line)
        for _ in range(cuts[number]):
            image = tmp_path / "image"
            image.mkdir()
            disk.lose_power(chance, image)
            found.update(look_into(image / "queues.db", told))
            shutil.rmtree(image)
    print(synchronous, found)
    return found


def test_full_keeps_every_promise_of_a_fifo_queue(tmp_path):
    assert cut_power("FULL", tmp_path) == {}


def test_normal_loses_the_last_commits_whole(tmp_path):
    """The deduplication id is lost together with its message: a repeated send is stored, exactly once."""
    found = cut_power("NORMAL", tmp_path)
    assert found.keys() <= {"missing", "back", "forgotten"}
    assert found["missing"] > IMAGES // 10
