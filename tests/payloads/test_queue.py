# SPDX-License-Identifier: Apache-2.0
"""Big bodies through the Python API, with a folder as the store."""

import json
import subprocess
import sys

import pytest

from sqsqlite import errors
from sqsqlite.payloads import (
    Counts,
    PayloadMissing,
    PayloadStore,
    PayloadStoreDown,
    PointerRefused,
    extend,
)

BIG = "Zürich " * 300  # 2,400 bytes
POINTER = "software.amazon.payloadoffloading.PayloadS3Pointer"


def test_a_big_body_goes_to_the_folder_and_comes_back(queue, plain, folder, kept, store):
    sent = queue.send(BIG, attributes={"City": "Zürich", "Count": 3})
    [name] = kept()
    assert kept()[name] == BIG
    [owner] = folder.iterdir()
    [peeked] = plain.peek()
    assert json.loads(peeked.body) == [
        POINTER,
        {"s3BucketName": "payloads", "s3Key": f"{owner.name}/{name}"},
    ]
    [message] = queue.receive()
    assert (message.body, message.message_id) == (BIG, sent.message_id)
    assert message.attributes == {"City": "Zürich", "Count": 3}
    message.change_visibility(60)
    message.delete()
    assert (kept(), len(plain)) == ({}, 0)
    assert store.counts == Counts(stored=1, fetched=1, removed=1)


def test_the_stored_message_has_the_attribute_of_amazons_clients(queue, plain):
    queue.send(BIG)
    [message] = plain.receive()
    assert message.attributes == {"ExtendedPayloadSize": len(BIG.encode())}


@pytest.mark.parametrize(
    ("body", "attributes", "stored"),
    [
        ("é" * 500, None, 0),
        ("é" * 500 + "x", None, 1),
        # Name, type and value count: 4 + 6 + 6 bytes.
        ("x" * 984, {"City": "Zürih"}, 0),
        ("x" * 985, {"City": "Zürih"}, 1),
        ("x" * 984, {"City": b"123456"}, 0),
        ("x" * 985, {"City": b"123456"}, 1),
    ],
)
def test_body_and_attributes_count_towards_the_threshold_in_utf_8(queue, store, body, attributes, stored):
    queue.send(body, attributes=attributes)
    assert store.counts.stored == stored
    [message] = queue.receive()
    assert (message.body, message.attributes) == (body, attributes or {})


def test_always_sends_every_body_to_the_store(plain, folder, kept):
    extend(plain, PayloadStore(folder, always=True)).send("x")
    assert list(kept().values()) == ["x"]


def test_messages_of_send_many_and_delete_many_have_payloads(queue, kept, plain):
    queue.send_many([BIG, "small", {"body": BIG + "2", "attributes": {"City": "Bern"}, "delay": 0}])
    assert sorted(kept().values()) == [BIG, BIG + "2"]
    messages = queue.receive(10)
    assert sorted(message.body for message in messages) == [BIG, BIG + "2", "small"]
    assert [message.attributes for message in messages if message.body == BIG + "2"] == [{"City": "Bern"}]
    queue.delete_many([messages[0], *(message.receipt_handle for message in messages[1:])])
    assert (kept(), len(plain)) == ({}, 0)


@pytest.mark.parametrize("messages", ["text", {"body": "text"}, [3], [{"text": "x"}]])
def test_what_send_many_refuses_it_still_refuses(queue, messages):
    with pytest.raises((TypeError, ValueError)):
        queue.send_many(messages)


def test_a_handle_is_enough_to_delete_message_and_payload(queue, sqs, store, kept):
    """In another process, say: the handle names the payload."""
    queue.send(BIG)
    [message] = queue.receive()
    extend(sqs.client, store).delete_message(QueueUrl="orders", ReceiptHandle=message.receipt_handle)
    assert kept() == {}


def test_a_delete_that_is_refused_leaves_the_payload(queue, clock, kept):
    queue.send(BIG)
    [message] = queue.receive(visibility_timeout=1)
    clock.advance(2)
    with pytest.raises(errors.LeaseLost):
        message.delete()
    with pytest.raises(errors.LeaseLost):
        queue.delete_many([message])
    assert list(kept().values()) == [BIG]
    [again] = queue.receive()
    assert again.body == BIG


