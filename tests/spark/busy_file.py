# SPDX-License-Identifier: Apache-2.0
"""A file with the work of some days: every state, every kind of queue, numbers beyond 32 bits, and NULLs."""

import time

import sqsqlite

HOUR = 3600


def fill(path):
    """Create the file. Its last instant is now, because the views use the machine's clock."""
    wall_ms = time.time_ns() // 1_000_000
    clock = sqsqlite.ManualClock(wall_ms - 60 * HOUR * 1000)
    # Its delays last longer than the slowest run of the tests.
    with sqsqlite.connect(path, clock=clock, synchronous="OFF", limits="native") as sqs:
        dead = sqs.create_queue("dead")
        orders = sqs.create_queue(
            "orders", visibility_timeout=10 * HOUR, dead_letter_queue=dead, max_receive_count=2
        )
        sqs.create_queue("empty")
        forgotten = sqs.create_queue("forgotten", message_retention_period=60)
        forgotten.send_many(["expired"] * 3)
        _orders(orders, clock)
        with sqs.transaction() as connection:
            # Beyond 32 bits: a JDBC reader that believes the declared type would cut it off.
            connection.execute("UPDATE sqlite_sequence SET seq = 5000000000 WHERE name = 'sqs_messages'")
        _tenants(sqs.create_queue("shared"), clock)
        _dying_tenant(sqs, clock)
        _fifo(sqs.create_queue("jobs.fifo", fifo=True, visibility_timeout=10 * HOUR), clock)
        clock.advance(ms=wall_ms - clock.now_ms() - 70_000)
        orders.send_many([f"late {number}" for number in range(7)])
        for message in orders.receive(5):
            message.delete()
        orders.send("delayed", delay=10 * HOUR)
        later = sqs.create_queue("later.fifo", fifo=True, delay_seconds=10 * HOUR)
        for number in range(3):
            later.send(f"later {number}", group_id="later", deduplication_id=str(number))
        assert orders.receive(2)
        for _ in range(3):
            assert dead.receive(2, visibility_timeout=0)
        dead.receive(visibility_timeout=3 * HOUR)
        clock.advance(seconds=70)


def _orders(orders, clock):
    for number in range(40):
        orders.send(f"order {number}" * (number % 5 + 1), attributes={"number": number})
        clock.advance(seconds=1800)
    for _ in range(3):  # These fail twice, and the third receive moves them.
        for message in orders.receive(6, visibility_timeout=0):
            assert message.body
        clock.advance(seconds=60)
    for message in orders.receive(10):
        message.delete()
    assert orders.receive(4)
    clock.advance(seconds=35 * HOUR)


def _tenants(shared, clock):
    for number in range(30):
        shared.send(f"work {number}", group_id="noisy" if number % 5 else "quiet")
    shared.send("nobody's")
    assert shared.receive(3)
    clock.advance(seconds=HOUR)


def _dying_tenant(sqs, clock):
    """Its messages move to a queue to which no producer sends groups."""
    graves = sqs.create_queue("graves")
    frail = sqs.create_queue("frail", dead_letter_queue=graves, max_receive_count=1)
    for number in range(4):
        frail.send(f"frail {number}", group_id=f"tenant-{number % 2}")
    assert len(frail.receive(10, visibility_timeout=0)) == 4
    assert not frail.receive(10)
    clock.advance(seconds=60)


def _fifo(jobs, clock):
    for number in range(12):
        jobs.send(f"job {number}", group_id=f"group-{number % 3}", deduplication_id=str(number))
    jobs.send("job 0", group_id="group-0", deduplication_id="0")
    assert len(jobs.receive(1)) == 1
    clock.advance(seconds=600)
