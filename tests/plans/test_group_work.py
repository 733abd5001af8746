# SPDX-License-Identifier: Apache-2.0
"""What a FIFO or a fair queue makes SQLite do does not depend on how many groups, or messages in them, there are.

Counted in steps of its virtual machine, which are the same on every machine. The rows are written as the engine would
have left them: sending a hundred thousand messages would take a minute.
"""

import pytest

import sqsqlite
from sqsqlite.operators.check import check
from tests.store.inspection import assert_whole

NUMBERS = """
WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < :count)
"""
INSERT_MESSAGES = f"""
INSERT INTO sqs_messages (message_id, body_md5, body, group_id) {NUMBERS}
SELECT randomblob(16), zeroblob(16), 'body ' || number, 'group-' || (number % :groups) FROM numbers
"""
# The first groups are locked: the first message of each is in flight for an hour.
INSERT_GROUPS = f"""
INSERT INTO sqs_message_groups (epoch_id, group_id, head_visible_at) {NUMBERS}
SELECT :epoch_id, 'group-' || number, CASE WHEN number < :locked THEN :now_ms + 3600000 ELSE :now_ms END FROM numbers
"""
INSERT_FIFO_LEASES = f"""
INSERT INTO sqs_leases (
    id, epoch_id, group_key, sent_at, size_bytes, visible_at, deduplication_id, receive_count, queue_receive_count,
    token, received_at, first_received_at
) {NUMBERS}
SELECT
    number + 1, :epoch_id, number % :groups + 1, :now_ms, 10, iif(number < :locked, :now_ms + 3600000, 0),
    'id-' || number, number < :locked, number < :locked,
    iif(number < :locked, randomblob(12), NULL), iif(number < :locked, :now_ms, NULL),
    iif(number < :locked, :now_ms, NULL)
FROM numbers
"""
INSERT_TENANTS = f"""
INSERT INTO sqs_tenants (epoch_id, group_id, last_turn, last_sent_at) {NUMBERS}
SELECT :epoch_id, 'group-' || number, :turns, :now_ms FROM numbers
"""
INSERT_FAIR_LEASES = f"""
INSERT INTO sqs_leases (id, epoch_id, turn, sent_at, size_bytes, visible_at) {NUMBERS}
SELECT number + 1, :epoch_id, 1 + number / :groups, :now_ms, 10, 0 FROM numbers
"""
SET_COUNTS = "UPDATE sqs_queue_counts SET messages = :count, in_flight = :locked WHERE epoch_id = :epoch_id"


@pytest.fixture
def opened(tmp_path):
    """A file of that name."""
    files = []

    def open_(name):
        path = tmp_path / f"{name}.db"
        files.append(sqsqlite.connect(path, synchronous="OFF", clock=sqsqlite.ManualClock()))
        return files[-1]

    yield open_
    for file in files:
        file.close()


def fifo_queue(sqs, groups, messages, locked=0):
    """`groups` groups of `messages` messages each, sent in rotation; the first `locked` groups are in flight."""
    queue = sqs.create_queue("orders.fifo", fifo=True)
    fill(sqs, INSERT_FIFO_LEASES, INSERT_GROUPS, groups=groups, count=groups * messages, locked=locked)
    return queue


def fair_queue(sqs, tenants, messages):
    """`tenants` tenants with `messages` messages each."""
    queue = sqs.create_queue("orders")
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_queues SET has_tenants = 1")
    fill(sqs, INSERT_FAIR_LEASES, INSERT_TENANTS, groups=tenants, count=tenants * messages, locked=0)
    return queue


def fill(sqs, insert_leases, insert_groups, *, groups, count, locked):
    with sqs.transaction() as connection:
        [[epoch_id]] = connection.execute("SELECT epoch_id FROM sqs_queues").fetchall()
        values = {
            "epoch_id": epoch_id,
            "now_ms": sqs._store.clock.now_ms(),
            "groups": groups,
            "locked": locked,
            "turns": count // groups,
        }
        connection.execute(INSERT_MESSAGES, {**values, "count": count})
        connection.execute(insert_groups, {**values, "count": groups})
        connection.execute(insert_leases, {**values, "count": count})
        connection.execute(SET_COUNTS, {**values, "count": count})
    assert_whole(sqs)
    assert check(sqs._store) == []


def steps_of(sqs, call):
    """The number of steps of a call inside a transaction, and its result."""
    steps = []
    with sqs.transaction() as connection:
        connection.set_progress_handler(lambda: steps.append(1), 1)
        found = call()
        connection.set_progress_handler(None, 1)
    assert steps
    return len(steps), found


def work_of(sqs, queue):
    """Steps of a message's way, and of a receive of ten, by name."""
    work = {}
    work["receive one"], [one] = steps_of(sqs, queue.receive)
    work["delete"], _ = steps_of(sqs, one.delete)
    work["receive ten"], ten = steps_of(sqs, lambda: queue.receive(10))
    assert len(ten) == 10
    work["change"], _ = steps_of(sqs, lambda: ten[0].change_visibility(60))
    work["return"], _ = steps_of(sqs, lambda: ten[0].change_visibility(0))
    work["send"], _ = steps_of(sqs, lambda: queue.send("more", **identified(queue, "group-0")))
    work["send to a new group"], _ = steps_of(sqs, lambda: queue.send("new", **identified(queue, "new")))
    return work


def identified(queue, group_id):
    return {"group_id": group_id} | ({"deduplication_id": "new-" + group_id} if ".fifo" in queue.name else {})


@pytest.mark.parametrize(
    ("few", "many"),
    [
        pytest.param((30, 1), (100_000, 1), id="groups"),
        pytest.param((1, 100), (1, 100_000), id="messages of a single group", marks=pytest.mark.slow),
        pytest.param((2, 50, 1), (2, 50_000, 1), id="messages of a locked group in front of another"),
        pytest.param(
            (130, 1, 100),
            (10_030, 1, 10_000),
            id="locked groups in front of the others",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_work_on_a_fifo_queue_does_not_grow_with_its(opened, few, many):
    works = []
    for name, shape in {"few": few, "many": many}.items():
        sqs = opened(name)
        works.append(work_of(sqs, fifo_queue(sqs, *shape)))
    assert works[0] == works[1]


def test_work_of_a_receive_does_not_grow_with_locked_groups(opened):
    steps = []
    for locked in (10, 10_000):
        sqs = opened(locked)
        queue = fifo_queue(sqs, locked, 2, locked)
        taken, found = steps_of(sqs, queue.receive)
        assert found == []
        steps.append(taken)
    assert steps[0] == steps[1]


def test_work_on_a_fair_queue_does_not_grow_with_its_tenants(opened):
    works = []
    for tenants in (10, 10_000):
        sqs = opened(tenants)
        works.append(work_of(sqs, fair_queue(sqs, tenants, 5)))
    assert works[0] == works[1]


def test_turns_add_little_work_to_a_receive(opened):
    """At most one and a half times the work of a queue without tenants."""
    fair, plain = opened("fair"), opened("plain")
    queue = plain.create_queue("orders")
    queue.send_many(["plain"] * 100)
    with_turns = work_of(fair, fair_queue(fair, 10_000, 5))
    without = {"receive one": steps_of(plain, queue.receive)[0]}
    without["receive ten"] = steps_of(plain, lambda: queue.receive(10))[0]
    assert {name: with_turns[name] for name in without if with_turns[name] > 1.5 * without[name]} == {}