def test_a_store_may_keep_payloads_that_others_refer_to(plain, folder, kept):
    queue = extend(plain, PayloadStore(folder, threshold=0, remove=False))
    queue.send(BIG)
    [message] = queue.receive()
    message.delete()
    assert (len(plain), list(kept().values())) == (0, [BIG])


# --- FIFO


@pytest.fixture
def fifo(sqs, store):
    made = sqs.create_queue("steps.fifo", fifo=True, content_based_deduplication=True, visibility_timeout=30)
    return extend(made, store)


def test_equal_big_bodies_are_deduplicated_by_their_content(fifo):
    """The pointers differ."""
    first, second = fifo.send(BIG, group_id="a"), fifo.send(BIG, group_id="a")
    assert first.message_id == second.message_id
    fifo.send_many([{"body": BIG, "group_id": "a"}, {"body": BIG + "2", "group_id": "a"}])
    assert len(fifo) == 2


def test_a_queue_without_content_based_deduplication_still_wants_an_id(sqs, store):
    queue = extend(sqs.create_queue("other.fifo", fifo=True), store)
    with pytest.raises(errors.InvalidParameterValue):
        queue.send(BIG, group_id="a")
    queue.send(BIG, group_id="a", deduplication_id="1")
    assert len(queue) == 1


def test_a_message_behind_a_lost_payload_does_not_overtake_it(fifo, folder, clock, caplog):
    """Those of another group are delivered."""
    fifo.send(BIG, group_id="a")
    fifo.send("second", group_id="a")
    fifo.send("other", group_id="b")
    [lost] = [found for found in folder.rglob("*") if found.is_file()]
    content = lost.read_bytes()
    lost.unlink()
    assert [message.body for message in fifo.receive(10)] == ["other"]
    assert "is missing" in caplog.text or "has no" in caplog.text
    assert "1 messages behind" in caplog.text
    lost.write_bytes(content)
    clock.advance(31)
    assert [message.body for message in fifo.receive(10) if message.group_id == "a"] == [BIG, "second"]


# --- a store that fails


def test_a_lost_payload_is_an_error_and_its_message_stays(queue, folder, kept, clock, store, plain):
    sent = queue.send(BIG)
    [path] = [found for found in folder.rglob("*") if found.is_file()]
    path.unlink()
    with pytest.raises(PayloadMissing, match=rf"{sent.message_id}.* has no .*stays in its queue") as caught:
        queue.receive()
    assert caught.value.message_id == sent.message_id
    assert caught.value.pointer.key.endswith(path.name)
    assert queue.receive() == []
    clock.advance(31)
    path.write_text(BIG, "utf-8")
    [message] = queue.receive()
    assert (message.body, message.receive_count) == (BIG, 2)
    assert store.counts.missing == 1


def test_the_error_has_the_handle_that_deletes_the_message(queue, folder, plain):
    queue.send(BIG)
    for found in folder.rglob("*"):
        if found.is_file():
            found.unlink()
    with pytest.raises(PayloadMissing) as caught:
        queue.receive()
    queue.delete_many([caught.value.receipt_handle])
    assert len(plain) == 0


def test_the_others_of_a_batch_are_delivered(queue, folder, clock, caplog):
    queue.send(BIG)
    [path] = [found for found in folder.rglob("*") if found.is_file()]
    queue.send_many([BIG + "2", "small"])
    path.unlink()
    assert sorted(message.body for message in queue.receive(10)) == [BIG + "2", "small"]
    assert "has no" in caplog.text
    assert len(queue) == 3


def test_another_object_in_its_place_is_not_taken_for_the_payload(queue, folder):
    queue.send(BIG)
    [path] = [found for found in folder.rglob("*") if found.is_file()]
    path.write_text("another")
    with pytest.raises(PayloadMissing, match="7 bytes, and 2,400 were sent"):
        queue.receive()


def test_bytes_that_are_no_text_are_an_error(queue, folder):
    queue.send("é" * 600)
    [path] = [found for found in folder.rglob("*") if found.is_file()]
    path.write_bytes(b"\xff" * 1_200)
    with pytest.raises(PayloadMissing, match="no text in UTF-8"):
        queue.receive()


