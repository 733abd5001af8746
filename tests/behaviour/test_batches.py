# SPDX-License-Identifier: Apache-2.0
"""The three batches: errors of the whole request, and failures of single entries."""

import re

import pytest

from tests.behaviour.bound_queue import BoundQueue, without_metadata
from tests.behaviour.moving import policy
from tests.behaviour.refusals import bad_value, does_not_exist, expired, refused, wrong_queue_type

BATCH_BYTES = 1_048_576
BAD_ID = (
    "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
    "It can be at most 80 letters long."
)
GONE = "Message does not exist or is not available for visibility timeout change"
ACTIONS = {
    "send_message_batch": ("SendMessageBatchRequestEntry", {"MessageBody": "x"}),
    "delete_message_batch": ("DeleteMessageBatchRequestEntry", {"ReceiptHandle": "x"}),
    "change_message_visibility_batch": (
        "ChangeMessageVisibilityBatchRequestEntry",
        {"ReceiptHandle": "x", "VisibilityTimeout": 1},
    ),
}


@pytest.fixture(params=ACTIONS)
def batch(request, queue):
    """Ask one of the three batches for entries with these ids."""
    members = ACTIONS[request.param][1]

    def ask(*ids):
        return getattr(queue.client, request.param)(
            QueueUrl=queue.url, Entries=[{"Id": entry_id, **members} for entry_id in ids]
        )

    ask.entry_type = ACTIONS[request.param][0]
    return ask


def failure(entry_id, code, message):
    return {"Id": entry_id, "SenderFault": True, "Code": code, "Message": message}


# The whole request


@pytest.mark.rule("batch.1", "error.7")
def test_a_batch_has_at_least_one_entry(queue, batch):
    with refused(
        queue.client,
        "EmptyBatchRequest",
        f"There should be at least one {batch.entry_type} in the request.",
    ):
        batch()


@pytest.mark.rule("batch.2")
def test_a_batch_has_at_most_10_entries(queue, batch):
    batch(*map(str, range(10)))
    with refused(
        queue.client,
        "TooManyEntriesInBatchRequest",
        "Maximum number of entries per request are 10. You have sent 11.",
    ):
        batch(*map(str, range(11)))


@pytest.mark.rule("batch.3", "batch.4", "batch.5")
@pytest.mark.parametrize("entry_id", ["", "i" * 81, "a b", "a.b", "ä", "a\n"])
def test_an_entrys_id_has_1_to_80_letters_digits_hyphens_and_underscores(queue, batch, entry_id):
    batch("i" * 80, "A-b_9")
    with refused(queue.client, "InvalidBatchEntryId", BAD_ID):
        batch("fine", entry_id)


@pytest.mark.rule("batch.6", "batch.7")
def test_the_ids_of_a_batch_are_distinct(queue, batch):
    """The error names the first repeated id."""
    with refused(queue.client, "BatchEntryIdsNotDistinct", "Id b repeated."):
        batch("a", "b", "c", "b", "a")


@pytest.mark.rule("batch.8")
def test_errors_of_a_batch_are_checked_in_sqss_order(queue, batch):
    """First too many entries, then malformed ids, then repeated ids."""
    with refused(queue.client, "TooManyEntriesInBatchRequest", re.compile("You have sent 12")):
        batch(*["a b"] * 12)
    with refused(queue.client, "InvalidBatchEntryId", BAD_ID):
        batch("a", "a", "a b")


@pytest.mark.rule("batch.9", "batch.10", "batch.11")
def test_a_batch_of_exactly_1_mib_is_allowed_and_one_more_byte_is_not(queue):
    """Bodies and user attributes of all entries count together. A refused batch sends no entry."""
    attributes = {"name": {"DataType": "String", "StringValue": "value"}}
    used = len("name") + len("String") + len("value")
    half = BATCH_BYTES // 2
    queue.send_batch(
        {"MessageBody": "x" * half},
        {"MessageBody": "x" * (half - used), "MessageAttributes": attributes},
    )
    with refused(
        queue.client,
        "BatchRequestTooLong",
        f"Batch requests cannot be longer than {BATCH_BYTES} bytes. You have sent {BATCH_BYTES + 1} bytes.",
    ):
        queue.send_batch(
            {"MessageBody": "x" * half},
            {"MessageBody": "x" * (half - used + 1), "MessageAttributes": attributes},
        )
    assert queue.counts == (2, 0, 0)


@pytest.mark.rule("batch.12")
def test_a_batch_of_one_long_message_is_a_long_batch(queue):
    """The error is BatchRequestTooLong, not that of a long message in a single send."""
    with refused(queue.client, "BatchRequestTooLong", re.compile(f"You have sent {BATCH_BYTES + 1} bytes")):
        queue.send_batch({"MessageBody": "x" * (BATCH_BYTES + 1)})


@pytest.mark.rule("batch.13")
def test_a_queues_maximum_message_size_does_not_limit_the_batch(make_queue):
    queue = make_queue(MaximumMessageSize=1024)
    answer = queue.send_batch(*[{"MessageBody": "x" * 1024}] * 10)
    assert len(answer["Successful"]) == 10


