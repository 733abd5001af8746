# SPDX-License-Identifier: Apache-2.0
"""How SQLite will carry each statement out: by an index, in its order, with statistics and without."""

import re

import pytest

import sqsqlite
from tests.plans.sql import STATEMENTS

# Statements that look at a whole table, or sort. Each is bounded by something other than the backlog.
ALLOWED = {
    "INSERT_TEN_PLAIN_MESSAGES": "goes through its own ten rows of VALUES",
    "FIND_META_TABLE": "once an open: SQLite's own schema table has no index, and holds some fifty rows",
    "COUNT_SCHEMA_OBJECTS": "once an open, as above",
    "SELECT_META": "once an open: all of a handful of rows",
    "SELECT_ALEMBIC_VERSION": "by the command alone: one row",
    "DELETE_TOMBSTONES": "in upkeep: the names deleted within the last minute",
    "LIST_DEAD_LETTER_SOURCE_QUEUES": "sorts the few queues that name one dead-letter queue",
    "CLAIM_AFTER": "goes through its own list of what to claim, at most as long as what was asked for",
    "COUNT_ACTIVE_MOVE_TASKS": "goes through the unfinished tasks, which the index holds alone: 100 an account",
    "LIST_UNFINISHED_MOVE_TASKS": "the same",
    "LIST_ORIGINS": "outside the event loop, before a move that goes through all of them: holds the few queues",
    "LEAVE_MOVE_TASKS": "the same, once a process that has moved messages",
    "LIST_ACCESS_KEYS": "by the command alone: every key is wanted",
    "DELETE_EXPIRED_ACCESS_KEYS": "by the command alone, when it makes a key",
    "DELETE_OLD_ACTIVITY": "in upkeep: the list of queue ids, itself found by seeks, is gone through once",
}
# A list that is bound as JSON is scanned, of course.
_WHOLE = re.compile(r"\bSCAN (?!\w+ VIRTUAL TABLE)|TEMP B-TREE|AUTOMATIC")


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """Plans of every statement: in a new file, in one with messages in every state, and in that one analysed."""
    path = tmp_path_factory.mktemp("plans") / "queues.db"
    with sqsqlite.connect(path, clock=sqsqlite.ManualClock()) as sqs:
        found = {"new": _plans(sqs)}
        fill(sqs)
        found["filled"] = _plans(sqs)
        with sqs.transaction() as connection:
            connection.execute("ANALYZE")
        found["analysed"] = _plans(sqs)
        return found


def fill(sqs):
    """Sources and a dead-letter queue each; visible, delayed, in flight and moved messages."""
    for number in range(12):
        dead = sqs.create_queue(f"dead-{number}")
        queue = sqs.create_queue(f"source-{number}", dead_letter_queue=dead, max_receive_count=1)
        queue.tag({"team": "night", "place": "harbour"})
        queue.send_many(["lost"] * 40)
        for _ in range(2):
            for message in queue.receive(5):
                message.change_visibility(0)
        queue.receive(10)
        queue.send_many([{"body": "late", "delay": 60}] * 20)
        client = sqs.client
        for rate in (1, 500):
            task = client.start_message_move_task(SourceArn=dead.arn, MaxNumberOfMessagesPerSecond=rate)
            if rate == 1:
                client.cancel_message_move_task(TaskHandle=task["TaskHandle"])
    _fill_fifo(sqs)
    with sqs.transaction() as connection:
        minutes = ((queue, minute * 60_000) for queue in range(20) for minute in range(100))
        connection.executemany("INSERT INTO sqs_queue_activity (queue_id, minute_at) VALUES (?, ?)", minutes)


def _fill_fifo(sqs):
    """Groups that are ready, in flight, delayed; duplicates; tenants."""
    for number in range(6):
        dead = sqs.create_queue(f"dead-{number}.fifo", fifo=True)
        queue = sqs.create_queue(
            f"source-{number}.fifo",
            fifo=True,
            content_based_deduplication=True,
            dead_letter_queue=dead,
            max_receive_count=1,
        )
        queue.send_many([{"body": str(place), "group_id": f"g{place % 20}"} for place in range(60)])
        for message in queue.receive(5):
            message.change_visibility(0)
        queue.receive(10)
        fair = sqs.create_queue(f"fair-{number}")
        fair.send_many([{"body": str(place), "group_id": f"g{place % 20}"} for place in range(60)])
        fair.receive(10)


def _plans(sqs):
    with sqs.read_engine.connect() as connection:
        raw = connection.connection.driver_connection
        return {name: statement.plan(raw) for name, statement in STATEMENTS.items()}


STATES = pytest.mark.parametrize("state", ["new", "filled", "analysed"])


@STATES
@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - ALLOWED.keys()))
def test_statement_reads_no_whole_table_and_sorts_nothing(plans, name, state):
    assert [step for step in plans[state][name] if _WHOLE.search(step)] == []


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed_exception_is_still_needed(plans, name):
    steps = [step for plan in plans.values() for step in plan[name]]
    assert any(_WHOLE.search(step) for step in steps)


@STATES
def test_old_activity_is_found_queue_by_queue(plans, state):
    """Its one scan is of the list of queue ids, never of the minutes."""
    steps = plans[state]["DELETE_OLD_ACTIVITY"]
    assert {step for step in steps if _WHOLE.search(step)} == {"SCAN ids"}


@STATES
@pytest.mark.parametrize(
    "name", [name for name, statement in STATEMENTS.items() if "sqs_ix_" in statement.comment]
)
def test_statement_uses_the_index_that_its_comment_names(plans, name, state):
    named = set(re.findall(r"sqs_ix_\w+", STATEMENTS[name].comment))
    used = set(re.findall(r"sqs_ix_\w+", " ".join(plans[state][name])))
    assert named <= used
