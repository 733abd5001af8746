# SPDX-License-Identifier: Apache-2.0
"""The work of a worker on a message, in this process and on a manual clock."""

import pytest

import sqsqlite
from sqsqlite.demo import ledger, worker


@pytest.fixture
def clock():
    return sqsqlite.ManualClock()


@pytest.fixture
def sqs(tmp_path, clock):
    with sqsqlite.connect(tmp_path / "demo.db", clock=clock) as opened:
        with opened.transaction() as connection:
            for table in ledger.TABLES:
                connection.execute(table)
        dead = opened.create_queue(worker.DEAD_LETTER_QUEUE)
        opened.create_queue(worker.QUEUE, visibility_timeout=4, dead_letter_queue=dead, max_receive_count=3)
        yield opened


@pytest.fixture
def queue(sqs):
    return sqs.queue(worker.QUEUE)


@pytest.fixture
def good(tmp_path):
    file = tmp_path / "good.py"
    file.write_text("def f(): ...\n")
    return str(file)


@pytest.fixture
def bad(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("def f(\n")
    return str(file)


def settle(sqs, *batch):
    worker.note(sqs, "worker-1", batch)
    return [worker.settle(sqs, "worker-1", message) for message in batch]


def parsed(sqs):
    return [ledger.Parsed(*row) for row in ledger.read(sqs, ledger.SELECT_PARSED_FILES)]


def test_a_parsed_file_has_its_row_and_its_message_is_gone(sqs, queue, good):
    sent = queue.send(good)
    assert settle(sqs, *queue.receive()) == ["parsed"]
    [row] = parsed(sqs)
    assert (row.message_id, row.path, row.functions, row.classes, row.lines) == (
        sent.message_id,
        good,
        1,
        0,
        1,
    )
    assert (row.worker, row.receive_count) == ("worker-1", 1)
    assert len(queue) == 0


def test_a_message_whose_timeout_ended_leaves_no_row(sqs, queue, good, clock):
    """The row is rolled back with the refused delete, and the message is received again."""
    queue.send(good)
    late = queue.receive()
    clock.advance(seconds=4)
    assert settle(sqs, *late) == ["late"]
    assert parsed(sqs) == []
    [again] = queue.receive()
    assert again.receive_count == 2
    assert settle(sqs, again) == ["parsed"]
    assert len(parsed(sqs)) == 1


def test_a_message_that_another_worker_has_finished_is_late_and_leaves_no_second_row(sqs, queue, good, clock):
    queue.send(good)
    late = queue.receive()
    clock.advance(seconds=4)
    assert settle(sqs, *queue.receive()) == ["parsed"]
    assert settle(sqs, *late) == ["late"]
    assert len(parsed(sqs)) == 1


def test_a_late_message_does_not_undo_the_others_of_its_batch(sqs, queue, good, bad, clock):
    for path in (good, good, bad):
        queue.send(path)
    first, second, third = queue.receive(3)
    first.change_visibility(60)
    third.change_visibility(60)
    clock.advance(seconds=4)
    assert settle(sqs, first, second, third) == ["parsed", "late", "refused"]
    assert [row.message_id for row in parsed(sqs)] == [first.message_id]


def test_a_returned_message_gets_all_the_time_it_needs(sqs, queue, good, clock, monkeypatch):
    """Otherwise a slow machine would make dead letters of good files."""
    queue.send(good)
    assert len(queue.receive()) == 1
    clock.advance(seconds=4)
    again = queue.receive()
    count = worker.count

    def count_slowly(path):
        clock.advance(seconds=1_000)
        return count(path)

    monkeypatch.setattr(worker, "count", count_slowly)
    assert settle(sqs, *again) == ["parsed"]


def test_a_file_that_does_not_parse_becomes_a_dead_letter_after_its_tries(sqs, queue, bad):
    sent = queue.send(bad)
    for _ in range(3):
        assert settle(sqs, *queue.receive()) == ["refused"]
    assert queue.receive() == []
    [dead] = sqs.queue(worker.DEAD_LETTER_QUEUE).peek()
    assert (dead.message_id, dead.body, dead.receive_count) == (sent.message_id, bad, 3)


def test_a_file_that_does_not_parse_in_time_is_late(sqs, queue, bad, clock):
    queue.send(bad)
    late = queue.receive()
    clock.advance(seconds=4)
    assert settle(sqs, *late) == ["late"]


def test_a_worker_notes_its_receives_and_prints_each_outcome(sqs, queue, good):
    first, second = queue.send(good), queue.send(good)
    printed = []

    def say(line):
        printed.append(line)
        if len(printed) == 2:
            queue.delete()

    with pytest.raises(sqsqlite.errors.QueueDoesNotExist):
        worker.work(sqs, "worker-1", say)
    assert printed == [f"parsed {first.message_id}", f"parsed {second.message_id}"]
    receives = [row[:3] for row in ledger.read(sqs, ledger.SELECT_RECEIVES)]
    assert receives == [(first.message_id, "worker-1", 1), (second.message_id, "worker-1", 1)]


def test_functions_classes_and_lines_are_counted(tmp_path):
    """Methods, functions inside functions and `async def` count as functions."""
    file = tmp_path / "a.py"
    file.write_text("class A:\n    def f(self):\n        def g(): ...\n\nasync def h(): ...\n")
    assert worker.count(file) == (3, 1, 5)


@pytest.mark.parametrize(
    "source",
    [b"print 'hello'\n", b"def f(:\n", b"x = '\xf6'\n", b"# coding: uft-8\n", b"x = 1\0\n"],
    ids=["another grammar", "broken", "not UTF-8", "unknown encoding", "NUL"],
)
def test_a_file_that_is_not_source_code_is_unparsable(tmp_path, source):
    file = tmp_path / "a.py"
    file.write_bytes(source)
    assert worker.count(file) is None


def test_a_missing_file_is_an_error_of_its_own(tmp_path):
    with pytest.raises(FileNotFoundError):
        worker.count(tmp_path / "a.py")