# SendMessageBatch


@pytest.mark.rule("metadata.8", "batch.14", "batch.21")
def test_a_batchs_entries_are_sent_in_order_each_with_its_answer(queue):
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}
    answer = queue.send_batch(
        {"MessageBody": "test"},
        {"MessageBody": "hello", "MessageAttributes": {"k": {"DataType": "String", "StringValue": "x"}}},
        {"MessageBody": "x", "MessageSystemAttributes": trace},
    )
    assert "Failed" not in answer
    messages = queue.receive(10)
    assert [message["Body"] for message in messages] == ["test", "hello", "x"]
    first, second, third = answer["Successful"]
    assert first == {
        "Id": "0",
        "MessageId": messages[0]["MessageId"],
        "MD5OfMessageBody": "098f6bcd4621d373cade4e832627b4f6",
    }
    assert (second["Id"], second["MD5OfMessageAttributes"]) == ("1", "a45daa70926828a2f0a1db3418e6feb4")
    assert (third["Id"], third["MessageId"]) == ("2", messages[2]["MessageId"])
    assert re.fullmatch("[0-9a-f]{32}", third["MD5OfMessageSystemAttributes"])


@pytest.mark.rule("batch.15")
def test_each_entry_has_a_delay_of_its_own(make_queue, clock):
    queue = make_queue(DelaySeconds=5)
    queue.send_batch(
        {"MessageBody": "now", "DelaySeconds": 0},
        {"MessageBody": "later", "DelaySeconds": 10},
        {"MessageBody": "the queue's"},
    )
    seen = []
    for _ in range(3):
        seen.append(queue.bodies())
        clock.advance(5)
    assert seen == [["now"], ["the queue's"], ["later"]]


@pytest.mark.rule("batch.16", "batch.17", "batch.18", "batch.19")
def test_a_refused_entry_leaves_the_others_alone(make_queue):
    """The status is 200. The failures carry Query codes, and name the sender as at fault."""
    queue = make_queue(MaximumMessageSize=1024)
    empty_value = {"a": {"DataType": "String", "StringValue": ""}}
    answer = queue.send_batch(
        {"MessageBody": "first"},
        {"MessageBody": "x" * 1025},
        {"MessageBody": "delayed", "DelaySeconds": 901},
        {"MessageBody": "attribute", "MessageAttributes": empty_value},
        {"MessageBody": ""},
        {"MessageBody": "deduplicated", "MessageDeduplicationId": "d"},
        {"MessageBody": "last"},
    )
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert [entry["Id"] for entry in answer["Successful"]] == ["0", "6"]
    invalid = "InvalidParameterValue"
    assert answer["Failed"] == [
        failure(
            "1",
            invalid,
            "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes.",
        ),
        failure(
            "2",
            invalid,
            bad_value("901", "DelaySeconds", "DelaySeconds must be >= 0 and <= 900."),
        ),
        failure(
            "3", invalid, "Message (user) attribute 'a' must contain a non-empty value of type 'String'."
        ),
        failure("4", "MissingParameter", "The request must contain the parameter MessageBody."),
        failure(
            "5",
            invalid,
            wrong_queue_type("MessageDeduplicationId", "d"),
        ),
    ]
    assert queue.bodies() == ["first", "last"]


@pytest.mark.rule("batch.16")
def test_an_entry_with_a_forbidden_character_fails_by_itself(queue):
    answer = queue.send_batch({"MessageBody": "\0"}, {"MessageBody": "fine"})
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("0", "InvalidMessageContents")]
    assert queue.bodies() == ["fine"]


@pytest.mark.rule("batch.16", "batch.20")
def test_when_every_entry_fails_the_request_has_still_succeeded(queue):
    """As in SQS, the answer then has no `Successful`."""
    answer = queue.send_batch({"MessageBody": "x", "DelaySeconds": -1})
    assert set(without_metadata(answer)) == {"Failed"}
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


# DeleteMessageBatch


@pytest.mark.rule("batch.22", "handle.5", "handle.8", "handle.9")
def test_a_batch_deletes_what_it_can(queue, make_queue):
    """Each handle succeeds or fails by itself. To delete a deleted message is a success."""
    queue.send_all("a", "b", "c")
    first, second, third = (message["ReceiptHandle"] for message in queue.receive(3))
    queue.delete({"ReceiptHandle": second})
    other = make_queue("other")
    other.send()
    stranger = other.receive_one()["ReceiptHandle"]
    answer = queue.delete_batch(first, "garbage", second, stranger, third)
    assert answer["Successful"] == [{"Id": "0"}, {"Id": "2"}, {"Id": "4"}]
    assert answer["Failed"] == [
        failure(
            "1",
            "ReceiptHandleIsInvalid",
            'The input receipt handle "garbage" is not a valid receipt handle.',
        ),
        failure(
            "3", "ReceiptHandleIsInvalid", f'The receipt handle "{stranger}" is not valid for this queue.'
        ),
    ]
    assert queue.counts == (0, 0, 0)


