# SPDX-License-Identifier: Apache-2.0
"""How much work SQLite does for a call, in steps of its virtual machine: the same on every machine."""

import itertools

import pytest

import sqsqlite
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.operators.inspect import last_messages, messages

STEPS_A_TICK = 50


@pytest.fixture
def ticks_of():
    """The work of a call inside a transaction, in ticks of 50 steps, and its result."""

    def count(sqs, call):
        ticks = []
        with sqs.transaction() as connection:
            connection.set_progress_handler(lambda: ticks.append(1), STEPS_A_TICK)
            found = call()
            connection.set_progress_handler(None, STEPS_A_TICK)
        return len(ticks), found

    return count


@pytest.fixture
def receive_behind(tmp_path, ticks_of):
    """Receive one live message behind `expired` expired ones. Returns the work in ticks of 50 steps."""

    def receive(expired):
        clock = sqsqlite.ManualClock()
        with sqsqlite.connect(tmp_path / f"{expired}.db", synchronous="OFF", clock=clock) as sqs:
            sqs._store.upkeep.close()  # A sweep before the receive would leave nothing to skip.
            queue = sqs.create_queue("orders", message_retention_period=60)
            queue.send_many(["late"] * expired)
            clock.advance(seconds=59)
            queue.send("in time")
            clock.advance(seconds=2)
            ticks, [message] = ticks_of(sqs, queue.receive)
            assert message.body == "in time"
            return ticks

    return receive


def test_a_receive_skips_any_number_of_expired_messages_with_one_seek(receive_behind):
    few, many = receive_behind(100), receive_behind(10_000)
    assert 0 < many < 2 * few


@pytest.fixture
def of_one_instant(tmp_path):
    """5,000 messages in a queue, all sent at the same millisecond."""
    with sqsqlite.connect(tmp_path / "queues.db", synchronous="OFF", clock=sqsqlite.ManualClock()) as sqs:
        sqs.create_queue("orders").send_many([str(number) for number in range(5000)])
        yield sqs


def test_a_page_of_messages_of_one_instant_begins_at_a_seek(of_one_instant, ticks_of):
    store = of_one_instant._store
    whole = list(messages(store, "orders", LOCAL))
    assert [message.body for message in whole] == [str(number) for number in range(5000)]

    def page_behind(place):
        seen = whole[place]
        ticks, rest = ticks_of(
            of_one_instant,
            lambda: list(
                itertools.islice(messages(store, "orders", LOCAL, (seen.sent_at, seen.row_id)), 400)
            ),
        )
        assert [message.row_id for message in rest] == [
            message.row_id for message in whole[place + 1 :][:400]
        ]
        return ticks

    assert 0 < page_behind(4400) < 1.2 * page_behind(0)


def test_the_newest_of_one_instant_are_found_at_a_seek(of_one_instant, ticks_of):
    ticks, found = ticks_of(of_one_instant, lambda: last_messages(of_one_instant._store, "orders", LOCAL, 2))
    assert [message.body for message in found] == ["4998", "4999"]
    assert ticks < 20
