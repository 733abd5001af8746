# SPDX-License-Identifier: Apache-2.0
"""`check` is silent on a sound file, and names each fault of any other."""

import os

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.operators.backup import backup, restore
from sqsqlite.operators.check import INVARIANTS, check, damaged_messages
from sqsqlite.store.create import PAGE_SIZE
from sqsqlite.store.driver import dbapi
from tests.store.inspection import rows


@pytest.fixture
def busy_file(sqs, clock):
    """A file with messages in every state, closed."""
    dead = sqs.create_queue("dead")
    queue = sqs.create_queue("orders", dead_letter_queue=dead, max_receive_count=1)
    queue.send_many(
        ["exhausted", {"body": "late", "delay": 60}, {"body": "big", "attributes": {"a": 1, "b": b"\0"}}]
    )
    queue.receive(visibility_timeout=1)
    clock.advance(2)
    queue.receive(10, visibility_timeout=100)
    queue.send("waiting")
    purged = sqs.create_queue("purged")
    purged.send("gone")
    purged.purge()
    assert [len(sqs.queue(name)) for name in ("dead", "orders", "purged")] == [1, 3, 0]
    return sqs


@pytest.fixture
def grouped_file(sqs, clock):
    """FIFO groups in flight, delayed, released, exhausted and purged; tenants on a standard queue."""
    dead = sqs.create_queue("dead.fifo", fifo=True)
    queue = sqs.create_queue(
        "orders.fifo",
        fifo=True,
        content_based_deduplication=True,
        dead_letter_queue=dead,
        max_receive_count=1,
    )
    queue.send_many([{"body": f"{group} {number}", "group_id": group} for group in "abc" for number in "12"])
    queue.receive(visibility_timeout=1)
    clock.advance(2)
    queue.receive(3, visibility_timeout=100)
    queue.receive(visibility_timeout=100)[0].change_visibility(0)
    late = sqs.create_queue("late.fifo", fifo=True, content_based_deduplication=True, delay_seconds=60)
    late.send("later", group_id="late")
    purged = sqs.create_queue("purged.fifo", fifo=True, content_based_deduplication=True)
    purged.send("gone", group_id="a")
    purged.purge()
    fair = sqs.create_queue("fair")
    fair.send_many([{"body": str(number), "group_id": "tenant"} for number in range(5)])
    fair.send("of no group")
    fair.receive(3)
    fair.send("late", group_id="tenant", delay=60)
    assert len(dead) == 1
    return sqs


def break_it(sqs, *statements: str) -> list[str]:
    """Change rows as no operation does. Returns the findings of check."""
    with sqs.transaction() as connection:
        for statement in statements:
            connection.execute(statement)
    return [str(finding) for finding in check(sqs._store)]


def test_a_sound_file_has_no_findings(busy_file):
    steps = []
    assert check(busy_file._store, bodies=True, progress=steps.append) == []
    assert steps == [
        "integrity_check",
        "schema",
        *(each.name for each in INVARIANTS),
        "messages",
        "bodies",
    ]
    assert check(busy_file._store, quick=True) == []


def test_a_restored_file_has_no_findings(busy_file, tmp_path, clock):
    backup(busy_file._store, tmp_path / "a.backup")
    restore(tmp_path / "a.backup", tmp_path / "new.db")
    with sqsqlite.connect(tmp_path / "new.db", clock=clock) as restored:
        assert check(restored._store, bodies=True) == []


def test_groups_and_tenants_have_no_findings_before_and_after_a_restore(grouped_file, tmp_path, clock):
    assert check(grouped_file._store, bodies=True) == []
    backup(grouped_file._store, tmp_path / "a.backup")
    restore(tmp_path / "a.backup", tmp_path / "new.db")
    with sqsqlite.connect(tmp_path / "new.db", clock=clock) as restored:
        assert check(restored._store, bodies=True) == []