def test_while_the_folder_is_gone_nothing_is_sent_and_nothing_is_lost(queue, folder, tmp_path, clock, store):
    queue.send(BIG)
    folder.rename(tmp_path / "away")
    with pytest.raises(PayloadStoreDown, match="can't be used") as caught:
        queue.send(BIG)
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(PayloadStoreDown):
        queue.send_many(["small", BIG])
    assert not folder.exists()  # a missing mount must not be replaced by a folder
    assert len(queue) == 1
    queue.send("small")
    messages = queue.receive(10)
    assert [message.body for message in messages] == ["small"]
    (tmp_path / "away").rename(folder)
    clock.advance(31)
    assert BIG in [message.body for message in queue.receive(10)]
    assert store.counts.down == 3


def test_a_store_that_is_down_is_asked_once_for_a_batch(queue, folder, tmp_path, store):
    queue.send_many([BIG] * 5)
    folder.rename(tmp_path / "away")
    with pytest.raises(PayloadStoreDown):
        queue.receive(10)
    assert store.counts.down == 1
    assert len(queue) == 5


def test_a_folder_that_cannot_be_written_is_down(plain, tmp_path):
    """A file stands where the owner's folder would be: that fails for root too."""
    folder = tmp_path / "payloads"
    queue = extend(plain, PayloadStore(folder, threshold=0))
    queue.send("x")
    [owner] = folder.iterdir()
    for found in owner.iterdir():
        found.unlink()
    owner.rmdir()
    owner.write_text("in the way")
    with pytest.raises(PayloadStoreDown):
        queue.send("y")
    assert len(plain) == 1


def test_a_payload_that_cannot_be_removed_is_counted_and_the_delete_succeeds(queue, folder, store, tmp_path):
    queue.send(BIG)
    [message] = queue.receive()
    folder.rename(tmp_path / "away")
    message.delete()
    assert len(queue) == 0
    assert store.counts.not_removed == 1


# --- pointers that anyone may have sent


@pytest.mark.parametrize(
    ("bucket", "key"),
    [
        ("payloads", "../secret"),
        ("payloads", "a/../../secret"),
        ("payloads", "/etc/passwd"),
        ("payloads", "a//b"),
        ("payloads", "./secret"),
        ("payloads", ""),
        ("payloads", "a\x00b"),
        ("payloads", "a\\..\\b"),
        ("payloads", "a\ud800"),
        ("payloads", "a" * 1_025),
        ("other", "secret"),
    ],
)
def test_a_pointer_out_of_the_store_is_refused(queue, plain, tmp_path, store, bucket, key):
    (tmp_path / "secret").write_text("x")
    plain.send(
        json.dumps([POINTER, {"s3BucketName": bucket, "s3Key": key}]), attributes={"ExtendedPayloadSize": 1}
    )
    with pytest.raises(PointerRefused, match="does not lead below file://"):
        queue.receive()
    assert store.counts.refused == 1
    assert len(plain) == 1


def test_a_link_in_the_folder_does_not_lead_out_of_it(queue, plain, folder, tmp_path):
    (tmp_path / "secret").write_text("x")
    (folder / "link").symlink_to(tmp_path / "secret")
    plain.send(
        json.dumps([POINTER, {"s3BucketName": "payloads", "s3Key": "link"}]),
        attributes={"ExtendedPayloadSize": 1},
    )
    with pytest.raises(PayloadMissing, match="leads out of the folder"):
        queue.receive()


@pytest.mark.parametrize(
    "body", ["text", "[]", "[1, 2]", '["other", {"s3BucketName": "a", "s3Key": "b"}]', "[" * 5_000]
)
def test_a_body_that_is_no_pointer_is_refused(queue, plain, body):
    plain.send(body, attributes={"ExtendedPayloadSize": 1})
    with pytest.raises(PointerRefused, match="no pointer"):
        queue.receive()


def test_a_message_of_an_older_client_is_read(queue, plain, folder):
    """Another class and another attribute."""
    (folder / "old").write_text("body")
    pointer = ["com.amazon.sqs.javamessaging.MessageS3Pointer", {"s3BucketName": "payloads", "s3Key": "old"}]
    plain.send(json.dumps(pointer), attributes={"SQSLargePayloadSize": 4})
    [message] = queue.receive()
    assert (message.body, message.attributes) == ("body", {})


