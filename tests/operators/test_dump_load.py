# SPDX-License-Identifier: Apache-2.0
"""`load` restores what `dump` wrote: everything about each message, each message once."""

import json
import signal
import subprocess
import sys

import msgspec
import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.operators import dump_lines, load
from sqsqlite.operators.check import check
from sqsqlite.operators.dump import dump
from sqsqlite.sql import operators as statements_operations
from tests.store.waiting import until

# Loads the dump argv[2] into argv[1], ten messages a commit, and is killed after the third commit.
KILLED = """
import os, signal, sys
from sqsqlite.operators import load
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.actions.opening import open_store
load.BATCH_MESSAGES = 10
kill = lambda done: done.messages == 30 and os.kill(os.getpid(), signal.SIGKILL)
load.load(open_store(sys.argv[1]), open(sys.argv[2], "rb"), LOCAL, progress=kill)
"""


@pytest.fixture
def other(tmp_path, clock):
    """Another, empty file."""
    with sqsqlite.connect(tmp_path / "other.db", clock=clock) as other:
        yield other


@pytest.fixture
def full(sqs, clock):
    """Queues with every kind of message."""
    dead = sqs.create_queue("dead", message_retention_period=86_400, tags={"team": "a"})
    orders = sqs.create_queue(
        "orders", dead_letter_queue=dead, max_receive_count=1, visibility_timeout=7, tags={"é": "ü"}
    )
    orders.send("exhausted")
    orders.receive(visibility_timeout=1)
    clock.advance(2)
    orders.receive()
    orders.send("held")
    orders.receive(visibility_timeout=600)
    clock.advance(3)
    orders.send("late", delay=60)
    orders.send(
        "typed", attributes={"n": 1, "b": b"\0\xff", "s": "x"}, group_id="tenant", trace_header="Root=1"
    )
    orders.send('multi\nline "quoted" \u2028 \N{SNOWMAN} 𝄞')
    return sqs


def lines_of(sqs, *queues: str) -> list[bytes]:
    return [dump_lines.encode(line) for line in dump(sqs._store, queues, LOCAL)]


def objects(lines) -> list[dict]:
    """The lines without the members that differ in each dump."""
    return [
        {name: value for name, value in json.loads(line).items() if name not in ("dump_id", "dumped_at")}
        for line in lines
    ]


def take_in(sqs, lines, **options) -> load.Loaded:
    return load.load(sqs._store, lines, LOCAL, **options)


def bodies(queue) -> list[str]:
    return [message.body for message in queue.peek(100)]


def changed(lines: list[bytes], number: int, **members) -> list[bytes]:
    """The dump with other members in one line."""
    line = {**json.loads(lines[number]), **members}
    return [*lines[:number], msgspec.json.encode(line), *lines[number + 1 :]]


def test_a_loaded_dump_dumps_the_same(full, other):
    """Ids, send times, receive counts, delays, attributes, provenance, queue attributes and tags."""
    lines = lines_of(full)
    done = take_in(other, lines)
    assert (done.messages, done.before, done.expired, done.warnings) == (5, 0, 0, ())
    assert done.created == ("dead", "orders")
    assert objects(lines_of(other)) == objects(lines)
    assert check(other._store, bodies=True) == []


def test_a_dump_has_a_line_for_each_queue_and_message(full):
    found = objects(lines_of(full))
    assert [line["kind"] for line in found] == ["dump", "queue", "queue", *["message"] * 5, "end"]
    assert [line["messages"] for line in found if line["kind"] in ("queue", "end")] == [1, 4, 5]
    exhausted, _, late, typed, _ = (line for line in found if line["kind"] == "message")
    assert exhausted["dead_letter"]["source_arn"].endswith(":orders")
    assert late["delayed_until"] == late["sent_at"] + 60_000
    assert typed["attributes"]["b"] == {"BinaryValue": "AP8=", "DataType": "Binary"}


