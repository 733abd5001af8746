# SPDX-License-Identifier: Apache-2.0
"""One tenant's flood and quiet tenants in several processes, judged by the order of claims and not by time.

Every send of a quiet tenant and every claim is noted in a table of the same file, in the same transaction. So the notes
have the order of the events of all processes.
"""

import contextlib
import time

import pytest

import sqsqlite
from tests.store.inspection import assert_whole, rows
from tests.store.processes import PATIENCE, Program

FLOOD = 20_000
QUIET_TENANTS = 20
SENDS = 300
CONSUMERS = 3

SEND = """
import random, time
import sqsqlite
sqs = sqsqlite.connect(sys.argv[1], synchronous="NORMAL")
tenants, sends = int(sys.argv[2]), int(sys.argv[3])
queue, chance = sqs.queue("orders"), random.Random(3)
for number in range(sends):
    while True:
        with sqs.transaction() as connection:
            [[waiting]] = connection.execute("SELECT sum(CASE what WHEN 'sent' THEN 1 ELSE -1 END) FROM notes "
                "WHERE tenant <> 'noisy'").fetchall()
            if (waiting or 0) <= tenants:
                tenant = f"quiet-{chance.randrange(tenants)}"
                queue.send(f"{tenant} {number}", group_id=tenant)
                connection.execute("INSERT INTO notes (what, tenant, number) VALUES ('sent', ?, ?)", (tenant, number))
                break
        time.sleep(0.001)
say("all sent")
"""

RECEIVE = """
import random
import sqsqlite
sqs = sqsqlite.connect(sys.argv[1], synchronous="NORMAL")
queue, chance = sqs.queue("orders"), random.Random(int(sys.argv[2]))
say("ready")
while True:
    with sqs.transaction() as connection:
        messages = queue.receive(chance.choice((1, 1, 4)), visibility_timeout=600)
        notes = [message.body.split() for message in messages]
        connection.executemany("INSERT INTO notes (what, tenant, number) VALUES ('claimed', ?, ?)", notes)
    for message in messages:
        if message.group_id == "noisy" and chance.random() < 0.3:
            message.change_visibility(0)
        else:
            message.delete()
"""


@pytest.fixture
def flooded(path):
    """A queue that one tenant has flooded."""
    with sqsqlite.connect(path, synchronous="NORMAL") as sqs:
        queue = sqs.create_queue("orders")
        queue.send_many([{"body": f"noisy {number}", "group_id": "noisy"} for number in range(FLOOD)])
        with sqs.transaction() as connection:
            connection.execute(
                "CREATE TABLE notes (id INTEGER PRIMARY KEY, what TEXT, tenant TEXT, number INT)"
            )
        yield sqs


def wait_until_all_are_claimed(sqs):
    gives_up_at = time.monotonic() + PATIENCE
    claimed = "SELECT count(*) FROM notes WHERE what = 'claimed' AND tenant <> 'noisy'"
    while rows(sqs, claimed) < [(SENDS,)]:
        assert time.monotonic() < gives_up_at, "quiet tenants wait for the flood"
        time.sleep(0.05)


@pytest.mark.slow
def test_flood_of_one_tenant_delays_no_other_by_more_than_its_turns(flooded, path):
    """A tenant with nothing waiting draws the turn of the latest claim or the next one, one with k waiting at most k
    further; and in each turn there is one message a tenant."""
    with contextlib.ExitStack() as programs:
        for number in range(CONSUMERS):
            assert programs.enter_context(Program(RECEIVE, path, number)).hear() == "ready"
        sender = programs.enter_context(Program(SEND, path, QUIET_TENANTS, SENDS))
        wait_until_all_are_claimed(flooded)
        assert sender.hear() == "all sent"
    notes = rows(flooded, "SELECT what, tenant, number FROM notes ORDER BY id")
    claims = 0
    sent_at, waits, waiting = {}, {}, dict.fromkeys((tenant for _, tenant, _ in notes), 0)
    for what, tenant, number in notes:
        if what == "sent":
            sent_at[number] = claims, waiting[tenant]
            waiting[tenant] += 1
            continue
        claims += 1
        if tenant != "noisy":
            waiting[tenant] -= 1
            since, before = sent_at[number]
            waits[number] = claims - since, (before + 2) * (QUIET_TENANTS + 1)
    assert len(waits) == SENDS
    assert {number: wait for number, wait in waits.items() if wait[0] > wait[1]} == {}
    # The flood was present all the time, and was worked off in its own turns.
    noisy = claims - SENDS
    print(claims, noisy, sorted(wait for wait, _ in waits.values())[-10:])
    assert 0 < noisy < FLOOD
    assert len(flooded.queue("orders")) > 0
    assert_whole(flooded)
