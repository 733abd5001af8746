# SPDX-License-Identifier: Apache-2.0
"""The whole demo on a part of the library: real processes, a real kill, and a file that stays."""

import ast
import time
from dataclasses import replace

import pytest

import sqsqlite
from sqsqlite.cli import demo
from sqsqlite.demo import ledger, performance, worker
from sqsqlite.demo.audit import find_returns
from sqsqlite.demo.performance import Crew, CrewFailed

LIMIT = 150


@pytest.fixture(scope="module")
def said():
    return []


@pytest.fixture(scope="module")
def outcome(tmp_path_factory, said):
    path = tmp_path_factory.mktemp("demo") / "output" / "demo.db"
    return performance.perform(path, worker_count=3, limit=LIMIT, say=said.append)


def returned(evidence):
    return find_returns(evidence.kill, evidence.receives)


def test_the_sum_of_the_demo_is_right(outcome):
    evidence = outcome.evidence
    assert outcome.faults == []
    assert len(evidence.sent) == LIMIT
    assert len(evidence.parsed) + len(evidence.dead_letters) == LIMIT
    assert evidence.dead_letters != []


def test_other_workers_finish_the_messages_of_the_killed_one(outcome):
    evidence = outcome.evidence
    assert len(evidence.kill.held) >= 1
    finished_by = {row.message_id: row.worker for row in evidence.parsed}
    dead = {letter.message_id for letter in evidence.dead_letters}
    assert all(id_ in dead or finished_by[id_] != evidence.kill.worker for id_ in evidence.kill.held)
    assert [receive for receive in returned(evidence) if receive.receive_count < 2] == []


def test_each_message_of_the_killed_worker_is_received_again(outcome, said):
    rows = demo.returns(outcome)
    assert {row["message_id"] for row in rows} <= set(outcome.evidence.kill.held)
    assert len(rows) >= 1
    for row in rows:
        again = (
            f"{row['received_by']} received {row['message_id']} again, receive count {row['receive_count']}, "
        )
        assert any(line.startswith(again) for line in said)


def test_the_printed_numbers_equal_those_of_the_tables(outcome):
    counts = {row["what"]: row["count"] for row in demo.totals(outcome)}
    assert counts["sent"] == LIMIT
    assert counts["processed once"] + counts["dead letters"] == LIMIT
    assert counts["redelivered"] >= len(returned(outcome.evidence)) >= 1
    assert counts["messages/s"] > 0


def test_the_file_is_kept(outcome):
    with sqsqlite.connect(outcome.path) as sqs:
        assert len(sqs.queue(worker.QUEUE)) == 0
        assert len(sqs.queue(worker.DEAD_LETTER_QUEUE)) == len(outcome.evidence.dead_letters)
        assert ledger.read(sqs, ledger.SELECT_PARSED_FILES) == [tuple(row) for row in outcome.evidence.parsed]


def test_the_audit_notices_a_deleted_and_a_doubled_row(outcome):
    """The same audit on the same file, after the application's table lost a row and got another one twice."""
    with sqsqlite.connect(outcome.path) as sqs:
        lost, twice = outcome.evidence.parsed[:2]
        with sqs.transaction() as connection:
            connection.execute("DELETE FROM parsed_files WHERE message_id = ?", (lost.message_id,))
            connection.execute(ledger.INSERT_PARSED_FILE, twice)
            damaged = replace(
                outcome.evidence,
                parsed=[ledger.Parsed(*row) for row in connection.execute(ledger.SELECT_PARSED_FILES)],
            )
            connection.execute("DELETE FROM parsed_files WHERE message_id = ?", (twice.message_id,))
            connection.execute(ledger.INSERT_PARSED_FILE, twice)
            connection.execute(ledger.INSERT_PARSED_FILE, lost)
    assert f"{twice.message_id} was processed 2 times" in performance.find_faults(damaged)
    assert f"{lost.path} ({lost.message_id}) was lost" in performance.find_faults(damaged)


def test_an_existing_file_is_left_alone(tmp_path):
    path = tmp_path / "orders.db"
    path.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match="begins with a new file"):
        performance.perform(path, say=print)
    assert path.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [path]


def _wait(crew):
    while crew.is_at_work():
        time.sleep(0.01)


def test_a_worker_that_fails_ends_the_demo(tmp_path, capfd):
    """Here the worker finds no queue."""
    path = tmp_path / "demo.db"
    sqsqlite.connect(path).close()
    with Crew(path, 1) as crew, pytest.raises(CrewFailed, match="worker-1 ended with exit code 1"):
        _wait(crew)
    assert "QueueDoesNotExist" in capfd.readouterr().err


def test_one_of_the_files_is_truncated(tmp_path, monkeypatch):
    """So the dead-letter queue has work with every library."""
    library = tmp_path / "lib"
    library.mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (library / name).write_text("pass\n")
    monkeypatch.setattr(performance.sysconfig, "get_path", lambda _: library)
    path, truncated = tmp_path / "demo.db", tmp_path / "demo.db-truncated.py"
    assert performance.choose(path, None, print) == [*sorted(library.iterdir()), truncated]
    assert performance.choose(path, 2, print) == [library / "a.py", truncated]
    assert worker.count(truncated) is None
    with pytest.raises(SyntaxError):
        ast.parse(truncated.read_text())


def test_installed_packages_are_left_out(tmp_path):
    for name in ("b.py", "a.py", "json/tool.py", "site-packages/x.py", "dist-packages/y.py", "a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert performance.find(tmp_path) == [tmp_path / "a.py", tmp_path / "b.py", tmp_path / "json/tool.py"]


@pytest.mark.parametrize(("limit", "names"), [(3, "05"), (4, "036"), (10, "012345678"), (11, "0123456789")])
def test_a_limit_spreads_the_files_over_the_library(tmp_path, monkeypatch, limit, names):
    library = tmp_path / "lib"
    library.mkdir()
    for name in "0123456789":
        (library / f"{name}.py").touch()
    monkeypatch.setattr(performance.sysconfig, "get_path", lambda _: library)
    chosen = performance.choose(tmp_path / "demo.db", limit, print)[:-1]
    assert "".join(file.stem for file in chosen) == names