def test_a_dump_keeps_a_policy_larger_than_the_present_limit(sqs, path, clock):
    """Without its Deny the loaded queue would be open to the users that it kept out."""
    resources = [f"arn:aws:sqs:*:*:{number}" for number in range(60)]
    statement = {"Effect": "Deny", "Principal": "*", "Action": "*", "NotResource": resources}
    attributes = {"Policy": json.dumps({"Statement": statement})}
    queue_url = sqs.create_queue("guarded").url
    with pytest.raises(errors.InvalidAttributeValue, match="60 Resources were found, maximum allowed is 50"):
        sqs.client.set_queue_attributes(QueueUrl=queue_url, Attributes=attributes)
    with sqsqlite.connect(path, clock=clock, limits="native") as native:
        native.client.set_queue_attributes(QueueUrl=queue_url, Attributes=attributes)
    [guarded] = objects(lines_of(sqs, "guarded"))[1:2]
    assert guarded["attributes"]["Policy"] == attributes["Policy"]


def test_each_line_is_one_line(full):
    """Even for bodies with line ends, so that grep, split and jq work."""
    assert all(b"\n" not in line for line in lines_of(full))


def test_dumping_some_queues_leaves_the_others_out(full):
    found = objects(lines_of(full, "orders", full.queue("orders").arn))
    assert {line["queue"] for line in found if line["kind"] == "message"} == {"orders"}
    assert [line["name"] for line in found if line["kind"] == "queue"] == ["orders"]


def test_dumping_a_missing_queue_is_an_error(full):
    with pytest.raises(errors.QueueDoesNotExist):
        lines_of(full, "none")


def test_a_dump_changes_nothing(full):
    before = full.stats()
    lines_of(full)
    assert full.stats() == before


def test_a_dump_is_one_instant(full):
    """A message sent, deleted or moved while the dump is written is not half in it."""
    lines = dump(full._store, (), LOCAL)
    first = [next(lines) for _ in range(4)]
    full.queue("orders").send("afterwards")
    for message in full.queue("dead").receive(10):
        message.delete()
    rest = list(lines)
    assert (len(first) + len(rest), rest[-1].messages) == (9, 5)


def test_messages_in_flight_are_receivable_after_the_load(full, other):
    take_in(other, lines_of(full))
    found = {message.body: message.receive_count for message in other.queue("dead").receive(10)}
    assert found == {"exhausted": 2}
    assert "held" in bodies(other.queue("orders"))


def test_two_loads_of_a_dump_at_once_share_the_work(sqs, other, clock, monkeypatch):
    """Someone starts the load again because the first one seems to hang: each message is still there once."""
    monkeypatch.setattr(load, "BATCH_MESSAGES", 4)
    queue = sqs.create_queue("orders.fifo", fifo=True)
    sent = [str(number) for number in range(30)]
    for body in sent:
        queue.send(body, group_id="g", deduplication_id=body)
    lines = lines_of(sqs)
    with sqsqlite.connect(other.path, clock=clock) as second:
        shared = []

        def stop(done):
            shared.append(done)
            if done.messages == 12:
                raise KeyboardInterrupt

        def in_the_midst(done):
            if not shared:
                with pytest.raises(KeyboardInterrupt):
                    take_in(second, lines, progress=stop)

        done = take_in(other, lines, progress=in_the_midst)
    assert (done.messages, done.before) == (18, 12)
    assert bodies(other.queue("orders.fifo")) == sent
    assert take_in(other, lines).before == 30


def test_a_loaded_message_keeps_its_receive_count(full, other, clock):
    """`held` was received once of once: the next receive in the new file moves it."""
    take_in(other, lines_of(full))
    assert "held" not in [message.body for message in other.queue("orders").receive(10)]
    assert "held" in bodies(other.queue("dead"))


def test_a_loaded_message_keeps_its_delay(full, other, clock):
    take_in(other, lines_of(full))
    assert "late" not in bodies(other.queue("orders"))
    clock.advance(60)
    assert "late" in bodies(other.queue("orders"))


def test_a_receive_shows_a_loaded_dead_letters_source(full, other):
    take_in(other, lines_of(full))
    response = other.client.receive_message(QueueUrl="dead", MessageSystemAttributeNames=["All"])
    assert response["Messages"][0]["Attributes"]["DeadLetterQueueSourceArn"].endswith(":orders")


