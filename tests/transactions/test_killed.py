# SPDX-License-Identifier: Apache-2.0
"""SIGKILL around a transaction: afterwards the order and its message both exist, or neither does."""

import pytest

import sqsqlite
from tests.store.inspection import assert_whole, bodies, rows
from tests.store.processes import Program

# Stops at each place given, prints its name, and continues when told to. If it is killed there, it never continues.
PLACE_ORDER = """
import sqsqlite
from sqlalchemy import text

def stop(place):
    if place == sys.argv[2]:
        say(place)
        input()

sqs = sqsqlite.connect(sys.argv[1])
queue = sqs.queue("orders")
stop("before the transaction")
with sqs.engine.begin() as connection:
    stop("before the order")
    connection.execute(text("INSERT INTO orders (item) VALUES ('lamp')"))
    stop("between order and message")
    queue.send("lamp ordered", connection=connection)
    stop("before the commit")
stop("after the commit")
say("never told")
"""
SHIP_ORDER = """
import sqsqlite

def stop(place):
    if place == sys.argv[2]:
        say(place)
        input()

sqs = sqsqlite.connect(sys.argv[1])
[message] = sqs.queue("orders").receive(visibility_timeout=0)
[message] = sqs.queue("orders").receive(visibility_timeout=1)
with sqs.transaction() as connection:
    connection.execute("INSERT INTO orders (item) VALUES ('shipped')")
    stop("between row and delete")
    message.delete()
    stop("before the commit")
stop("after the commit")
"""
ITEMS = "SELECT item FROM orders"


@pytest.fixture
def shop(path):
    with sqsqlite.connect(path) as sqs:
        with sqs.transaction() as connection:
            connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)")
        sqs.create_queue("orders")
    return path


@pytest.mark.parametrize(
    ("place", "kept"),
    [
        pytest.param("before the transaction", False, marks=pytest.mark.slow),
        pytest.param("before the order", False, marks=pytest.mark.slow),
        ("between order and message", False),
        ("before the commit", False),
        ("after the commit", True),
    ],
)
def test_a_kill_while_an_order_is_placed_leaves_all_or_nothing(shop, place, kept):
    with Program(PLACE_ORDER, shop, place) as program:
        assert program.hear() == place
        program.kill()
    with sqsqlite.connect(shop) as sqs:
        assert rows(sqs, ITEMS) == ([("lamp",)] if kept else [])
        assert_whole(sqs)
        assert bodies(sqs.queue("orders")) == (["lamp ordered"] if kept else [])


@pytest.mark.parametrize(
    ("place", "kept"),
    [("between row and delete", False), ("before the commit", False), ("after the commit", True)],
)
def test_a_kill_while_an_order_is_shipped_leaves_all_or_nothing(shop, place, kept):
    """If it was not shipped, the message returns when its visibility timeout ends. If it was shipped, it is gone."""
    with sqsqlite.connect(shop) as sqs:
        sqs.queue("orders").send("lamp ordered")
    with Program(SHIP_ORDER, shop, place) as program:
        assert program.hear() == place
        program.kill()
    with sqsqlite.connect(shop) as sqs:
        queue = sqs.queue("orders")
        assert rows(sqs, ITEMS) == ([("shipped",)] if kept else [])
        assert_whole(sqs)
        assert len(queue) == (0 if kept else 1)
        assert [message.body for message in queue.receive(wait=0 if kept else 5)] == (
            [] if kept else ["lamp ordered"]
        )


def test_survivor_of_a_kill_continues_at_once(shop):
    """It waits for the turn of the killed process, and gets it with the kill."""
    with sqsqlite.connect(shop) as sqs:
        queue = sqs.queue("orders")
        for _ in range(5):
            with Program(PLACE_ORDER, shop, "before the commit") as program:
                assert program.hear() == "before the commit"
                program.kill()
            queue.send("from the survivor")
        assert len(queue) == 5
        assert rows(sqs, ITEMS) == []
        assert_whole(sqs)
