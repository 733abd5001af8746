# SPDX-License-Identifier: Apache-2.0
"""`check` names damaged messages and sets them aside: their readable parts are kept, and their queue is sound again."""

import base64
import json
import stat

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.operators.check import check, damaged_messages, set_aside
from tests.cli.runs import runner_on

BROKEN = "UPDATE sqs_messages SET body = CAST(x'ff66' AS TEXT) WHERE id = {id}"
MISSING = "DELETE FROM sqs_messages WHERE id = {id}"


def damage(sqs, *statements: str) -> None:
    with sqs.transaction() as connection:
        for statement in statements:
            connection.execute(statement)


def aside(sqs, target) -> list[dict]:
    """Set all damaged messages aside. Returns the lines of the file."""
    set_aside(sqs._store, damaged_messages(sqs._store), target)
    return [json.loads(line) for line in target.read_text().splitlines()]


def test_readable_parts_are_written_and_the_rest_of_the_queue_stays(sqs, queue, tmp_path):
    queue.send_many([{"body": str(place), "attributes": {"n": place}} for place in range(9)])
    damage(sqs, BROKEN.format(id=3), MISSING.format(id=5))
    assert [str(one) for one in damaged_messages(sqs._store)] == [
        "message 3 of queue orders is damaged: its body is not UTF-8",
        "message 5 of queue orders is damaged: its row in sqs_messages is missing",
    ]
    assert len(check(sqs._store)) == 2
    target = tmp_path / "aside.jsonl"
    broken, missing = aside(sqs, target)
    assert (broken["row"], broken["queue"], broken["damage"]) == (3, "orders", "its body is not UTF-8")
    assert base64.b64decode(broken["body_base64"]) == b"\xfff"
    assert json.loads(broken["attributes"]) == [["n", "Number", "2"]]
    assert len(base64.b64decode(broken["message_id_base64"])) == 16
    assert (missing["row"], missing["queue"], "body" in missing) == (5, "orders", False)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert check(sqs._store, bodies=True) == []
    assert [one.body for one in queue.peek(20)] == [str(place) for place in range(9) if place not in (2, 4)]


def test_counts_follow_in_each_state_of_the_message(sqs, clock, tmp_path):
    dead = sqs.create_queue("dead")
    queue = sqs.create_queue("q", dead_letter_queue=dead, max_receive_count=1)
    queue.send_many(["dead", "held"])
    queue.receive(visibility_timeout=1)
    clock.advance(2)
    assert [message.body for message in queue.receive(2, visibility_timeout=60)] == ["held"]
    queue.send("late", delay=60)
    queue.send("visible")
    damage(sqs, "UPDATE sqs_messages SET body = CAST(x'ff' AS TEXT)")
    assert len(aside(sqs, tmp_path / "aside.jsonl")) == 4
    assert [(one.visible, one.in_flight, one.delayed) for one in sqs.stats()] == [(0, 0, 0)] * 2
    assert check(sqs._store) == []


def test_a_group_behind_a_damaged_message_continues(sqs, tmp_path, caplog):
    queue = sqs.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)
    queue.send_many([{"body": f"{group}{place}", "group_id": group} for place in range(3) for group in "ab"])
    damage(sqs, BROKEN.format(id=1), BROKEN.format(id=2), BROKEN.format(id=4), BROKEN.format(id=6))
    assert queue.receive(10) == []
    assert len(aside(sqs, tmp_path / "aside.jsonl")) == 4
    assert [message.body for message in queue.receive(10)] == ["a1", "a2"]
    assert check(sqs._store) == []


def test_nothing_is_deleted_if_the_output_cannot_be_written(sqs, queue, tmp_path):
    queue.send("one")
    damage(sqs, BROKEN.format(id=1))
    found = damaged_messages(sqs._store)
    (tmp_path / "there").write_text("mine")
    with pytest.raises(errors.TargetExists):
        set_aside(sqs._store, found, tmp_path / "there")
    with pytest.raises(errors.CannotOpen, match="nothing was set aside"):
        set_aside(sqs._store, found, tmp_path / "no folder" / "aside")
    assert ((tmp_path / "there").read_text(), damaged_messages(sqs._store)) == ("mine", found)


def test_nothing_is_deleted_from_a_file_with_damaged_pages(sqs, queue, path, tmp_path):
    queue.send_many([f"{place:03}{'x' * 300}" for place in range(99)])
    damage(sqs, BROKEN.format(id=1))
    sqs.close()
    data = bytearray(path.read_bytes())
    page = data.index(b"050xxx") // 2048
    data[page * 2048 : page * 2048 + 2048] = bytes(2048)
    path.write_bytes(data)
    with sqsqlite.connect(path) as again, pytest.raises(errors.Corrupt):
        damaged_messages(again._store)
    ran = runner_on(path)("check", "--set-aside", tmp_path / "aside.jsonl", "--yes")
    assert (ran.code, ran.err.startswith("Corrupt: ")) == (1, True), ran.err
    assert not (tmp_path / "aside.jsonl").exists()


class TestCommand:
    @pytest.fixture
    def run(self, path, queue, sqs):
        queue.send_many(["one", "two", "three"])
        damage(sqs, BROKEN.format(id=2))
        sqs.close()
        return runner_on(path)

    def test_check_names_the_message_and_the_remedy(self, run):
        ran = run("check", "--output", "json")
        assert ran.code == 1
        [finding] = ran.json
        assert finding["finding"] == "message 2 of queue orders is damaged: its body is not UTF-8"
        assert "--set-aside" in finding["what_to_do"]

    def test_set_aside_asks_first(self, run, tmp_path):
        ran = run("check", "--set-aside", tmp_path / "aside")
        assert (ran.code, "--yes" in ran.err, (tmp_path / "aside").exists()) == (2, True, False)

    def test_the_file_is_sound_after_a_set_aside(self, run, tmp_path):
        ran = run("check", "--set-aside", tmp_path / "aside", "--yes")
        assert ran.code == 0, ran.err
        assert "1 damaged message set aside" in ran.err
        assert json.loads((tmp_path / "aside").read_text())["row"] == 2
        again = run("check", "--set-aside", tmp_path / "aside", "--yes")
        assert (again.code, "sound" in again.err) == (0, True)

    def test_dump_writes_the_healthy_messages_and_exits_with_4(self, run, tmp_path):
        ran = run("dump", "--out", tmp_path / "all.jsonl")
        assert ran.code == 4
        assert "damaged: message 2 of queue orders is damaged: its body is not UTF-8" in ran.err
        loaded = runner_on(tmp_path / "new.db")
        assert loaded("load", tmp_path / "all.jsonl").code == 0
        assert [row["body"] for row in loaded("peek", "orders", "--output", "json").json] == ["one", "three"]
