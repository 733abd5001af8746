# SPDX-License-Identifier: Apache-2.0
"""The operators' commands, as typed."""

import json
import os
import sqlite3

import pytest

import sqsqlite
from sqsqlite.sql import schema
from tests.cli.runs import runner_on


@pytest.fixture
def run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return runner_on(path)


@pytest.fixture
def filled(path):
    """A file with three messages, closed."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send_many(["one", "two", "three"])
    return path


def bodies(path) -> list[str]:
    with sqsqlite.connect(path) as sqs:
        return [message.body for message in sqs.queue("orders").peek(100)]


def age(path, version: int) -> None:
    """Give the file the number of another schema version, and change nothing else."""
    connection = sqlite3.connect(path)
    connection.execute("UPDATE sqs_meta SET number = ? WHERE name = 'schema_version'", (version,))
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "words",
    [["backup", "a"], ["check"], ["dump"], ["db", "current"], ["db", "check"], ["db", "upgrade"]],
    ids=" ".join,
)
def test_a_missing_file_is_an_error_and_is_not_created(run, tmp_path, words):
    ran = run(*words)
    assert (ran.code, ran.out) == (1, "")
    assert "NoSuchFile" in ran.err
    assert os.listdir(tmp_path) == []


class TestBackupAndRestore:
    def test_a_backup_is_restored_to_a_new_path(self, run, filled, tmp_path):
        [told] = run("backup", "a.backup").rows
        assert told == {"backup": "a.backup", "bytes": (tmp_path / "a.backup").stat().st_size}
        assert run("restore", "a.backup", "new.db").rows[0]["file"] == "new.db"
        assert bodies(tmp_path / "new.db") == ["one", "two", "three"]

    def test_restore_without_a_path_uses_that_of_the_db_option(self, run, filled, tmp_path):
        run("backup", "a.backup")
        refused = run("restore", "a.backup")
        assert (refused.code, "TargetExists" in refused.err) == (1, True)
        assert run("--db", "new.db", "restore", "a.backup").code == 0
        assert bodies(tmp_path / "new.db") == ["one", "two", "three"]

    def test_a_backup_is_replaced_only_by_force(self, run, filled):
        assert run("backup", "a.backup").code == 0
        refused = run("backup", "a.backup")
        assert (refused.code, refused.out) == (1, "")
        assert "TargetExists" in refused.err
        assert run("backup", "a.backup", "--force").code == 0


class TestCheck:
    def test_a_sound_file_is_silent_and_exits_with_0(self, run, filled):
        ran = run("check", "--bodies")
        assert (ran.code, ran.out) == (0, "")
        assert "sound" in ran.err

    def test_findings_are_lines_and_exit_with_1(self, run, filled):
        connection = sqlite3.connect(filled)
        connection.execute("UPDATE sqs_queue_counts SET messages = 7")
        connection.commit()
        connection.close()
        ran = run("check")
        assert ran.code == 1
        [row] = ran.rows
        assert "queue orders counts messages" in row["finding"]
        assert "--again" in row["what_to_do"]
        assert "1 finding" in ran.err


class TestDumpAndLoad:
    def test_a_dump_is_loaded_into_another_file(self, run, filled, tmp_path):
        assert run("dump", "--out", "a.jsonl").out == ""
        ran = run("--db", "new.db", "load", "a.jsonl")
        assert (ran.code, "3 loaded" in ran.err) == (0, True)
        assert bodies(tmp_path / "new.db") == ["one", "two", "three"]

    def test_error_about_a_missing_queue_lists_the_existing_ones(self, run, filled):
        refused = run("dump", "orders", "nosuch")
        assert (refused.code, refused.out) == (1, "")
        assert refused.err.startswith("QueueDoesNotExist: nosuch: no such queue in ")
        assert "(its queues: " in refused.err

    def test_a_dump_is_json_lines_in_a_pipe_and_loads_from_one(self, run, filled, tmp_path):
        dumped = run("dump", "orders")
        assert [row["kind"] for row in dumped.rows] == [
            "dump",
            "queue",
            "message",
            "message",
            "message",
            "end",
        ]
        assert run("--db", "new.db", "load", "-", input=dumped.out).code == 0
        assert bodies(tmp_path / "new.db") == ["one", "two", "three"]

    def test_loading_the_same_dump_again_is_reported(self, run, filled, tmp_path):
        run("dump", "--out", "a.jsonl")
        for _ in range(2):
            ran = run("--db", "new.db", "load", "a.jsonl")
        assert "3 messages of this dump were loaded before" in ran.err
        assert len(bodies(tmp_path / "new.db")) == 3
        assert run("--db", "new.db", "load", "a.jsonl", "--again").code == 0
        assert len(bodies(tmp_path / "new.db")) == 6

    def test_a_dry_run_checks_every_line_and_makes_nothing(self, run, filled, tmp_path):
        dumped = run("dump").out
        ran = run("--db", "new.db", "load", "-", "--dry-run", input=dumped)
        assert (ran.code, "3 checked" in ran.err) == (0, True)
        refused = run("--db", "new.db", "load", "-", "--dry-run", input=dumped.replace("three", "\\u0001"))
        assert (refused.code, "line 5" in refused.err) == (1, True)
        assert not (tmp_path / "new.db").exists()

    def test_a_dump_that_was_cut_off_exits_with_1(self, run, filled):
        lines = run("dump").out.splitlines()
        ran = run("--db", "new.db", "load", "-", input="\n".join(lines[:4]))
        assert (ran.code, "BadDump" in ran.err) == (1, True)

    def test_query_selects_a_part_of_a_dump(self, run, filled):
        ran = run("dump", "--query", "[?kind=='message'].body")
        assert sorted(json.loads(line) for line in ran.out.splitlines()) == ["one", "three", "two"]


class TestDb:
    def test_current_prints_the_version_and_the_one_needed(self, run, filled):
        [row] = run("db", "current").rows
        assert (row["version"], row["needed"]) == (schema.SCHEMA_VERSION, schema.SCHEMA_VERSION)

    def test_check_of_a_file_of_this_version_exits_with_0(self, run, filled):
        ran = run("db", "check")
        assert (ran.code, ran.out) == (0, "")

    def test_check_prints_differences_and_exits_with_1(self, run, filled):
        connection = sqlite3.connect(filled)
        connection.execute("DROP INDEX sqs_ix_leases_age")
        connection.close()
        ran = run("db", "check")
        assert (ran.code, ran.rows) == (1, [{"difference": "index sqs_ix_leases_age is missing"}])

    def test_upgrade_of_a_file_of_this_version_does_nothing(self, run, filled, tmp_path):
        before = sorted(os.listdir(tmp_path))
        ran = run("db", "upgrade")
        assert (ran.code, ran.out) == (0, "")
        assert "nothing to do" in ran.err
        assert sorted(os.listdir(tmp_path)) == before

    def test_a_newer_file_is_refused_and_an_older_one_names_the_command(self, run, filled):
        age(filled, schema.SCHEMA_VERSION + 1)
        ran = run("db", "upgrade")
        assert (ran.code, "SchemaTooNew" in ran.err) == (1, True)
        age(filled, 0)
        ran = run("queues")
        assert (ran.code, "db upgrade" in ran.err) == (6, True)

    def test_a_dry_run_prints_the_steps_and_changes_nothing(self, run, filled, tmp_path):
        age(filled, 0)
        before = sorted(os.listdir(tmp_path))
        ran = run("db", "upgrade", "--dry-run")
        assert [row["version"] for row in ran.rows] == list(range(1, schema.SCHEMA_VERSION + 1))
        assert "nothing was changed" in ran.err
        assert sorted(os.listdir(tmp_path)) == before