@pytest.fixture
def chained(sqs, clock):
    """A message that died in `orders`, 5 s later in `failed`, and then in `graves`."""
    last = sqs.create_queue("buried")
    for name in ("graves", "failed", "orders"):
        last = sqs.create_queue(name, dead_letter_queue=last, max_receive_count=1)
    last.send("unlucky")
    for name in ("orders", "failed"):
        sqs.queue(name).receive(visibility_timeout=0)
        assert sqs.queue(name).receive() == []
        clock.advance(5)
    assert len(sqs.queue("graves")) == 1
    return sqs


def test_a_loaded_dead_letter_goes_back_step_by_step(chained, other):
    lines = lines_of(chained)
    take_in(other, lines)
    assert objects(lines_of(other)) == objects(lines)
    for name, target in (("graves", "failed"), ("failed", "orders")):
        assert other.queue(name).start_move_task().wait(20).status == "COMPLETED"
        assert bodies(other.queue(target)) == ["unlucky"]


def test_a_dead_letter_is_dumped_with_its_earlier_moves(chained):
    [line] = (line for line in objects(lines_of(chained)) if line["kind"] == "message")
    [before] = line["dead_letter"]["earlier"]
    assert before["source_arn"].endswith(":orders")
    assert line["dead_letter"]["source_arn"].endswith(":failed")
    assert line["dead_letter"]["moved_at"] - before["moved_at"] == 5_000


@pytest.mark.parametrize("odd", ["[[", "5", "[]", "[[1, 2, 3, 4]]"])
def test_unreadable_earlier_moves_do_not_hold_a_message_back(chained, other, odd, caplog):
    """Told, it is dumped without its past; redriven, it comes back without one."""
    with chained.transaction() as connection:
        connection.execute("UPDATE sqs_dead_letters SET earlier = ?", (odd,))
    told = []
    lines = [dump_lines.encode(line) for line in dump(chained._store, (), LOCAL, passed_by=told.append)]
    assert len(told) == 1
    take_in(other, lines)
    assert bodies(other.queue("graves")) == ["unlucky"]
    assert chained.queue("graves").start_move_task().wait(20).status == "COMPLETED"
    # The thread that moves logs it after its commit.
    until(lambda: "where it died before can't be read" in caplog.text)
    assert chained.queue("failed").receive()[0].dead_letter_source_arn is None


# FIFO queues


@pytest.fixture
def grouped(sqs, clock):
    """Two groups in a FIFO queue, the first message of one in flight; one dead letter."""
    dead = sqs.create_queue("dead.fifo", fifo=True)
    orders = sqs.create_queue(
        "orders.fifo",
        fifo=True,
        content_based_deduplication=True,
        dead_letter_queue=dead,
        max_receive_count=2,
    )
    orders.send("poison", group_id="x")
    for _ in range(2):
        orders.receive(visibility_timeout=0)
    orders.send_many({"body": f"{group}{number}", "group_id": group} for number in range(3) for group in "yz")
    clock.advance(ms=1)
    assert [message.body for message in orders.receive(visibility_timeout=600)] == ["y0"]
    return sqs


def everything_of(queue):
    taken = []
    while messages := queue.receive(10):
        taken += messages
        for message in messages:
            message.delete()
    return taken


def test_a_loaded_fifo_queue_dumps_the_same_but_for_its_sequence_numbers(grouped, other):
    lines = lines_of(grouped)
    assert take_in(other, lines).messages == 7

    def without_sequence(rows):
        return [{name: value for name, value in row.items() if name != "sequence"} for row in objects(rows)]

    assert without_sequence(lines_of(other)) == without_sequence(lines)
    assert check(other._store, bodies=True) == []


def test_loaded_groups_are_in_order_and_block(grouped, other):
    take_in(other, lines_of(grouped))
    queue = other.queue("orders.fifo")
    [first] = queue.receive()
    queue.send("y3", group_id="y")
    assert [message.body for message in queue.receive(10)] == ["z0", "z1", "z2"]
    first.delete()
    assert (first.body, [message.body for message in queue.receive(10)]) == ("y0", ["y1", "y2", "y3"])


