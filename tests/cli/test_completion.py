# SPDX-License-Identifier: Apache-2.0
"""Completion in the shell."""

import pytest

from sqsqlite.cli import main


@pytest.fixture
def offered(path, monkeypatch):
    from click.shell_completion import ShellComplete

    monkeypatch.setenv("SQSQLITE_DB", str(path))

    def of(*words, incomplete=""):
        found = ShellComplete(main, {}, "sqsqlite", "_SQSQLITE_COMPLETE").get_completions(
            list(words), incomplete
        )
        return [item.value for item in found]

    return of


def test_commands_are_completed(offered):
    assert offered(incomplete="send") == ["send", "send-message", "send-message-batch"]


def test_queue_names_come_from_the_file(offered, sqs):
    sqs.create_queue("other")
    assert offered("send", incomplete="or") == ["orders"]
    assert offered("purge") == ["orders", "other"]
    assert offered("create", "x", "--dead-letter-queue") == ["orders", "other"]


def test_options_of_every_command_are_offered_after_the_verb(offered):
    assert offered("send", incomplete="--de") == ["--delay", "--deduplication-id"]
    assert offered("send", incomplete="--ou") == ["--output", "--out"]
    assert offered("send", "--output", incomplete="t") == ["table", "text"]
    assert offered("list-queues", incomplete="--end") == []


def test_flags_of_the_aws_cli_complete_queues_and_attributes(offered, sqs):
    assert offered("send-message", "--queue-url", incomplete="o") == ["orders"]
    assert offered("get-queue-url", "--queue-name") == ["orders"]
    assert offered("create-queue", "--queue-name") == []
    assert offered("set-queue-attributes", "--attributes", incomplete="Vis") == ["VisibilityTimeout="]
    assert offered("create", "q", "-a", incomplete="Del") == ["DelaySeconds="]
    assert offered("get-queue-attributes", "--attribute-names", incomplete="QueueA") == ["QueueArn"]
    assert offered("receive-message", "--attribute-names", incomplete="Sen") == ["SenderId", "SentTimestamp"]


@pytest.mark.parametrize("before", [True, False])
def test_completion_uses_the_file_that_the_line_names(offered, run, tmp_path, before):
    other = str(tmp_path / "other.db")
    run("create", "elsewhere", "--db", other)
    words = ["--db", other, "peek"] if before else ["peek", "--db", other]
    assert offered(*words) == ["elsewhere"]


def test_completion_creates_no_file_and_shows_no_error(offered, path):
    assert offered("send") == []
    assert not path.exists()
    path.write_bytes(b"not a database at all, but a text that is long enough " * 40)
    assert offered("send") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_instructions(run, shell):
    assert f"_SQSQLITE_COMPLETE={shell}_source" in run("completion", shell).out
