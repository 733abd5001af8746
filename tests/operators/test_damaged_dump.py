# SPDX-License-Identifier: Apache-2.0
"""A dump of a damaged file saves all that can be read, and has a line for each loss."""

import pytest

import sqsqlite
from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.operators.dump import dump
from sqsqlite.operators.dump_lines import DumpedMessage, DumpEnd, encode
from sqsqlite.operators.load import load
from sqsqlite.store.create import PAGE_SIZE
from tests.cli.runs import runner_on

MESSAGES = 600


def saved(sqs) -> tuple[list[str], list[str]]:
    """Bodies without their padding, and the messages that were skipped."""
    told: list[str] = []
    lines = list(dump(sqs._store, (), LOCAL, passed_by=told.append))
    bodies = [line.body.rstrip("x") for line in lines if isinstance(line, DumpedMessage)]
    assert lines[-1] == DumpEnd(messages=len(bodies))
    return bodies, told


@pytest.fixture
def expected(queue):
    bodies = [str(place) for place in range(MESSAGES)]
    queue.send_many([body + "x" * 100 for body in bodies])
    return bodies


def leaves(data: bytes, page: int) -> list[int]:
    """The leaf pages of a table's tree, by its root."""
    start = (page - 1) * PAGE_SIZE
    if data[start] == 0x0D:
        return [page]
    cells = int.from_bytes(data[start + 3 : start + 5], "big")
    places = [int.from_bytes(data[start + 12 + 2 * cell :][:2], "big") for cell in range(cells)]
    children = [*places, 8]
    found = []
    for place in children:
        found += leaves(data, int.from_bytes(data[start + place :][:4], "big"))
    return found


def spoil_pages(sqs, path, clock, table: str, places: slice):
    """Zero some of the pages that a table fills, by their place in the file, and open the file again."""
    with sqs._store.reading() as connection:
        statement = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        [root] = connection.execute(statement, (table,)).fetchone()
    sqs.close()
    data = bytearray(path.read_bytes())
    for page in leaves(data, root)[places]:
        data[(page - 1) * PAGE_SIZE : page * PAGE_SIZE] = bytes(PAGE_SIZE)
    path.write_bytes(data)
    return sqsqlite.connect(path, clock=clock)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE sqs_messages SET body = CAST(x'ff' AS TEXT) WHERE id = 300", "its body is not UTF-8"),
        ("UPDATE sqs_messages SET attributes = '{' WHERE id = 300", "its attributes can't be decoded"),
        ("DELETE FROM sqs_messages WHERE id = 300", "its row in sqs_messages is missing"),
    ],
)
def test_all_but_the_damaged_message_are_saved(sqs, queue, expected, statement, told):
    with sqs.transaction() as connection:
        connection.execute(statement)
    bodies, lines = saved(sqs)
    assert bodies == expected[:299] + expected[300:]
    assert lines == [f"message 300 of queue orders is damaged: {told}"]


def test_a_whole_message_with_a_damaged_lease_is_saved(sqs, queue, expected):
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_leases SET receive_count = -1 WHERE id = 300")
    bodies, [line] = saved(sqs)
    assert bodies == expected
    assert "message 300 of queue orders is damaged: its lease is damaged" in line


def test_messages_on_undamaged_pages_are_saved(sqs, queue, expected, path, clock):
    with spoil_pages(sqs, path, clock, "sqs_messages", slice(10, 12)) as again:
        bodies, lines = saved(again)
    assert 10 < len(lines) < 60
    assert len(bodies) + len(lines) == MESSAGES
    assert bodies == [body for body in expected if body in set(bodies)]
    assert all("its page can't be read" in line for line in lines)


def test_messages_whose_leases_cannot_be_read_are_found_by_an_index(sqs, queue, expected, path, clock):
    """In their places, so that a FIFO queue keeps its order."""
    with spoil_pages(sqs, path, clock, "sqs_leases", slice(2, 4)) as again:
        bodies, lines = saved(again)
    assert bodies == expected
    assert 1 <= len(lines) <= 2
    assert all("of sqs_leases can't be read" in line for line in lines)


def test_without_any_lease_the_index_alone_finds_the_messages(sqs, queue, expected, path, clock):
    with spoil_pages(sqs, path, clock, "sqs_leases", slice(None)) as again:
        bodies, _ = saved(again)
    assert bodies == expected


