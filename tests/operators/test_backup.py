# SPDX-License-Identifier: Apache-2.0
"""Backups: one file, complete or absent, made while others write."""

import errno
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.access.keys import add_key
from sqsqlite.operators.backup import backup, restore
from sqsqlite.store import backup as copying
from sqsqlite.store.create import PAGE_SIZE
from tests.store.waiting import until

# Backs argv[1] up as argv[2], and stops when the copy is complete but has no name yet.
KILLED = """
import os, signal, sys
import sqsqlite
from sqsqlite.operators.backup import backup
from sqsqlite.actions.opening import open_store
from sqsqlite.store import backup as copying
copying._publish = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
backup(open_store(sys.argv[1]), sys.argv[2], replace=True)
"""


def content(path) -> list[tuple]:
    """The content of a backup, read by a SQLite of its own, as by a user who has only the backup."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute("SELECT body FROM sqs_messages ORDER BY id").fetchall()
    finally:
        connection.close()


def test_a_backup_holds_the_messages_in_one_file(sqs, queue, tmp_path):
    queue.send_many(["one", "two"])
    folder = tmp_path / "backups"
    folder.mkdir()
    size_bytes = backup(sqs._store, folder / "a.backup")
    assert content(folder / "a.backup") == [("one",), ("two",)]
    assert os.listdir(folder) == ["a.backup"]
    assert (folder / "a.backup").stat().st_size == size_bytes > 0


def test_a_backup_opens_in_a_read_only_folder(sqs, queue, tmp_path):
    """Its journal mode is DELETE: a WAL would need a writable folder."""
    backup(sqs._store, tmp_path / "a.backup")
    assert (tmp_path / "a.backup").read_bytes()[18:20] == b"\x01\x01"


def test_a_backup_copied_into_place_is_a_file_of_queues_in_wal_again(sqs, queue, tmp_path, clock):
    queue.send("one")
    backup(sqs._store, tmp_path / "copy.db")
    with sqsqlite.connect(tmp_path / "copy.db", clock=clock) as copy:
        assert [message.body for message in copy.queue("orders").receive()] == ["one"]
        with copy.read_engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o664])
def test_a_backup_has_the_permissions_of_the_file(sqs, queue, path, tmp_path, mode):
    """It holds the same messages and the secret of the receipt handles. The umask removes no permission."""
    path.chmod(mode)
    backup(sqs._store, tmp_path / "a.backup")
    assert mode_of(tmp_path / "a.backup") == mode


def test_a_read_only_backup_restores_as_a_file_that_its_owner_can_write(sqs, queue, tmp_path):
    """Users protect backups from writing, and read-only media do too. Without the right SQLite cannot make the copy."""
    copy, restored = tmp_path / "a.backup", tmp_path / "restored.db"
    backup(sqs._store, copy)
    copy.chmod(0o440)
    restore(copy, restored)
    assert mode_of(restored) == 0o640


@pytest.mark.parametrize("length", [236, 245, 300])
def test_a_name_that_is_too_long_is_an_error_of_ours(sqs, queue, tmp_path, length):
    """During its making the copy has a longer name, and its journal a longer one still."""
    with pytest.raises(errors.StoreError):
        backup(sqs._store, tmp_path / ("x" * length))
    assert [name for name in os.listdir(tmp_path) if name.startswith("x")] == []


def test_backup_of_a_file_with_keys_is_closed_to_other_users(sqs, queue, tmp_path):
    """A backup holds the secrets of the keys too, and so does a file restored from it."""
    sqs._store.write(add_key, "000000000000", "")
    copy, restored = tmp_path / "a.backup", tmp_path / "restored.db"
    backup(sqs._store, copy)
    copy.chmod(0o644)
    restore(copy, restored)
    assert mode_of(restored) == 0o600


def test_an_existing_file_is_replaced_only_by_force(sqs, queue, tmp_path):
    (tmp_path / "a.backup").write_text("precious")
    with pytest.raises(errors.TargetExists):
        backup(sqs._store, tmp_path / "a.backup")
    assert (tmp_path / "a.backup").read_text() == "precious"
    queue.send("one")
    backup(sqs._store, tmp_path / "a.backup", replace=True)
    assert content(tmp_path / "a.backup") == [("one",)]


def test_the_file_itself_and_open_databases_are_never_replaced(sqs, queue, path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    with sqsqlite.connect(tmp_path / "other.db") as other:
        other.create_queue("theirs").send("hi")
        for target in ("app.db", "link", "other.db"):
            with pytest.raises(errors.FileInUse):
                backup(sqs._store, tmp_path / target, replace=True)
        assert len(other.queue("theirs")) == 1
    assert len(queue) == 0


@pytest.mark.parametrize("name", ["app.db-wal", "app.db-shm", "app.db-journal"])
def test_files_of_sqlite_next_to_a_database_are_never_replaced(sqs, queue, path, tmp_path, name):
    """A copy in place of the WAL loses what was committed since the last checkpoint."""
    with pytest.raises(errors.FileInUse):
        backup(sqs._store, tmp_path / name, replace=True)
    queue.send("afterwards")


def test_a_device_or_pipe_is_never_replaced(sqs, queue, tmp_path):
    """A backup by root would take the place of /dev/null for the whole machine."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(errors.CannotOpen, match="is not a regular file"):
        backup(sqs._store, tmp_path / "pipe", replace=True)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS], ids=errno.errorcode.get)