@pytest.mark.rule("batch.17", "batch.24", "handle.14")
def test_an_expired_handle_fails_by_itself(queue, clock):
    queue.send_all("a", "b")
    old = queue.receive_one(VisibilityTimeout=5)
    held = queue.receive_one()
    clock.advance(5)
    answer = queue.delete_batch(old["ReceiptHandle"], held["ReceiptHandle"])
    assert answer["Successful"] == [{"Id": "1"}]
    assert answer["Failed"] == [failure("0", "InvalidParameterValue", expired(old))]
    assert queue.bodies() == ["a"]


@pytest.mark.rule("batch.22", "batch.23")
def test_an_empty_handle_fails_by_itself(queue):
    answer = queue.delete_batch("")
    assert answer["Failed"] == [
        failure("0", "MissingParameter", "The request must contain the parameter ReceiptHandle.")
    ]


@pytest.mark.rule("handle.5")
def test_the_same_handle_twice_in_a_batch_is_no_failure(queue):
    queue.send()
    handle = queue.receive_one()["ReceiptHandle"]
    answer = queue.delete_batch(handle, handle)
    assert without_metadata(answer) == {"Successful": [{"Id": "0"}, {"Id": "1"}]}
    assert queue.counts == (0, 0, 0)


# ChangeMessageVisibilityBatch


@pytest.mark.rule("batch.25")
def test_a_batch_gives_each_message_a_timeout_of_its_own(queue, clock):
    queue.send_all("a", "b", "c")
    handles = [message["ReceiptHandle"] for message in queue.receive(3)]
    answer = queue.change_batch(*zip(handles, (0, 60, 90), strict=True))
    assert without_metadata(answer) == {"Successful": [{"Id": "0"}, {"Id": "1"}, {"Id": "2"}]}
    seen = []
    for _ in range(4):
        seen.append(queue.bodies(VisibilityTimeout=3600))
        clock.advance(30)
    assert seen == [["a"], [], ["b"], ["c"]]


@pytest.mark.rule("batch.17", "batch.18", "batch.26", "batch.29", "handle.15", "error.8")
def test_a_batch_changes_what_it_can(queue, clock):
    queue.send_all("a", "b", "c", "d")
    late, gone, fine, long = queue.receive(4)
    queue.change(late, 1)
    queue.delete(gone)
    clock.advance(1)
    handles = [message["ReceiptHandle"] for message in (late, gone, fine, long)]
    answer = queue.change_batch(
        (handles[0], 5), (handles[1], 5), (handles[2], 5), (handles[3], 43_201), ("x", 5), ("", 5)
    )
    assert answer["Successful"] == [{"Id": "2"}]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]] == [
        ("0", "AWS.SimpleQueueService.MessageNotInflight", True),
        ("1", "ReceiptHandleIsInvalid", True),
        ("3", "InvalidParameterValue", True),
        ("4", "ReceiptHandleIsInvalid", True),
        ("5", "MissingParameter", True),
    ]
    assert answer["Failed"][1]["Message"] == GONE


@pytest.mark.rule("batch.29")
def test_a_batch_that_changes_moved_messages_calls_their_handles_invalid(aws):
    """As for a deleted message. Outside a batch, the same handle is an invalid parameter."""
    dead = BoundQueue.create(aws, "dead")
    queue = BoundQueue.create(aws, "q", RedrivePolicy=policy(dead))
    queue.send()
    handle = queue.receive_one(VisibilityTimeout=0)["ReceiptHandle"]
    assert queue.receive() == []
    answer = queue.change_batch((handle, 5))
    assert without_metadata(answer) == {"Failed": [failure("0", "ReceiptHandleIsInvalid", GONE)]}
    with refused(aws, "InvalidParameterValueException", does_not_exist({"ReceiptHandle": handle})):
        queue.change({"ReceiptHandle": handle}, 5)


@pytest.mark.rule("batch.26", "batch.27")
def test_an_entry_without_a_timeout_fails_by_itself(queue):
    """A default would hide the mistake."""
    queue.send()
    handle = queue.receive_one()["ReceiptHandle"]
    answer = queue.client.change_message_visibility_batch(
        QueueUrl=queue.url, Entries=[{"Id": "a", "ReceiptHandle": handle}]
    )
    assert answer["Failed"] == [
        failure("a", "MissingParameter", "The request must contain the parameter VisibilityTimeout.")
    ]


@pytest.mark.rule("batch.6")
def test_a_whole_batch_refused_changes_nothing(queue):
    """Its valid entries change nothing either."""
    queue.send_all("a", "b")
    first, second = queue.receive(2)
    entries = [{"Id": "same", "ReceiptHandle": one["ReceiptHandle"]} for one in (first, second)]
    with refused(queue.client, "BatchEntryIdsNotDistinct", "Id same repeated."):
        queue.client.delete_message_batch(QueueUrl=queue.url, Entries=entries)
    assert queue.counts == (0, 2, 0)
