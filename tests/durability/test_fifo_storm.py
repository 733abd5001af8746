# SPDX-License-Identifier: Apache-2.0
"""Processes die at random: each group of a FIFO queue is seen in order, and no message is stored twice."""

import random

import pytest

import sqsqlite
from sqsqlite.operators.check import check
from tests.durability.fifo_judge import FifoJudge
from tests.durability.fifo_storm import QUEUE, VISIBILITY_TIMEOUT
from tests.durability.listening import listen
from tests.store.inspection import assert_whole, rows

LEFT = """
SELECT (SELECT count(*) FROM sqs_messages), (SELECT count(*) FROM sqs_leases), (SELECT count(*) FROM sqs_message_groups)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("consumers", "groups", "messages"),
    [
        pytest.param(4, 20, 20, marks=pytest.mark.slow),
        pytest.param(8, 120, 120, marks=[pytest.mark.slow, pytest.mark.timeout(7_200)]),
    ],
)
def test_fifo_storm_breaks_no_promise(tmp_path, consumers, groups, messages):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"storm on {groups} groups with seed {seed}")
    path = tmp_path / "queues.db"
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue(QUEUE, fifo=True, visibility_timeout=VISIBILITY_TIMEOUT)
    judge = FifoJudge()
    listen(judge, "fifo_storm.py", path, consumers, groups, messages, seed)
    with sqsqlite.connect(path) as sqs:
        assert_whole(sqs)
        assert check(sqs._store) == []
        assert rows(sqs, LEFT) == [(0, 0, 0)]
        assert rows(sqs, "SELECT count(*) FROM sqs_deduplications") <= [(groups * messages,)]
    verdict = judge.verdict()
    print(judge.deaths, verdict)
    assert verdict.violations == {}
    assert verdict.sent_count == groups * messages
    # Otherwise nothing was tested.
    assert judge.deaths >= groups
    assert verdict.redelivered_count >= groups
