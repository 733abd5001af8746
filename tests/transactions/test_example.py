# SPDX-License-Identifier: Apache-2.0
"""docs/examples/orders.py, as a user runs it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import sqsqlite
from tests.store.inspection import assert_whole, rows
from tests.store.processes import Program

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "orders.py"
# Killed between the order and its message.
PLACE_AND_DIE = f"""
import os, runpy, signal
from sqsqlite import Queue
Queue.send = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
sys.argv[:] = ["orders.py", sys.argv[1], "chair"]
runpy.run_path({str(EXAMPLE)!r}, run_name="__main__")
"""
ORDERS = "SELECT item, state FROM orders ORDER BY id"


def run(path, *arguments):
    command = [sys.executable, EXAMPLE, path, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout.strip()


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("orders_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_orders_are_placed_and_shipped(path):
    assert run(path, "lamp", "2 chairs") == "placed 1 2"
    assert run(path, "table") == "placed 3"
    assert run(path, "--ship") == "shipped 1 2 3"
    assert run(path, "--ship") == "shipped"
    with sqsqlite.connect(path) as sqs:
        assert rows(sqs, ORDERS) == [("lamp", "shipped"), ("2 chairs", "shipped"), ("table", "shipped")]
        assert_whole(sqs)


@pytest.mark.parametrize("arguments", [pytest.param([], marks=pytest.mark.slow), ["shop.db"]])
def test_too_few_arguments_get_a_line_of_usage(arguments):
    told = subprocess.run([sys.executable, EXAMPLE, *arguments], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert told.stderr.startswith("usage: python orders.py FILE ITEM...\n")


@pytest.mark.slow
def test_a_kill_between_order_and_message_leaves_neither(path):
    run(path, "lamp")
    with Program(PLACE_AND_DIE, path) as program, pytest.raises(AssertionError, match="not another line"):
        program.hear()
    with sqsqlite.connect(path) as sqs:
        assert rows(sqs, ORDERS) == [("lamp", "placed")]
        assert len(sqs.queue("placed-orders")) == 1
        assert_whole(sqs)


def test_rolled_back_order_announces_nothing(path, example):
    with sqsqlite.connect(path) as sqs:
        with sqs.engine.begin() as connection:
            example.metadata.create_all(connection)
        queue = sqs.create_queue("placed-orders")
        with pytest.raises(Exception, match="NOT NULL"):
            example.place(sqs, None)
        assert len(queue) == 0
        assert rows(sqs, ORDERS) == []


def test_an_order_shipped_by_another_process_is_not_shipped_again(path, example, capsys, monkeypatch):
    """The visibility timeout ends during the work, and another process ships the order."""
    clock = sqsqlite.ManualClock()
    with sqsqlite.connect(path, clock=clock) as sqs:
        with sqs.engine.begin() as connection:
            example.metadata.create_all(connection)
        queue = sqs.create_queue("placed-orders", visibility_timeout=30)
        example.place(sqs, "lamp")
        [slow] = queue.receive()
        clock.advance(seconds=31)
        assert example.ship(sqs) == [1]

        portions = [[slow], []]
        monkeypatch.setattr(sqsqlite.Queue, "receive", lambda *_: portions.pop(0))
        assert example.ship(sqs) == []
    assert capsys.readouterr().err == "order 1 was left alone: another process has shipped it\n"
