# SPDX-License-Identifier: Apache-2.0
"""A damaged message: receives skip it and report it, its queue continues, and no healthy message waits for it."""

import logging

import pytest

from sqsqlite import errors
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.operators.check import check
from sqsqlite.operators.inspect import last_messages, messages
from sqsqlite.store import damage as store_damage
from tests.store.waiting import Task

BROKEN = "UPDATE sqs_messages SET body = CAST(x'ff66' AS TEXT) WHERE id = {id}"
DAMAGES = {
    "body is not UTF-8": BROKEN,
    "row is missing": "DELETE FROM sqs_messages WHERE id = {id}",
    "message id too short": "UPDATE sqs_messages SET message_id = x'00' WHERE id = {id}",
    "attributes are not JSON": "UPDATE sqs_messages SET attributes = '[[1]' WHERE id = {id}",
    "group is not UTF-8": "UPDATE sqs_messages SET group_id = CAST(x'ff' AS TEXT) WHERE id = {id}",
}


def damage(sqs, statement: str, row_id: int) -> None:
    with sqs.transaction() as connection:
        connection.execute(statement.format(id=row_id))


def drain(queue, number: int, **options) -> list[str]:
    """Bodies in order, as a consumer that stops at an empty receive gets and deletes them."""
    bodies = []
    while messages := queue.receive(number, **options):
        for message in messages:
            bodies.append(message.body)
            message.delete()
    return bodies


@pytest.mark.parametrize("number", [1, 10])
@pytest.mark.parametrize("statement", DAMAGES.values(), ids=DAMAGES)
def test_all_healthy_messages_are_received_despite_a_damaged_one(sqs, queue, statement, number, caplog):
    """98 of 99. The log reports the other, which stays in flight until its timeout ends."""
    queue.send_many([str(place) for place in range(99)])
    damage(sqs, statement, 5)
    assert drain(queue, number) == [str(place) for place in range(99) if place != 4]
    [record] = caplog.records
    assert (record.name, record.levelno) == ("sqsqlite", logging.WARNING)
    assert "message 5 of queue orders is damaged: its " in record.message
    assert "sqsqlite check" in record.message
    [stats] = sqs.stats()
    assert (stats.visible, stats.in_flight, stats.received) == (0, 1, 99)


def test_a_damaged_message_is_skipped_again_after_its_timeout(sqs, queue, clock, caplog):
    queue.send_many(["one", "two"])
    damage(sqs, BROKEN, 1)
    assert drain(queue, 10, visibility_timeout=5) == ["two"]
    assert len(caplog.records) == 1
    assert (queue.receive(), len(caplog.records)) == ([], 1)
    clock.advance(5)
    assert (queue.receive(), len(caplog.records)) == ([], 2)


@pytest.mark.parametrize("fifo", [False, True])
@pytest.mark.parametrize("statement", [BROKEN, DAMAGES["row is missing"]])
def test_a_damaged_message_ends_in_the_dead_letter_queue(sqs, clock, fifo, statement, caplog):
    suffix = ".fifo" * fifo
    dead = sqs.create_queue(f"dead{suffix}", fifo=fifo)
    queue = sqs.create_queue(f"q{suffix}", fifo=fifo, dead_letter_queue=dead, max_receive_count=2)
    more = {"group_id": "g"} if fifo else {}
    for body in ("one", "two", "three"):
        queue.send(body, **more, **({"deduplication_id": body} if fifo else {}))
    damage(sqs, statement, 2)
    received = drain(queue, 10, visibility_timeout=1)
    for _ in range(3):
        clock.advance(1)
        received += drain(queue, 10, visibility_timeout=1)
    assert received == ["one", "two", "three"][::2]
    assert [(one.name, one.visible, one.in_flight) for one in sqs.stats()] == [
        (dead.name, 1, 0),
        (queue.name, 0, 0),
    ]
    assert {finding.what.split(" ")[0] for finding in check(sqs._store)} <= {"lease", "message"}


