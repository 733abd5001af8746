# SPDX-License-Identifier: Apache-2.0
"""A program can do by public names all that the commands do."""

import json
from dataclasses import FrozenInstanceError

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.testing.files import lay

ACCOUNT = "111122223333"


@pytest.fixture
def other(tmp_path, clock):
    with sqsqlite.connect(lay(tmp_path / "other.db"), clock=clock) as other:
        yield other


@pytest.fixture
def died(sqs, clock):
    """Two messages of `orders` in `dead`, and a third that was sent there."""
    dead = sqs.create_queue("dead")
    orders = sqs.create_queue("orders", dead_letter_queue=dead, max_receive_count=1)
    orders.send_many(["red", "blue"])
    for _ in range(2):
        orders.receive(10, visibility_timeout=0)
    dead.send("direct")
    return dead


def test_a_backup_is_restored(sqs, queue, tmp_path):
    queue.send("a")
    assert sqs.backup(tmp_path / "a.backup") == (tmp_path / "a.backup").stat().st_size
    with pytest.raises(errors.TargetExists):
        sqs.backup(tmp_path / "a.backup")
    sqs.backup(tmp_path / "a.backup", replace=True)
    assert sqsqlite.restore(tmp_path / "a.backup", tmp_path / "b.db") > 0
    with sqsqlite.connect(tmp_path / "b.db") as restored:
        assert [message.body for message in restored.queue("orders").peek()] == ["a"]


def test_a_sound_file_has_no_findings_and_each_step_is_reported(sqs, queue, path):
    steps = []
    assert sqs.check(bodies=True, progress=steps.append) == sqsqlite.check(path, quick=True) == []
    assert steps[0] == "integrity_check"
    assert steps[-1] == "bodies"


def test_a_file_that_is_too_damaged_to_be_opened_is_a_finding(tmp_path):
    path = tmp_path / "noise.db"
    path.write_bytes(b"noise" * 10_000)
    [found] = sqsqlite.check(path)
    assert "noise.db" in found.what
    assert "restore" in found.advice


@pytest.mark.parametrize("content", [None, b""])
def test_check_creates_no_file(tmp_path, content):
    path = tmp_path / "none.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(errors.CannotOpen):
        sqsqlite.check(path)
    assert path.exists() == (content is not None)


def test_a_damaged_message_is_set_aside(sqs, queue, tmp_path):
    queue.send("whole")
    queue.send("damaged")
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_messages SET message_id = x'01' WHERE body = 'damaged'")
    [damaged] = sqs.damaged_messages()
    assert damaged.queue == "orders"
    assert sqs.set_aside([damaged], tmp_path / "aside.jsonl") == 1
    assert json.loads((tmp_path / "aside.jsonl").read_text())["body"] == "damaged"
    assert sqs.damaged_messages() == []
    assert len(queue) == 1


def test_a_dump_is_loaded_from_objects_and_from_lines(sqs, queue, other, tmp_path):
    queue.send("a", attributes={"bytes": b"\x00\xff", "number": 1})
    sqs.create_queue("left-out")
    rows = list(sqs.dump("orders"))
    assert [row["kind"] for row in rows] == ["dump", "queue", "message", "end"]
    assert sqsqlite.check_dump(rows) == sqsqlite.Loaded(messages=1)

    counts = []
    done = other.load(rows, progress=counts.append)
    assert done == counts[-1] == sqsqlite.Loaded(messages=1, created=("orders",))
    assert [row for row in other.dump("orders") if row["kind"] == "message"] == [rows[2]]

    again = other.load(json.dumps(row) for row in rows)
    assert (again.messages, again.before) == (0, 1)
    assert other.load(rows, again=True, renew=True).messages == 1


@pytest.mark.parametrize(
    "rows", [[{}], [{"kind": "message"}], [{"kind": "end", "messages": 0}], [{"kind": "dump", "version": 2}]]
)
def test_an_object_that_is_not_of_a_dump_is_refused_with_its_number(rows):
    with pytest.raises(errors.BadDump, match="line 1"):
        sqsqlite.check_dump(rows)


def test_a_dump_names_damaged_messages(sqs, queue):
    queue.send("damaged")
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_messages SET message_id = x'01'")
    told = []
    assert [row["kind"] for row in sqs.dump(on_damage=told.append)] == ["dump", "queue", "end"]
    assert "orders" in told[0]