def test_other_queues_are_saved_where_one_is_damaged(sqs, queue, expected):
    sqs.create_queue("others").send("well")
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_queues SET policy = CAST(x'ff' AS TEXT) WHERE name = 'orders'")
    bodies, lines = saved(sqs)
    assert bodies == ["well"]
    assert lines[0].startswith("queue orders is damaged")


def test_the_command_names_what_is_missing_and_exits_with_4(sqs, queue, path, tmp_path):
    queue.send_many(["one", "two", "three"])
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_messages SET body = CAST(x'ff' AS TEXT) WHERE id = 2")
    sqs.close()
    ran = runner_on(path)("dump", "--out", tmp_path / "all.jsonl")
    assert ran.code == 4
    assert "damaged: message 2 of queue orders is damaged: its body is not UTF-8" in ran.err
    loaded = runner_on(tmp_path / "new.db")
    assert loaded("load", tmp_path / "all.jsonl").code == 0
    assert [row["body"] for row in loaded("peek", "orders", "--output", "json").json] == ["one", "three"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sqs_messages SET body = char(1) WHERE id = 2",
        "UPDATE sqs_messages SET group_id = 'two words' WHERE id = 2",
        "UPDATE sqs_messages SET group_id = NULL WHERE id = 2",
        "UPDATE sqs_leases SET queue_receive_count = 5 WHERE id = 2",
        "INSERT INTO sqs_dead_letters VALUES (2, 1, 1, 'orders', 3, 5, NULL)",
        """INSERT INTO sqs_dead_letters
        VALUES (2, 1, 1, 'arn:aws:sqs:us-east-1:000000000000:orders', 3, 5, '[[1,"orders",3,4]]')""",
        "UPDATE sqs_deduplications SET sequence = -1 WHERE deduplication_id = 'd2'",
        "UPDATE sqs_deduplications SET message_id = x'ff' WHERE deduplication_id = 'd2'",
        "UPDATE sqs_queues SET visibility_timeout_seconds = -1",
        "UPDATE sqs_queues SET dead_letter_target_arn = 'dead', max_receive_count = -1",
        "UPDATE sqs_queue_tags SET value = char(1)",
        "UPDATE sqs_queue_counts SET messages = -5",
    ],
)
def test_dump_writes_no_line_that_load_would_refuse(sqs, tmp_path, clock, statement):
    """Such a line would keep all later lines out of the new file."""
    queue = sqs.create_queue("steps.fifo", fifo=True, tags={"team": "a"})
    queue.send_many(
        [{"body": str(place), "group_id": "g", "deduplication_id": f"d{place}"} for place in range(1, 6)]
    )
    with sqs.transaction() as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement)
    lines = [encode(line) for line in dump(sqs._store, (), LOCAL, passed_by=lambda _: None)]
    with sqsqlite.connect(tmp_path / "new.db", clock=clock) as new:
        load(new._store, lines, LOCAL)
        assert {"1", "3", "4", "5"} <= {message.body for message in new.queue("steps.fifo").peek(10)}


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("UPDATE sqs_queues SET fifo = 1 WHERE name = 'orders'", "standard"),
        ("UPDATE sqs_queues SET name = 'renamed' WHERE name = 'steps.fifo'", "standard"),
        ("UPDATE sqs_queues SET fifo = 0 WHERE name = 'steps.fifo'", "FIFO"),
    ],
)
def test_a_queue_whose_type_contradicts_its_name_is_dumped_by_its_name(
    sqs, queue, tmp_path, clock, statement, kind
):
    """Under that name `load` creates no other type, and would refuse the whole dump."""
    queue.send("one")
    sqs.create_queue("steps.fifo", fifo=True).send("two", group_id="g", deduplication_id="d")
    with sqs.transaction() as connection:
        connection.execute(statement)
    told: list[str] = []
    lines = [encode(line) for line in dump(sqs._store, (), LOCAL, passed_by=told.append)]
    [line] = told
    assert line.endswith(f"is damaged: its type contradicts its name; it is dumped as a {kind} queue")
    with sqsqlite.connect(tmp_path / "new.db", clock=clock) as new:
        loaded = load(new._store, lines, LOCAL)
        assert (loaded.messages, loaded.warnings) == (2, ())
        assert {one.body: one.group_id for each in new.queues() for one in each.receive()} == {
            "one": None,
            "two": "g",
        }
