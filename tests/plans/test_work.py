"""How much a call makes SQLite do, counted in steps of its virtual machine: the same on every machine."""

import pytest

import sqsqlite

STEPS_A_TICK = 50


@pytest.fixture
def receive_behind(tmp_path):
    """Receive one live message behind so many expired ones; what it took, in ticks of 50 steps."""

    def receive(expired):
        clock = sqsqlite.ManualClock()
        with sqsqlite.connect(tmp_path / f"{expired}.db", synchronous="OFF", clock=clock) as sqs:
            sqs._store.upkeep.close()  # a sweep that comes first would leave nothing to pass
            queue = sqs.create_queue("orders", message_retention_period=60)
            queue.send_many(["late"] * expired)
            clock.advance(seconds=59)
            queue.send("in time")
            clock.advance(seconds=2)
            ticks = []
            with sqs.transaction() as connection:
                connection.set_progress_handler(lambda: ticks.append(1), STEPS_A_TICK)
                [message] = queue.receive()
                connection.set_progress_handler(None, STEPS_A_TICK)
            assert message.body == "in time"
            return len(ticks)

    return receive


def test_a_receive_passes_any_number_of_expired_messages_at_a_seek(receive_behind):
    few, many = receive_behind(100), receive_behind(10_000)
    assert 0 < many < 2 * few