def test_a_new_file_needs_no_upgrade(sqs, path):
    state = sqsqlite.schema_state(path)
    assert state == sqsqlite.SchemaState(path, state.needed, state.needed, ())
    sqs.close()
    done = sqsqlite.upgrade(path)
    assert (done.version, done.migrations, done.backup) == (state.needed, (), None)


def test_dead_letters_are_counted_and_shown_by_their_source(sqs, died):
    counts = {found.source: found.messages for found in sqs.dead_letters()}
    assert counts == {"orders": 2, None: 1}
    assert {found.message.body for found in died.dead_letters()} == {"red", "blue"}
    assert len(died.dead_letters(1)) == 1
    assert len(died.dead_letters(source=sqs.queue("orders"))) == 2
    assert died.dead_letters(source="other") == []
    with pytest.raises(ValueError, match="0"):
        died.dead_letters(0)


def test_a_redrive_does_what_its_plan_predicts(sqs, died):
    plan = {part.source: (part.destination, part.messages, part.kept_by) for part in died.plan_redrive()}
    assert plan == {"orders": ("orders", 2, None), None: (None, 1, "of unknown origin")}
    assert [part.lacks_destination for part in died.plan_redrive() if part.source is None] == [True]

    shown = []
    only = sqsqlite.MoveFilter(source_arn="orders", body="red")
    task = died.redrive(only=only, progress=shown.append)
    assert (task.status, task.moved_count) == ("COMPLETED", 1)
    assert shown[-1] == task
    assert [message.body for message in sqs.queue("orders").peek()] == ["red"]


def test_an_interrupted_redrive_is_cancelled(sqs, died):
    def interrupt(task):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        died.redrive(max_messages_per_second=1, progress=interrupt)
    [task] = died.move_tasks(1)
    assert task.status != "RUNNING"


def test_a_plan_is_refused_like_the_task_that_it_describes(sqs, queue):
    for call in (queue.plan_redrive, queue.redrive, queue.start_move_task):
        with pytest.raises(errors.InvalidParameterValue):
            call()


def test_messages_are_listed_and_followed_in_order_of_sending(sqs, queue, clock):
    for body in "abc":
        queue.send(body)
        clock.advance(1)
    assert [message.body for message in queue.tail(2)] == ["b", "c"]
    assert [message.body for message in queue.messages()] == ["a", "b", "c"]
    followed = queue.follow(1, interval=0)
    assert next(followed).body == "c"
    queue.send("d")
    assert next(followed).body == "d"
    with pytest.raises(ValueError, match=r"1 to 10,000"):
        queue.tail(0)


def test_activity_is_counted_from_a_given_minute(sqs, queue, clock):
    began = sqs.now_ms()
    queue.send("a")
    clock.advance(600)
    assert [found.sent for found in sqs.stats()] == [0]
    assert [found.sent for found in sqs.stats(since=began)] == [1]


def test_keys_are_created_listed_rotated_and_removed(sqs):
    keys = sqs.keys
    made = keys.add(ACCOUNT, "worker")
    assert made.secret_access_key
    assert made.secret_access_key not in repr(made)  # which logs and tracebacks show
    [listed] = keys.list()
    assert (listed.access_key_id, listed.account_id, listed.user_name) == (
        made.access_key_id,
        ACCOUNT,
        "worker",
    )
    other = keys.rotate(made.access_key_id, grace_seconds=60)
    assert len(keys.list()) == 2
    keys.remove(made.access_key_id)
    assert [key.access_key_id for key in keys.list()] == [other.access_key_id]
    assert keys.session(other.access_key_id).access_key_id.startswith("ASIA")
    for call in (keys.remove, keys.rotate, keys.session):
        with pytest.raises(errors.InvalidParameterValue, match="NOBODY"):
            call("NOBODY")


def test_a_session_of_a_key_in_a_key_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text("[shop]\naws_access_key_id = SHOPKEY\naws_secret_access_key = secret\n")
    session = sqsqlite.key_file_session(path, "SHOPKEY", 900)
    assert session is not None
    assert session.token
    assert session.token not in repr(session)
    assert session.secret_access_key not in repr(session)
    assert sqsqlite.key_file_session(path, "NOBODY") is None


def test_values_are_frozen(sqs, died):
    for value in (sqs.dead_letters()[0], died.dead_letters()[0], died.plan_redrive()[0], sqsqlite.Loaded()):
        name = next(iter(type(value).__dataclass_fields__))
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, None)
