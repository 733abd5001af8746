# SPDX-License-Identifier: Apache-2.0
"""--out never overwrites queues, and an unwritable target is reported before any work."""

import os

import pytest

import sqsqlite
from sqsqlite.cli.failures import Failure
from sqsqlite.cli.output import check_folder, check_target

VERBS = [
    ("queues",),
    ("list-queues",),
    ("create", "more"),
    ("dump",),
    ("demo", "--limit", "20"),
    ("report", "backlog"),
    ("report", "backlog", "--output", "html"),
    ("export", "--parquet", "lake"),
]


@pytest.mark.parametrize("words", VERBS, ids="-".join)
@pytest.mark.parametrize("name", ["queues.db", "link.db", "symlink.db", "other.db", "queues.db-wal"])
def test_out_never_overwrites_a_database(run, sqs, path, words, name):
    with sqsqlite.connect("other.db") as other:
        other.create_queue("orders").send("hello")
    os.link(path, "link.db")
    os.symlink(path, "symlink.db")
    sqs.queue("orders").send("hello")
    before = path.parent.joinpath(name).read_bytes()
    refused = run(*words, "--out", name)
    assert refused.code == 1
    assert f"--out {name}: " in refused.err
    assert path.parent.joinpath(name).read_bytes() == before


def test_out_must_differ_from_the_file_that_the_command_creates(run, path):
    refused = run("create", "orders", "--out", path)
    assert (refused.code, refused.err) == (
        1,
        f"--out {path}: the command reads this file and would overwrite it\n",
    )
    assert not path.exists()


def test_out_must_differ_from_the_files_of_a_report(run, sqs, tmp_path):
    (tmp_path / "empty.db").touch()
    refused = run("report", "fleet", "queues.db", "empty.db", "--out", "empty.db")
    assert "empty.db: the command reads this file" in refused.err


@pytest.mark.parametrize(
    "words",
    [
        ("report", "backlog", "--out", "none/report.json"),
        ("report", "all", "--output", "html", "--out", "none/report.html"),
        ("report", "backlog", "--output", "parquet", "--out", "queues.db/report"),
        ("export", "--parquet", "queues.db/lake"),
        ("export", "--parquet", "lake", "--out", "none/done.json"),
    ],
)
def test_unwritable_target_is_reported_before_spark_starts(run, sqs, words, monkeypatch):
    def never(**_):
        raise AssertionError

    monkeypatch.setattr("sqsqlite.spark.session.spark_session", never)
    refused = run(*words)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(("--out ", "--parquet "))


def test_check_of_a_target_changes_nothing(path):
    check_target("new.json")
    assert not os.path.lexists("new.json")
    path.with_name("old.json").write_text("old")
    check_target("old.json")
    assert path.with_name("old.json").read_text() == "old"
    os.mkfifo("pipe")
    check_target("pipe")  # To open it would wait for a reader.
    with pytest.raises(Failure, match="Is a directory"):
        check_target(".")


def test_a_folder_may_be_created_below_an_existing_one(path):
    check_folder("--out", path.parent / "a" / "b")
    path.touch()
    with pytest.raises(Failure, match=r"queues\.db is not a folder"):
        check_folder("--out", path / "b")