def test_a_thousand_damaged_messages_do_not_hide_the_one_behind_them(sqs, queue, caplog):
    """A claim skips a thousand of them, and the receive continues at once with the next ones."""
    queue.send_many([str(place) for place in range(1_050)])
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_messages SET body = CAST(x'ff' AS TEXT) WHERE id < 1050")
    assert [message.body for message in queue.receive()] == ["1049"]
    sqs.close()  # upkeep may have led the group of the receive, and logs after it has answered
    assert len(caplog.records) == 1_049


def test_receives_without_a_timeout_skip_damaged_messages_too(sqs, queue, caplog):
    queue.send_many(["one", "two"])
    damage(sqs, BROKEN, 1)
    assert [message.body for message in queue.receive(visibility_timeout=0)] == ["two"]


def test_receives_without_a_timeout_skip_a_thousand_damaged_messages(sqs, queue, caplog):
    queue.send_many([str(place) for place in range(1_050)])
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_messages SET body = CAST(x'ff' AS TEXT) WHERE id < 1050")
    assert [message.body for message in queue.receive(visibility_timeout=0)] == ["1049"]


@pytest.mark.parametrize("fifo", [False, True])
def test_a_long_poll_without_a_timeout_sleeps_despite_a_damaged_message(sqs, clock, fifo, caplog):
    """It does not claim the same message over and over while it waits."""
    queue = sqs.create_queue("q.fifo" if fifo else "q", fifo=fifo)
    queue.send("one", **({"group_id": "g", "deduplication_id": "one"} if fifo else {}))
    damage(sqs, BROKEN, 1)
    poll = Task(queue.receive, 1, 20, 0)
    clock.until_waiting()
    clock.advance(20)
    assert poll.outcome() == []


def test_damage_in_attributes_that_were_not_requested_is_harmless(sqs, queue, caplog):
    queue.send("one", attributes={"a": 1})
    damage(sqs, DAMAGES["attributes are not JSON"], 1)
    answer = sqs.client.receive_message(QueueUrl=queue.url)
    assert [message["Body"] for message in answer["Messages"]] == ["one"]
    assert caplog.records == []


def test_a_tenants_damaged_message_returns_like_any_other(sqs, queue, clock, caplog):
    """Its group cannot be read when the message draws its next turn."""
    queue.send_many([{"body": str(place), "group_id": "tenant"} for place in range(3)])
    damage(sqs, DAMAGES["group is not UTF-8"], 1)
    damage(sqs, DAMAGES["row is missing"], 2)
    assert drain(queue, 1, visibility_timeout=1) == ["2"]
    clock.advance(1)
    queue.send("new")
    assert drain(queue, 1, visibility_timeout=1) == ["new"]


@pytest.fixture
def groups(sqs):
    queue = sqs.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)
    queue.send_many([{"body": f"{group}{place}", "group_id": group} for place in range(4) for group in "ab"])
    return queue


@pytest.mark.parametrize("number", [1, 10])
def test_a_damaged_message_blocks_its_group_alone(sqs, groups, clock, number, caplog):
    """No message of the group is handed out before its turn, and no waiting one is counted as received."""
    damage(sqs, BROKEN, 3)  # a1
    assert sorted(drain(groups, number)) == ["a0", "b0", "b1", "b2", "b3"]
    clock.advance(30)
    assert groups.receive(10) == []
    [stats] = sqs.stats()
    assert (stats.visible, stats.in_flight) == (2, 1)
    assert {(one.body, one.receive_count) for one in groups.peek()} == {("a2", 0), ("a3", 0)}
    assert [str(one) for one in check(sqs._store) if "message 3" not in str(one)] == []


def test_a_repeated_receive_of_a_damaged_message_names_it(sqs, groups):
    attempt = {"QueueUrl": groups.url, "ReceiveRequestAttemptId": "again"}
    assert len(sqs.client.receive_message(**attempt)["Messages"]) == 1
    damage(sqs, BROKEN, 1)
    with pytest.raises(errors.Corrupt, match=r"message 1 of queue orders\.fifo is damaged"):
        sqs.client.receive_message(**attempt)