def test_loaded_messages_keep_their_deduplication_ids_and_get_greater_sequence_numbers(grouped, other):
    before = {}
    for name in ("orders.fifo", "dead.fifo"):
        for line in lines_of(grouped, name):
            row = json.loads(line)
            if "body" in row:
                before[row["message_id"]] = row
    take_in(other, lines_of(grouped))
    messages = everything_of(other.queue("dead.fifo")) + everything_of(other.queue("orders.fifo"))
    assert len(messages) == len(before) == 7
    for message in messages:
        row = before[message.message_id]
        assert message.deduplication_id == row["deduplication_id"]
        assert int(message.sequence_number) > 10**19 + row["sequence"]


def test_sends_after_a_load_get_greater_sequence_numbers(grouped, other):
    """Greater than in the other file too, however few messages were loaded."""
    lines = [line for line in lines_of(grouped) if b'"y0"' not in line]
    lines[-1] = lines[-1].replace(b"7", b"6")
    highest = max(json.loads(line).get("sequence", 0) for line in lines)
    take_in(other, lines)
    queue = other.queue("orders.fifo")
    loaded = [seen.sequence_number for seen in queue.peek()]
    sent = queue.send("later", group_id="y").sequence_number
    assert sent > max(loaded)
    assert int(min(loaded)) > 10**19 + highest


def test_messages_loaded_into_a_group_in_flight_wait_behind_it(grouped, other):
    queue = other.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)
    queue.send("first", group_id="y")
    [held] = queue.receive(visibility_timeout=600)
    take_in(other, lines_of(grouped, "orders.fifo"))
    assert [message.body for message in queue.receive(10)] == ["z0", "z1", "z2"]
    held.delete()
    assert [message.body for message in queue.receive(10)] == ["y0", "y1", "y2"]
    assert check(other._store) == []


def test_a_loaded_group_waits_for_the_delay_of_its_first_message(sqs, other, clock):
    late = sqs.create_queue("late.fifo", fifo=True, content_based_deduplication=True, delay_seconds=60)
    late.send("a", group_id="g")
    clock.advance(10)
    late.send("b", group_id="g")
    take_in(other, lines_of(sqs))
    assert check(other._store) == []
    queue = other.queue("late.fifo")
    assert queue.receive(10) == []
    clock.advance(50)
    assert [message.body for message in queue.receive(10)] == ["a"]
    clock.advance(30)
    assert [message.body for message in queue.receive(10)] == ["a", "b"]


def test_a_repeated_load_of_a_fifo_queue_stores_duplicates(grouped, other):
    """Deduplication applies to sends: dumped messages are stored whatever their deduplication ids."""
    take_in(other, lines_of(grouped, "orders.fifo"))
    take_in(other, lines_of(grouped, "orders.fifo"), renew=True)
    assert len(other.queue("orders.fifo")) == 12
    assert check(other._store, bodies=True) == []


@pytest.fixture
def remembering(sqs, clock):
    """Two messages were sent a second apart. The first was deleted, and only its deduplication id remains."""
    queue = sqs.create_queue("orders.fifo", fifo=True)
    first = queue.send("first", group_id="g", deduplication_id="1")
    queue.receive()[0].delete()
    clock.advance(1)
    second = queue.send("second", group_id="g", deduplication_id="2")
    return {"1": first, "2": second}


def send_again(sqs, deduplication_id):
    return sqs.queue("orders.fifo").send("again", group_id="g", deduplication_id=deduplication_id)


def test_deduplication_ids_of_the_last_five_minutes_hold_after_a_load(sqs, remembering, other, clock):
    take_in(other, lines_of(sqs))
    for deduplication_id, original in remembering.items():
        again = send_again(other, deduplication_id)
        assert (again.message_id, again.sequence_number) == (original.message_id, original.sequence_number)
    assert bodies(other.queue("orders.fifo")) == ["second"]
    clock.advance(ms=298_999)
    assert send_again(other, "1").message_id == remembering["1"].message_id
    clock.advance(ms=1)
    assert send_again(other, "1").message_id != remembering["1"].message_id
    assert send_again(other, "2").message_id == remembering["2"].message_id
    assert check(other._store, bodies=True) == []


