# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of `sqsqlite serve` and of programs on its file: neither side loses what the other was promised."""

import random
from collections import Counter

import pytest

import sqsqlite
from sqsqlite.operators.check import check
from tests.durability.judge import Judge
from tests.durability.listening import listen
from tests.durability.serve_storm import EMBEDDED, PROGRAM, SERVER, SOCKET
from tests.durability.storm import QUEUE, VISIBILITY_TIMEOUT
from tests.durability.test_storm import drain
from tests.store.inspection import assert_whole, rows


class Doors:
    """Passes on to the judge what it hears; counts who died, and by which doors messages came and went.

    Attributes:
        crossings: receives, by the doors of sender and receiver.
        unanswered: requests whose connection broke.
    """

    def __init__(self, judge):
        self.deaths = Counter()
        self.crossings = Counter()
        self.unanswered = 0
        self._judge = judge
        self._door_of = {}
        self._sent_by = {}

    def hear(self, line):
        kind, who, *words = line.split()
        match kind:
            case "death":
                self.deaths[words[0]] += 1
            case "door":
                self._door_of[who] = words[0]
            case "unanswered":
                self.unanswered += 1
            case _:
                self._count(kind, self._door_of[who], words[0])
                self._judge.hear(line)

    def _count(self, kind, door, key):
        if kind == "send-attempt":
            self._sent_by[key] = door
        elif kind == "receive":
            self.crossings[self._sent_by[key], door] += 1


@pytest.mark.parametrize(
    ("server_deaths", "program_deaths"),
    [(2, 3), pytest.param(45, 55, marks=[pytest.mark.slow, pytest.mark.timeout(7_200)])],
)
def test_storm_on_server_and_programs_breaks_no_promise(tmp_path, server_deaths, program_deaths):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"storm with seed {seed}")
    path = tmp_path / "queues.db"
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue(QUEUE, visibility_timeout=VISIBILITY_TIMEOUT)
    judge = Judge()
    doors = Doors(judge)
    listen(doors, "serve_storm.py", path, server_deaths, program_deaths, seed)
    with sqsqlite.connect(path) as sqs:
        assert_whole(sqs)
        assert check(sqs._store) == []
        drained = drain(sqs.queue(QUEUE), judge)
        assert_whole(sqs)
        assert rows(sqs, "SELECT count(*) FROM sqs_messages") == [(0,)]
    verdict = judge.verdict(drained)
    print(doors.deaths, doors.crossings, f"{doors.unanswered} unanswered", in_doubt(judge), verdict)
    assert verdict.violations == {}
    # Otherwise nothing was tested.
    assert doors.deaths[SERVER] >= server_deaths
    assert doors.deaths[PROGRAM] >= program_deaths
    assert doors.unanswered >= server_deaths
    assert doors.crossings[SOCKET, EMBEDDED] > 0
    assert doors.crossings[EMBEDDED, SOCKET] > 0
    assert verdict.redelivered_count > 0


def in_doubt(judge):
    """Sends and deletes without an answer, and how many of these sends took place."""
    sends = [life for life in judge.lives.values() if life.attempted and not life.sent]
    deletes = [life for life in judge.lives.values() if life.delete_attempted and life.deleted_at is None]
    done = sum(bool(life.receives) for life in sends)
    return f"sends in doubt: {len(sends)}, of them done: {done}; deletes in doubt: {len(deletes)}"


SECOND = 10**9
ACKNOWLEDGED = ("door client socket", "door program embedded", "send-attempt client a", "send-ack client a")
RECEIVED = (*ACKNOWLEDGED, f"receive program a 0 1 {2 * SECOND}")


@pytest.mark.parametrize(
    ("events", "broken"),
    [
        (ACKNOWLEDGED, {"lost": ["a"]}),
        (RECEIVED, {"lost": ["a"]}),
        (
            (*RECEIVED, "delete-attempt program a 2", "delete-ack program a 3", "receive client a 4 5 9"),
            {"resurrected": ["a"]},
        ),
        (
            (*RECEIVED, "death storm program", f"receive client a 2 3 {SECOND}", "delete-attempt client a 4"),
            {"held twice": ["a"]},
        ),
    ],
    ids=["acknowledged and gone", "received and gone", "back after its delete", "two holders"],
)
def test_violations_between_server_and_programs_reach_the_judge(events, broken):
    judge = Judge()
    doors = Doors(judge)
    for line in events:
        doors.hear(line)
    assert judge.verdict(set()).violations == broken