def test_a_folder_that_may_not_be_written_is_no_fault_of_the_disk(sqs, queue, tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(copying, "_lay", refuse)
    with pytest.raises(errors.ReadOnlyFile, match=os.strerror(number)):
        backup(sqs._store, tmp_path / "a.backup")


@pytest.mark.parametrize("call", ["fchmod", "fsync", "link"])
def test_a_timeout_of_a_signal_handler_reaches_the_caller_of_a_backup(
    sqs, queue, tmp_path, monkeypatch, call
):
    """Such a TimeoutError is an OSError, and no error of the disk."""

    def time_out(*_):
        raise TimeoutError("of the handler")

    monkeypatch.setattr(os, call, time_out)
    with pytest.raises(TimeoutError, match="of the handler"):
        backup(sqs._store, tmp_path / "a.backup")
    assert [name for name in os.listdir(tmp_path) if "backup" in name] == []


@pytest.mark.parametrize(
    ("target", "error"),
    [("none/a.backup", errors.MissingFolder), (".", errors.CannotOpen)],
    ids=["folder", "file"],
)
def test_an_impossible_target_is_an_error(sqs, queue, tmp_path, target, error):
    with pytest.raises(error):
        backup(sqs._store, tmp_path / target)


def test_a_backup_during_writes_ends_and_shows_one_instant(sqs, tmp_path, clock):
    """Each transaction sends a pair, so a whole copy holds an even number."""
    queue = sqs.create_queue("orders")
    stop, begun = threading.Event(), threading.Event()

    def write() -> None:
        while not stop.is_set():
            queue.send_many(["left" * 500, "right" * 500])
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(300)
        for number in range(5):
            backup(sqs._store, tmp_path / f"{number}.backup")
    finally:
        stop.set()
        writer.join()
    for number in range(5):
        found = content(tmp_path / f"{number}.backup")
        assert len(found) >= 2
        assert len(found) % 2 == 0


def test_a_backup_killed_half_way_leaves_the_earlier_one(path, tmp_path):
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        queue.send("one")
        backup(sqs._store, tmp_path / "a.backup")
        queue.send("two")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, path, tmp_path / "a.backup"], timeout=600, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert content(tmp_path / "a.backup") == [("one",)]