def test_damage_found_in_the_callers_transaction_is_logged_after_the_commit(sqs, queue, caplog):
    queue.send_many(["one", "two"])
    damage(sqs, BROKEN, 1)
    with sqs.transaction():
        assert [message.body for message in queue.receive(10)] == ["two"]
        assert caplog.records == []
    assert len(caplog.records) == 1


@pytest.mark.parametrize("statement", DAMAGES.values(), ids=DAMAGES)
def test_peek_skips_a_damaged_message(sqs, queue, path, statement, caplog):
    queue.send_many([str(place) for place in range(9)])
    damage(sqs, statement, 5)
    healthy = [str(place) for place in range(9) if place != 4]
    assert [one.body for one in queue.peek(100)] == healthy
    assert [one.body for one in last_messages(sqs._store, "orders", LOCAL, 100)] == healthy
    assert [one.body for one in messages(sqs._store, "orders", LOCAL)] == healthy
    lines = {record.message for record in caplog.records}
    assert lines == set() or all("message 5 of queue orders is damaged" in one for one in lines)


def test_follow_continues_after_a_whole_page_of_damaged_messages(sqs, queue, caplog):
    queue.send_many([str(place) for place in range(501)])
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_messages SET body = CAST(x'ff' AS TEXT) WHERE id < 501")
    assert [one.body for one in messages(sqs._store, "orders", LOCAL)] == ["500"]


@pytest.mark.parametrize("fifo", [False, True])
@pytest.mark.parametrize("statement", DAMAGES.values(), ids=DAMAGES)
def test_a_move_task_ends_despite_a_damaged_message(sqs, clock, fifo, statement, caplog):
    """It moves the healthy ones. On a FIFO queue, a message of an unknown group stays where it is."""
    suffix = ".fifo" * fifo
    dead = sqs.create_queue(f"dead{suffix}", fifo=fifo)
    queue = sqs.create_queue(f"q{suffix}", fifo=fifo, dead_letter_queue=dead, max_receive_count=1)
    for body in "abc":
        queue.send(body, group_id=body, **({"deduplication_id": body} if fifo else {}))
    queue.receive(10, visibility_timeout=1)
    clock.advance(2)
    queue.receive(10)
    assert len(dead) == 3
    damage(sqs, statement, 2)
    task = dead.start_move_task()
    move_chunk = sqs._store.upkeep._chores.move_chunk
    for _ in range(3):
        sqs._store.write(move_chunk, b"a worker")
        clock.advance(1)
    [done] = dead.move_tasks()
    assert (done.task_handle, done.status) == (task.task_handle, "COMPLETED")
    assert done.moved_count + len(dead) == 3 == len(queue) + len(dead)
    assert {"a", "c"} <= {message.body for message in queue.receive(10)}
    assert all(str(found).startswith(("message ", "lease ")) for found in check(sqs._store))


def test_a_sound_file_is_searched_for_damage_once_after_an_unknown_error(sqs, queue, monkeypatch):
    """A bug of ours, for example: the whole file is read, however large it is."""
    looks = []
    look = store_damage._damage
    monkeypatch.setattr(store_damage, "_damage", lambda connection: looks.append(look(connection)))
    with pytest.raises(TypeError, match="a slip"), sqs._store.reading():
        raise TypeError("a slip")
    assert looks == [None]


def test_damage_removed_meanwhile_is_reported_by_the_operation_that_saw_it(sqs, queue):
    """Upkeep sweeps odd rows away like any others: the rows that an operation saw exist in its own snapshot."""
    queue.send("one")
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_queue_counts SET messages = 7")
    told = pytest.raises(errors.Corrupt, match="its rows do not fit together")
    with told, sqs._store.reading() as snapshot:
        assert snapshot.execute("SELECT messages FROM sqs_queue_counts").fetchone() == (7,)
        with sqs.transaction() as connection:
            connection.execute("UPDATE sqs_queue_counts SET messages = 1")
        raise TypeError("an odd row")
