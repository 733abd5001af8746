# SPDX-License-Identifier: Apache-2.0
"""The sweep: it removes old payloads that no message refers to, and nothing else."""

import os
import time

import pytest

import sqsqlite
from sqsqlite.payloads import PayloadStore, PayloadStoreDown, Swept, extend, sweep
from sqsqlite.testing.files import lay

BIG = "x" * 2_000


@pytest.fixture
def orphan(queue, plain, kept, clock):
    """The name of a payload that a purge has left."""
    queue.send(BIG)
    plain.purge()
    clock.advance(61)
    [name] = kept()
    return name


def aged(folder, name, seconds):
    [path] = folder.rglob(name)
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def discarded(sqs):
    """Let upkeep sweep away what was purged."""
    with sqs._store.reading() as snapshot:
        return snapshot.execute("SELECT count(*) FROM sqs_messages").fetchone()[0] == 0


def test_only_payloads_older_than_a_day_go(sqs, clock, store, folder, orphan, kept):
    wait_until_discarded(sqs, clock)
    aged(folder, orphan, 86_300)
    assert sweep(sqs, store).young == 1
    assert list(kept()) == [orphan]
    aged(folder, orphan, 86_500)
    swept = sweep(sqs, store)
    assert (swept.found, swept.young, swept.removed, swept.removed_bytes, swept.failed) == (1, 0, 1, 2_000, 0)
    assert kept() == {}


def wait_until_discarded(sqs, clock):
    """Purge again: upkeep that was about to rest when the first purge came waits for the next one."""
    while not discarded(sqs):
        clock.advance(61)
        sqs.queue("orders").purge()
        time.sleep(0.01)


def test_messages_in_any_state_and_queue_keep_their_payloads(sqs, queue, store, kept, clock):
    failed = sqs.create_queue("failed")
    queue.set_attributes(dead_letter_queue=failed, max_receive_count=1)
    queue.send(BIG + "dead")
    queue.receive(visibility_timeout=0)
    assert queue.receive() == []
    queue.send(BIG + "in flight")
    queue.receive()
    queue.send(BIG + "visible")
    queue.send(BIG + "delayed", delay=900)
    assert (len(queue), len(failed)) == (3, 1)
    swept = sweep(sqs, store, older_than=0)
    assert (swept.found, swept.referred, swept.removed) == (4, 4, 0)
    assert len(kept()) == 4


def test_objects_of_others_are_not_touched(sqs, queue, store, folder, kept, tmp_path):
    """Those of another file, of clients, of other programs."""
    with sqsqlite.connect(lay(tmp_path / "other.db")) as other:
        extend(other.create_queue("orders"), store).send(BIG)
        queue.send(BIG)
        store.put(b"a client's")
        (folder / "mine.txt").write_text("x")
        assert len(kept()) == 4
        assert sweep(sqs, store, older_than=0).found == 1
        assert sweep(other, store, older_than=0).found == 1
        assert len(kept()) == 4
        swept = sweep(sqs, store, older_than=0, owner="remote")
    assert (swept.owner, swept.removed) == ("remote", 1)
    assert sorted(kept().values()) == ["x", BIG, BIG]


def test_clients_of_an_endpoint_may_have_an_owner_of_their_own(sqs, plain, folder, kept):
    store = PayloadStore(folder, always=True, owner="web")
    queue = extend(plain, store)
    queue.send("x")
    store.put(b"orphan")
    assert [path.name for path in folder.iterdir()] == ["web"]
    assert sweep(sqs, store, older_than=0) == Swept("web", 2, 1, 0, 1, 6, 0)
    assert list(kept().values()) == ["x"]


def test_a_file_that_a_killed_sender_has_not_finished_goes_too(sqs, queue, store, folder, kept):
    queue.send(BIG)
    [owner] = folder.iterdir()
    (owner / ".half.partial").write_text("x")
    assert sweep(sqs, store, older_than=0).removed == 1
    assert list(kept().values()) == [BIG]


def test_a_copy_of_the_file_does_not_sweep_the_payloads_of_its_original(sqs, queue, store, tmp_path, kept):
    queue.send(BIG)
    sqs.backup(tmp_path / "backup")
    sqsqlite.restore(tmp_path / "backup", tmp_path / "copy.db")
    queue.send(BIG + "later")
    with sqsqlite.connect(tmp_path / "copy.db") as copy:
        assert sweep(copy, store, older_than=0).found == 0
        [message] = extend(copy.queue("orders"), store).receive()
    assert message.body == BIG
    assert len(kept()) == 2


def test_a_message_sent_while_a_sweep_runs_keeps_its_payload(sqs, queue, folder, kept):
    """The store is listed before the messages are read, so what comes between them is in the messages alone."""

    class Store(PayloadStore):
        def list(self, owner):
            listed = super().list(owner)
            queue.send(BIG + "after the list")
            return listed

    queue.send(BIG)
    swept = sweep(sqs, Store(folder), older_than=0)
    assert (swept.found, swept.referred, swept.removed) == (1, 1, 0)
    assert len(kept()) == 2


def test_a_store_that_is_down_is_an_error(sqs, queue, store, folder, tmp_path):
    folder.rename(tmp_path / "away")
    with pytest.raises(PayloadStoreDown):
        sweep(sqs, store)


def test_an_empty_store_is_swept(sqs, store):
    assert sweep(sqs, store).found == 0


@pytest.mark.parametrize("age", [-1, float("nan")])
def test_an_age_out_of_range_is_refused(sqs, store, age):
    with pytest.raises(ValueError, match="0 or more"):
        sweep(sqs, store, older_than=age)


def test_payloads_of_expired_messages_go(sqs, queue, store, kept, clock):
    queue.send(BIG)
    clock.advance(5 * 86_400)
    assert queue.receive() == []
    wait_until_discarded(sqs, clock)
    assert sweep(sqs, store, older_than=0).removed == 1
    assert kept() == {}


def test_a_damaged_body_keeps_its_payload(sqs, queue, store, kept):
    """It may be repaired; the sweep goes on."""
    queue.send(BIG)
    with sqs.transaction() as connection:
        connection.execute("UPDATE sqs_messages SET body = CAST(body || x'ff' AS TEXT)")
    swept = sweep(sqs, store, older_than=0)
    assert (swept.referred, swept.removed, len(kept())) == (1, 0, 1)