def test_a_backup_that_fails_leaves_nothing_behind(sqs, queue, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("sqsqlite.store.backup.os.fsync", fail)
    with pytest.raises(errors.InputOutputError):
        backup(sqs._store, tmp_path / "a.backup")
    assert [name for name in os.listdir(tmp_path) if "backup" in name] == []


class TestRestore:
    """A backup of a file with a message in flight, one delayed and one waiting."""

    @pytest.fixture
    def held(self, sqs, queue, tmp_path):
        queue.send_many(["in flight", {"body": "delayed", "delay": 60}, "waiting"])
        [held] = queue.receive(visibility_timeout=3600)
        backup(sqs._store, tmp_path / "a.backup")
        return held

    @pytest.fixture
    def restored(self, held, tmp_path, clock):
        restore(tmp_path / "a.backup", tmp_path / "new.db")
        with sqsqlite.connect(tmp_path / "new.db", clock=clock) as restored:
            yield restored.queue("orders")

    def test_messages_in_flight_are_visible_at_once_and_keep_their_count(self, restored, held):
        """No consumer could settle them: their handles belong to the original."""
        found = {message.body: message for message in restored.receive(10)}
        assert set(found) == {"in flight", "waiting"}
        assert found["in flight"].message_id == held.message_id
        assert found["in flight"].receive_count == 2

    def test_delays_continue(self, restored, clock):
        restored.receive(10)
        clock.advance(60)
        assert "delayed" in [message.body for message in restored.receive(10)]

    def test_counts_match_the_restored_messages(self, restored):
        attributes = restored.attributes
        assert attributes["ApproximateNumberOfMessages"] == "2"
        assert attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
        assert attributes["ApproximateNumberOfMessagesDelayed"] == "1"

    def test_handles_of_the_original_are_invalid(self, restored, held):
        client = sqsqlite.SQS(restored._store).client
        with pytest.raises(client.exceptions.ReceiptHandleIsInvalid):
            client.delete_message(QueueUrl="orders", ReceiptHandle=held.receipt_handle)

    def test_the_original_file_stays_usable(self, restored, held, queue):
        held.delete()
        assert len(queue) == 2
        assert len(restored) == 3

    def test_groups_in_flight_are_receivable_at_once_in_order(self, sqs, tmp_path, clock):
        """From the first message on: the consumers of all messages in flight belong to the original."""
        fifo = sqs.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)
        fifo.send_many(
            [{"body": f"{group}{number}", "group_id": group} for group in "ab" for number in "123"]
        )
        first, second, _ = fifo.receive(3, visibility_timeout=3600)
        second.change_visibility(600)
        backup(sqs._store, tmp_path / "fifo.backup")
        restore(tmp_path / "fifo.backup", tmp_path / "fifo.db")
        with sqsqlite.connect(tmp_path / "fifo.db", clock=clock) as opened:
            again = opened.queue("orders.fifo").receive(10)
            assert [message.body for message in again] == ["a1", "a2", "a3", "b1", "b2", "b3"]
            assert [message.receive_count for message in again] == [2, 2, 2, 1, 1, 1]
            assert again[0].sequence_number == first.sequence_number
            assert (
                opened.queue("orders.fifo").send("next", group_id="a").sequence_number
                > again[-1].sequence_number
            )
        assert [message.body for message in fifo.receive(10)] == ["b1", "b2", "b3"]

    def test_a_delayed_group_keeps_its_delay(self, sqs, tmp_path, clock):
        late = sqs.create_queue("late.fifo", fifo=True, content_based_deduplication=True, delay_seconds=60)
        late.send("a", group_id="g")
        backup(sqs._store, tmp_path / "fifo.backup")
        restore(tmp_path / "fifo.backup", tmp_path / "fifo.db")
        with sqsqlite.connect(tmp_path / "fifo.db", clock=clock) as opened:
            queue = opened.queue("late.fifo")
            assert queue.receive() == []
            clock.advance(60)
            assert [message.body for message in queue.receive()] == ["a"]

    def test_a_repeated_receive_gets_no_handles_of_the_original(self, sqs, tmp_path, clock):
        fifo = sqs.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)
        fifo.send("a", group_id="g")
        [held] = fifo.receive(attempt_id="attempt")
        backup(sqs._store, tmp_path / "fifo.backup")
        restore(tmp_path / "fifo.backup", tmp_path / "fifo.db")
        with sqsqlite.connect(tmp_path / "fifo.db", clock=clock) as opened:
            [again] = opened.queue("orders.fifo").receive(attempt_id="attempt")
            assert (again.body, again.receive_count) == ("a", 2)
            again.delete()
            assert len(opened.queue("orders.fifo")) == 0
        held.delete()

    def test_a_duplicate_is_recognized_in_the_restored_file(self, sqs, tmp_path, clock):
        fifo = sqs.create_queue("orders.fifo", fifo=True, content_based_deduplication=True)
        sent = fifo.send("a", group_id="g")
        backup(sqs._store, tmp_path / "fifo.backup")
        restore(tmp_path / "fifo.backup", tmp_path / "fifo.db")
        with sqsqlite.connect(tmp_path / "fifo.db", clock=clock) as opened:
            assert opened.queue("orders.fifo").send("a", group_id="g") == sent
            assert len(opened.queue("orders.fifo")) == 1

    def test_a_move_task_continues(self, sqs, tmp_path, clock):
        """In the copy too: the process that worked on it belongs to the original."""
        dead = sqs.create_queue("dead")
        queue = sqs.create_queue("failing", dead_letter_queue=dead, max_receive_count=1)
        queue.send_many(["a", "b", "c"])
        queue.receive(3, visibility_timeout=0)
        queue.receive()
        sqs.client.start_message_move_task(SourceArn=dead.arn, MaxNumberOfMessagesPerSecond=1)
        backup(sqs._store, tmp_path / "moving.backup")
        restore(tmp_path / "moving.backup", tmp_path / "moving.db")
        with sqsqlite.connect(tmp_path / "moving.db", clock=clock) as opened:
            assert len(opened.queue("dead")) == 3
            for left in (2, 1, 0):
                clock.advance(1)
                until(lambda left=left: len(opened.queue("dead")) == left)
            assert len(opened.queue("failing")) == 3

    def test_the_restored_file_has_a_new_id_and_secret(self, restored, sqs):
        facts = "SELECT name, bytes FROM sqs_meta WHERE name IN ('file_id', 'secret') ORDER BY name"
        with restored._store.reading() as new, sqs._store.reading() as old:
            pairs = list(zip(new.execute(facts).fetchall(), old.execute(facts).fetchall(), strict=True))
        assert [(new[0], len(new[1]), new[1] != old[1]) for new, old in pairs] == [
            ("file_id", 16, True),
            ("secret", 32, True),
        ]

    def test_restore_never_overwrites_a_file(self, held, tmp_path, path):
        for target in (path, tmp_path / "a.backup"):
            with pytest.raises((errors.TargetExists, errors.FileInUse)):
                restore(tmp_path / "a.backup", target)

    def test_a_wal_left_at_the_new_path_is_refused(self, held, tmp_path):
        """SQLite would write its pages into the new file."""
        (tmp_path / "new.db-wal").write_bytes(b"old pages")
        with pytest.raises(errors.FileInUse, match=r"new\.db-wal"):
            restore(tmp_path / "a.backup", tmp_path / "new.db")

    def test_a_damaged_backup_is_refused(self, held, tmp_path):
        damaged = bytearray((tmp_path / "a.backup").read_bytes())
        damaged[PAGE_SIZE * 3 : PAGE_SIZE * 4] = b"\xff" * PAGE_SIZE
        (tmp_path / "a.backup").write_bytes(damaged)
        with pytest.raises(errors.Corrupt):
            restore(tmp_path / "a.backup", tmp_path / "new.db")
        assert not (tmp_path / "new.db").exists()

    def test_a_truncated_backup_is_refused(self, held, tmp_path):
        os.truncate(tmp_path / "a.backup", PAGE_SIZE * 5)
        with pytest.raises(errors.Corrupt):
            restore(tmp_path / "a.backup", tmp_path / "new.db")
        assert not (tmp_path / "new.db").exists()

    def test_a_file_that_is_not_a_backup_is_refused(self, tmp_path):
        (tmp_path / "text").write_text("hello " * 1000)
        connection = sqlite3.connect(tmp_path / "other.db")
        connection.execute("CREATE TABLE a (b)")
        connection.close()
        for source, error in (
            ("none", errors.CannotOpen),
            ("text", errors.NotADatabase),
            ("other.db", errors.NotAdopted),
        ):
            with pytest.raises(error):
                restore(tmp_path / source, tmp_path / "new.db")

    def test_a_newer_backup_is_refused(self, held, tmp_path):
        connection = sqlite3.connect(tmp_path / "a.backup")
        connection.execute("UPDATE sqs_meta SET number = 99 WHERE name = 'schema_version'")
        connection.commit()
        connection.close()
        with pytest.raises(errors.SchemaTooNew):
            restore(tmp_path / "a.backup", tmp_path / "new.db")

    def test_a_file_that_was_killed_is_restored_with_its_wal(self, tmp_path, path, clock):
        """A copy of file and WAL, taken while no process had them open, is a backup too."""
        program = (
            "import os, signal, sys, sqsqlite; sqs = sqsqlite.connect(sys.argv[1]);"
            "sqs.create_queue('orders').send('last words'); os.kill(os.getpid(), signal.SIGKILL)"
        )
        subprocess.run([sys.executable, "-c", program, tmp_path / "dead.db"], timeout=600, check=False)
        assert (tmp_path / "dead.db-wal").stat().st_size > 0
        restore(tmp_path / "dead.db", tmp_path / "new.db")
        with sqsqlite.connect(tmp_path / "new.db") as restored:
            assert [message.body for message in restored.queue("orders").receive()] == ["last words"]
