# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random: no acknowledged message is lost, no deleted one returns, and no message is held twice at once."""

import random

import pytest

import sqsqlite
from tests.durability.crew import now
from tests.durability.judge import Judge
from tests.durability.listening import listen
from tests.durability.storm import VISIBILITY_TIMEOUT
from tests.store.inspection import assert_whole, rows


def drain(queue, judge):
    """Receive and delete all messages, once the leases of dead processes have ended. Returns the keys."""
    drained = set()
    while len(queue):
        called = now()
        messages = queue.receive(10, wait=VISIBILITY_TIMEOUT, visibility_timeout=600)
        for message in messages:
            judge.hear(f"receive drain {message.body} {called} {now()} {600 * 10**9}")
            assert message.body not in drained
            drained.add(message.body)
            message.delete()
    return drained


@pytest.mark.parametrize(
    "kills", [20, pytest.param(1_000, marks=[pytest.mark.slow, pytest.mark.timeout(7_200)])]
)
def test_storm_breaks_no_promise(tmp_path, kills, record_property):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"storm of {kills} kills with seed {seed}")
    path = tmp_path / "queues.db"
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("storm", visibility_timeout=VISIBILITY_TIMEOUT)
    judge = Judge()
    listen(judge, "storm.py", path, kills, seed)
    with sqsqlite.connect(path) as sqs:
        assert_whole(sqs)
        drained = drain(sqs.queue("storm"), judge)
        assert_whole(sqs)
        assert rows(sqs, "SELECT count(*) FROM sqs_messages") == [(0,)]
    verdict = judge.verdict(drained)
    print(verdict)
    assert verdict.violations == {}
    # Otherwise nothing was tested.
    assert verdict.sent_count > 5 * kills
    assert verdict.deleted_count > kills
    assert verdict.redelivered_count > 0