def test_dead_letter_before_messages_in_flight_of_its_group_is_not_a_finding(sqs, clock):
    """The group waits for them, although its first message is visible."""
    dead = sqs.create_queue("dead.fifo", fifo=True, content_based_deduplication=True)
    queue = sqs.create_queue(
        "orders.fifo",
        fifo=True,
        content_based_deduplication=True,
        dead_letter_queue=dead,
        max_receive_count=1,
    )
    queue.send("poison", group_id="g")
    dead.send("held", group_id="g")
    assert len(dead.receive(visibility_timeout=600)) == 1
    queue.receive(visibility_timeout=1)
    clock.advance(2)
    assert (queue.receive(), dead.receive(), len(dead)) == ([], [], 2)
    assert check(sqs._store) == []
    assert break_it(sqs, "UPDATE sqs_message_groups SET head_visible_at = head_visible_at + 1") != []


def test_time_alone_causes_no_finding(grouped_file, clock):
    """Delays and timeouts end and messages expire, without a receive in between."""
    for seconds in (60, 40, 3600, 400_000):
        clock.advance(seconds)
        assert check(grouped_file._store) == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM sqs_messages WHERE body = 'waiting'", "has no message"),
        (
            "INSERT INTO sqs_messages (message_id, body_md5, body) VALUES (x'00', x'00', 'stray')",
            "has no lease",
        ),
        ("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'sqs_messages'", "sqlite_sequence is behind"),
        ("UPDATE sqs_leases SET epoch_id = 999 WHERE visible_at = 0", "epoch 999, which does not exist"),
        (
            "UPDATE sqs_queues SET epoch_id = 999 WHERE name = 'purged'",
            "queue purged refers to the epoch 999",
        ),
        ("INSERT INTO sqs_epochs (queue_id, created_at) VALUES (999, 0)", "belongs to no queue"),
        ("UPDATE sqs_queue_counts SET messages = messages + 1", "queue orders counts"),
        ("DELETE FROM sqs_queue_counts", "queue orders counts messages, in flight, delayed as None"),
        ("UPDATE sqs_leases SET visible_at = -1 WHERE visible_at = 0", "in an impossible state"),
        ("UPDATE sqs_leases SET received_at = NULL", "in an impossible state"),
        (
            "UPDATE sqs_leases SET visible_at = received_at + 43200001 WHERE token IS NOT NULL",
            "in an impossible state",
        ),
        ("UPDATE sqs_leases SET queue_receive_count = 9", "in an impossible state"),
        ("UPDATE sqs_leases SET sent_at = sent_at + 3600000", "ms in the future"),
        ("UPDATE sqs_leases SET group_key = 5 WHERE visible_at > 0", "message group 5"),
        ("UPDATE sqs_dead_letters SET epoch_id = 1 + epoch_id", "where message 1 was moved from"),
        (
            "UPDATE sqs_dead_letters SET earlier = '[['",
            "earlier dead-letter queues of message 1 can't be read",
        ),
        (
            "UPDATE sqs_dead_letters SET earlier = '5'",
            "earlier dead-letter queues of message 1 can't be read",
        ),
        ("UPDATE sqs_queues SET holds_dead_letters = 0", "queue dead holds dead letters and is not marked"),
        ("DROP INDEX sqs_ix_leases_age", "index sqs_ix_leases_age is missing"),
        ("DELETE FROM sqs_meta WHERE name = 'secret'", "secret is not of 32 bytes"),
    ],
)
def test_each_violation_is_a_line_with_a_remedy(busy_file, statement, said):
    lines = break_it(busy_file, statement)
    assert [line for line in lines if said in line] != []
    assert all("What to do: " in line and "\n" not in line for line in lines)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            """INSERT INTO sqs_message_groups (epoch_id, group_id, head_visible_at)
            SELECT epoch_id, 'empty', 0 FROM sqs_queues WHERE name = 'orders.fifo'""",
            "message group empty of queue orders.fifo has no messages",
        ),
        (
            "UPDATE sqs_message_groups SET head_visible_at = head_visible_at - 1 WHERE head_visible_at > 0",
            "of queue late.fifo is receivable from 1800000061999 on, its first message from 1800000062000 on",
        ),
        (
            "UPDATE sqs_message_groups SET head_visible_at = head_visible_at + 62001 WHERE head_visible_at > 0",
            "of queue late.fifo is receivable from 1800000124001 on, its first message from 1800000062000 on",
        ),
        (
            "UPDATE sqs_message_groups SET head_visible_at = 1800000062001 WHERE group_id = 'a'",
            "message group a of queue orders.fifo is receivable from 1800000062001 on, its first message from 0 on",
        ),
        ("UPDATE sqs_queues SET has_tenants = 0", "queue fair has messages of tenants and is not marked so"),
    ],
)
def test_each_violation_of_groups_and_tenants_is_reported(grouped_file, statement, said):
    lines = break_it(grouped_file, statement)
    assert [line for line in lines if said in line] != []
    assert all("What to do: " in line and "\n" not in line for line in lines)