def test_expired_deduplication_ids_are_not_loaded(sqs, remembering, other, clock):
    lines = lines_of(sqs)
    clock.advance(299)
    take_in(other, lines)
    assert send_again(other, "1").message_id != remembering["1"].message_id
    assert send_again(other, "2").message_id == remembering["2"].message_id


def test_deduplication_ids_of_a_clock_that_was_ahead_last_five_minutes(sqs, remembering, tmp_path, clock):
    behind = sqsqlite.ManualClock(clock.now_ms() - 86_400_000)
    with sqsqlite.connect(tmp_path / "behind.db", clock=behind) as other:
        take_in(other, lines_of(sqs))
        behind.advance(ms=299_999)
        assert send_again(other, "1").message_id == remembering["1"].message_id
        behind.advance(ms=1)
        assert send_again(other, "1").message_id != remembering["1"].message_id


def test_renewed_messages_are_not_duplicates(sqs, remembering, other):
    take_in(other, lines_of(sqs), renew=True)
    assert send_again(other, "1").message_id != remembering["1"].message_id


def test_a_load_keeps_the_files_own_deduplication_ids(sqs, remembering, other):
    other.create_queue("orders.fifo", fifo=True)
    own = send_again(other, "1")
    take_in(other, lines_of(sqs))
    assert send_again(other, "1").message_id == own.message_id


def test_deduplication_ids_of_messages_that_were_not_loaded_are_left_out(sqs, remembering, other):
    """Ids come last in a dump: the answer to a repeated send must not claim a message that is not in the file."""
    lines = lines_of(sqs)
    with pytest.raises(errors.BadDump):
        take_in(other, [*lines[:3], b"{}", *lines[3:]])
    assert send_again(other, "2").message_id != remembering["2"].message_id


def test_a_dump_of_the_first_format_is_loaded(sqs, remembering, other):
    lines = [line for line in lines_of(sqs) if b'"kind":"deduplication"' not in line]
    assert take_in(other, changed(lines, 0, version=1)).messages == 1


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"queue": "stranger.fifo"}, "line 4: the queue stranger.fifo is not in the dump"),
        ({"queue": "plain"}, "line 4: the queue plain is no FIFO queue"),
        ({"message_id": "x"}, "line 4: message_id 'x'"),
        ({"expires_at": None}, "line 4"),
        ({"kind": "queue"}, "line 4"),
    ],
)
def test_a_malformed_deduplication_line_is_refused_with_its_number(sqs, remembering, other, members, said):
    sqs.create_queue("plain")
    lines = [line for line in lines_of(sqs) if b'"kind":"message"' not in line]
    with pytest.raises(errors.BadDump, match=said):
        load.examine(changed(lines, 3, **members))
    with pytest.raises(errors.BadDump, match=said):
        take_in(other, changed(lines, 3, **members))


# Fair queues


def test_loaded_tenants_take_turns(sqs, other):
    queue = sqs.create_queue("shared")
    queue.send_many([{"body": f"noisy {number}", "group_id": "noisy"} for number in range(5)])
    queue.send_many([{"body": "quiet", "group_id": "quiet"}, "of no group"])
    lines = lines_of(sqs)
    assert take_in(other, lines).messages == 7
    assert objects(lines_of(other)) == objects(lines)
    assert check(other._store, bodies=True) == []
    loaded = other.queue("shared")
    assert {message.body for message in loaded.receive(3)} == {"noisy 0", "quiet", "of no group"}
    loaded.send("later", group_id="quiet")
    assert [message.body for message in loaded.receive(2)] == ["noisy 1", "later"]


def test_a_loaded_tenants_delayed_message_takes_its_turn_after_the_delay(sqs, other, clock):
    sqs.create_queue("shared").send("late", group_id="tenant", delay=60)
    take_in(other, lines_of(sqs))
    loaded = other.queue("shared")
    loaded.send("now", group_id="tenant")
    assert [message.body for message in loaded.receive(10)] == ["now"]
    clock.advance(60)
    assert sorted(message.body for message in loaded.receive(10)) == ["late", "now"]
    assert check(other._store) == []


