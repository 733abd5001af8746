# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite payloads sweep`, and commands on messages whose bodies are elsewhere."""

import pytest

import sqsqlite
from sqsqlite.payloads import PayloadStore, extend

BIG = "x" * 300_000


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "payloads"


@pytest.fixture
def filled(path, folder):
    """A file with a message that has a payload, and an orphan."""
    with sqsqlite.connect(path) as sqs:
        queue = extend(sqs.create_queue("orders"), PayloadStore(folder))
        queue.send(BIG)
        try:
            with sqs.transaction():
                queue.send(BIG + "orphan")
                raise KeyError
        except KeyError:
            pass
    return folder


def sizes(folder):
    return sorted(found.stat().st_size for found in folder.rglob("*") if found.is_file())


def test_orphans_are_removed_after_a_look(run, filled):
    [row] = run("payloads", "sweep", "--store", filled, "--output", "json").json
    assert (row["found"], row["referred"], row["young"], row["removed"]) == (2, 1, 1, 0)
    shown = run("payloads", "sweep", "--store", filled, "--older-than", "0", "--dry-run", "--output", "json")
    assert "nothing was removed" in shown.err
    assert (shown.json[0]["removed"], sizes(filled)) == (1, [300_000, 300_006])
    [row] = run(
        "payloads", "sweep", "--store", filled.as_uri(), "--older-than", "0s", "--output", "json"
    ).json
    assert (row["removed"], row["removed_bytes"], row["failed"]) == (1, 300_006, 0)
    assert sizes(filled) == [300_000]


def test_the_file_may_be_an_argument(run, filled, path, tmp_path):
    with sqsqlite.connect(tmp_path / "other.db") as other:
        other.create_queue("orders")
    arguments = ("--store", filled, "--older-than", "0", "--output", "json")
    assert run("payloads", "sweep", tmp_path / "other.db", *arguments).json[0]["found"] == 0
    assert run("--db", tmp_path / "other.db", "payloads", "sweep", path, *arguments).json[0]["removed"] == 1


def test_payloads_of_an_owner_are_swept(run, filled):
    PayloadStore(filled).put(b"a client's")
    [row] = run(
        *(
            "payloads",
            "sweep",
            "--store",
            filled,
            "--owner",
            "remote",
            "--older-than",
            "0",
            "--output",
            "json",
        )
    ).json
    assert (row["owner"], row["removed"]) == ("remote", 1)
    assert sizes(filled) == [300_000, 300_006]


def test_a_missing_folder_is_an_error_and_is_not_made(run, filled, tmp_path):
    done = run("payloads", "sweep", "--store", tmp_path / "payload")
    assert (done.code, done.out) == (1, "")
    assert "PayloadStoreDown: the payload store" in done.err
    assert not (tmp_path / "payload").exists()


@pytest.mark.parametrize(
    "arguments",
    [("--store", "s3:///"), ("--store", "/"), ("--store", "payloads", "--owner", "a/b"), ()],
)
def test_a_wrong_line_is_refused(run, filled, arguments):
    assert run("payloads", "sweep", *arguments).code == 2


def test_peek_shows_the_pointer(run, filled):
    assert "software.amazon.payloadoffloading.PayloadS3Pointer" in run("peek", "orders").out