def test_a_group_released_by_another_process_just_now_is_not_a_finding(grouped_file):
    statement = "UPDATE sqs_message_groups SET head_visible_at = 1800000062000 WHERE group_id = 'a'"
    assert break_it(grouped_file, statement) == []


def test_groups_that_upkeep_is_sweeping_are_not_a_finding(grouped_file):
    """Their messages are deleted first."""
    assert (
        break_it(
            grouped_file,
            "INSERT INTO sqs_epochs (id, queue_id, created_at, discarded_at) VALUES (999, 1, 0, 1)",
            "INSERT INTO sqs_message_groups (epoch_id, group_id, head_visible_at) VALUES (999, 'a', 0)",
        )
        == []
    )


def test_the_applications_own_rows_may_break_their_foreign_keys(busy_file):
    """SQLite allows it by default, and the rows are not ours."""
    assert (
        break_it(
            busy_file,
            "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
            "CREATE TABLE child (parent REFERENCES parent (id))",
            "INSERT INTO child (parent) VALUES (7)",
        )
        == []
    )


@pytest.fixture
def sorted_file(tmp_path):
    """A file whose application sorts an index by its own collation, and keeps queues in the file."""
    path = tmp_path / "shop.db"
    connection = dbapi.connect(str(path))
    connection.create_collation("by_length", lambda one, other: len(one) - len(other))
    connection.execute("CREATE TABLE goods (name TEXT COLLATE by_length UNIQUE)")
    connection.execute("INSERT INTO goods VALUES ('brush')")
    connection.commit()
    connection.close()
    with sqsqlite.connect(path, adopt=True) as sqs:
        sqs.create_queue("orders").send_many(["a", "b"])
    return path


@pytest.mark.parametrize("quick", [False, True])
def test_the_queues_tables_are_checked_despite_an_applications_collation(sorted_file, quick):
    steps = []
    with sqsqlite.connect(sorted_file) as sqs:
        assert check(sqs._store, quick=quick, progress=steps.append) == []
    pragma = "quick_check" if quick else "integrity_check"
    assert steps[:2] == [
        pragma,
        f"{pragma} of the queues' tables alone (no such collation sequence: by_length)",
    ]


def test_damage_is_found_despite_an_applications_collation(sorted_file):
    with sqsqlite.connect(sorted_file) as sqs:
        page_size, page = (
            rows(sqs, "PRAGMA page_size")[0][0],
            rows(sqs, "SELECT rootpage FROM sqlite_schema WHERE name = 'sqs_ix_leases_age'")[0][0],
        )
    with sorted_file.open("r+b") as file:
        file.seek((page - 1) * page_size + 3)
        file.write(b"\0\0")  # The index has lost its entries.
    with sqsqlite.connect(sorted_file) as sqs:
        findings = check(sqs._store)
    assert "row 1 missing from index sqs_ix_leases_age" in " ".join(finding.what for finding in findings)