def test_a_message_without_a_group_is_refused_by_a_fifo_queue(grouped, other):
    lines = lines_of(grouped)
    [place] = [number for number, line in enumerate(lines) if b'"z0"' in line]
    row = json.loads(lines[place])
    del row["group_id"]
    with pytest.raises(errors.SQSQLiteError, match="group_id is missing"):
        take_in(other, [*lines[:place], msgspec.json.encode(row), *lines[place + 1 :]])


def test_messages_expired_since_the_dump_are_left_out_and_counted(full, other, clock):
    lines = lines_of(full)
    clock.advance(86_400)  # The retention of `dead`.
    done = take_in(other, lines)
    assert (done.messages, done.expired, len(other.queue("dead"))) == (4, 1, 0)


def test_renewed_messages_count_as_sent_now(full, other, clock):
    lines = lines_of(full)
    clock.advance(86_400)
    assert take_in(other, lines, renew=True).messages == 5
    messages = [json.loads(line) for line in lines_of(other)][3:-1]
    old = {json.loads(line).get("message_id") for line in lines}
    assert all(
        message["sent_at"] == clock.now_ms() and message["message_id"] not in old for message in messages
    )
    assert not any("receive_count" in message or "dead_letter" in message for message in messages)
    assert check(other._store) == []


def test_a_queue_that_exists_keeps_its_attributes_and_messages(full, other):
    other.create_queue("orders", visibility_timeout=99).send("first")
    done = take_in(other, lines_of(full))
    assert done.created == ("dead",)
    assert other.queue("orders").attributes["VisibilityTimeout"] == "99"
    assert "RedrivePolicy" not in other.queue("orders").attributes
    assert bodies(other.queue("orders"))[0] == "first"
    assert len(other.queue("orders")) == 5


def test_a_redrive_policy_without_its_queue_is_a_warning(full, other):
    done = take_in(other, lines_of(full, "orders"))
    assert len(done.warnings) == 1
    assert "Dead letter target does not exist" in done.warnings[0]
    assert len(other.queue("orders")) == 4


def test_loading_a_dump_a_second_time_does_nothing(full, other):
    """Also into the file that it came from, once it was loaded there."""
    lines = lines_of(full)
    take_in(other, lines)
    done = take_in(other, lines)
    assert (done.messages, done.before, len(other.queue("orders"))) == (0, 5, 4)


def test_option_again_loads_everything_once_more(full, other):
    lines = lines_of(full)
    take_in(other, lines)
    done = take_in(other, lines, again=True)
    assert (done.messages, done.before, len(other.queue("orders"))) == (5, 0, 8)


def test_a_purged_queue_is_filled_again_in_its_own_file(full):
    lines = lines_of(full, "orders")
    full.queue("orders").purge()
    assert take_in(full, lines).messages == 4
    assert objects(lines_of(full, "orders")) == objects(lines)


def test_a_killed_load_continues_where_it_ended(sqs, tmp_path):
    queue = sqs.create_queue("orders")
    queue.send_many([f"{number}" for number in range(55)])
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines_of(sqs)))
    # The process has the real clock, and the clock of the messages is far ahead: they count as sent then.
    run = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "new.db", tmp_path / "a.jsonl"], timeout=600, check=False
    )
    assert run.returncode == -signal.SIGKILL
    with sqsqlite.connect(tmp_path / "new.db") as new, open(tmp_path / "a.jsonl", "rb") as file:
        assert len(new.queue("orders")) == 30
        done = take_in(new, file)
        assert (done.before, done.messages) == (30, 25)
        assert bodies(new.queue("orders")) == [f"{number}" for number in range(55)]
        assert check(new._store, bodies=True) == []


def test_error_in_a_line_names_it_and_keeps_the_lines_before(sqs, other, monkeypatch):
    monkeypatch.setattr(load, "BATCH_MESSAGES", 2)
    sqs.create_queue("orders").send_many(["0", "1", "2", "3", "4"])
    lines = lines_of(sqs)
    with pytest.raises(errors.MissingParameter, match="line 6"):
        take_in(other, changed(lines, 5, body=""))
    assert bodies(other.queue("orders")) == ["0", "1"]
    take_in(other, lines)
    assert bodies(other.queue("orders")) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("cut", [0, 1, 3, 5])
