# SPDX-License-Identifier: Apache-2.0
"""--out never overwrites queues, and an unwritable target is reported before any work."""

import os
import subprocess
import sys

import pytest

import sqsqlite
from sqsqlite.cli.failures import Failure
from sqsqlite.cli.out_file import check_folder, check_target

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


@pytest.mark.parametrize(
    "words",
    [
        ("dump", "missing"),
        ("peek", "missing"),
        ("receive", "missing"),
        ("--db", "missing.db", "dump"),
        ("--db", "missing.db", "queues"),
    ],
)
def test_a_command_that_fails_leaves_the_old_file_as_it_was(run, path, words):
    run("create", "orders")
    file = path.with_name("orders.jsonl")
    file.write_text("yesterday's\n")
    assert run(*words, "--out", file).code == 1
    assert file.read_text() == "yesterday's\n"
    assert sorted(each.name for each in path.parent.iterdir() if each.name.endswith(".part")) == []


def test_a_replaced_file_keeps_its_mode_and_its_link(run, path):
    run("send", "orders", "hi", "--create")
    file, link = path.with_name("private.jsonl"), path.with_name("link.jsonl")
    file.write_text("old")
    file.chmod(0o600)
    link.symlink_to(file)
    assert run("peek", "orders", "--out", link).code == 0
    assert link.is_symlink()
    assert '"hi"' in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_command_without_data_leaves_an_empty_file(run, path):
    run("create", "orders")
    file = path.with_name("orders.jsonl")
    file.write_text("old")
    assert run("peek", "orders", "--out", file).code == 0
    assert file.read_text() == ""


@pytest.mark.parametrize("to_file", [False, True])
def test_devices_and_pipes_get_the_data_as_it_comes(run, path, tmp_path, to_file):
    run("send", "orders", "hi", "--create")
    command = [
        sys.executable,
        "-m",
        "sqsqlite.cli",
        "--db",
        str(path),
        "peek",
        "orders",
        "--out",
        "/dev/stdout",
    ]
    kept = tmp_path / "kept.jsonl"
    if to_file:
        with kept.open("w") as file:
            subprocess.run(command, stdout=file, check=True)
        said = kept.read_text()
    else:
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert '"hi"' in said