def test_backup_of_a_file_with_an_applications_collation_is_restored(sorted_file, tmp_path):
    with sqsqlite.connect(sorted_file) as sqs:
        backup(sqs._store, tmp_path / "a.backup")
    restore(tmp_path / "a.backup", tmp_path / "new.db")
    with sqsqlite.connect(tmp_path / "new.db") as sqs:
        assert [message.body for message in sqs.queue("orders").receive(10)] == ["a", "b"]


def test_damaged_messages_can_be_set_aside_despite_an_applications_collation(sorted_file):
    connection = dbapi.connect(str(sorted_file))
    connection.create_collation("by_length", lambda one, other: len(one) - len(other))
    connection.execute("CREATE TABLE prices (name TEXT COLLATE by_length PRIMARY KEY) WITHOUT ROWID")
    connection.execute("INSERT INTO prices VALUES ('brush'), ('can')")
    connection.execute("UPDATE sqs_messages SET body = CAST(x'ff' AS TEXT) WHERE body = 'a'")
    connection.commit()
    connection.close()
    with sqsqlite.connect(sorted_file) as sqs:
        [damaged] = damaged_messages(sqs._store)
    assert str(damaged) == "message 1 of queue orders is damaged: its body is not UTF-8"


def test_a_table_of_the_applications_may_have_any_name(sorted_file):
    connection = dbapi.connect(str(sorted_file))
    connection.execute("""CREATE TABLE "sqs_o'clock" (hour INTEGER)""")
    connection.close()
    with sqsqlite.connect(sorted_file) as sqs:
        assert [finding.what for finding in check(sqs._store)] == [
            "table sqs_o'clock is not one of this version"
        ]


def test_bodies_are_compared_only_on_demand(busy_file):
    lines = break_it(busy_file, "UPDATE sqs_messages SET body = 'other' WHERE body = 'waiting'")
    assert lines == []
    [finding] = check(busy_file._store, bodies=True)
    assert "does not have the MD5" in finding.what


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_bodies_in_an_adopted_file_of_another_encoding_are_sound(tmp_path, encoding):
    """SQLite stores them in the encoding that the file's owner chose. MD5 is that of the UTF-8."""
    connection = dbapi.connect(str(tmp_path / "shop.db"))
    connection.execute(f"PRAGMA encoding = '{encoding}'")
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    connection.close()
    with sqsqlite.connect(tmp_path / "shop.db", adopt=True) as sqs:
        sqs.create_queue("orders").send_many(["a fence", "Zaun, grün \U0001f6a7"])
        assert check(sqs._store, bodies=True) == []
        lines = break_it(sqs, "UPDATE sqs_messages SET body = CAST(x'00d8' AS TEXT) WHERE id = 1")
        # Half of a character in one encoding, another character in the other.
        assert len(lines) == (encoding == "UTF-16le")
        *_, finding = check(sqs._store, bodies=True)
        assert "message 1: its body does not have the MD5" in finding.what


def test_unreadable_attributes_are_reported(busy_file):
    break_it(busy_file, "UPDATE sqs_messages SET attributes = '{' WHERE attributes IS NOT NULL")
    [finding] = check(busy_file._store)
    assert "its attributes can't be decoded" in finding.what
    assert "check --set-aside" in finding.advice


def test_a_damaged_page_is_found(busy_file, path):
    """In an index: the tables can still be read, but a receive might go wrong."""
    with busy_file._store.reading() as connection:
        statement = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqs_ix_leases_age'"
        [page] = connection.execute(statement).fetchone()
    busy_file.close()
    with open(path, "r+b") as file:
        file.seek(PAGE_SIZE * page - 100)
        file.write(b"\xff" * 100)
    with sqsqlite.connect(path) as sqs:
        findings = check(sqs._store)
    assert findings != []
    assert all(finding.what.startswith("SQLite: ") for finding in findings)


def test_a_file_too_damaged_to_read_is_a_typed_error(busy_file, path):
    busy_file.close()
    os.truncate(path, PAGE_SIZE * 2)
    with pytest.raises(errors.Corrupt), sqsqlite.connect(path) as sqs:
        check(sqs._store)