def test_a_truncated_dump_is_an_error(full, other, cut):
    with pytest.raises(errors.BadDump, match="cut off"):
        take_in(other, lines_of(full)[:cut])


@pytest.mark.parametrize(
    ("number", "members", "said"),
    [
        (0, {"kind": "queue"}, "line 1"),
        (0, {"version": 3}, "format 3"),
        (0, {"version": 0}, "format 0"),
        (1, {"attributes": {"VisibilityTimeout": 5}}, "line 2"),
        (2, {"kind": "end", "messages": 0}, "line 4: stands after the end"),
        (4, {"queue": "stranger"}, "stranger is not in the dump"),
        (4, {"message_id": "x"}, "line 5: message_id 'x'"),
        (4, {"sent_at": -1}, "line 5"),
        (4, {"sent_at": 2**70}, "line 5"),
        (4, {"body": None}, "line 5"),
        (4, {"queue_receive_count": 10}, "queue_receive_count"),
        (3, {"dead_letter": {"source_arn": "x", "receive_count": 1, "moved_at": 1}}, "is not a queue's ARN"),
        (
            3,
            {"dead_letter": {"source_arn": "x", "receive_count": 1, "moved_at": 1, "earlier": [1] * 9}},
            "line 4",
        ),
        (8, {"messages": 6}, "the dump had 6 messages, 5 were read"),
        (8, {"kind": "dump"}, "line 9"),
        (7, {"kind": "end", "messages": 4}, "line 9: stands after the end"),
    ],
)
def test_a_line_that_is_not_of_a_dump_is_refused_with_its_number(full, other, number, members, said):
    with pytest.raises(errors.BadDump, match=said):
        take_in(other, changed(lines_of(full), number, **members))


@pytest.mark.parametrize("text", ["hello", "[]", "\udc80", b"\xff", '{"kind": "dump"'])
def test_a_file_that_is_not_a_dump_is_refused_and_creates_no_queue(other, text):
    with pytest.raises(errors.BadDump, match="line 1"):
        take_in(other, [text])
    assert other.queues() == []


def test_an_invalid_queue_is_named_and_no_queue_is_created(full, other):
    lines = changed(lines_of(full), 2, attributes={"VisibilityTimeout": "99999"})
    with pytest.raises(errors.InvalidAttributeValue, match="queue orders"):
        take_in(other, lines)
    assert other.queues() == []


def test_messages_beyond_the_limits_are_refused_where_the_limits_hold(tmp_path, other, clock):
    with sqsqlite.connect(tmp_path / "native.db", limits="native", clock=clock) as native:
        queue = native.create_queue("orders", maximum_message_size=2_000_000)
        queue.send("x" * 1_500_000)
        lines = lines_of(native)
    with pytest.raises(errors.SQSError):
        take_in(other, lines)


def test_progress_is_reported_after_each_commit(sqs, other, monkeypatch):
    monkeypatch.setattr(load, "BATCH_MESSAGES", 2)
    sqs.create_queue("orders").send_many(["0", "1", "2", "3", "4"])
    told = []
    take_in(other, lines_of(sqs), progress=lambda done: told.append(done.messages))
    assert told == [2, 4, 5]


def test_a_dump_reads_the_rows_in_one_pass_and_sorts_nothing(sqs):
    """A sort would copy every body through a temporary file."""
    with sqs._store.reading() as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN " + statements_operations.DUMP_MESSAGES,
            {"epoch_ids": "[1]", "after_id": 0, "max_messages": 200},
        ).fetchall()
    assert plan[0][3] == "SEARCH l USING INTEGER PRIMARY KEY (rowid>?)"
    assert not any("TEMP B-TREE" in row[3] for row in plan)


def test_check_dump_refuses_limits_that_do_not_exist(full):
    with pytest.raises(ValueError, match="limits='aws'"):
        sqsqlite.check_dump(full.dump(), limits="aws")