@pytest.mark.parametrize("name", ["ExtendedPayloadSize", "SQSLargePayloadSize"])
def test_the_reserved_attributes_cannot_be_sent(queue, name):
    with pytest.raises(ValueError, match="reserved"):
        queue.send("small", attributes={name: 1})
    assert len(queue) == 0


def test_a_payload_leaves_room_for_nine_attributes(queue, kept):
    ten = {f"a{number}": 1 for number in range(10)}
    queue.send("small", attributes=ten)
    with pytest.raises(ValueError, match="may have 9"):
        queue.send(BIG, attributes=ten)
    assert kept() == {}
    del ten["a0"]
    queue.send(BIG, attributes=ten)
    assert len(queue) == 2


# --- options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threshold": -1}, "0 to 1,048,576"),
        ({"threshold": 1_048_577}, "0 to 1,048,576"),
        ({"owner": "a/b"}, "letters"),
        ({"owner": ""}, "letters"),
    ],
)
def test_options_out_of_their_range_are_refused(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        PayloadStore(tmp_path / "payloads", **options)
    assert not (tmp_path / "payloads").exists()


def test_a_folder_has_no_options(tmp_path):
    with pytest.raises(TypeError, match="endpoint_url"):
        PayloadStore(tmp_path / "payloads", endpoint_url="http://localhost")


@pytest.mark.parametrize("url", ["/", "file:///", "file://host/folder"])
def test_a_folder_needs_a_name_on_this_machine(url):
    with pytest.raises(ValueError, match=r"no name|three slashes"):
        PayloadStore(url)


def test_a_folder_in_a_missing_folder_is_down(tmp_path):
    with pytest.raises(PayloadStoreDown):
        PayloadStore(tmp_path / "missing" / "payloads")


def test_a_folders_name_is_made_fit_for_a_url(plain, tmp_path):
    store = PayloadStore((tmp_path / "big bodies").as_uri(), threshold=0)
    queue = extend(plain, store)
    queue.send("x")
    [peeked] = plain.peek()
    assert json.loads(peeked.body)[1]["s3BucketName"] == "big%20bodies"
    assert [message.body for message in queue.receive()] == ["x"]


def test_a_queue_is_extended_once(queue, store):
    with pytest.raises(TypeError, match="already"):
        extend(queue, store)
    with pytest.raises(TypeError, match="allowed"):
        extend("orders", store)


def test_another_folder_of_the_same_name_reads_the_payloads(queue, plain, folder, tmp_path):
    """A folder may be mounted elsewhere on another machine."""
    queue.send(BIG)
    elsewhere = tmp_path / "mnt" / "payloads"
    elsewhere.parent.mkdir()
    folder.rename(elsewhere)
    [message] = extend(plain, PayloadStore(elsewhere)).receive()
    assert message.body == BIG


def test_the_folder_needs_no_fsspec_and_other_urls_name_the_extra(tmp_path):
    """None in sys.modules is a package that is not installed."""
    program = """
import sys
sys.modules["fsspec"] = None
from sqsqlite.payloads import PayloadStore
PayloadStore("payloads").put(b"x")
PayloadStore("s3://bucket/prefix")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (tmp_path / "payloads" / "remote").is_dir()
    assert (
        "ModuleNotFoundError: a payload store at s3://bucket/prefix needs fsspec: pip install" in done.stderr
    )
    assert "[payloads]" in done.stderr


@pytest.mark.parametrize("url", ["s3://", "s3:///key", "s3://bucket?versions=1", "simplecache::s3://bucket"])
def test_a_url_without_a_bucket_is_refused(url):
    with pytest.raises(ValueError, match="such as s3://BUCKET/PREFIX"):
        PayloadStore(url)


def test_the_other_errors_of_a_receive_are_logged(queue, folder, caplog):
    sent = queue.send_many([BIG, BIG])
    for found in folder.rglob("*"):
        if found.is_file():
            found.unlink()
    with pytest.raises(PayloadMissing) as caught:
        queue.receive(10)
    [other] = {one.message_id for one in sent} - {caught.value.message_id}
    assert other in caplog.text
