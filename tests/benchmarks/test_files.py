# SPDX-License-Identifier: Apache-2.0
"""The files that the benchmarks fill by SQL equal those that the engine would have written."""

import importlib

import pytest

import sqsqlite
from sqsqlite.operators.check import check
from tests.packaging.checkout import ROOT


@pytest.fixture
def benchmark_module(monkeypatch):
    """A module of benchmarks/, which is not a package, by its name."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


def _groups_as_received(path, name):
    """The groups of all messages of a queue, in the order in which they are received."""
    groups = []
    with sqsqlite.connect(path) as sqs:
        assert check(sqs._store, bodies=True) == []
        queue = sqs.queue(name)
        while messages := queue.receive(10):
            groups += [message.group_id for message in messages]
            for message in messages:
                message.delete()
        assert check(sqs._store) == []
    return groups


def test_file_of_fifo_groups_is_sound_and_received_group_by_group(benchmark_module, tmp_path):
    path = tmp_path / "queue.db"
    benchmark_module("grouped_file").make_fifo(path, 3, 10, ahead=2)
    expected = [
        *["ahead-0", "ahead-0", "ahead-1", "ahead-1"],
        *["group-0"] * 10,
        *["group-1"] * 10,
        *["group-2"] * 10,
    ]
    assert sorted(_groups_as_received(path, "orders.fifo")) == expected


def test_file_of_tenants_is_sound_and_received_in_turns(benchmark_module, tmp_path):
    path = tmp_path / "queue.db"
    benchmark_module("grouped_file").make_fair(path, 3, 4)
    assert _groups_as_received(path, "orders") == ["tenant-0", "tenant-1", "tenant-2"] * 4


def test_locked_groups_hold_back_their_own_messages_alone(benchmark_module, tmp_path):
    path = tmp_path / "queue.db"
    benchmark_module("grouped_file").make_fifo(path, 2, 5, ahead=3)
    benchmark_module("receives").lock_groups(path, "orders.fifo", 3)
    assert sorted(_groups_as_received(path, "orders.fifo")) == ["group-0"] * 5 + ["group-1"] * 5


def test_file_of_dead_letters_is_sound_and_has_their_sources(benchmark_module, tmp_path):
    path = tmp_path / "queue.db"
    benchmark_module("big_file").make_dead_letters(path, 20)
    with sqsqlite.connect(path) as sqs:
        assert check(sqs._store, bodies=True) == []
        sources = [message.dead_letter_source_arn for message in sqs.queue("dead").receive(10)]
        assert sources == [sqs.queue("orders").arn] * 10
